"""A search that takes too long ends, and keeps nothing from those that come after it."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from factbook.errors import UnavailableError
from factbook.storage import Database, open_database

ENDLESS = (
    "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n % 1000 + 1 FROM numbers) "
    "SELECT COUNT(*) FROM numbers"
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


async def test_many_searches_without_end_leave_room_for_the_next(database: Database) -> None:
    endless = [database.search(ENDLESS) for _ in range(6)]
    ends = await asyncio.gather(*endless, return_exceptions=True)
    assert {type(end) for end in ends} == {UnavailableError}
    assert await database.search("SELECT 1") == [(1,)]
    assert await database.one("SELECT 2") == (2,)
