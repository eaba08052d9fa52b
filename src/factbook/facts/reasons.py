"""Reasons for unknown values: the closed list of words, each with its meaning and remedy."""

from typing import Final

NOT_CONFIGURED: Final = "not-configured"
NO_ANNOTATION: Final = "no-annotation"
BAD_ANNOTATION: Final = "bad-annotation"
NEVER_COLLECTED: Final = "never-collected"
NOT_SENT: Final = "not-sent"
NOT_APPLICABLE: Final = "not-applicable"
UPSTREAM_ERROR: Final = "upstream-error"
RATE_LIMITED: Final = "rate-limited"
EXPIRED: Final = "expired"
TOO_LARGE: Final = "too-large"
BAD_DEFINITION: Final = "bad-definition"

# The place of a reason that stands for all facts, where it is shown.
EVERYTHING: Final = "*"

# They say nothing about a value, only that it could not be asked for.
PASSING: Final = frozenset({RATE_LIMITED, UPSTREAM_ERROR})

REASONS: Final[dict[str, str]] = {
    NOT_CONFIGURED: (
        "No integration that determines this is configured on this server. Asking again does not "
        "help; an administrator can configure one."
    ),
    NO_ANNOTATION: (
        "The entity lacks the annotation that says where to look. Its owner can add it; the "
        "entityFilter of the data source, in get-data-source-discovery, shows which."
    ),
    BAD_ANNOTATION: (
        "The entity has the annotation that says where to look, but its value cannot be read; the "
        "detail says what it should be. Its owner can correct it."
    ),
    NOT_APPLICABLE: (
        "There is no such thing for this entity, for instance no merged pull request to take an "
        "average of. Nothing needs to be done."
    ),
    NEVER_COLLECTED: (
        "No collection has reached this entity yet. Ask again after the next run of the data "
        "source; its cadence is in get-data-source-discovery."
    ),
    NOT_SENT: (
        "Facts of this data source are pushed, and no push sent this one. Asking again doesn't "
        "help; the script that pushes can send it, or state why it is unknown."
    ),
    BAD_DEFINITION: (
        "The definition of the data source doesn't fit the value or document; the detail names the "
        "key. The owner of the data source can correct the definition, or what is sent to it."
    ),
    "not-found": (
        "The vendor does not know what the entity's annotation names, or hides it. The entity's "
        "owner can correct the annotation."
    ),
    "forbidden": (
        "The credential of the integration may not read this, or is not accepted; the detail says "
        "which. An administrator can widen its permissions, or renew it."
    ),
    "feature-off": (
        "The feature is switched off at the vendor, or is not part of the plan or of this version. "
        "An administrator there can switch it on or upgrade."
    ),
    RATE_LIMITED: (
        "The vendor's rate limit was reached before a first value was read. The next run tries "
        "again; ask again after it."
    ),
    TOO_LARGE: (
        "There is more of it than this server reads. The detail names the limit; where it is a "
        "setting, an administrator can raise it."
    ),
    UPSTREAM_ERROR: (
        "The vendor did not answer, or answered what cannot be used. The next run tries again; if "
        "this stays, an administrator can look at the runs of the data source."
    ),
    EXPIRED: (
        "The last value is too old to rely on: no run since then could renew it, and the detail "
        "says why. An administrator can look at the runs of the data source."
    ),
}

# Said instead where a value is needed for an answer, and is not there.
NEEDED: Final[dict[str, str]] = REASONS | {
    NOT_APPLICABLE: (
        "No data source that was asked has such a value for this entity, and asking again does not "
        "help. An administrator can configure one that has it, or the fact can be pushed; "
        "get-entity-facts has what each data source knows."
    ),
}


def word(reason: str) -> str:
    """The word of a stored reason, which may be followed by details: `upstream-error: details`.

    A reason that starts with none of these words counts as `upstream-error`.
    """
    found = reason.partition(":")[0]
    return found if found in REASONS else UPSTREAM_ERROR
