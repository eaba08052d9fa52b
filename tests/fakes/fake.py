"""What every fake of a vendor is: an ASGI application that counts and fails as it is told."""

import asyncio
from abc import ABC, abstractmethod
from collections import Counter, deque

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tests.fakes.faults import Fault, well


class Fake(ABC):
    """A vendor as an ASGI application.

    `requests` counts what it was asked by kind, in the words of its class. `seconds` is how long
    every answer takes.
    """

    def __init__(self, *, seconds: float = 0) -> None:
        self.requests: Counter[str] = Counter()
        self.seconds = seconds
        self._faults: dict[str, deque[Fault]] = {}

    @abstractmethod
    def kind(self, request: Request) -> str:
        """The kind of a request, for `requests` and `fail`."""

    @abstractmethod
    async def answer(self, request: Request) -> Response:
        """What the vendor says when nothing goes wrong."""

    def fail(self, kind: str, fault: Fault, *, times: int = 1, after: int = 0) -> None:
        """Answer requests of this kind with a fault, after so many that are answered well."""
        queue = self._faults.setdefault(kind, deque())
        queue.extend([well] * after)
        queue.extend([fault] * times)

    def recover(self) -> None:
        """Answer everything well again."""
        self._faults.clear()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        request = Request(scope, receive)
        kind = self.kind(request)
        self.requests[kind] += 1
        await asyncio.sleep(self.seconds)
        queue = self._faults.get(kind)
        fault = queue.popleft() if queue else well
        response = await fault(request, self.answer)
        await response(scope, receive, send)


def path_of(request: Request) -> str:
    """The path as it was sent, with its percent-encoding."""
    raw: bytes = request.scope["raw_path"]
    return raw.decode().partition("?")[0]
