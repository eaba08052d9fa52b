"""Request pipeline around every JSON and page handler, and error replies.

Refused calls are recorded in the audit in batches, without delaying the answers.
"""

import asyncio
import re
import time
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping
from contextlib import suppress
from functools import cache, partial
from re import Match, Pattern
from typing import Any, Final, Generic, Literal, NamedTuple, TypeVar

import structlog

from factbook.asgi import ASGIApp, Message, Receive, Scope, Send
from factbook.audit.trail import AuditEntry, Caller, Record, append_records, clean_text, make_record
from factbook.clock import Clock
from factbook.errors import (
    AuthenticationError,
    FactbookError,
    MethodNotAllowedError,
    NotAllowedError,
    TooManyRequestsError,
    UnavailableError,
)
from factbook.http.admission import RateLimit
from factbook.http.context import State
from factbook.http.requests import ClientGoneError, Reply, Request, get_client_address, reply
from factbook.observability.metrics import Metrics
from factbook.schemas.common import (
    IMPORTED_SET,
    ErrorAnswer,
    ErrorDetails,
    ErrorRequest,
    ErrorStatus,
)
from factbook.storage import Database
from factbook.telemetry.logs import redact_text

log = structlog.get_logger("factbook.api")

# `slow`: the client read almost nothing; `unavailable`: the database went away; `failed`: a bug.
Reason = Literal["slow", "unavailable", "failed"]

_LOGGED_EVERY: Final = 10.0  # seconds
# Characters of a path or query that the access log reads, because clients choose both.
_LOGGED: Final = 500
_NAME: Final = re.compile(r"(?:^|&)([A-Za-z][A-Za-z_.-]{0,30})=")
# Suffix of a parameter that matches the rest of a path, including slashes.
_REST: Final = ":path}"
_SEGMENT: Final = "[^/]+"
# A parameter in a path escaped for a regular expression.
_PARAMETER: Final = re.compile(r"\\\{(\w+)(:path)?\\\}")
# A set id: one path segment, or three for an imported set.
_SET: Final = "{set_id}"
_SLASHES_IN_SET: Final = 2
# Stands for the number of slashes in paths whose last parameter matches the rest.
_ANY: Final = -1

R = TypeVar("R")
V = TypeVar("V")


def render_rest_error(error: FactbookError, request: Request) -> Reply:
    """Render an error in the catalog API form, `{"error", "request", "response"}`.

    The body holds no header values.
    """
    message, url = message_for_client(error, request), redact_text(request.url)
    body = ErrorAnswer(
        error=ErrorDetails(error.name, message, **error.details),
        request=ErrorRequest(request.method, url),
        response=ErrorStatus(error.status),
    )
    # The error quotes the request, so browsers must not sniff another type than JSON.
    headers = {**error.headers(), "x-content-type-options": "nosniff"}
    return Reply(reply(body).body, error.status, headers)


def render_protocol_error(error: FactbookError, request: Request) -> Reply:
    """Render an error for MCP over HTTP: in OAuth form for access errors, else JSON-RPC."""
    _log_cause(error, request)
    body: dict[str, Any]
    if isinstance(error, AuthenticationError):
        body = {"error": "invalid_token", "error_description": error.message}
    elif isinstance(error, NotAllowedError) and error.missing:
        body = {"error": "insufficient_scope", "error_description": error.message}
    elif isinstance(error, TooManyRequestsError):
        body = {"error": "too_many_requests", "error_description": error.message}
    else:
        code = -32603 if error.status >= 500 else -32600
        body = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": error.message}}
    return Reply(reply(body).body, error.status, error.headers())


def message_for_client(error: FactbookError, request: Request) -> str:
    """Log the cause of an error and return the message for the client."""
    _log_cause(error, request)
    # A client may have put a token in the wrong place, such as the query.
    return redact_text(error.message)


def _log_cause(error: FactbookError, request: Request) -> None:
    if isinstance(error, UnavailableError) and error.__cause__ is not None:
        log.warning("request.unavailable", path=request.path, cause=error.cause)


def render_unexpected_error(
    error: Exception, request: Request, path: str | None = None
) -> FactbookError:
    """Log a bug and return a generic error without details.

    `path` replaces the request path in the log if the path may be a secret.
    """
    log.error("request.failed", method=request.method, path=path or request.path, exc_info=error)
    return FactbookError()


