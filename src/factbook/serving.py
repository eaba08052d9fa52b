"""Serving until told to stop, and what comes before it."""

import asyncio
import os
import sys

import uvicorn

from factbook import app, clock, logs, web
from factbook.settings import Settings, environment
from factbook.storage import open_database

_STOP_SECONDS = 30


def serve(settings: Settings) -> None:
    """Migrate the database, then serve until told to stop; requests under way are finished."""
    logs.configure(settings)
    key = app.token_key(settings)
    migrate(settings)
    sys.stderr.write(web.first_start.words(settings, key))
    # Server processes read their settings from the environment, as they are made by name.
    os.environ |= environment(settings)
    uvicorn.run(
        "factbook.app:create",
        factory=True,
        host=settings.host,
        port=settings.port,
        workers=settings.workers,
        loop="uvloop",
        http="httptools",
        ws="none",
        lifespan="on",
        access_log=False,
        log_config=None,
        log_level=settings.log_level,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_STOP_SECONDS,
    )


def migrate(settings: Settings) -> list[str]:
    """Bring the schema up to date; the names of the migrations that were applied."""

    async def work() -> list[str]:
        database = await open_database(settings.database_url, connections=3)
        try:
            return await app.migrate(database, clock.now())
        finally:
            await database.close()

    return asyncio.run(work())
