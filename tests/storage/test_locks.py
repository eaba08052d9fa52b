"""Locks of writes, and what writes store aside; SQLite has one writer, which needs neither."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from functools import partial

import pytest

from factbook.storage import Database, Transaction
from factbook.storage.database import (
    RestartError,
    fetch_counter,
    put_counter,
    select_counter,
    take_numbers,
)
from factbook.storage.database_url import open_database

SECONDS = 60
ON_POSTGRESQL = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)


@pytest.fixture
async def other(database: Database, database_url: str) -> AsyncIterator[Database]:
    """The same database, opened a second time."""
    other = await open_database(database_url, connections=4)
    yield other
    await other.close()


class Holder:
    """A write that takes locks, and ends when it is told to."""

    def __init__(self, **names: bool) -> None:
        self._names = names
        self._ends = threading.Event()
        self.holds = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def __call__(self, transaction: Transaction) -> None:
        transaction.lock_each(self._names)
        self._loop.call_soon_threadsafe(self.holds.set)
        assert self._ends.wait(SECONDS)

    def end(self) -> None:
        self._ends.set()


def tries(**names: bool) -> Callable[[Transaction], bool]:
    """A write that returns true if it gets locks at once."""
    return lambda transaction: transaction.try_lock_each(names)


@ON_POSTGRESQL
async def test_a_shared_lock_keeps_out_only_those_who_want_it_alone(
    database: Database, other: Database
) -> None:
    holder = Holder(one=True, two=False)
    held = asyncio.create_task(database.write(holder))
    await holder.holds.wait()
    assert await other.write(tries(one=True, three=False))
    assert not await other.write(tries(one=False))
    assert not await other.write(tries(two=True))
    holder.end()
    await held
    assert await other.write(tries(one=False, two=False))


@ON_POSTGRESQL
async def test_who_outwaits_locks_has_none_of_them_afterwards(
    database: Database, other: Database
) -> None:
    holder, waiter = Holder(one=False), Holder()

    def work(transaction: Transaction) -> None:
        transaction.outwait({"one": False, "two": False})
        waiter(transaction)

    held = asyncio.create_task(database.write(holder))
    await holder.holds.wait()
    waiting = asyncio.create_task(other.write(work))
    holder.end()
    await held
    await waiter.holds.wait()
    assert await other.write(tries(one=False, two=False))
    waiter.end()
    await waiting


async def test_writers_that_name_locks_in_any_order_never_wait_in_a_circle(
    database: Database, other: Database
) -> None:
    names = [f"lock {number}" for number in range(6)]

    def increment(transaction: Transaction, turn: int) -> None:
        ordered = names[turn % 6 :] + names[: turn % 6]
        transaction.lock_each(dict.fromkeys(ordered if turn % 2 else ordered[::-1], False))
        value = select_counter(transaction, "entity")
        put_counter(transaction, "entity", value + 1)

    await asyncio.gather(
        *(
            one.write(partial(increment, turn=turn))
            for turn in range(20)
            for one in (database, other)
        )
    )
    assert await fetch_counter(database, "entity") == 40


@ON_POSTGRESQL
async def test_what_is_written_aside_stays_though_the_write_fails_and_holds_nobody_up(
    database: Database, other: Database
) -> None:
    taken = []

    def take(transaction: Transaction) -> None:
        with transaction.aside() as aside:
            taken.append(list(take_numbers(aside, "entity", 2)))

    holder = Holder(one=False)

    def work(transaction: Transaction) -> None:
        take(transaction)
        holder(transaction)
        raise LookupError

    held = asyncio.create_task(database.write(work))
    await holder.holds.wait()
    await other.write(take)
    holder.end()
    with pytest.raises(LookupError):
        await held
    assert taken == [[1, 2], [3, 4]]
    assert await fetch_counter(database, "entity") == 4


async def test_what_is_written_aside_in_a_write_is_seen_by_it(database: Database) -> None:
    def work(transaction: Transaction) -> int:
        with transaction.aside() as aside:
            take_numbers(aside, "entity", 3)
        return select_counter(transaction, "entity")

    assert await database.write(work) == 3
    assert await fetch_counter(database, "entity") == 3


@ON_POSTGRESQL
async def test_a_write_that_asks_for_it_is_rolled_back_and_run_again(database: Database) -> None:
    asked = []

    def work(transaction: Transaction) -> int:
        [value] = take_numbers(transaction, "entity")
        asked.append(value)
        if len(asked) < 4:
            raise RestartError
        return value

    assert await database.write(work) == 1
    assert asked == [1, 1, 1, 1]


@ON_POSTGRESQL
async def test_of_two_that_insert_the_same_row_the_second_runs_again_and_sees_it(
    database: Database, other: Database
) -> None:
    seen = []
    holder = Holder()

    def insert(transaction: Transaction) -> bool:
        found = transaction.one("SELECT value FROM counters WHERE name = 'new'") is not None
        seen.append(found)
        if not found:
            transaction.run("INSERT INTO counters (name, value) VALUES ('new', 1)")
        return found

    def first(transaction: Transaction) -> None:
        insert(transaction)
        holder(transaction)

    held = asyncio.create_task(database.write(first))
    await holder.holds.wait()
    second = asyncio.create_task(other.write(insert))
    while len(seen) < 2:  # noqa: ASYNC110 - nothing tells of it
        await asyncio.sleep(0)
    holder.end()
    await held
    assert await second
    assert seen == [False, False, True]