def make_router(endpoints: Mapping[str, ASGIApp], nowhere: ASGIApp) -> ASGIApp:
    """Build a router for these paths, some with parameters; `nowhere` handles all others.

    Paths of fixed length come before paths whose last parameter matches the rest.
    """
    exact = {path: endpoint for path, endpoint in endpoints.items() if "{" not in path}
    lengths = _with_parameters(endpoints)

    @cache
    def candidates(slashes: int) -> list[tuple[Pattern[str], ASGIApp]]:
        # Compiled at the first request of this length: compiling all takes 6 ms at startup.
        return [
            (_path_pattern(path, set_id), endpoint) for path, set_id, endpoint in lengths[slashes]
        ]

    def found(scope: Scope) -> ASGIApp:
        path: str = scope["path"]
        if (endpoint := exact.get(path)) is not None:
            return endpoint
        for slashes in (path.count("/"), _ANY):
            for pattern, endpoint in candidates(slashes) if slashes in lengths else ():
                if match := pattern.match(path):
                    scope["path_params"] = match.groupdict()
                    return endpoint
        return nowhere

    async def dispatch(scope: Scope, receive: Receive, send: Send) -> None:
        await found(scope)(scope, receive, send)

    return dispatch


def _with_parameters(
    endpoints: Mapping[str, ASGIApp],
) -> Mapping[int, list[tuple[str, str, ASGIApp]]]:
    """Group paths by number of slashes, with the set id pattern for each.

    Paths with an imported set come last, because `import` alone is a valid set id too.
    """
    lengths: defaultdict[int, list[tuple[str, str, ASGIApp]]] = defaultdict(list)
    for path, endpoint in endpoints.items():
        if "{" in path:
            slashes = _ANY if _REST in path else path.count("/")
            lengths[slashes].append((path, _SEGMENT, endpoint))
    for path, endpoint in endpoints.items():
        if _SET in path and _REST not in path:
            slashes = path.count("/") + _SLASHES_IN_SET
            lengths[slashes].append((path, IMPORTED_SET, endpoint))
    return dict(lengths)


@cache
def _path_pattern(path: str, set_id: str) -> Pattern[str]:
    """Compile the pattern of a path; cached because tests start many services in a process."""

    def parameter(found: Match[str]) -> str:
        name, rest = found.groups()
        return f"(?P<{name}>{'.*' if rest else set_id if name == 'set_id' else _SEGMENT})"

    return re.compile(f"^{_PARAMETER.sub(parameter, re.escape(path))}$")


def make_late(make: Callable[[], ASGIApp]) -> ASGIApp:
    """Wrap an application that is built on a thread at its first request, then kept."""
    making, made = asyncio.Lock(), list[ASGIApp]()

    async def dispatch(scope: Scope, receive: Receive, send: Send) -> None:
        if not made:
            async with making:
                made[:] = made or [await asyncio.to_thread(make)]
        await made[0](scope, receive, send)

    return dispatch


