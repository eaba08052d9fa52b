"""The server processes, and the preparations before they start."""

import asyncio
import faulthandler
import os
import resource
import signal
import socket
import sys
from contextlib import suppress

import structlog
import uvicorn
from uvicorn.supervisors import Multiprocess

from factbook import backend, clock, listeners, process
from factbook.app import Application
from factbook.auth.encryption import token_key
from factbook.operations.database_session import on_database
from factbook.settings import Settings
from factbook.settings.loader import environment
from factbook.storage import migrations
from factbook.storage.database_url import is_there
from factbook.telemetry import logs
from factbook.web.sign_in import first_start

log = structlog.get_logger("factbook")

_STOP_SECONDS = 30
# A process that does not answer its parent for so long is replaced; one that starts on a machine
# with much to do takes longer than the usual five.
_SILENT_SECONDS = 15
_FAILED = 1
# Of a process that was told to stop.
_ORDERLY = {0, -signal.SIGTERM, -signal.SIGINT}

# Of the files that a process may open: as many as are worth asking for, and those that are no
# connections.
_MOST_FILES = 65_536
_OTHER_FILES = 256


def serve(settings: Settings) -> None:
    """Migrate the database, then serve until told to stop; requests under way are finished."""
    logs.configure(settings)
    # First of all: who cannot listen changes nothing in the database, and ends no earlier link.
    with listeners.bound(settings.host, settings.port) as sockets:
        token_key(settings)
        sys.stderr.write(asyncio.run(_opened_once(settings)))
        # Server processes read their settings from the environment, as they are made by name.
        os.environ |= environment(settings)
        # A process that is ended by the system, as when its file was cut off, says where it was.
        os.environ["PYTHONFAULTHANDLER"] = "1"
        faulthandler.enable()
        listeners.listen(sockets)
        for each in sockets:
            log.info("service.listening", address=listeners.shown(each))
        if not _run(_config(settings), sockets):
            raise SystemExit(_FAILED)


async def _opened_once(settings: Settings) -> str:
    """Migrate and open everything that a server process will; returns the start-up notice.

    Errors are thus raised before the invitation link of an earlier start expires.
    """
    with Application.traced_meanwhile(settings) as application:
        async with application.running() as state:
            return await first_start.words(state)


def _run(config: uvicorn.Config, sockets: list[socket.socket]) -> bool:
    """Serve until told to stop; returns true if every process started and ended in order."""
    if config.workers > 1:
        process.settle_memory()
        several = Multiprocess(config, sockets)
        several.run()
        return all(each.exitcode in _ORDERLY for each in several.processes)
    server = uvicorn.Server(config)
    with suppress(KeyboardInterrupt):
        server.run(sockets)
    return server.started


def _config(settings: Settings) -> uvicorn.Config:
    return uvicorn.Config(
        "factbook.app:create",
        factory=True,
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


def migrate(settings: Settings) -> list[str]:
    """Bring the schema up to date and return the names of the applied migrations."""
    with logs.configured(settings):
        return on_database(settings, lambda database: backend.migrate(database, clock.now()))


def pending(settings: Settings) -> list[str]:
    """Names of the migrations that `migrate` would apply; changes nothing."""
    if not is_there(settings.database_url):
        return migrations.names()
    return on_database(settings, migrations.pending)
