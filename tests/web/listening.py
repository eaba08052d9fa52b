"""A stream of events as a browser holds it open, which no client of HTTP in a process can."""

import asyncio
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode

from starlette.types import Message

from tests.service import Service
from tests.waiting import LONG
from tests.web.visiting import Browser

PATH = "/live"


class Stream:
    """An open stream; what is asked for comes, or the test fails after some seconds."""

    def __init__(self, service: Service, visitor: Browser, **query: Any) -> None:
        self._application = service.application
        self._scope = _scope(visitor, urlencode(query, doseq=True))
        self._asked = False
        self._gone = asyncio.Event()
        self._sent = asyncio.Queue[Message]()
        self.said = b""

    async def __aenter__(self) -> Self:
        self._task = asyncio.ensure_future(
            self._application(self._scope, self._receive, self._sent.put)
        )
        self.start = await self._next()
        return self

    async def __aexit__(
        self,
        type_: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        await self.hang_up()

    @property
    def status(self) -> int:
        return int(self.start["status"])

    @property
    def headers(self) -> dict[str, str]:
        return {name.decode(): value.decode() for name, value in self.start["headers"]}

    async def event(self) -> str:
        """The name of the next event; empty at the end."""
        while True:
            message = await self._next()
            self.said += message["body"]
            if not message.get("more_body"):
                return ""
            if message["body"].startswith(b"event: "):
                return str(message["body"].decode().splitlines()[0].removeprefix("event: "))

    async def hang_up(self) -> None:
        """Close the connection, and wait until the service is done with it."""
        self._gone.set()
        async with asyncio.timeout(LONG):
            await self._task

    async def _next(self) -> Message:
        async with asyncio.timeout(LONG):
            return await self._sent.get()

    async def _receive(self) -> Message:
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}


def _scope(visitor: Browser, query: str) -> dict[str, Any]:
    cookies = "; ".join(f"{each.name}={each.value}" for each in visitor.http.cookies.jar)
    headers = {"host": "127.0.0.1:8000", "accept": "text/event-stream", "cookie": cookies}
    return {
        "type": "http",
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": PATH,
        "raw_path": PATH.encode(),
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 40_000),
        "server": ("127.0.0.1", 8_000),
    }
