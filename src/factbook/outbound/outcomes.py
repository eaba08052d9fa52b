"""Outcomes of a call: the raw reply, the answer to read, and the reasons for missing values.

A refused credential (`REFUSED`) says nothing about an entity; the vendor's verdict on the entity
itself (`DENIED`: this repository may not be read) counts at once.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar

import msgspec


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
    BAD_DEFINITION = "bad-definition"


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
    # Or an answer of another form than usual.
    Outcome.BAD_DEFINITION: Meaning("bad-definition", passing=True),
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


T = TypeVar("T")

EMPTY: Final[Mapping[str, str]] = MappingProxyType({})
_LINK = re.compile(r'<([^<>]*)>\s*((?:;\s*[\w*]+\s*=\s*(?:"[^"]*"|[^",;\s]*)\s*)*)')
_RELATION = re.compile(r';\s*rel\s*=\s*(?:"([^"]*)"|([^",;\s]*))', re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class HostReply:
    """Response to one call; if there is none, `status` is 0 and `failure` gives the reason.

    Header names are in lower case. `repeatable`: another attempt may succeed.
    """

    status: int
    headers: Mapping[str, str] = field(default_factory=lambda: EMPTY, repr=False)
    body: bytes = field(default=b"", repr=False)
    failure: str = ""
    repeatable: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """Result of one request, classified by `outcome`.

    `data` is the decoded JSON body, None if there is none. `detail` describes the failure in a
    sentence without any text from the host. `retry_at` is the time at which a rate limit allows the
    next call, in milliseconds. `remembered`: an earlier answer that the host confirmed as still
    valid. `status` is 0 if no answer arrived or no call was made.
    """

    outcome: Outcome
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=lambda: EMPTY, repr=False)
    body: bytes = field(default=b"", repr=False)
    data: Any = field(default=None, repr=False)
    detail: str = ""
    retry_at: int | None = None
    remembered: bool = False

    @property
    def ok(self) -> bool:
        """True if there is something to read."""
        return self.outcome is Outcome.OK

    @property
    def missing(self) -> Missing:
        """The reason for values that this answer should have provided."""
        return Missing(self.outcome, self.detail)

    @property
    def message(self) -> str:
        """The host's own `message`, for comparison; never to be shown."""
        found = self.data.get("message") if isinstance(self.data, dict) else None
        return found if isinstance(found, str) else ""

    def read_as(self, type_: type[T]) -> T | Missing:
        """The data as this type, or the reason that there are none."""
        return read_as(self.data, type_) if self.ok else self.missing

    def link(self, relation: str) -> str | None:
        """The URL in the Link header (RFC 8288) for the relation, e.g. `next`."""
        for address, parameters in _LINK.findall(self.headers.get("link", "")):
            found = _RELATION.search(parameters)
            if found and relation in (found[1] or found[2] or "").lower().split():
                return str(address)
        return None


def read_as(data: Any, type_: type[T]) -> T | Missing:
    """The data as this type, or the reason that they have another form."""
    try:
        return msgspec.convert(data, type_)
    except (msgspec.ValidationError, OverflowError, RecursionError):
        return UNUSABLE
