"""Tools of the shop that data sources ask over HTTP: a rota and a build server on loopback."""

import json
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import TracebackType
from typing import Any, Self


class Tool(ThreadingHTTPServer):
    """A server that answers with JSON by the last part of the path."""

    daemon_threads = True

    def __init__(self, port: int) -> None:
        """`port` 0 stands for any that is free."""
        super().__init__(("127.0.0.1", port), _Answering)
        # None stands for a service that the tool no longer answers for.
        self.answers: dict[str, dict[str, Any] | None] = {}
        self.url = f"http://127.0.0.1:{self.server_port}"

    def __enter__(self) -> Self:
        Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """End it; from then on connections are refused."""
        self.shutdown()
        self.server_close()


class _Answering(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Tool)
        name = self.path.rpartition("/")[2]
        answer = self.server.answers.get(name)
        body = json.dumps(answer).encode() if answer else b"<h1>Down for maintenance</h1>"
        self.send_response(200 if name in self.server.answers else 404)
        self.send_header("Content-Type", "application/json" if answer else "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        # Whoever asked may be gone: the demo was stopped.
        with suppress(ConnectionError):
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep the terminal quiet."""
