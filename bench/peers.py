"""What tool calls are compared with, as servers: `python -m bench.peers NAME PORT FILE`.

All answer with the constant in FILE, an answer of our own, from the same uvicorn with the same
parser and event loop as ours. None authenticates, checks or looks anything up: `sdk` is the
official Python SDK's server, stateless and answering in JSON; `asgi` is a bare application, the
least that any application on that server costs; `writer` is one that writes a long answer in
pieces, and `stored` one that reads them from a SQLite file first.
"""

import asyncio
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

# Of our stream of entities, a piece is a hundred of them.
_ROW, _ROWS = 1_700, 100
_PIECE = _ROW * _ROWS


def bare(answer: bytes) -> ASGIApp:
    """An application that reads the body of a request and sends the answer."""
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(answer)).encode()),
    ]

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
            return
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    return application


def sdk(answer: bytes) -> ASGIApp:
    """The SDK's server with one tool, whose result is the answer's."""
    from mcp.server.lowlevel import Server  # noqa: PLC0415 - the other peer must not carry it
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager  # noqa: PLC0415
    from mcp_types import CallToolResult  # noqa: PLC0415

    result = CallToolResult.model_validate(msgspec.json.decode(answer)["result"])

    async def call_tool(context: Any, parameters: Any) -> CallToolResult:
        return result

    server: Server[Any] = Server("peer", on_call_tool=call_tool)
    manager = StreamableHTTPSessionManager(server, stateless=True, json_response=True)

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            async with manager.run():
                await _lifespan(receive, send)
        else:
            await manager.handle_request(scope, receive, send)

    return application


def writer(answer: bytes) -> ASGIApp:
    """An application that writes the answer in pieces as long as ours, letting others between."""
    pieces = [answer[start : start + _PIECE] for start in range(0, len(answer), _PIECE)]
    headers = [(b"content-type", b"application/json")]

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
            return
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for piece in pieces if scope["path"] == "/" else ():
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            await asyncio.sleep(0)
        await send({"type": "http.response.body", "body": b""})

    return application


def stored(answer: bytes) -> ASGIApp:
    """The same as `writer`, from rows of a SQLite file as long as an entity is."""
    path = Path(sys.argv[3] + ".db")
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, text BLOB NOT NULL)")
        rows = ((answer[start : start + _ROW],) for start in range(0, len(answer), _ROW))
        connection.executemany("INSERT INTO rows (text) VALUES (?)", rows)
    headers = [(b"content-type", b"application/json")]

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
            return
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        cursor = connection.execute("SELECT text FROM rows ORDER BY id")
        while scope["path"] == "/" and (found := cursor.fetchmany(_ROWS)):
            piece = b"".join(chain.from_iterable(found))
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            await asyncio.sleep(0)
        await send({"type": "http.response.body", "body": b""})

    return application


PEERS: dict[str, Callable[[bytes], ASGIApp]] = {
    "sdk": sdk,
    "asgi": bare,
    "writer": writer,
    "stored": stored,
}


async def _lifespan(receive: Receive, send: Send) -> None:
    for phase in ("startup", "shutdown"):
        await receive()
        await send({"type": f"lifespan.{phase}.complete"})


def main(name: str, port: str, file: str) -> None:
    """Serve a peer until told to stop."""
    uvicorn.run(
        PEERS[name](Path(file).read_bytes()),
        port=int(port),
        loop="uvloop",
        http="httptools",
        ws="none",
        lifespan="on",
        access_log=False,
        log_config=None,
        log_level="warning",
        server_header=False,
        proxy_headers=False,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
