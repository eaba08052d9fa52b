"""A receiver of webhooks on loopback, which checks signatures by the words of the specification.

Source: the Standard Webhooks specification 1.0.0. Nothing here is the service's own code.
"""

import base64
import hashlib
import hmac
import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.fakes.serving import served
from tests.waiting import LONG

NETWORKS = ["127.0.0.0/8"]


class Message(NamedTuple):
    """A message that came."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def content(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found


class Receiver:
    """Keeps what comes, and answers with `status`; paths may have another status."""

    def __init__(self) -> None:
        self.url = ""
        self.status = 204
        self.statuses: dict[str, int] = {}
        self.headers: dict[str, str] = {}
        self.messages: list[Message] = []
        self.held: set[str] = set()
        self.may_answer = threading.Event()
        self._came = threading.Condition()

    @property
    def said(self) -> list[tuple[str, str]]:
        """The types and subjects of what came, in the order in which it came."""
        return [_said(message.content) for message in self.messages]

    @property
    def ids(self) -> Counter[str]:
        return Counter(message.id for message in self.messages)

    def receive(self, request: Request, body: bytes) -> Response:
        path = request.url.path
        with self._came:
            self.messages.append(Message(path, dict(request.headers), body))
            self._came.notify_all()
        if path in self.held:
            assert self.may_answer.wait(30)
        return Response(status_code=self.statuses.get(path, self.status), headers=self.headers)

    def wait_for(self, path: str, count: int) -> None:
        """Return when so many messages have come to a path."""
        with self._came:
            assert self._came.wait_for(lambda: self.count(path) >= count, timeout=LONG)

    def count(self, path: str) -> int:
        """How many messages have come to a path."""
        return sum(message.path == path for message in self.messages)


@contextmanager
def receiving() -> Iterator[Receiver]:
    """A receiver that listens until the end of the block."""
    import asyncio  # noqa: PLC0415 - of the thread that serves

    receiver = Receiver()

    async def receive(request: Request) -> Response:
        body = await request.body()
        return await asyncio.to_thread(receiver.receive, request, body)

    app = Starlette(routes=[Route("/{path:path}", receive, methods=["POST"])])
    with served(app) as url:
        receiver.url = url
        yield receiver


def verified(message: Message, secret: str, now: int) -> bool:
    """Whether a message is of whoever has the secret, and was sent not long before `now`."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    timestamp = message.headers["webhook-timestamp"]
    signed = message.id.encode() + b"." + timestamp.encode() + b"." + message.body
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    given = message.headers["webhook-signature"].split(" ")
    return abs(now - int(timestamp)) <= 300 and any(
        version == "v1" and hmac.compare_digest(signature, expected)
        for version, _, signature in (one.partition(",") for one in given)
    )


def _said(content: dict[str, Any]) -> tuple[str, str]:
    data = content["data"]
    subject = data.get("entityRef") or data.get("set") or data.get("source") or ""
    return content["type"], subject
