"""A build server that a custom source asks, and that a test can make wait."""

import asyncio
import threading

from starlette.types import Receive, Scope, Send

ADDRESS = "/jobs/"


class BuildServer:
    """Answers for the components that it has jobs of, once it is let; keeps the credentials."""

    def __init__(self, jobs: dict[str, bytes]) -> None:
        self._jobs = jobs
        self.credentials: set[str] = set()
        self.may_answer = threading.Event()
        self.may_answer.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await asyncio.to_thread(self.may_answer.wait)
        self.credentials.add(dict(scope["headers"]).get(b"authorization", b"").decode())
        name = scope["path"].removeprefix(ADDRESS).removesuffix(".json")
        body = self._jobs.get(name)
        headers = [(b"content-type", b"application/json")]
        start = {"type": "http.response.start", "status": 200 if body else 404, "headers": headers}
        await send(start)
        await send({"type": "http.response.body", "body": body or b"{}"})
