"""The edge: what happens around every handler, in one place.

Host and origin, then the token and its permissions, then the method, then the handler; whatever is
raised becomes a reply, every answer is counted.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from starlette.types import Receive, Scope, Send

from factbook.api import errors
from factbook.api.authentication import authenticate, authorize
from factbook.api.parameter import AnswerHeader, Parameter
from factbook.api.requests import ClientGoneError, Reply, Request
from factbook.api.state import State
from factbook.errors import FactbookError, MethodNotAllowedError

_SLOWEST_SECONDS = 60

Handler = Callable[[Request, State], Awaitable[Reply]]
ErrorForm = Callable[[FactbookError, Request], Reply]


class Route(NamedTuple):
    """One method of one path; `permissions` None is open to everyone.

    What it takes and gives is declared here, for the OpenAPI description too: `parameters` in the
    query and the headers (None: whatever the query holds), the types of the body and of the answer
    (None: there is none; a tuple: one of them), `refusals` beside those of every route,
    `other_answers` where a status has another form too. One that is not `described` is another way
    to write a route that is, or is not offered.
    """

    method: str
    path: str
    handler: Handler
    permissions: tuple[str, ...] | None
    parameters: tuple[Parameter[Any], ...] | None = ()
    body: Any = None
    needs_body: bool = True
    answer: Any = None
    status: int = 200
    headers: tuple[AnswerHeader, ...] = ()
    refusals: tuple[type[FactbookError], ...] = ()
    other_answers: Mapping[int, Any] = {}
    described: bool = True
    errors: ErrorForm = errors.rest


class Endpoint:
    """An ASGI application for all methods of one path."""

    def __init__(self, routes: Mapping[str, Route], state: State) -> None:
        self._routes = dict(routes)
        first = next(iter(self._routes.values()))
        self._path = first.path
        self._errors = first.errors
        # Who may not see anything here is not told which methods there are either.
        self._closed = all(route.permissions is not None for route in self._routes.values())
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        request = Request(scope, receive)
        try:
            reply = await self._answer(request)
            if not isinstance(reply.body, bytes | list):
                reply = reply._replace(body=await _begun(reply.body))
        except FactbookError as error:
            reply = self._errors(error, request)
        except ClientGoneError:
            return
        except Exception as error:  # noqa: BLE001 - the edge: whatever went wrong has to be answered
            reply = self._errors(errors.unexpected(error, request), request)
        seconds = time.perf_counter() - started
        self._state.metrics.answered(self._path, request.method, reply.status, seconds)
        await _send(reply, send, head=request.method == "HEAD")

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
            request.token = await authenticate(request, state)
            authorize(request.token, route.permissions)
        if request.scope["query_string"] and route.parameters is not None:
            request.allow_only([each.name for each in route.parameters if each.place == "query"])
        return await route.handler(request, state)


async def _begun(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The same pieces: what goes wrong before the first can still be answered as an error."""
    first = await anext(pieces, b"")

    async def all_pieces() -> AsyncIterator[bytes]:
        yield first
        async for piece in pieces:
            yield piece

    return all_pieces()


async def _send(reply: Reply, send: Send, *, head: bool) -> None:
    body = reply.body
    if isinstance(body, bytes):
        body = [body]
    headers = [(b"content-type", reply.content_type)]
    if reply.headers:
        headers += [(name.encode(), text.encode("latin-1")) for name, text in reply.headers.items()]
    if isinstance(body, list):
        headers.append((b"content-length", str(sum(map(len, body))).encode()))
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    if head:
        await send({"type": "http.response.body", "body": b""})
    elif isinstance(body, list):
        *others, last = body
        for piece in others:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": last})
    else:
        await _stream(body, send)


async def _stream(pieces: AsyncIterator[bytes], send: Send) -> None:
    """Send the pieces; hang up on a client that takes nothing while a read is kept open for it."""
    try:
        async for piece in pieces:
            async with asyncio.timeout(_SLOWEST_SECONDS):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            # Sending to a quick client never waits, and others want to be answered between.
            await asyncio.sleep(0)
    except TimeoutError:
        return  # the server closes a connection whose answer is not complete
    await send({"type": "http.response.body", "body": b""})
