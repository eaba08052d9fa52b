"""Metadata of a provider: its discovery document and its keys, both cached for an hour."""

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from factbook.auth.oidc.fetch import HEADERS, Fetch, decoded
from factbook.auth.oidc.options import is_secure
from factbook.clock import HOUR, MINUTE, Clock
from factbook.errors import SignInError

_KEPT: Final = HOUR
_BETWEEN_RENEWALS: Final = MINUTE

Address = Annotated[str, Meta(min_length=1)]
Keys = list[dict[str, Any]]


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
    """Provider of one issuer. Every method raises SignInError when it cannot be reached."""

    def __init__(self, issuer: str, fetch: Fetch, clock: Clock) -> None:
        self._issuer = issuer
        self._fetch = fetch
        self._clock = clock
        self._document: tuple[int, DiscoveryDocument] | None = None
        self._keys: tuple[int, Keys] | None = None
        self._renewed_at: int | None = None

    async def document(self) -> DiscoveryDocument:
        """Discovery document, which has to be the issuer's own."""
        if self._document and self._is_fresh(self._document[0]):
            return self._document[1]
        url = f"{self._issuer.rstrip('/')}/.well-known/openid-configuration"
        reply = await self._fetch("GET", url, HEADERS)
        found = decoded(reply, "discovery document", DiscoveryDocument)
        self._check(found)
        self._document = self._clock(), found
        return found

    async def keys(self) -> Keys:
        """Signing keys for tokens, each as a JWK (RFC 7517)."""
        if self._keys and self._is_fresh(self._keys[0]):
            return self._keys[1]
        return await self._fetched_keys()

    async def renewed_keys(self) -> Keys | None:
        """Keys fetched again; None if that was done less than a minute ago."""
        now = self._clock()
        if self._renewed_at is not None and 0 <= now - self._renewed_at < _BETWEEN_RENEWALS:
            return None
        self._renewed_at = now
        return await self._fetched_keys()

    async def _fetched_keys(self) -> Keys:
        url = (await self.document()).jwks_uri
        found = decoded(await self._fetch("GET", url, HEADERS), "set of keys", _KeySet).keys
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
        if not all(is_secure(url) for url in endpoints if url is not None):
            raise SignInError("The provider's discovery document has an address that is not https.")

    def _is_fresh(self, since: int) -> bool:
        return 0 <= self._clock() - since < _KEPT