class Pipeline(ABC, Generic[R, V]):
    """ASGI application for all methods of one path: a row R per method, a view V per request.

    Requests with a method in `writing` are admitted separately from reads. A `probe` is a health
    check, which may use any address of the service. `log_path` replaces a path that may be a
    secret in the log.
    """

    def __init__(
        self,
        path: str,
        rows: Mapping[str, R],
        state: State,
        *,
        writing: Collection[str],
        is_admitted: bool = True,
        probe: bool = False,
        log_path: str | None = None,
    ) -> None:
        self.path = path
        self.state = state
        self.writing = frozenset(writing)
        self._rows = dict(rows)
        self._is_admitted = is_admitted
        self._probe = probe
        self._log_path = log_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        request = Request(scope, receive)
        visit = self.begun(request)
        try:
            reply = await self._admitted(request, visit, started)
        except FactbookError as error:
            reply = await self.refused(visit, error)
        except ClientGoneError:
            return
        except Exception as error:  # noqa: BLE001 - the edge: whatever went wrong has to be answered
            unexpected = render_unexpected_error(error, request, self._log_path)
            reply = await self.refused(visit, unexpected)
        reply = self.finished(request, reply)
        seconds = time.perf_counter() - started
        self.state.metrics.answered(self.path, request.method, reply.status, seconds)
        if self.state.settings.access_log:
            self._log_access(request, visit, reply.status, seconds)
        await send_reply(reply, send, self.state.incomplete, head=request.method == "HEAD")

    @abstractmethod
    def begun(self, request: Request) -> V:
        """Build the view of a request for the other steps."""

    @abstractmethod
    async def answer(self, visit: V, row: R | None) -> Reply:
        """Authorize the caller and run the row's handler; no row means no such method.

        Raises FactbookError to refuse the request.
        """

    @abstractmethod
    async def refused(self, visit: V, error: FactbookError) -> Reply:
        """Render the reply for an error."""

    def finished(self, request: Request, reply: Reply) -> Reply:
        """Add the headers that every reply needs."""
        return reply

    def caller(self, visit: V) -> Mapping[str, str]:
        """Fields that identify the caller in the access log."""
        return {}

    def _log_access(self, request: Request, visit: V, status: int, seconds: float) -> None:
        """Log a request without possible secrets: no query values, no secret paths."""
        names = set(_NAME.findall(request.scope["query_string"][:_LOGGED].decode("latin-1")))
        log.info(
            "request",
            method=request.method,
            route=self.path,
            **({} if self._log_path or "{" not in self.path else {"path": request.path[:_LOGGED]}),
            parameters=sorted(names),
            status=status,
            milliseconds=round(seconds * 1000, 1),
            address=get_client_address(request.scope, self.state.proxies),
            **self.caller(visit),
        )

    def no_method(self) -> MethodNotAllowedError:
        """Build the error for a method that the path doesn't support."""
        return MethodNotAllowedError(allow=", ".join(sorted(self._rows)))

    async def _admitted(self, request: Request, visit: V, now: float) -> Reply:
        # Health checks are always answered.
        if not self._is_admitted:
            return await self._answer(request, visit)
        admission = self.state.admission
        await admission.enter(request, now, writes=request.method in self.writing)
        try:
            return await self._answer(request, visit)
        finally:
            admission.leave(request)

    async def _answer(self, request: Request, visit: V) -> Reply:
        host, origin = request.headers.get(b"host"), request.headers.get(b"origin")
        self.state.hosts.check(host, origin, probe=self._probe)
        method = request.method
        return await self.answer(visit, self._rows.get("GET" if method == "HEAD" else method))


class IncompleteAnswers:
    """Counts answers that were cut off; logs one line per reason every ten seconds."""

    def __init__(self, metrics: Metrics, now: Callable[[], float] = time.monotonic) -> None:
        self._metrics = metrics
        self._now = now
        self._logged_at: dict[Reason, float] = {}
        self._unlogged: Counter[Reason] = Counter()

    def add(self, reason: Reason, cause: str | None = None) -> None:
        """Count one answer; `cause` gives details for the log."""
        self._metrics.incomplete(reason)
        self._unlogged[reason] += 1
        now, before = self._now(), self._logged_at.get(reason)
        if before is None or now - before >= _LOGGED_EVERY:
            more = {} if cause is None else {"cause": cause}
            log.warning("answer.incomplete", reason=reason, answers=self._unlogged[reason], **more)
            self._logged_at[reason], self._unlogged[reason] = now, 0


