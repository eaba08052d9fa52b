"""Internal requests of the service to itself, through the same stack as a client's."""

from collections.abc import Mapping
from typing import NamedTuple

from factbook.asgi import ASGIApp, Message


class InternalResponse(NamedTuple):
    """Response of the application."""

    status: int
    body: bytes


async def post(
    application: ASGIApp, path: str, headers: Mapping[str, str], body: bytes, address: str
) -> InternalResponse:
    """Response of the application to a POST from this address, without a network."""
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
