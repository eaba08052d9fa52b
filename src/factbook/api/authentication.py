"""Authentication of a request by its token, and the permissions that it needs."""

from collections.abc import Awaitable, Callable

from factbook.auth import tokens
from factbook.auth.permissions import TITLES
from factbook.auth.tokens import Grant
from factbook.errors import AuthenticationError, NotAllowedError, TooManyRequestsError
from factbook.http.context import State
from factbook.http.requests import Request, client_address
from factbook.storage import Transaction

Verify = Callable[[Request, State, str], Awaitable[Grant]]


async def authenticate(request: Request, state: State) -> Grant:
    """The token that the request carries, one that was made here by hand; see `authenticated`."""
    return await authenticated(request, state, verified)


async def authenticated(request: Request, state: State, verify: Verify) -> Grant:
    """The token that the request carries, if it is found to be good.

    Raises AuthenticationError for none or a bad one, and TooManyRequestsError for a token that
    calls too often or an address that fails too often. A good token is never refused for failures
    of other clients at its address: with 238 random bits it cannot be guessed.
    """
    try:
        token = request.token = await verify(request, state, bearer_value(request))
    except AuthenticationError:
        address = client_address(request.scope, state.proxies)
        if seconds := state.failures.take(address):
            raise TooManyRequestsError(
                "Too many failed authentications from this address "
                f"(failed_logins is {state.settings.failed_logins} a minute).",
                retry_after=seconds,
            ) from None
        raise
    if seconds := state.calls.take(token.id):
        raise TooManyRequestsError(
            f"This token calls too often (token_rate is {state.settings.token_rate:g} a second).",
            retry_after=seconds,
        )
    return token


def authorize(token: Grant, needed: tuple[str, ...]) -> None:
    """Raise NotAllowedError naming the permissions that the token lacks."""
    if not token.permissions.issuperset(needed):
        missing = tuple(name for name in needed if name not in token.permissions)
        named = " and ".join(f'"{TITLES[name]}" ({name})' for name in missing)
        raise NotAllowedError(f"This needs the permission {named}.", missing=missing)


async def verified(request: Request, state: State, value: str) -> Grant:
    """The token with this value. Raises AuthenticationError for an unknown or invalid one."""
    if not tokens.is_shaped(value):
        raise AuthenticationError("The token is not from this service.", token_sent=True)
    # Here, because what is open to everyone has to answer without a database.
    state.database.refresh()
    token = await tokens.find(state.database, tokens.digest(value, state.token_key))
    now = state.clock()
    if token is None:
        known = "unknown" if tokens.is_well_formed(value) else "mistyped: its checksum is wrong"
        raise AuthenticationError(f"The token is {known}.", token_sent=True)
    request.token_id = token.id
    if token.revoked_at is not None:
        raise AuthenticationError("The token was revoked.", token_sent=True)
    if token.expires_at is not None and token.expires_at <= now:
        raise AuthenticationError("The token has expired.", token_sent=True)
    if token.last_used_at is None or not tokens.is_noted(token.last_used_at, now):
        id_ = token.id
        note_use(state, id_, now, lambda transaction: tokens.touch(transaction, id_, now))
    return token


def bearer_value(request: Request) -> str:
    """Value of the request's token, of any form. Raises AuthenticationError without one."""
    header = request.headers.get(b"authorization")
    if header is None:
        raise AuthenticationError("Missing credentials: send Authorization: Bearer <token>.")
    scheme, _, credentials = header.partition(b" ")
    if scheme.lower() != b"bearer":
        raise AuthenticationError("The Authorization header has to be Bearer <token>.")
    return credentials.strip().decode("latin-1")


def note_use(state: State, id_: str, now: int, touch: Callable[[Transaction], None]) -> None:
    """Have a use recorded beside the answer, unless that was done within the last minute."""
    if not tokens.is_noted(state.touched.get(id_, 0), now):
        state.touched[id_] = now
        state.spawn(state.database.write(touch))
