"""Tokens of a company's own authorization server: JWTs (RFC 9068) for people with an account here.

Slow to import: only for services whose settings name such a server.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from factbook.auth import users
from factbook.auth.oauth import protocol
from factbook.auth.oauth.clients import OAuthOptions
from factbook.auth.oidc import client as jwt
from factbook.auth.oidc.client import ALGORITHMS, LEEWAY_SECONDS, NoKeyError
from factbook.auth.oidc.provider import Fetch, GuardedFetch, Keys, Provider
from factbook.auth.permissions import add_included
from factbook.auth.tokens import Grant, hash_token
from factbook.auth.users import Person
from factbook.clock import SECOND, Clock
from factbook.errors import (
    AuthenticationError,
    NotAllowedError,
    SignInError,
    UnavailableError,
)
from factbook.settings import Settings
from factbook.storage import Database

LONGEST_TOKEN: Final = 16 * 1024
_TOKEN_ID_LENGTH: Final = 32
_SILENT: Final = "The authorization server does not answer."
# Time before asking an unresponsive server again.
_PAUSE: Final = 5 * SECOND


class _Claims(msgspec.Struct):
    """Types of the checked claims (RFC 9068, section 2.2); servers write scopes in two ways."""

    iss: str
    sub: Annotated[str, Meta(pattern=r"^[^\x00-\x1f\x7f]{1,255}\Z")]
    aud: str | list[str]
    exp: float
    nbf: float = 0
    scope: str = ""
    scp: str | list[str] = ""


class CompanyTokens:
    """Verifies tokens of the configured server; `people` is the issuer where people sign in."""

    def __init__(
        self,
        options: OAuthOptions,
        fetch: Fetch,
        clock: Clock,
        people: str = "",
        close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._options = options
        self._clock = clock
        self._people = people
        self._close = close
        self._provider = Provider(options.issuer, fetch, clock)
        self._asking = asyncio.Lock()
        self._failed_at: int | None = None

    async def aclose(self) -> None:
        """Close the connections."""
        if self._close is not None:
            await self._close()

    async def verified(self, value: str, resource: str, database: Database, key: bytes) -> Grant:
        """Verify a token for this resource and return its grant.

        Raises AuthenticationError for a bad token, NotAllowedError if the person has no account
        here, and UnavailableError if the signature can't be checked.
        """
        if len(value) > LONGEST_TOKEN or value.count(".") != 2:
            raise _make_refusal("it is not one of the authorization server")
        found = await self._signed(value)
        claims = _check_claims(found, self._options, resource, self._clock() / SECOND)
        person = await self._person(claims, found, database)
        if person is None or person.disabled_at is not None:
            raise NotAllowedError(
                "No account here belongs to this token; sign in to the pages of this service once."
            )
        more = claims.scp.split() if isinstance(claims.scp, str) else claims.scp
        asked = frozenset([*claims.scope.split(), *more]).intersection(protocol.SCOPES)
        permissions = (asked or frozenset(self._options.permissions)) & person.permissions
        return Grant(
            hash_token(f"company {claims.iss} {claims.sub}", key)[:_TOKEN_ID_LENGTH],
            person.ref,
            add_included(permissions),
            int(claims.exp * SECOND),
            None,
            None,
            person.permissions,
        )

    async def _signed(self, value: str) -> dict[str, Any]:
        """Verify the signature and return the claims; fetches the keys again for an unknown key."""
        try:
            return jwt.verify_signature(value, await self._keys(), ALGORITHMS).claims
        except NoKeyError:
            pass
        except SignInError:
            raise _make_refusal("it is not signed in a way that is safe") from None
        try:
            keys = await self._provider.renewed_keys() or []
        except SignInError as error:
            raise UnavailableError(_SILENT) from error
        try:
            return jwt.verify_signature(value, keys, ALGORITHMS).claims
        except (NoKeyError, SignInError):
            raise _make_refusal("it is not signed by the authorization server") from None

    async def _keys(self) -> Keys:
        # Anybody can send fake tokens, so only one request fetches keys and the others wait.
        async with self._asking:
            now = self._clock()
            if self._failed_at is not None and 0 <= now - self._failed_at < _PAUSE:
                raise UnavailableError(_SILENT)
            try:
                found = await self._provider.keys()
            except SignInError as error:
                self._failed_at = self._clock()
                raise UnavailableError(_SILENT) from error
            self._failed_at = None
            return found

    async def _person(
        self, claims: _Claims, found: Mapping[str, Any], database: Database
    ) -> Person | None:
        """Find the token's person by subject, or by name if the options trust names."""
        person = await users.find_user_by_subject(database, claims.iss, claims.sub)
        name = found.get(self._options.name_claim) if self._options.name_claim else None
        if person is not None or not isinstance(name, str):
            return person
        # Compare the whole name: a name with the same beginning may be from another company, and a
        # local account may have the same name too.
        issuer = self._people or claims.iss
        return await users.find_user_by_login(database, issuer, name)


def connect_company_tokens(
    settings: Settings, options: OAuthOptions, clock: Clock
) -> CompanyTokens:
    """Set up verification for the configured server. Raises ConfigurationError."""
    fetch = GuardedFetch(settings)
    people = settings.openid.get("issuer", "")
    return CompanyTokens(options, fetch, clock, people, fetch.aclose)


def _check_claims(
    found: dict[str, Any], options: OAuthOptions, resource: str, now: float
) -> _Claims:
    """Check that a signed token is from this server, for this resource, and valid now."""
    try:
        claims = msgspec.convert(found, _Claims)
    except msgspec.ValidationError:
        raise _make_refusal("it lacks a claim") from None
    audiences = [claims.aud] if isinstance(claims.aud, str) else claims.aud
    if claims.iss != options.issuer:
        raise _make_refusal("it is from another issuer")
    if (options.audience or resource) not in audiences:
        raise _make_refusal("it is for another audience")
    if claims.exp + LEEWAY_SECONDS <= now:
        raise _make_refusal("it has expired")
    if claims.nbf > now + LEEWAY_SECONDS:
        raise _make_refusal("it is not valid yet")
    return claims


def _make_refusal(why: str) -> AuthenticationError:
    return AuthenticationError(f"The token was refused: {why}.", token_sent=True)
