"""Reasons for unknown facts, in plain words for people."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from factbook.facts.reasons import word


class Reason(NamedTuple):
    """A short form, a sentence with the meaning and the fix, and details from the source."""

    short: str
    sentence: str
    detail: str = ""


_REASONS: Final[Mapping[str, Reason]] = {
    "not-configured": Reason(
        "not configured",
        "Nothing on this server determines it. An administrator can configure what does.",
    ),
    "no-annotation": Reason(
        "no annotation",
        "The entity lacks the annotation that says where to look. Its owner can add it.",
    ),
    "bad-annotation": Reason(
        "annotation not read",
        "The value of the entity's annotation cannot be read. Its owner can correct it.",
    ),
    "not-applicable": Reason(
        "not applicable",
        "There is no such thing for this entity. Nothing needs to be done.",
    ),
    "never-collected": Reason(
        "not collected yet",
        "Nothing was brought for this entity yet.",
    ),
    "not-found": Reason(
        "not found",
        "The vendor does not know what the entity's annotation names, or hides it. "
        "Its owner can correct the annotation.",
    ),
    "forbidden": Reason(
        "not allowed",
        "The credential may not read this, or is not accepted. An administrator can widen its "
        "permissions, or renew it.",
    ),
    "feature-off": Reason(
        "switched off",
        "The feature is off at the vendor, or is not part of the plan.",
    ),
    "rate-limited": Reason(
        "rate limited",
        "The vendor's rate limit was reached before a first value was read. "
        "The next run tries again.",
    ),
    "too-large": Reason(
        "too large",
        "There is more of it than this server reads. Where the limit is a setting, an "
        "administrator can raise it.",
    ),
    "upstream-error": Reason(
        "vendor failed",
        "The vendor did not answer, or answered what cannot be used. The next run tries again; "
        "if this stays, look at the runs of the data source.",
    ),
    "expired": Reason(
        "too old",
        "The last value is too old to rely on, because the runs since then failed. "
        "Look at the runs of the data source.",
    ),
}


def plain(reason: str) -> Reason:
    """Parse a stored reason; text may follow its word: `forbidden: hidden from the credential`."""
    return _REASONS[word(reason)]._replace(detail=reason.partition(":")[2].strip()[:300])
