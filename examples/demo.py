"""What `make demo` runs: a service on a new SQLite file, a made-up shop in it, one question.

It keeps serving until it is interrupted, and leaves nothing behind.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NoReturn
from urllib.error import URLError
from urllib.request import urlopen

EXAMPLES = Path(__file__).resolve().parent
SET = "examples"
TOOL = "get-entity-compliance"
NAME = "receipts"
PATH = "/api/mcp/v1/tech-insights-facts"
READY_SECONDS = 30
STOP_SECONDS = 40

Environment = dict[str, str]
Server = subprocess.Popen[bytes]


class Interrupted(BaseException):
    """Someone wants the demo to end."""


class Failed(Exception):
    """A step did not work; the text says which and why."""


def main() -> int:
    """Run the demo; the exit code."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        with tempfile.TemporaryDirectory(prefix="factbook-demo-") as folder:
            demonstrate(Path(folder))
    except Interrupted:
        say("\nStopped. Nothing is left behind.")
        return 0
    except Failed as error:
        print(f"\nThe demo failed. {error}", file=sys.stderr)
        return 1


def demonstrate(folder: Path) -> NoReturn:
    """Start, push, ask and show; then serve until interrupted."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    environment = clean_environment() | {
        "FACTBOOK_DATABASE_URL": f"sqlite:///{folder / 'factbook.db'}",
        "FACTBOOK_LOG_LEVEL": "warning",
        "FACTBOOK_LOG_FORMAT": "console",
    }
    say(f"Starting Factbook on a new SQLite file at {url}")
    with serving(port, environment, folder) as server:
        wait_until_ready(server, url)
        environment["FACTBOOK_SERVER"] = url
        environment["FACTBOOK_TOKEN"] = run("token", "create", "demo", environment=environment)
        files = sorted(str(path) for path in EXAMPLES.glob("*.yaml"))
        say(f"Pushing {len(files)} files of examples/")
        say(f"  {run('push', SET, *files, environment=environment)}")
        answer = run("call", TOOL, f"name={NAME}", environment=environment)
        show(url, environment["FACTBOOK_TOKEN"], answer)
        code = server.wait()
        raise Failed(f"The service ended by itself with exit code {code}.")


def show(url: str, token: str, answer: str) -> None:
    """Print question, answer, URL and token, and how to ask again."""
    call = {"name": TOOL, "arguments": {"name": NAME}}
    message = json.dumps({"jsonrpc": "2.0", "method": "tools/call", "params": call, "id": 1})
    say(
        f"""
Question: how complete is component:default/{NAME} in the catalog?   ({TOOL})
Answer:
{answer}

URL:   {url}
Token: {token}

Ask again with curl:

  curl -sS {url}{PATH} \\
    -H 'Authorization: Bearer {token}' \\
    -H 'Content-Type: application/json' \\
    -H 'Accept: application/json, text/event-stream' \\
    -d '{message}'

or with the command:

  export FACTBOOK_SERVER={url} FACTBOOK_TOKEN={token}
  .venv/bin/factbook facts checkout

or look at the pages: the link above makes your account.

Serving until you press Ctrl+C."""
    )


def free_port() -> int:
    """8000 when nothing listens there, else one that the system chooses."""
    for port in (8000, 0):
        with socket.socket() as probe:
            # As servers do: an address that a server left a moment ago counts as free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
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
    server = subprocess.Popen(
        [sys.executable, "-m", "factbook", "serve", "--host", "127.0.0.1", "--port", str(port)],
        env=environment,
        cwd=folder,  # a factbook.toml of the current folder is meant for another service too
        start_new_session=True,  # Ctrl+C in a terminal reaches this process alone, which stops it
    )
    try:
        yield server
    finally:
        stop(server)


def stop(server: Server) -> None:
    """Ask the server to finish, and end it when it does not."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    server.terminate()
    try:
        server.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def wait_until_ready(server: Server, url: str) -> None:
    """Return when /readyz answers; raise Failed when it does not in time."""
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise Failed(f"The service did not start; its exit code is {server.returncode}.")
        try:
            with urlopen(f"{url}/readyz", timeout=2):  # noqa: S310 - always http, always here
                return
        except (URLError, OSError):
            time.sleep(0.05)
    raise Failed(f"The service was not ready after {READY_SECONDS} seconds.")


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


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise Interrupted


if __name__ == "__main__":
    sys.exit(main())
