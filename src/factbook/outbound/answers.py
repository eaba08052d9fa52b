"""What comes back: the bare reply of a host, and the answer that an integration reads."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from factbook.outbound.outcomes import Missing, Outcome

EMPTY: Final[Mapping[str, str]] = MappingProxyType({})
_LINK = re.compile(r'<([^<>]*)>\s*((?:;\s*[\w*]+\s*=\s*(?:"[^"]*"|[^",;\s]*)\s*)*)')
_RELATION = re.compile(r';\s*rel\s*=\s*(?:"([^"]*)"|([^",;\s]*))', re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class HostReply:
    """What one call brought, or why it brought nothing: then `status` is 0 and `failure` says it.

    Header names are in lower case. `repeatable`: another try may bring more.
    """

    status: int
    headers: Mapping[str, str] = field(default_factory=lambda: EMPTY, repr=False)
    body: bytes = field(default=b"", repr=False)
    failure: str = ""
    repeatable: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """The end of one request, told apart by `outcome`.

    `data` is the decoded JSON body, None when there is none. `detail` says in a sentence what went
    wrong, without anything that the host sent. `retry_at` is when a rate limit allows the next
    call, in milliseconds. `remembered`: the host said that an earlier answer still holds, and this
    is it. `status` is 0 when no answer arrived or no call was made.
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
        """Whether there is something to read."""
        return self.outcome is Outcome.OK

    @property
    def missing(self) -> Missing:
        """Why values that this answer should have brought are missing."""
        return Missing(self.outcome, self.detail)

    @property
    def message(self) -> str:
        """The host's own `message`, to compare with; never to show."""
        found = self.data.get("message") if isinstance(self.data, dict) else None
        return found if isinstance(found, str) else ""

    def link(self, relation: str) -> str | None:
        """The address that the Link header (RFC 8288) gives for the relation, e.g. `next`."""
        for address, parameters in _LINK.findall(self.headers.get("link", "")):
            found = _RELATION.search(parameters)
            if found and relation in (found[1] or found[2] or "").lower().split():
                return str(address)
        return None
