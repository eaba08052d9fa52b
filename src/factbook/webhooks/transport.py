"""HTTP calls to receivers: guarded as every outgoing call, short, and one at a time."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import urlsplit

from factbook.errors import ConfigurationError, InputError
from factbook.outbound import HostReply
from factbook.settings import Settings
from factbook.settings.option_tables import url_origin
from factbook.telemetry.spans import NO_TRACER, Tracer

if TYPE_CHECKING:
    from factbook.outbound.sender import Sender

MOST_SECONDS: Final = 10.0
MOST_BYTES: Final = 1024 * 1024
LONGEST: Final = 2_000


class Post(Protocol):
    """Sends messages, follows no redirect and never raises."""

    async def __call__(self, url: str, headers: Mapping[str, str], body: bytes) -> HostReply:
        """Send a message; returns the receiver's reply or the reason for its absence."""

    async def check(self, url: str) -> None:
        """Raise InputError unless messages may be sent there, as it seems now."""

    async def aclose(self) -> None:
        """Close the connections."""


class GuardedPost:
    """Sends within the limits of the settings for outgoing calls."""

    def __init__(self, settings: Settings, tracer: Tracer = NO_TRACER) -> None:
        self._settings = settings
        self._tracer = tracer
        self._senders: dict[str, Sender] = {}

    async def __call__(self, url: str, headers: Mapping[str, str], body: bytes) -> HostReply:
        """Send a message; returns the receiver's reply or the reason for its absence."""
        try:
            sender = self._sender(url)
        except ConfigurationError as error:
            return HostReply(0, failure=error.message)
        return await sender.send("POST", url, headers, body)

    async def check(self, url: str) -> None:
        """Raise InputError unless messages may be sent there, as it seems now."""
        _check_form(url)
        try:
            route = await self._sender(url).route()
        except ConfigurationError as error:
            raise InputError(f"url: {error.message}") from None
        # A name that is not known now may be later, and then its addresses are looked at again.
        if isinstance(route, HostReply) and not route.repeatable:
            raise InputError(f"url: {route.failure}.")

    async def aclose(self) -> None:
        """Close the connections."""
        for sender in self._senders.values():
            await sender.aclose()
        self._senders.clear()

    def _sender(self, url: str) -> "Sender":
        found = self._senders.get(url_origin(url))
        if found is None:
            # Heavy to import, and of no use to a service without webhooks.
            from factbook.outbound.transport import Network  # noqa: PLC0415

            network = Network(self._settings, tracer=self._tracer)
            found = self._senders[url_origin(url)] = network.sender(
                url_origin(url), seconds=MOST_SECONDS, most_bytes=MOST_BYTES
            )
        return found


def _check_form(url: str) -> None:
    try:
        parts = urlsplit(url)
        whole = parts.scheme in {"https", "http"} and parts.hostname and parts.port != 0
    except ValueError:
        whole = False
    if not whole or not url.isascii() or not url.isprintable() or " " in url or len(url) > LONGEST:
        raise InputError(
            f"url: has to be an address that begins with https:// or http://, of {LONGEST} "
            "characters at most."
        )
    if parts.username is not None or parts.fragment:
        raise InputError("url: must not have a user or a fragment.")
