"""Guarded calls to a provider, and its discovery document and keys, both cached for an hour.

Calls are guarded like every outgoing call, with tighter limits.
"""

from collections.abc import Awaitable, Mapping
from typing import Annotated, Any, Final, Protocol, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from factbook.auth.oidc.identity import is_secure_url
from factbook.clock import HOUR, MINUTE, Clock
from factbook.errors import ConfigurationError, SignInError
from factbook.outbound.client import USER_AGENT
from factbook.outbound.network import Network, Sender
from factbook.outbound.outcomes import HostReply
from factbook.settings import Settings

MOST_SECONDS: Final = 10.0
MOST_BYTES: Final = 256 * 1024
HEADERS: Final[Mapping[str, str]] = {"accept": "application/json", "user-agent": USER_AGENT}
_CACHE_LIFETIME: Final = HOUR
_BETWEEN_RENEWALS: Final = MINUTE

T = TypeVar("T")
Address = Annotated[str, Meta(min_length=1)]
Keys = list[dict[str, Any]]


class Fetch(Protocol):
    """Calls a provider without following redirects; never raises."""

    def __call__(
        self, method: str, url: str, headers: Mapping[str, str], content: bytes | None = None
    ) -> Awaitable[HostReply]:
        """Make the call; returns the host's reply or the reason for its absence."""


class GuardedFetch:
    """Calls within the settings for outgoing calls. Raises ConfigurationError for invalid ones."""

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


class DiscoveryDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Used members of the discovery document (OpenID Connect Discovery 1.0, section 3)."""

    issuer: str
    authorization_endpoint: Address
    token_endpoint: Address
    jwks_uri: Address
    userinfo_endpoint: Address | None = None
    id_token_signing_alg_values_supported: tuple[str, ...] = ("RS256",)
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)
    # RFC 9207
    authorization_response_iss_parameter_supported: bool = False


class _KeySet(msgspec.Struct):
    keys: Keys


class Provider:
    """Provider of one issuer. Every method raises SignInError if the provider is unreachable."""

    def __init__(self, issuer: str, fetch: Fetch, clock: Clock) -> None:
        self._issuer = issuer
        self._fetch = fetch
        self._clock = clock
        self._document: tuple[int, DiscoveryDocument] | None = None
        self._keys: tuple[int, Keys] | None = None
        self._renewed_at: int | None = None

    async def document(self) -> DiscoveryDocument:
        """Get the discovery document, which has to name this issuer."""
        if self._document and self._is_fresh(self._document[0]):
            return self._document[1]
        url = f"{self._issuer.rstrip('/')}/.well-known/openid-configuration"
        reply = await self._fetch("GET", url, HEADERS)
        found = decode_provider_reply(reply, "discovery document", DiscoveryDocument)
        self._check(found)
        self._document = self._clock(), found
        return found

    async def keys(self) -> Keys:
        """Get the signing keys for tokens, each as a JWK (RFC 7517)."""
        if self._keys and self._is_fresh(self._keys[0]):
            return self._keys[1]
        return await self._fetched_keys()

    async def renewed_keys(self) -> Keys | None:
        """Fetch the keys again; None if fetched less than a minute ago."""
        now = self._clock()
        if self._renewed_at is not None and 0 <= now - self._renewed_at < _BETWEEN_RENEWALS:
            return None
        self._renewed_at = now
        return await self._fetched_keys()

    async def _fetched_keys(self) -> Keys:
        url = (await self.document()).jwks_uri
        found = decode_provider_reply(
            await self._fetch("GET", url, HEADERS), "set of keys", _KeySet
        ).keys
        self._keys = self._clock(), found
        return found

    def _check(self, document: DiscoveryDocument) -> None:
        if document.issuer != self._issuer:
            raise SignInError("The provider's discovery document is from another issuer.")
        endpoints = (
            document.authorization_endpoint,
            document.token_endpoint,
            document.jwks_uri,
            document.userinfo_endpoint,
        )
        if not all(is_secure_url(url) for url in endpoints if url is not None):
            raise SignInError("The provider's discovery document has an address that is not https.")

    def _is_fresh(self, since: int) -> bool:
        return 0 <= self._clock() - since < _CACHE_LIFETIME


def decode_provider_reply(reply: HostReply, what: str, form: type[T]) -> T:
    """Decode the JSON of a reply. Raises SignInError, which quotes nothing from the provider."""
    if reply.failure:
        raise SignInError(f"The provider's {what} did not arrive: {reply.failure}.")
    if reply.status != 200:
        raise SignInError(f"The provider's {what} did not arrive: it answered {reply.status}.")
    try:
        return msgspec.json.decode(reply.body, type=form)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise SignInError(f"The provider's {what} cannot be read.") from None
