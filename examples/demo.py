"""What `make demo` runs: a made-up shop through 90 days, then a service on its file, one question.

It keeps serving until it is interrupted, and leaves nothing behind.
"""

import argparse
import asyncio
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Thread
from types import FrameType
from typing import NoReturn, TypeVar
from urllib.error import URLError
from urllib.request import urlopen

import structlog
from shop import history

from factbook import clock

TOOL = "get-check-results"
ARGUMENTS = {"checkId": "on-call", "owner": "team-logistics", "states": ["fail", "unknown"]}
PATH = "/mcp"
PORT = 8000
READY_SECONDS = 30
STOP_SECONDS = 40

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Environment = dict[str, str]
T = TypeVar("T")


class Interrupted(BaseException):
    """Someone wants the demo to end."""


class Failed(Exception):
    """A step did not work; the text says which and why."""


class Server:
    """A server process, and what it says."""

    def __init__(self, port: int, environment: Environment, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "factbook", "serve", "--host", "127.0.0.1", "--port", str(port)],
            env=environment,
            cwd=folder,  # a factbook.toml of the current folder is meant for another service too
            start_new_session=True,  # Ctrl+C in a terminal reaches this process alone
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
        self._said: list[str] = []
        self._is_shown = False
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait_until_ready(self, url: str) -> None:
        """Return when /readyz answers; raise Failed when it does not in time."""
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                self._reader.join(STOP_SECONDS)
                raise Failed("The service did not start. It said:\n" + "".join(self._said).strip())
            try:
                with urlopen(f"{url}/readyz", timeout=2):  # noqa: S310 - always http, always here
                    return
            except (URLError, OSError):
                time.sleep(0.05)
        raise Failed(f"The service was not ready after {READY_SECONDS} seconds.")

    def wait(self) -> int:
        """Show what it says until it ends; its exit code."""
        self._is_shown = True
        return self._process.wait()

    def stop(self) -> None:
        """Ask the server to finish, and end it when it does not."""
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _read(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            if self._is_shown:
                sys.stderr.write(line)
            else:
                self._said.append(line)


def main() -> int:
    """Run the demo; the exit code."""
    parser = argparse.ArgumentParser(description="Factbook with a made-up shop and its 90 days.")
    parser.add_argument("--port", type=_port, help=f"{PORT}, or a free one, when it is left out")
    given = parser.parse_args()
    for number in _SIGNALS:
        signal.signal(number, _interrupt)
    try:
        with tempfile.TemporaryDirectory(prefix="factbook-demo-") as folder:
            demonstrate(Path(folder), free_port(given.port))
    except Interrupted:
        say("\nStopped. Nothing is left behind.")
        return 0
    except Failed as error:
        print(f"\nThe demo failed. {error}", file=sys.stderr)
        return 1


def demonstrate(folder: Path, port: int) -> NoReturn:
    """Fill, start, ask and show; then serve until interrupted."""
    url = f"http://127.0.0.1:{port}"
    environment = clean_environment() | history.environment(folder)
    environment |= {"FACTBOOK_LOG_LEVEL": "error", "FACTBOOK_LOG_FORMAT": "console"}
    environment |= {"FACTBOOK_SERVER": url}
    say(f"Living through {history.DAYS} days of a made-up shop (examples/shop) on a SQLite file")
    try:
        link = run_until_signal(partial(fill, folder, url))
    except history.Refused as error:
        raise Failed(f"The service refused what was sent: {error}") from error
    say(f"Starting Factbook at {url}")
    with serving(port, environment, folder) as server:
        server.wait_until_ready(url)
        environment["FACTBOOK_TOKEN"] = run(
            *("token", "create", "demo", "--preset", "pipeline", "--preset", "author"),
            environment=environment,
        )
        named = [
            f"{name}={value if isinstance(value, str) else json.dumps(value)}"
            for name, value in ARGUMENTS.items()
        ]
        answer = run("call", TOOL, *named, environment=environment)
        show(url, environment["FACTBOOK_TOKEN"], link, answer)
        code = server.wait()
        raise Failed(f"The service ended by itself with exit code {code}.")


def run_until_signal(work: Callable[[], Coroutine[None, None, T]]) -> T:
    """Run work that a signal cancels; raises Interrupted once it has ended.

    `_interrupt` raises between any two steps, and would close a database that a thread still uses.
    """
    task: asyncio.Task[T] | None = None
    is_stopped = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal is_stopped
        is_stopped = True
        if task is not None and not task.done():
            task.get_loop().call_soon_threadsafe(task.cancel)

    async def run() -> None:
        nonlocal task
        task = asyncio.create_task(work())
        if is_stopped:
            task.cancel()
        await asyncio.wait({task})

    for number in _SIGNALS:
        signal.signal(number, stop)
    try:
        asyncio.run(run())
    finally:
        for number in _SIGNALS:
            signal.signal(number, _interrupt)
    if is_stopped:
        raise Interrupted
    assert task is not None
    return task.result()


async def fill(folder: Path, url: str) -> str:
    """Live through the days of the shop; the link with which a member of a team signs in."""
    # What breaks in the shop is no trouble of the demo.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    async with history.lived(folder, clock.now(), say) as shop:
        return await shop.invite(history.VIEWER, "administrator", url)


def show(url: str, token: str, link: str, answer: str) -> None:
    """Print question and answer, how to ask again, and last the link and the token."""
    call = {"name": TOOL, "arguments": ARGUMENTS}
    message = json.dumps({"jsonrpc": "2.0", "method": "tools/call", "params": call, "id": 1})
    say(
        f"""
Question: which Logistics services have no one on call tonight?   ({TOOL})
Answer:
{answer}

Ask again with curl:

  curl -sS {url}{PATH} \\
    -H 'Authorization: Bearer {token}' \\
    -H 'Content-Type: application/json' \\
    -H 'Accept: application/json, text/event-stream' \\
    -d '{message}'

or with the command, once FACTBOOK_SERVER and FACTBOOK_TOKEN are exported:

  .venv/bin/factbook facts stock

Serving until you press Ctrl+C. The link makes you Ada, who is in team-payments, once:

  Link:  {link}

  export FACTBOOK_SERVER={url}
  export FACTBOOK_TOKEN={token}"""
    )


def free_port(chosen: int | None) -> int:
    """The chosen port; otherwise 8000 when nothing listens there, else one that is free."""
    for port in (chosen,) if chosen else (PORT, 0):
        with socket.socket() as probe:
            # As servers do: an address that a server left a moment ago counts as free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError as error:
                said = f"Port {port} cannot be used: {error.strerror}."
                if chosen:
                    raise Failed(f"{said} Choose another: make demo PORT={PORT + 80}") from error
                say(f"{said} Another is taken; `make demo PORT={PORT + 80}` chooses one.")
                continue
            found: int = probe.getsockname()[1]
            return found
    raise Failed("This machine has no free port on 127.0.0.1.")


def clean_environment() -> Environment:
    """The environment without settings that are meant for another service."""
    return {key: value for key, value in os.environ.items() if not key.startswith("FACTBOOK_")}


@contextmanager
def serving(port: int, environment: Environment, folder: Path) -> Iterator[Server]:
    """A server process, stopped at the end of the block."""
    server = Server(port, environment, folder)
    try:
        yield server
    finally:
        server.stop()


def run(*arguments: str, environment: Environment) -> str:
    """What a command of `factbook` prints; raises Failed with what it says when it fails."""
    done = subprocess.run(
        [sys.executable, "-m", "factbook", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Failed(f"`factbook {arguments[0]}` said:\n{done.stderr.strip()}")
    return done.stdout.strip()


def say(text: str) -> None:
    """Print at once, also into a pipe."""
    print(text, flush=True)


def _port(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 65_536:
        raise argparse.ArgumentTypeError(f"{text} is no port: 1 to 65535.")
    return int(text)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise Interrupted


if __name__ == "__main__":
    sys.exit(main())
