"""The server processes, and the preparations before they start."""

import asyncio
import faulthandler
import os
import resource
import sys
from collections.abc import Callable, Coroutine

import uvicorn

from factbook import app, clock, web
from factbook.auth.keys import token_key
from factbook.settings import Settings, environment
from factbook.storage import Database, migrations, open_database
from factbook.storage.database_url import is_there
from factbook.telemetry import logs

_STOP_SECONDS = 30

# Of the files that a process may open: as many as are worth asking for, and those that are no
# connections.
_MOST_FILES = 65_536
_OTHER_FILES = 256


def serve(settings: Settings) -> None:
    """Migrate the database, then serve until told to stop; requests under way are finished."""
    logs.configure(settings)
    key = token_key(settings)
    migrate(settings)
    sys.stderr.write(web.first_start.words(settings, key))
    # Server processes read their settings from the environment, as they are made by name.
    os.environ |= environment(settings)
    # A process that is ended by the system, as when its file was cut off, says where it was.
    os.environ["PYTHONFAULTHANDLER"] = "1"
    faulthandler.enable()
    uvicorn.run(
        "factbook.app:create",
        factory=True,
        host=settings.host,
        port=settings.port,
        workers=settings.workers,
        loop="uvloop",
        http="factbook.http.uvicorn_protocol:Connection",
        ws="none",
        lifespan="on",
        access_log=False,
        log_config=None,
        log_level=settings.log_level,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_STOP_SECONDS,
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
    """Bring the schema up to date; the names of the migrations that were applied."""
    with logs.configured(settings):
        return _on_database(settings, lambda database: app.migrate(database, clock.now()))


def pending(settings: Settings) -> list[str]:
    """Names of the migrations that `migrate` would apply; changes nothing."""
    if not is_there(settings.database_url):
        return migrations.names()
    return _on_database(settings, migrations.pending)


def _on_database(
    settings: Settings, work: Callable[[Database], Coroutine[None, None, list[str]]]
) -> list[str]:
    async def opened() -> list[str]:
        database = await open_database(
            settings.database_url, connections=3, busy_seconds=settings.sqlite_busy_timeout
        )
        try:
            return await work(database)
        finally:
            await database.close()

    return asyncio.run(opened())
