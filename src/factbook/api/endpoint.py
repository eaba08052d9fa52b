"""Routes of the JSON interfaces, and the steps of the request pipeline that are theirs.

A token and its permissions are checked before the handler runs.
"""

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from starlette.types import Receive, Scope, Send

from factbook.api.openapi.parameter_types import AnswerHeader, Parameter
from factbook.auth.permissions import AUDIT_READ, CATALOG_READ, EVENTS_READ, SOURCE_READ
from factbook.errors import FactbookError, MethodNotAllowedError
from factbook.http import audit as auditing
from factbook.http import error_responses as errors
from factbook.http.authentication import authenticate, authorize
from factbook.http.context import State
from factbook.http.requests import ClientGoneError, Reply, Request
from factbook.http.responses import begun, send_reply

Handler = Callable[[Request, State], Awaitable[Reply]]
ErrorForm = Callable[[FactbookError, Request], Reply]

_READING = frozenset({CATALOG_READ, SOURCE_READ, EVENTS_READ, AUDIT_READ})


class Route(NamedTuple):
    """One method of one path; `permissions` None is open to everyone.

    What it takes and gives is declared here, for the OpenAPI description too: `parameters` in the
    query and the headers (None: whatever the query holds), the types of the body and of the answer
    (None: there is none; a tuple: one of them; of JSON lines that of each), `refusals` beside those
    of every route, `other_answers` where a status has another form too. One that is not `described`
    is another way to write a route that is, or is not offered. Machines look by a `probe` for the
    health of the service, and know it by its address alone.

    `reading` has to be stated for whatever writes: the permissions that a token needs to be shown
    more than what it sent itself and counts. Empty: the answer never holds more.
    """

    method: str
    path: str
    handler: Handler
    permissions: tuple[str, ...] | None
    parameters: tuple[Parameter[Any], ...] | None = ()
    body: Any = None
    needs_body: bool = True
    answer: Any = None
    media: str = "application/json"
    status: int = 200
    headers: tuple[AnswerHeader, ...] = ()
    refusals: tuple[type[FactbookError], ...] = ()
    other_answers: Mapping[int, Any] = {}
    described: bool = True
    errors: ErrorForm = errors.rest


class Endpoint:
    """ASGI application for all methods of one path."""

    def __init__(self, routes: Mapping[str, Route], state: State) -> None:
        self._routes = dict(routes)
        first = next(iter(self._routes.values()))
        self._path = first.path
        self._errors = first.errors
        # Who may not see anything here is not told which methods there are either.
        self._closed = all(route.permissions is not None for route in self._routes.values())
        # Some reads are POSTs; what writes needs a permission to do so.
        self._writing = {
            method
            for method, route in self._routes.items()
            if method != "GET" and not _READING.issuperset(route.permissions or ())
        }
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        request = Request(scope, receive)
        try:
            reply = await self._admitted(request, started)
        except FactbookError as error:
            writes = request.method in self._writing
            auditing.refusal(request, self._state, error, writes=writes)
            reply = self._errors(error, request)
        except ClientGoneError:
            return
        except Exception as error:  # noqa: BLE001 - the edge: whatever went wrong has to be answered
            reply = self._errors(errors.unexpected(error, request), request)
        seconds = time.perf_counter() - started
        self._state.metrics.answered(self._path, request.method, reply.status, seconds)
        await send_reply(reply, send, head=request.method == "HEAD")

    async def _admitted(self, request: Request, now: float) -> Reply:
        # Who looks whether the service is well is answered always.
        if not self._closed:
            return await self._answer(request)
        admission = self._state.admission
        await admission.enter(request, now, writes=request.method in self._writing)
        try:
            return await self._answer(request)
        finally:
            admission.leave(request)

    async def _answer(self, request: Request) -> Reply:
        state = self._state
        state.hosts.check(request.headers.get(b"host"), request.headers.get(b"origin"))
        method = request.method
        route = self._routes.get("GET" if method == "HEAD" else method)
        if route is None:
            if self._closed:
                await authenticate(request, state)
            raise MethodNotAllowedError(allow=", ".join(sorted(self._routes)))
        if route.permissions is not None:
            authorize(await authenticate(request, state), route.permissions)
        if request.scope["query_string"] and route.parameters is not None:
            request.allow_only([each.name for each in route.parameters if each.place == "query"])
        reply = await route.handler(request, state)
        if not isinstance(reply.body, bytes | list):
            reply = reply._replace(body=await begun(reply.body))
        return reply
