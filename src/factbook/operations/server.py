"""Server processes, and the preparations before they start."""

import asyncio
import errno
import faulthandler
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Final, TypeVar

import structlog
import uvicorn
from uvicorn.supervisors import Multiprocess

from factbook import app, backend, clock, process
from factbook.auth import invitations, users
from factbook.auth.encryption import find_token_key
from factbook.checks.results import incremental
from factbook.errors import UnavailableError
from factbook.http.context import HandlerContext
from factbook.http.requests import get_server_address, render_welcome_link
from factbook.settings import Settings
from factbook.settings.table import settings_environment
from factbook.storage import Database
from factbook.storage.database_url import is_there, open_database
from factbook.storage.migrations import find_pending_migrations, list_migrations
from factbook.telemetry import logs

T = TypeVar("T")

_NOBODY = """
Nobody has an account yet. This link makes the first administrator, once, within a day:

    {link}

`factbook people invite` prints another.
"""
_NO_ADDRESS = """
Nobody has an account yet. With the address of this service in place of ADDRESS,

    factbook people invite --server ADDRESS

prints a link that makes the first administrator.
"""
_NO_LINK = """
Nobody has an account yet, and no link can be made now: {reason}
Afterwards `factbook people invite` prints one.
"""

log = structlog.get_logger("factbook")

_STOP_SECONDS = 30
# A process that doesn't answer its parent for this long is replaced. uvicorn's default of five is
# too short for a start on a busy machine.
_SILENT_SECONDS = 15
_FAILED = 1
# Exit codes of a process that was told to stop.
_ORDERLY = {0, -signal.SIGTERM, -signal.SIGINT}

# Open files of a process: the most that are worth requesting, and those that aren't connections.
_MOST_FILES = 65_536
_OTHER_FILES = 256


def run_with_database(
    settings: Settings, work: Callable[[Database], Coroutine[None, None, T]]
) -> T:
    """Run work on the database of the settings and return its result."""

    async def opened() -> T:
        database = await open_database(
            settings.database_url, connections=3, busy_seconds=settings.sqlite_busy_timeout
        )
        incremental.attach_evaluation(database, clock.now)
        try:
            return await work(database)
        finally:
            await database.close()

    return asyncio.run(opened())


async def first_start_notice(state: HandlerContext) -> str:
    """Notice for the person who starts the service; empty if there are accounts.

    Its link replaces the link of an earlier start. Never log the notice: the link gives access to
    anyone who reads it.
    """
    database, server = state.database, get_server_address(state.settings)
    if server is None:
        return "" if await users.has_users(database) else _NO_ADDRESS
    if await users.has_users(database):
        return ""
    secret, now = invitations.generate_invitation_secret(), state.clock()
    try:
        made = await database.write(
            lambda transaction: invitations.replace_first_invitation(
                transaction,
                invitations.hash_invitation_secret(secret, state.token_key),
                now,
                invitations.FIRST_LIFETIME,
            )
        )
    except UnavailableError as error:
        return _NO_LINK.format(reason=error.message)
    return _NOBODY.format(link=render_welcome_link(server, secret)) if made else ""


def serve(settings: Settings) -> None:
    """Migrate the database, then serve until told to stop; finishes current requests."""
    logs.configure_logs(settings)
    # Bind first: a process that can't listen must not change the database or expire the last link.
    with bind_sockets(settings.host, settings.port) as sockets:
        find_token_key(settings)
        faulthandler.enable()
        serve_all = _serve_in_children if settings.workers > 1 else _serve_here
        if not serve_all(settings, sockets):
            raise SystemExit(_FAILED)


def _serve_here(settings: Settings, sockets: list[socket.socket]) -> bool:
    """Serve from this process until told to stop; returns true if that started."""
    application = app.made(settings)
    config = _server_config(settings, application)
    server = uvicorn.Server(config)

    async def served() -> None:
        # Opened here because errors wouldn't propagate through uvicorn.
        state = await application.open()
        try:
            sys.stderr.write(await first_start_notice(state))
            _listen_on(sockets)
            await server.serve(sockets)
        finally:
            await application.close()

    with (
        suppress(KeyboardInterrupt),
        asyncio.Runner(loop_factory=config.get_loop_factory()) as runner,
    ):
        runner.run(served())
    return server.started


def _serve_in_children(settings: Settings, sockets: list[socket.socket]) -> bool:
    """Serve from several processes; returns true if all started and stopped in order."""
    sys.stderr.write(asyncio.run(_open_once(settings)))
    # Children build the application by its import name, and read settings from the environment.
    os.environ |= settings_environment(settings)
    # Makes a process that the system kills, e.g. for a truncated file, print a traceback.
    os.environ["PYTHONFAULTHANDLER"] = "1"
    process.settle_memory()
    _listen_on(sockets)
    several = Multiprocess(_server_config(settings, "factbook.app:create"), sockets)
    several.run()
    return all(each.exitcode in _ORDERLY for each in several.processes)


