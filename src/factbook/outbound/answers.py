"""Results of a call: the raw reply of a host, and the answer that an integration reads."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, TypeVar

import msgspec

from factbook.outbound.outcomes import UNUSABLE, Missing, Outcome

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
