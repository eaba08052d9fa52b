"""Routes of the JSON interfaces, and their steps of the request pipeline.

The token and its permissions are checked before the handler runs.
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
# `Route.reading` of a write whose answer contains no stored data.
NOTHING_STORED: Final[tuple[str, ...]] = ()


async def authenticate_token(request: Request, state: State) -> Grant:
    """Authenticate with a token created in this service; see `authenticate_with`."""
    return await authenticate_with(request, state, verify_token)


async def authenticate_with(request: Request, state: State, verify: Verify) -> Grant:
    """Verify the request's token and return its grant.

    Raises AuthenticationError for a missing or bad token, and TooManyRequestsError for a token that
    calls too often or an address that fails too often. A good token is never refused because other
    clients at its address fail: with 238 random bits it can't be guessed.
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
    """Look up a token by value. Raises AuthenticationError if unknown or invalid."""
    if not tokens.is_token_shaped(value):
        raise AuthenticationError("The token is not from this service.", token_sent=True)
    # Done here because public routes have to answer without a database.
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
    """Read the bearer token of any form. Raises AuthenticationError without one."""
    header = request.headers.get(b"authorization")
    if header is None:
        raise AuthenticationError("Missing credentials: send Authorization: Bearer <token>.")
    scheme, _, credentials = header.partition(b" ")
    if scheme.lower() != b"bearer":
        raise AuthenticationError("The Authorization header has to be Bearer <token>.")
    return credentials.strip().decode("latin-1")


def note_token_use(state: State, id_: str, now: int, touch: Callable[[Transaction], None]) -> None:
    """Record a token's use in the background, at most once a minute."""
    if not tokens.is_use_noted(state.touched.get(id_, 0), now):
        state.touched[id_] = now
        state.spawn(state.database.write(touch))


class Route(NamedTuple):
    """One method of one path; `permissions` None makes it public.

    The fields declare the input and output, also for the OpenAPI document: `parameters` in the
    query and headers (None: any query), the type of the `body` (None: no body), `refusals` in
    addition to those of every route, and `other_answers` for statuses with another form. The
    handler's return type is the type of the answer. A route is not `described` if it is an alias or
    only refuses. A `probe` is a health check, which may use any address of the service.

    `reading` is required for writes: the permissions a token needs to see more in the answer than
    counts and what it sent. Empty: the answer never contains more.

    A `judged` route writes although its permissions only read: its handler authorizes the caller.

    A `signed` route has no token: a signature or an issued secret in the request identifies the
    caller. On other routes, `authenticate` does.

    An `owned` route admits callers who may write only what their groups own: its handler has to
    read `own_only` of the request and check the owner in the transaction of the write.

    `reach` has the limits of tokens that the route enforces; names in the path are checked before
    the handler runs. Without `reach` the route refuses limited tokens.
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
        """Possible types of the answer; for JSON lines the type of a line; empty without a body."""
        found = get_args(get_type_hints(self.handler).get("return"))
        return get_args(found[0]) if found and isinstance(found[0], UnionType) else found

    @property
    def writes(self) -> bool:
        """True if the route changes data. Some POSTs only read; every write needs a permission."""
        reads = self.method == "GET" or READ_ONLY.issuperset(self.permissions or ())
        return self.signed or self.judged or not reads


class Endpoint(Pipeline[Route, Request]):
    """ASGI application for all methods of one path."""

    def __init__(self, routes: Mapping[str, Route], state: State) -> None:
        first = next(iter(routes.values()))
        self._errors = first.errors
        self._authenticate = first.authenticate
        # Callers without access must not learn the methods either.
        self._closed = all(route.permissions is not None for route in routes.values())
        writing = {method for method, route in routes.items() if route.writes}
        super().__init__(
            first.path,
            routes,
            state,
            writing=writing,
            # Public routes query the database if described; the others are always answered.
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
            asks = b"access-control-request-method" in request.headers
            is_preflight = request.method == "OPTIONS" and asks
            if is_preflight and _find_shared_origin(request, state):
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
        # A limited token must not learn about data outside its limits.
        may_read = request.may_read and request.narrowing is None
        told = error if may_read else error.withheld or error
        return self._errors(told, request)


# Headers that browser code may send.
_SENT: Final = (
    "Accept, Authorization, Content-Type, If-Match, If-None-Match, Last-Event-ID, "
    "MCP-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Session-Id"
)


def _find_shared_origin(request: Request, state: State) -> str:
    """Return the request's origin if it is allowed to read answers, else an empty text."""
    origin = request.headers.get(b"origin", b"").decode("latin-1")
    return origin if origin in state.hosts.shared_with else ""


def _is_own_only(token: Grant, route: Route) -> bool:
    """True if only ownership admits the token; raises NotAllowedError if nothing does."""
    needed = route.permissions or ()
    if token.permissions.issuperset(needed):
        return False
    if not (route.owned and suffices_when_owned(token.permissions, needed)):
        require_permissions(token, needed)
    return True


# Path parameter that names a set or source.
_NAMED: Final = {SETS: "set_id", SOURCES: "id"}


def _require_within_narrowing(narrowing: Narrowing, route: Route, request: Request) -> None:
    """Raise NotAllowedError if the request is outside the token's limits."""
    route.reach.check(narrowing, writes=route.writes)
    given = request.scope.get("path_params", {})
    for dimension, name in _NAMED.items():
        if dimension in route.reach.bounds and name in given:
            narrowing.check(dimension, [request.parameter(name)])
