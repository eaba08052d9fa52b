"""How asking a vendor can end, and which reason each end gives a value that is missing for it."""

from enum import Enum
from typing import Final, NamedTuple


class Outcome(Enum):
    """How a question to a vendor, or the search for one value in its answer, ended."""

    OK = "ok"
    DENIED = "denied"
    FEATURE_OFF = "feature-off"
    NOT_FOUND = "not-found"
    NOT_APPLICABLE = "not-applicable"
    NO_ANNOTATION = "no-annotation"
    RATE_LIMITED = "rate-limited"
    TRANSIENT = "transient"


class Meaning(NamedTuple):
    """What an outcome says of a value that is missing.

    `reason` is a word of `facts.reasons`. `passing`: the vendor said nothing about the value, so
    the last one is kept for a while; otherwise the value is unknown at once.
    """

    reason: str
    passing: bool


MEANINGS: Final[dict[Outcome, Meaning]] = {
    Outcome.DENIED: Meaning("forbidden", passing=False),
    Outcome.FEATURE_OFF: Meaning("feature-off", passing=False),
    Outcome.NOT_FOUND: Meaning("not-found", passing=False),
    Outcome.NOT_APPLICABLE: Meaning("not-applicable", passing=False),
    Outcome.NO_ANNOTATION: Meaning("no-annotation", passing=False),
    Outcome.RATE_LIMITED: Meaning("rate-limited", passing=True),
    Outcome.TRANSIENT: Meaning("upstream-error", passing=True),
}


class Missing(NamedTuple):
    """Why a value is missing; `detail` is for people and never holds what the vendor sent."""

    outcome: Outcome
    detail: str = ""

    @property
    def reason(self) -> str:
        """The reason as it is stored: `forbidden`, or `forbidden: needs administration`."""
        word = MEANINGS[self.outcome].reason
        return f"{word}: {self.detail}" if self.detail else word

    @property
    def passing(self) -> bool:
        """Whether the last value is kept for a while."""
        return MEANINGS[self.outcome].passing


UNUSABLE: Final = Missing(Outcome.TRANSIENT, "answered in an unknown form")
TOO_MANY: Final = Missing(Outcome.TRANSIENT, "too many pages to read")
