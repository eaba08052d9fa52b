"""Opening of the database for one piece of work, as the schema is."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import TypeVar

from factbook import clock
from factbook.checks.results import incremental
from factbook.settings import Settings
from factbook.storage import Database
from factbook.storage.database_url import open_database

T = TypeVar("T")


def on_database(settings: Settings, work: Callable[[Database], Coroutine[None, None, T]]) -> T:
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
