"""Request pipeline around every handler, of JSON and of pages.

Admission, then host and origin, then the method, then the handler with what its kind of interface
asks for; whatever is raised becomes a reply, every answer is counted.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from typing import Generic, TypeVar

from starlette.types import Receive, Scope, Send

from factbook.errors import FactbookError, MethodNotAllowedError
from factbook.http import error_responses
from factbook.http.context import State
from factbook.http.requests import ClientGoneError, Reply, Request
from factbook.http.responses import send_reply

R = TypeVar("R")
V = TypeVar("V")


class Pipeline(ABC, Generic[R, V]):
    """ASGI application for all methods of one path: a row R for each, and V for a request.

    Requests of the methods `writing` are admitted apart from the others. Machines look by a `probe`
    for the health of the service, and know it by its address alone. `log_path` stands for a path
    that may be a secret.
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
            unexpected = error_responses.unexpected(error, request, self._log_path)
            reply = await self.refused(visit, unexpected)
        seconds = time.perf_counter() - started
        self.state.metrics.answered(self.path, request.method, reply.status, seconds)
        await send_reply(reply, send, self.state.incomplete, head=request.method == "HEAD")

    @abstractmethod
    def begun(self, request: Request) -> V:
        """Begin a request: the view of it that the other steps get."""

    @abstractmethod
    async def answer(self, visit: V, row: R | None) -> Reply:
        """The reply of the row's handler, if the caller may have it; None: no such method.

        Raises FactbookError for a refusal.
        """

    @abstractmethod
    async def refused(self, visit: V, error: FactbookError) -> Reply:
        """The reply for an error."""

    def no_method(self) -> MethodNotAllowedError:
        """The error for a method that the path has not."""
        return MethodNotAllowedError(allow=", ".join(sorted(self._rows)))

    async def _admitted(self, request: Request, visit: V, now: float) -> Reply:
        # Who looks whether the service is well is answered always.
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
