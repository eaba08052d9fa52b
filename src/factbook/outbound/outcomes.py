"""Outcomes of a call to a vendor, and the reason that each gives for a missing value.

A refused credential (`REFUSED`) says nothing about an entity; the vendor's verdict on the entity
itself (`DENIED`: this repository may not be read) counts at once.
"""

from enum import Enum
from typing import Final, NamedTuple


class Outcome(Enum):
    """Result of a call to a vendor, or of the search for one value in its answer."""

    OK = "ok"
    REFUSED = "refused"
    DENIED = "denied"
    FEATURE_OFF = "feature-off"
    NOT_FOUND = "not-found"
    NOT_APPLICABLE = "not-applicable"
    NO_ANNOTATION = "no-annotation"
    BAD_ANNOTATION = "bad-annotation"
    RATE_LIMITED = "rate-limited"
    TRANSIENT = "transient"
    TOO_LARGE = "too-large"
    INCOMPLETE = "incomplete"


class Meaning(NamedTuple):
    """Consequences of an outcome for a missing value.

    `reason` is one of `facts.reasons`. `passing`: the vendor said nothing about the value, so the
    last one is kept for a while; otherwise the value is unknown at once. `retried`: another call in
    the same run may obtain it.
    """

    reason: str
    passing: bool
    retried: bool = False


MEANINGS: Final[dict[Outcome, Meaning]] = {
    Outcome.REFUSED: Meaning("forbidden", passing=True),
    Outcome.DENIED: Meaning("forbidden", passing=False),
    Outcome.FEATURE_OFF: Meaning("feature-off", passing=False),
    Outcome.NOT_FOUND: Meaning("not-found", passing=False),
    Outcome.NOT_APPLICABLE: Meaning("not-applicable", passing=False),
    Outcome.NO_ANNOTATION: Meaning("no-annotation", passing=False),
    Outcome.BAD_ANNOTATION: Meaning("bad-annotation", passing=False),
    Outcome.RATE_LIMITED: Meaning("rate-limited", passing=True, retried=True),
    Outcome.TRANSIENT: Meaning("upstream-error", passing=True, retried=True),
    Outcome.TOO_LARGE: Meaning("too-large", passing=False),
    # A good answer without a part of it, which another call would only repeat.
    Outcome.INCOMPLETE: Meaning("upstream-error", passing=True),
}


class Missing(NamedTuple):
    """Reason for a missing value; `detail` is for people and never quotes the vendor."""

    outcome: Outcome
    detail: str = ""

    @property
    def reason(self) -> str:
        """The stored form of the reason: `forbidden`, or `forbidden: needs administration`."""
        word = MEANINGS[self.outcome].reason
        return f"{word}: {self.detail}" if self.detail else word

    @property
    def passing(self) -> bool:
        """True if the last value is kept for a while."""
        return MEANINGS[self.outcome].passing

    @property
    def retried(self) -> bool:
        """True if another call in the same run may obtain the value."""
        return MEANINGS[self.outcome].retried


UNUSABLE: Final = Missing(Outcome.TRANSIENT, "answered in an unknown form")
REPEATED: Final = Missing(Outcome.TRANSIENT, "answered with the same page again")


def too_many(most: int, what: str) -> Missing:
    """The reason for a list longer than the limit; `what` is a plural noun."""
    return Missing(Outcome.TOO_LARGE, f"more than {most:,} {what}")
