"""Routes of the JSON interfaces, and the steps of the request pipeline that are theirs.

A token and its permissions are checked before the handler runs.
"""

from collections.abc import Awaitable, Callable, Mapping
from types import UnionType
from typing import Any, Final, NamedTuple, get_args, get_type_hints

from factbook.api.parameters import AnswerHeader, Parameter
from factbook.auth import tokens
from factbook.auth.permissions import READ_ONLY, TITLES, suffices_when_owned
from factbook.auth.tokens import NO_REACH, SETS, SOURCES, Grant, Narrowing, Reach
from factbook.errors import (
    AuthenticationError,
    FactbookError,
    NotAllowedError,
    TooManyRequestsError,
)
from factbook.http.context import State
from factbook.http.pipeline import Pipeline, begin_pieces, record_refused_request, render_rest_error
from factbook.http.requests import Reply, Request, get_client_address
from factbook.storage import Transaction

Verify = Callable[[Request, State, str], Awaitable[Grant]]
Handler = Callable[[Request, State], Awaitable[Reply]]
ErrorForm = Callable[[FactbookError, Request], Reply]
Authenticate = Callable[[Request, State], Awaitable[Grant]]
# The `reading` of a write whose answer holds nothing that is stored.
NOTHING_STORED: Final[tuple[str, ...]] = ()


async def authenticate_token(request: Request, state: State) -> Grant:
    """The request's token, which a person made here; see `authenticate_with`."""
    return await authenticate_with(request, state, verify_token)


async def authenticate_with(request: Request, state: State, verify: Verify) -> Grant:
    """The token that the request carries, if it is found to be good.

    Raises AuthenticationError for none or a bad one, and TooManyRequestsError for a token that
    calls too often or an address that fails too often. A good token is never refused for failures
    of other clients at its address: with 238 random bits it cannot be guessed.
    """
    try:
        token = request.token = await verify(request, state, read_bearer_value(request))
    except AuthenticationError:
        address = get_client_address(request.scope, state.proxies)
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


def require_permissions(token: Grant, needed: tuple[str, ...]) -> None:
    """Raise NotAllowedError naming the permissions that the token lacks."""
    if not token.permissions.issuperset(needed):
        missing = tuple(name for name in needed if name not in token.permissions)
        named = " and ".join(f'"{TITLES[name]}" ({name})' for name in missing)
        raise NotAllowedError(f"This needs the permission {named}.", missing=missing)


async def verify_token(request: Request, state: State, value: str) -> Grant:
    """The token with this value. Raises AuthenticationError for an unknown or invalid one."""
    if not tokens.is_token_shaped(value):
        raise AuthenticationError("The token is not from this service.", token_sent=True)
    # Here, because what is open to everyone has to answer without a database.
    state.database.refresh()
    token = await tokens.find_token(state.database, tokens.hash_token(value, state.token_key))
    now = state.clock()
    if token is None:
        known = "unknown" if tokens.is_well_formed(value) else "mistyped: its checksum is wrong"
        raise AuthenticationError(f"The token is {known}.", token_sent=True)
    request.token_id = token.id
    if token.revoked_at is not None:
        raise AuthenticationError("The token was revoked.", token_sent=True)
    if token.expires_at is not None and token.expires_at <= now:
        raise AuthenticationError("The token has expired.", token_sent=True)
    if token.last_used_at is None or not tokens.is_use_noted(token.last_used_at, now):
        id_ = token.id
        note_token_use(
            state, id_, now, lambda transaction: tokens.record_token_use(transaction, id_, now)
        )
    return token


def read_bearer_value(request: Request) -> str:
    """Value of the request's token, of any form. Raises AuthenticationError without one."""
    header = request.headers.get(b"authorization")
    if header is None:
        raise AuthenticationError("Missing credentials: send Authorization: Bearer <token>.")
    scheme, _, credentials = header.partition(b" ")
    if scheme.lower() != b"bearer":
        raise AuthenticationError("The Authorization header has to be Bearer <token>.")
    return credentials.strip().decode("latin-1")


def note_token_use(state: State, id_: str, now: int, touch: Callable[[Transaction], None]) -> None:
    """Have a use recorded beside the answer, unless that was done within the last minute."""
    if not tokens.is_use_noted(state.touched.get(id_, 0), now):
        state.touched[id_] = now
        state.spawn(state.database.write(touch))


