"""HTTP calls to a provider: guarded as every outgoing call, with tighter bounds."""

from collections.abc import Awaitable, Mapping
from typing import Final, Protocol, TypeVar
from urllib.parse import urlsplit

import msgspec

from factbook.errors import ConfigurationError, SignInError
from factbook.outbound import HostReply
from factbook.outbound.client import USER_AGENT
from factbook.outbound.sender import Sender
from factbook.outbound.transport import Network
from factbook.settings import Settings

MOST_SECONDS: Final = 10.0
MOST_BYTES: Final = 256 * 1024
HEADERS: Final[Mapping[str, str]] = {"accept": "application/json", "user-agent": USER_AGENT}

T = TypeVar("T")


class Fetch(Protocol):
    """Makes one call, follows no redirect and never raises."""

    def __call__(
        self, method: str, url: str, headers: Mapping[str, str], content: bytes | None = None
    ) -> Awaitable[HostReply]:
        """Make the call; returns the host's reply or the reason for its absence."""


class GuardedFetch:
    """Calls within the settings of outgoing calls. Raises ConfigurationError for wrong ones."""

    def __init__(self, settings: Settings) -> None:
        self._network = Network(settings)
        self._senders: dict[str, Sender] = {}

    async def __call__(
        self, method: str, url: str, headers: Mapping[str, str], content: bytes | None = None
    ) -> HostReply:
        """Make the call; returns the host's reply or the reason for its absence."""
        try:
            sender = self._sender(url)
        except ConfigurationError as error:
            return HostReply(0, failure=error.message)
        return await sender.send(method, url, headers, content)

    async def aclose(self) -> None:
        """Close the connections."""
        for sender in self._senders.values():
            await sender.aclose()
        self._senders.clear()

    def _sender(self, url: str) -> Sender:
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc}"
        if origin not in self._senders:
            self._senders[origin] = self._network.sender(
                origin, seconds=MOST_SECONDS, most_bytes=MOST_BYTES
            )
        return self._senders[origin]


def decoded(reply: HostReply, what: str, form: type[T]) -> T:
    """JSON of a good reply. Raises SignInError, which quotes nothing from the provider."""
    if reply.failure:
        raise SignInError(f"The provider's {what} did not arrive: {reply.failure}.")
    if reply.status != 200:
        raise SignInError(f"The provider's {what} did not arrive: it answered {reply.status}.")
    try:
        return msgspec.json.decode(reply.body, type=form)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise SignInError(f"The provider's {what} cannot be read.") from None
