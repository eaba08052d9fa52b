"""A search that takes too long ends, and keeps nothing from those that come after it."""

import asyncio
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from factbook.errors import UnavailableError
from factbook.storage import Database
from factbook.storage.database_url import open_database

ENDLESS = (
    "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n % 1000 + 1 FROM numbers) "
    "SELECT COUNT(*) FROM numbers"
)

LONG = (  # for a minute
    "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers "
    "WHERE n < 300000000) SELECT COUNT(*) FROM numbers"
)


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    database = await open_database(database_url, connections=6, longest_search=0.2)
    yield database
    await database.close()


async def test_a_search_without_end_is_given_up_and_told(database: Database) -> None:
    with pytest.raises(UnavailableError, match="Ask for less"):
        await database.search(ENDLESS)
    assert await database.search("SELECT 1") == [(1,)]


@pytest.mark.slow
async def test_many_searches_without_end_leave_room_for_the_next(database: Database) -> None:
    endless = [database.search(ENDLESS) for _ in range(6)]
    ends = await asyncio.gather(*endless, return_exceptions=True)
    assert {type(end) for end in ends} == {UnavailableError}
    assert await database.search("SELECT 1") == [(1,)]
    assert await database.one("SELECT 2") == (2,)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_search_that_is_cancelled_while_it_waits_for_a_thread_ends_when_it_begins(
    database: Database,
) -> None:
    loop, let_go = asyncio.get_running_loop(), threading.Event()
    loop.set_default_executor(ThreadPoolExecutor(1))
    busy = loop.run_in_executor(None, let_go.wait)
    searches = [asyncio.create_task(database.search(LONG)) for _ in range(2)]
    await asyncio.sleep(0)  # until they are asked for
    for _ in range(2):  # as when a client hangs up on what takes too long already
        for search in searches:
            search.cancel()
        await asyncio.sleep(0)
    let_go.set()
    done, _ = await asyncio.wait(searches, timeout=60)
    assert len(done) == 2
    assert all(search.cancelled() for search in searches)
    assert await database.search("SELECT 1") == [(1,)]
    await busy
