"""Real `factbook` processes for tests: a server on loopback, and commands that talk to it."""

import os
import signal
import socket
import ssl
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Protocol

import httpx2

from tests import commands
from tests.waiting import LONG, until

FACTBOOK = Path(sys.executable).with_name("factbook")
UV = Path(sys.executable).with_name("uv")
TOKEN_KEY = "a key of tests, long enough to be one"

# More ports than the servers of any test need.
_MOST_RESERVED = 200
# Descriptors of the sockets that reserve ports.
_holders: deque[int] = deque()
# To load what is needed for TLS takes a client 40 ms of the processor.
_NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class Process(Protocol):
    """What is asked of a process that was started, in the words of `subprocess`."""

    @property
    def pid(self) -> int:
        """Its id, and that of its session."""

    def poll(self) -> int | None:
        """Its exit code; None while it runs."""

    def wait(self, timeout: float) -> int:
        """Its exit code, when it has ended."""


class ServerProcess:
    """A `factbook serve` on a free port of loopback."""

    def __init__(self, database_url: str, folder: Path, **environment: str) -> None:
        self.database_url = database_url
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.environment = clean_environment() | {
            "FACTBOOK_DATABASE_URL": database_url,
            "FACTBOOK_TOKEN_KEY": TOKEN_KEY,
            "FACTBOOK_SERVER": self.url,
            **environment,
        }
        self.log = folder / f"serve-{self.port}.log"
        self._process: Process | None = None

    def start(self, *arguments: str) -> "ServerProcess":
        """Start it, and wait until it is ready."""
        self._process = process = self._begun(*arguments)
        until(lambda: process.poll() is not None or self._is_ready(), told=self.log.read_text)
        assert process.poll() is None, self.log.read_text()
        return self

    def program(self) -> list[str | Path]:
        """What is started: a port and arguments are put behind it."""
        return [FACTBOOK, "serve"]

    def _begun(self, *arguments: str) -> "Process":
        """The process, in a session of its own."""
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [*self.program(), "--port", str(self.port), *arguments],
                env=self.environment,
                cwd=self.folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def stop(self, number: signal.Signals = signal.SIGTERM, *, within: float = 60) -> int:
        """Send a signal to it and all that it started; its exit code, within so many seconds."""
        assert self._process is not None
        os.killpg(self._process.pid, number)
        return self._process.wait(timeout=within)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def token(self, *arguments: str) -> str:
        """A new token's value, from `factbook token create`; all permissions if none are named."""
        chosen = {"--permission", "--preset"}.intersection(arguments)
        return self.invoke(
            "token", "create", "test", *([] if chosen else ["--all"]), *arguments
        ).strip()

    def invoke(self, *arguments: str, expect: int = 0) -> str:
        """What a command prints on standard output that runs in the test's process."""
        done = commands.invoke(self.folder, self.environment, *arguments)
        assert done.exit_code == expect, done.output
        return done.stdout

    def command(self, *arguments: str, expect: int = 0, stdin: str | None = None) -> str:
        """What a `factbook` command prints on standard output."""
        done = subprocess.run(
            [FACTBOOK, *arguments],
            env=self.environment,
            cwd=self.folder,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=LONG,
            check=False,
        )
        assert done.returncode == expect, done.stdout + done.stderr
        return done.stdout

    def client(self, token: str) -> httpx2.Client:
        """A client of this server with a token."""
        headers = {"authorization": f"Bearer {token}"}
        return httpx2.Client(base_url=self.url, headers=headers, timeout=60, verify=_NO_TLS)

    def _is_ready(self) -> bool:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=LONG)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()


@contextmanager
def serving(
    database_url: str, folder: Path, *arguments: str, **environment: str
) -> Iterator[ServerProcess]:
    """A server that is stopped at the end of the block."""
    server = ServerProcess(database_url, folder, **environment).start(*arguments)
    try:
        yield server
    finally:
        if server.is_running:
            server.stop()


def clean_environment() -> dict[str, str]:
    """This process's environment without settings of Factbook."""
    return {name: text for name, text in os.environ.items() if not name.startswith("FACTBOOK_")}


def free_port() -> int:
    """A port of loopback that nothing listens on, reserved for a server of this test.

    Linux keeps it from every other process that asks for a free port or connects to somewhere, as
    long as a socket is bound to it. Servers get it all the same: they set SO_REUSEADDR, and this
    socket doesn't listen.
    """
    holder = socket.socket()
    holder.bind(("127.0.0.1", 0))
    port: int = holder.getsockname()[1]
    if sys.platform != "linux":
        holder.close()
        return port
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    _holders.append(holder.detach())
    if len(_holders) > _MOST_RESERVED:
        os.close(_holders.popleft())
    return port
