"""The store of events: places that readers can rely on, whoever commits when."""

import asyncio
from collections.abc import Awaitable, Callable
from threading import Event as Flag
from typing import Any, cast

import pytest

from factbook.clock import DAY, Throttle
from factbook.errors import GoneError
from factbook.events.store import (
    EventFilter,
    EventRow,
    FeedPosition,
    append_events,
    delete_old_events,
    find_feed_end,
    make_source_row,
    number_new_events,
    page_events,
)
from factbook.storage import Database, Transaction
from factbook.storage.database import Parameters, Row
from tests.service import NOON


def told(name: str) -> EventRow:
    return make_source_row(name, "down", None)


async def all_events(database: Database) -> list[str]:
    found = await page_events(database, None, EventFilter(), 1000)
    assert not found.more
    return [one.subject for one in found.events]


async def test_a_transaction_that_commits_late_comes_behind_what_was_read(
    database: Database,
) -> None:
    if database.dialect == "sqlite":
        return  # which has one writer at a time
    begun, may_end = Flag(), Flag()

    def late(transaction: Transaction) -> None:
        append_events(transaction, [told("late")], NOON)
        begun.set()
        assert may_end.wait(30)

    slow = asyncio.create_task(database.write(late))
    assert await asyncio.to_thread(begun.wait, 30)
    await database.write(lambda tx: append_events(tx, [told("early")], NOON))
    read = await page_events(database, None, EventFilter(), 10)
    assert [one.subject for one in read.events] == ["early"]
    may_end.set()
    await slow
    rest = await page_events(database, read.next, EventFilter(), 10)
    assert [one.subject for one in rest.events] == ["late"]


async def test_what_a_transaction_that_fails_would_have_told_is_never_read(
    database: Database,
) -> None:
    def fails(transaction: Transaction) -> None:
        append_events(transaction, [told("never")], NOON)
        raise LookupError

    with pytest.raises(LookupError):
        await database.write(fails)
    await database.write(lambda tx: append_events(tx, [told("real")], NOON))
    assert await all_events(database) == ["real"]


async def test_readers_of_many_writers_see_every_event_once_and_in_order(
    database: Database,
) -> None:
    seen: list[tuple[int, int]] = []
    names: list[str] = []
    writing = True

    async def write(writer: int) -> None:
        for number in range(25):
            name = f"{writer}-{number}"
            await database.write(
                lambda tx, name=name: append_events(tx, [told(name)], NOON)  # type: ignore[misc]
            )

    async def read() -> None:
        place = None
        while writing or place != await find_feed_end(database):
            page = await page_events(database, place, EventFilter(), 7)
            place = page.next
            seen.extend(one.place for one in page.events)
            names.extend(one.subject for one in page.events)
            await asyncio.sleep(0)

    reading = asyncio.create_task(read())
    await asyncio.gather(*(write(writer) for writer in range(4)))
    writing = False
    await reading
    assert seen == sorted(set(seen))
    assert sorted(names) == sorted(f"{w}-{n}" for w in range(4) for n in range(25))
    for writer in range(4):
        own = [name for name in names if name.startswith(f"{writer}-")]
        assert own == [f"{writer}-{number}" for number in range(25)]


async def test_positions_have_no_gaps_and_go_on_after_everything_was_forgotten(
    database: Database,
) -> None:
    for name in ("a", "b"):
        await database.write(lambda tx, name=name: append_events(tx, [told(name)], NOON))  # type: ignore[misc]
    await asyncio.gather(number_new_events(database), number_new_events(database))
    assert await database.all("SELECT position FROM events ORDER BY position") == [(1,), (2,)]
    assert await delete_old_events(database, NOON + 1, Throttle()) == 2
    await database.write(lambda tx: append_events(tx, [told("c")], NOON))
    found = await page_events(database, None, EventFilter(), 10)
    assert [(one.place.position, one.subject) for one in found.events] == [(3, "c")]


async def test_a_clock_that_was_set_back_lets_no_event_be_forgotten_early(
    database: Database,
) -> None:
    for at, name in ((NOON, "kept"), (NOON - 9 * DAY, "behind"), (NOON, "last")):
        await database.write(lambda tx, row=(at, name): append_events(tx, [told(row[1])], row[0]))  # type: ignore[misc]
    assert await delete_old_events(database, NOON - DAY, Throttle()) == 0
    assert await all_events(database) == ["kept", "behind", "last"]


class Overtaken:
    """A database on which something else happens behind every read of many rows."""

    def __init__(self, database: Database, meanwhile: Callable[[], Awaitable[object]]) -> None:
        self._database = database
        self._meanwhile = meanwhile

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    async def all(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        rows = await self._database.all(sql, parameters)
        await self._meanwhile()
        return rows


async def test_a_sweep_that_is_overtaken_by_another_does_not_hide_what_that_one_forgot(
    database: Database,
) -> None:
    for at in range(1, 4):
        await database.write(lambda tx, at=at: append_events(tx, [told(f"{at}")], NOON + at))  # type: ignore[misc]
    # Two that both think that the lease is theirs, the slower one by a clock that is behind.
    slow = Overtaken(database, lambda: delete_old_events(database, NOON + 3, Throttle()))
    await delete_old_events(cast("Database", slow), NOON + 2, Throttle())
    assert await all_events(database) == ["3"]
    with pytest.raises(GoneError):
        await page_events(database, FeedPosition(2, 0), EventFilter(), 10)