async def begin_pieces(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Fetch the first piece early, while an error can still become an error reply."""
    first = await anext(pieces, b"")

    async def all_pieces() -> AsyncIterator[bytes]:
        yield first
        async for piece in pieces:
            yield piece

    return all_pieces()


async def send_reply(
    reply: Reply, send: Send, incomplete: IncompleteAnswers, *, head: bool
) -> None:
    """Send a reply, without its body if `head` is true."""
    body = reply.body
    # If the client doesn't read, the connection aborts the answer and counts it.
    with suppress(ConnectionResetError):
        headers = _encode_headers(reply)
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        if head:
            await send({"type": "http.response.body", "body": b""})
        elif isinstance(body, bytes):
            await send({"type": "http.response.body", "body": body})
        elif isinstance(body, list):
            for piece in body:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        else:
            await _send_pieces(body, send, incomplete)


def _encode_headers(reply: Reply) -> list[tuple[bytes, bytes]]:
    body = reply.body
    headers = [(b"content-type", reply.content_type)]
    if reply.headers:
        headers += [(name.encode(), text.encode("latin-1")) for name, text in reply.headers.items()]
    if reply.cookies:
        headers += [(b"set-cookie", cookie.encode("latin-1")) for cookie in reply.cookies]
    if isinstance(body, bytes):
        headers.append((b"content-length", b"%d" % len(body)))
    elif isinstance(body, list):
        headers.append((b"content-length", b"%d" % sum(map(len, body))))
    return headers


async def _send_pieces(
    pieces: AsyncIterator[bytes], send: Send, incomplete: IncompleteAnswers
) -> None:
    """Send the pieces.

    If a piece fails, the last chunk is never sent and the server closes the connection, which
    tells the client that the answer is incomplete.
    """
    try:
        async for piece in pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            # Sending to a fast client never waits, so give other requests a turn.
            await asyncio.sleep(0)
    except ConnectionResetError:
        raise
    except UnavailableError as error:
        incomplete.add("unavailable", error.cause)
        return
    except Exception:
        incomplete.add("failed")
        raise
    await send({"type": "http.response.body", "body": b""})


refusals_log = structlog.get_logger("factbook.audit")

REFUSED: Final = "call.refused"

# Statuses recorded for every call: access and rate limits. Their messages quote no input.
_ACCESS: Final = frozenset({401, 403, 429})
# Statuses recorded for writes only. Their messages may quote input.
_WRITES: Final = frozenset({400, 409, 412, 413})
_LONGEST_MESSAGE: Final = 200
_MOST_WAITING: Final = 10_000


class Refusals:
    """Records of refused calls, written in batches in the background.

    Repeated refusals must not fill the disk: each address gets up to 60 records in a minute, and
    all unknown callers share one a second, with a burst of 3600. The rest is only counted.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        metrics: Metrics,
        spawn: Callable[[Coroutine[Any, Any, object]], None],
    ) -> None:
        self._database = database
        self._metrics = metrics
        self._spawn = spawn
        # Half of the 60 at once, and half spread over a minute.
        self._of_address = RateLimit(0.5, 30, clock)
        self._of_nobody = RateLimit(1, 3600, clock)
        self._waiting: list[Record] = []
        self._lock = asyncio.Lock()

    def add(self, record: Record) -> None:
        """Queue a record."""
        if (
            len(self._waiting) >= _MOST_WAITING
            or self._of_address.take(record.address)
            or (not record.actor and self._of_nobody.take(""))
        ):
            self._metrics.left_out_of_audit(1)
            return
        self._waiting.append(record)
        if len(self._waiting) == 1:
            self._spawn(self.write())

    async def write(self) -> None:
        """Write every record added so far; drops and counts them without a database."""
        async with self._lock:
            records, self._waiting = self._waiting, []
            if not records:
                return
            try:
                await self._database.write(partial(append_records, records=records))
            except UnavailableError:
                self._metrics.left_out_of_audit(len(records))
                refusals_log.warning("audit.unavailable", records=len(records))


def record_refusal(
    state: State,
    *,
    actor: str,
    address: str,
    action: str,
    object: str,
    status: int,
    token: str = "",
    detail: Mapping[str, Any] | None = None,
) -> None:
    """Record a refusal in the background; frequent refusals are only counted.

    `object` and `detail` must not contain user input that may be a secret.
    """
    who = Caller(actor, state.clock(), address, token)
    entry = AuditEntry(action, object, detail or {})
    state.refusals.add(make_record(who, entry, "refused", status))


def record_refused_request(
    request: Request, state: State, error: FactbookError, *, writes: bool
) -> None:
    """Record a refused request; writes record more statuses than reads."""
    if not (error.status in _ACCESS or (writes and error.status in _WRITES)):
        return
    detail: dict[str, Any] = {"method": request.method[:20], "error": error.name}
    if error.status in _ACCESS:
        detail["message"] = clean_text(error.message)[:_LONGEST_MESSAGE]
    if isinstance(error, NotAllowedError) and error.missing:
        detail["missing"] = error.missing
    record_refusal(
        state,
        actor=request.token.owner if request.token else "",
        address=get_client_address(request.scope, state.proxies),
        action=REFUSED,
        object=request.path,
        status=error.status,
        token=request.token_id,
        detail=detail,
    )


class InternalResponse(NamedTuple):
    """Response to an internal request."""

    status: int
    body: bytes


async def post_internally(
    application: ASGIApp, path: str, headers: Mapping[str, str], body: bytes, address: str
) -> InternalResponse:
    """POST to the application in-process, as if from this address."""
    status, received = 0, bytearray()

    async def receive() -> Message:
        return {"type": "http.request", "body": body}

    async def send(message: Message) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
        else:
            received.extend(message.get("body", b""))

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [
            (name.lower().encode("latin-1"), value.encode("latin-1"))
            for name, value in headers.items()
        ],
        "client": (address, 0),
        "server": None,
    }
    await application(scope, receive, send)
    return InternalResponse(status, bytes(received))