class Route(NamedTuple):
    """One method of one path; `permissions` None is open to everyone.

    What it takes and gives is declared here, for the OpenAPI description too: `parameters` in the
    query and the headers (None: whatever the query holds), the type of the body (None: there is
    none), `refusals` beside those of every route, `other_answers` where a status has another form
    too. The type of the answer is what the handler returns. One that is not `described` is another
    way to write a route that is, or is not offered. Machines look by a `probe` for the health of
    the service, and know it by its address alone.

    `reading` has to be stated for whatever writes: the permissions that a token needs to be shown
    more than what it sent itself and counts. Empty: the answer never holds more.

    One that is `judged` writes although its permissions only read: its handler decides who may.

    Callers of one that is `signed` prove who they are in the request itself, in place of a token,
    by a signature or by what was issued to them. The others are known by what `authenticate`
    returns.

    One that is `owned` lets in who may write what their own groups own: its handler has to look at
    `own_only` of the request, and to check in the transaction of the write whose it is.

    Its `reach` says to what it keeps tokens that are narrowed: those that it names in its path are
    checked before the handler runs. Without one it refuses them.
    """

    method: str
    path: str
    handler: Handler
    permissions: tuple[str, ...] | None
    parameters: tuple[Parameter[Any], ...] | None = ()
    body: Any = None
    needs_body: bool = True
    media: str = "application/json"
    status: int = 200
    headers: tuple[AnswerHeader, ...] = ()
    refusals: tuple[type[FactbookError], ...] = ()
    other_answers: Mapping[int, Any] = {}
    described: bool = True
    errors: ErrorForm = render_rest_error
    probe: bool = False
    reading: tuple[str, ...] | None = None
    signed: bool = False
    judged: bool = False
    owned: bool = False
    authenticate: Authenticate = authenticate_token
    reach: Reach = NO_REACH

    @property
    def answers(self) -> tuple[Any, ...]:
        """The types of which an answer has one; of JSON lines that of each, none for no body."""
        found = get_args(get_type_hints(self.handler).get("return"))
        return get_args(found[0]) if found and isinstance(found[0], UnionType) else found

    @property
    def writes(self) -> bool:
        """True if it changes something: some reads are POSTs, and a write needs a permission."""
        reads = self.method == "GET" or READ_ONLY.issuperset(self.permissions or ())
        return self.signed or self.judged or not reads


class Endpoint(Pipeline[Route, Request]):
    """ASGI application for all methods of one path."""

    def __init__(self, routes: Mapping[str, Route], state: State) -> None:
        first = next(iter(routes.values()))
        self._errors = first.errors
        self._authenticate = first.authenticate
        # Who may not see anything here is not told which methods there are either.
        self._closed = all(route.permissions is not None for route in routes.values())
        writing = {method for method, route in routes.items() if route.writes}
        super().__init__(
            first.path,
            routes,
            state,
            writing=writing,
            # What is open and described asks the database; the rest is answered always.
            is_admitted=self._closed or first.signed or first.described,
            probe=first.probe,
        )
        self._preflight = {
            "access-control-allow-methods": ", ".join(sorted(routes)),
            "access-control-allow-headers": _SENT,
            "access-control-max-age": "3600",
        }

    def begun(self, request: Request) -> Request:
        return request

    def caller(self, request: Request) -> Mapping[str, str]:
        grant = request.token
        return {} if grant is None else {"actor": grant.owner, "token": grant.id}

    async def answer(self, request: Request, route: Route | None) -> Reply:
        state = self.state
        if route is None:
            if _is_preflight(request, state):
                return Reply(status=204, headers=self._preflight)
            if self._closed:
                await self._authenticate(request, state)
            raise self.no_method()
        if route.permissions is not None:
            token = await self._authenticate(request, state)
            request.own_only = _is_own_only(token, route)
            if token.narrowing is not None:
                _require_within_narrowing(token.narrowing, route, request)
            request.may_read = token.permissions.issuperset(route.reading or ())
        if request.scope["query_string"] and route.parameters is not None:
            request.allow_only([each.name for each in route.parameters if each.place == "query"])
        reply = await route.handler(request, state)
        if not isinstance(reply.body, bytes | list):
            reply = reply._replace(body=await begin_pieces(reply.body))
        return reply

    def finished(self, request: Request, reply: Reply) -> Reply:
        origin = _find_shared_origin(request, self.state)
        if not origin:
            return reply
        shared = {
            "access-control-allow-origin": origin,
            "access-control-expose-headers": "ETag, Retry-After, WWW-Authenticate",
            "vary": ", ".join(filter(None, (reply.headers.get("vary"), "Origin"))),
        }
        return reply._replace(headers={**reply.headers, **shared})

    async def refused(self, request: Request, error: FactbookError) -> Reply:
        record_refused_request(request, self.state, error, writes=request.method in self.writing)
        # What others hold is not told to a token that is narrowed to something else.
        may_read = request.may_read and request.narrowing is None
        told = error if may_read else error.withheld or error
        return self._errors(told, request)


# Headers that programs in browsers send.
_SENT: Final = (
    "Accept, Authorization, Content-Type, If-Match, If-None-Match, Last-Event-ID, "
    "MCP-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Session-Id"
)


def _find_shared_origin(request: Request, state: State) -> str:
    """The origin that answers are shared with; empty for any other."""
    origin = request.headers.get(b"origin", b"").decode("latin-1")
    return origin if origin in state.hosts.shared_with else ""


def _is_preflight(request: Request, state: State) -> bool:
    """True if a browser asks what a page of an allowed origin may send."""
    asks = b"access-control-request-method" in request.headers
    return request.method == "OPTIONS" and asks and bool(_find_shared_origin(request, state))


def _is_own_only(token: Grant, route: Route) -> bool:
    """True if the token gets in by the right to write what is owned; raises NotAllowedError."""
    needed = route.permissions or ()
    if token.permissions.issuperset(needed):
        return False
    if not (route.owned and suffices_when_owned(token.permissions, needed)):
        require_permissions(token, needed)
    return True


# What a path names, by the name of the parameter.
_NAMED: Final = {SETS: "set_id", SOURCES: "id"}


def _require_within_narrowing(narrowing: Narrowing, route: Route, request: Request) -> None:
    """Raise NotAllowedError for what is outside of the narrowing of the token."""
    route.reach.check(narrowing, writes=route.writes)
    given = request.scope.get("path_params", {})
    for dimension, name in _NAMED.items():
        if dimension in route.reach.bounds and name in given:
            narrowing.check(dimension, [request.parameter(name)])
