"""Client metadata documents: a client's id is the address of what it says about itself.

Whoever asks for consent names the address, so the call is guarded as every outgoing one, with
tighter bounds: a small answer within seconds, from a public address, without redirects.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Collection, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final, Protocol
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from factbook import invisible
from factbook.auth.oauth import redirects
from factbook.auth.oauth.refusal import OAuthError
from factbook.clock import HOUR, MINUTE, Clock
from factbook.errors import ConfigurationError, UnavailableError
from factbook.outbound import HostReply
from factbook.settings import Settings

if TYPE_CHECKING:
    from factbook.outbound.transport import Network

MOST_SECONDS: Final = 5.0
MOST_BYTES: Final = 64 * 1024
_MOST_KEPT: Final = 200
_MOST_AT_ONCE: Final = 4
# With those under way: whoever waits holds a place among the requests of the whole service.
_MOST_WAITING: Final = 20
_LATER: Final = 5  # seconds
_LONGEST: Final = 500
_LONGEST_NAME: Final = 100
# How clients without a secret prove who they are.
PUBLIC: Final = "none"
_HEADERS: Final[Mapping[str, str]] = {"accept": "application/json"}


class ClientDocument(msgspec.Struct, frozen=True):
    """Used members of a document (RFC 7591, and the draft of OAuth for client ID metadata)."""

    client_id: str
    redirect_uris: Annotated[tuple[str, ...], Meta(min_length=1, max_length=50)]
    client_name: str | None = None
    token_endpoint_auth_method: str | None = None
    token_endpoint_auth_methods_supported: tuple[str, ...] | None = None
    client_secret: Any = None

    @property
    def may_be_public(self) -> bool:
        """True for a client that can do without proof; some prefer one where there is a choice."""
        method = self.token_endpoint_auth_method or PUBLIC
        return PUBLIC in {method, *(self.token_endpoint_auth_methods_supported or ())}


class FetchDocument(Protocol):
    """Makes one call, follows no redirect and never raises."""

    def __call__(self, url: str, headers: Mapping[str, str]) -> Awaitable[HostReply]:
        """Make the call; returns the host's reply or the reason for its absence."""


class GuardedDocumentFetch:
    """Calls within the settings of outgoing calls, over a connection each."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._network: Network | None = None

    async def __call__(self, url: str, headers: Mapping[str, str]) -> HostReply:
        """Make the call; returns the host's reply or the reason for its absence."""
        if self._network is None:
            # Heavy to import, and of no use until somebody is asked for consent.
            from factbook.outbound.transport import Network  # noqa: PLC0415

            self._network = Network(self._settings)
        try:
            sender = self._network.sender(
                redirects.origin(url), seconds=MOST_SECONDS, most_bytes=MOST_BYTES
            )
        except ConfigurationError as error:
            return HostReply(0, failure=error.message)
        try:
            return await sender.send("GET", url, headers)
        finally:
            await sender.aclose()


class ClientDocuments:
    """Documents of clients, kept for an hour, and for a minute what was wrong with one."""

    def __init__(self, fetch: FetchDocument, clock: Clock, hosts: Collection[str] = ()) -> None:
        self._fetch = fetch
        self._clock = clock
        self._hosts = frozenset(hosts)
        self._kept: OrderedDict[str, tuple[int, ClientDocument | OAuthError]] = OrderedDict()
        self._turns = asyncio.Semaphore(_MOST_AT_ONCE)
        self._waiting = 0

    async def get(self, client_id: str) -> ClientDocument:
        """The document at this address.

        Raises OAuthError with a sentence for the person, and UnavailableError for too many at once.
        """
        if not is_address(client_id):
            raise _wrong("The client's id is not the address of a document about it.")
        if self._hosts and redirects.host(client_id) not in self._hosts:
            raise _wrong(
                f"Clients of {redirects.host(client_id)} are not accepted here; "
                "the setting client_hosts names those that are."
            )
        found = self._remembered(client_id) or await self._in_turn(client_id)
        if isinstance(found, OAuthError):
            raise found
        return found

    async def _in_turn(self, client_id: str) -> ClientDocument | OAuthError:
        """The document, fetched when it is its turn."""
        if self._waiting >= _MOST_WAITING:
            raise UnavailableError("Too many clients ask for consent at once.", retry_after=_LATER)
        self._waiting += 1
        try:
            async with self._turns:
                # Others may have waited for the same one.
                found = self._remembered(client_id) or await self._fetched(client_id)
        finally:
            self._waiting -= 1
        self._remember(client_id, found)
        return found

    async def _fetched(self, client_id: str) -> ClientDocument | OAuthError:
        reply = await self._fetch(client_id, _HEADERS)
        try:
            return decoded(reply, client_id)
        except OAuthError as error:
            return error

    def _remembered(self, client_id: str) -> ClientDocument | OAuthError | None:
        if client_id not in self._kept:
            return None
        since, found = self._kept[client_id]
        lasting = MINUTE if isinstance(found, OAuthError) else HOUR
        return found if 0 <= self._clock() - since < lasting else None

    def _remember(self, client_id: str, found: ClientDocument | OAuthError) -> None:
        self._kept[client_id] = self._clock(), found
        self._kept.move_to_end(client_id)
        if len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)


def is_address(client_id: str) -> bool:
    """True for an address that a document can have: https, with a path, and nothing ambiguous."""
    if len(client_id) > _LONGEST or not client_id.startswith("https://"):
        return False
    if not redirects.is_acceptable(client_id):
        return False
    path = urlsplit(client_id).path
    return path not in {"", "/"} and not {".", ".."} & set(path.split("/"))


def decoded(reply: HostReply, client_id: str) -> ClientDocument:
    """Document in a good reply. Raises OAuthError, which quotes nothing from the host."""
    host = redirects.host(client_id)
    if reply.failure:
        raise _wrong(f"What {host} says about the client did not arrive: {reply.failure}.")
    if reply.status != 200:
        raise _wrong(
            f"What {host} says about the client did not arrive: it answered {reply.status}."
        )
    try:
        found = msgspec.json.decode(reply.body, type=ClientDocument)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise _wrong(f"What {host} says about the client cannot be read.") from None
    if found.client_id != client_id:
        raise _wrong(f"What {host} says is about another client.")
    if not found.may_be_public or found.client_secret is not None:
        raise _wrong("The client wants to prove who it is in a way that is not supported here.")
    if not all(map(redirects.is_acceptable, found.redirect_uris)):
        raise _wrong(
            "The client has an address for answers that is neither https, nor loopback, nor of a "
            "scheme of its own."
        )
    return found


def shown_name(name: str | None) -> str:
    """Name that a client gives itself, as people see it: one short line without hidden text."""
    text = invisible.without(name or "")
    visible = "".join(character for character in text if character.isprintable())
    return " ".join(visible.split())[:_LONGEST_NAME]


def _wrong(message: str) -> OAuthError:
    return OAuthError(message, code="invalid_client")