async def _open_once(settings: Settings) -> str:
    """Migrate, and open everything a server process opens; returns the start-up notice.

    This raises errors before the invitation link of an earlier start expires.
    """
    with app.Application.traced_meanwhile(settings) as application:
        async with application.running() as state:
            return await first_start_notice(state)


def _listen_on(sockets: list[socket.socket]) -> None:
    start_listening(sockets)
    for each in sockets:
        log.info("service.listening", address=render_socket_address(each))


def _server_config(settings: Settings, application: app.Application | str) -> uvicorn.Config:
    """Configure uvicorn for an application, or for the import name of a factory."""
    return uvicorn.Config(
        application,
        factory=isinstance(application, str),
        workers=settings.workers,
        loop="uvloop",
        http="factbook.http.uvicorn_protocol:HttpConnection",
        ws="none",
        lifespan="on",
        access_log=False,
        log_config=None,
        log_level=settings.log_level,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_STOP_SECONDS,
        timeout_worker_healthcheck=_SILENT_SECONDS,
        limit_concurrency=_most_connections(),
    )


def _most_connections() -> int:
    """Maximum open connections of a process; raises the file limit where permitted."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    most = _MOST_FILES if soft == resource.RLIM_INFINITY else soft
    return max(most - _OTHER_FILES, most // 2)


def migrate_now(settings: Settings) -> list[str]:
    """Apply pending migrations and return their names."""
    with logs.configure_logs_within(settings):
        return run_with_database(settings, lambda database: backend.migrate(database, clock.now()))


def list_pending_migrations(settings: Settings) -> list[str]:
    """List the migrations that `migrate_now` would apply; changes nothing."""
    if not is_there(settings.database_url):
        return list_migrations()
    return run_with_database(settings, find_pending_migrations)


# Connections that may wait for a process to accept them.
_BACKLOG: Final = 2048
_BIND_ADVICE: Final = {
    errno.EADDRINUSE: (
        "is in use",
        "Another process listens there, perhaps another Factbook: stop it, or choose another port "
        "(--port, FACTBOOK_PORT). `ss -ltnp` names the process.",
    ),
    errno.EACCES: (
        "needs more rights than this user has",
        "Choose a port from 1024 on (--port, FACTBOOK_PORT), with a proxy before it.",
    ),
    errno.EADDRNOTAVAIL: (
        "is not an address of this machine",
        "Choose one of its own (--host, FACTBOOK_HOST): 0.0.0.0 for all of them.",
    ),
}


@contextmanager
def bind_sockets(host: str, port: int) -> Iterator[list[socket.socket]]:
    """Bind sockets to every address of the host, without listening; closes them at the end.

    Raises UnavailableError, with advice as a note, when an address can't be bound.
    """
    with ExitStack() as stack:
        yield [stack.enter_context(_bind_socket(*each, port)) for each in _resolve_host(host, port)]


def start_listening(sockets: Sequence[socket.socket]) -> None:
    """Start listening; clients wait until a process accepts them. Raises as `bind_sockets` does."""
    for each in sockets:
        try:
            # If two processes bind at the same moment, the second one fails only here.
            each.listen(_BACKLOG)
        except OSError as error:
            raise _make_bind_error(render_socket_address(each), error) from error


def render_socket_address(listener: socket.socket) -> str:
    """Format the address of a socket: `127.0.0.1:8000`, `[::1]:8000`."""
    host, port = listener.getsockname()[:2]
    return _join_address(host, port)


def _resolve_host(host: str, port: int) -> list[tuple[socket.AddressFamily, str]]:
    try:
        resolved = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError as error:
        unavailable = UnavailableError(f"Cannot listen on {host}: {error.strerror}.")
        unavailable.add_note("Is the name right (--host, FACTBOOK_HOST)?")
        raise unavailable from error
    return list(dict.fromkeys((family, str(address[0])) for family, *_, address in resolved))


def _bind_socket(family: socket.AddressFamily, host: str, port: int) -> socket.socket:
    listener = socket.socket(family)
    try:
        # Allows binding a port right after its last connections closed.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise _make_bind_error(_join_address(host, port), error) from error
    return listener


def _make_bind_error(address: str, error: OSError) -> UnavailableError:
    number = error.errno or 0
    reason, advice = _BIND_ADVICE.get(number, (f"cannot be used: {os.strerror(number)}", ""))
    unavailable = UnavailableError(f"Cannot listen: {address} {reason}.")
    if advice:
        unavailable.add_note(advice)
    return unavailable


def _join_address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
