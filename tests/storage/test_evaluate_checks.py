"""The evaluation of checks in a transaction, of what it touched."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest

from factbook.storage import Database, Transaction
from factbook.storage.database import (
    ChecksPort,
    EvaluateChecks,
    RestartError,
    fetch_counter,
    observe_database,
    take_numbers,
)
from factbook.storage.database_url import open_database
from tests.storage.evaluating import evaluating

TOPIC = ("facts", "github")


def touching(*ids: int) -> Any:
    """A write that touches these ids."""
    return evaluating(lambda transaction: transaction.touch(TOPIC, ids))


def connect(database: Database, evaluation: EvaluateChecks) -> None:
    """Evaluate by a function what transactions touch."""
    database.remembered.of(ChecksPort).evaluation = evaluation


async def test_it_runs_once_with_all_that_a_transaction_touched(database: Database) -> None:
    seen = []
    connect(database, lambda transaction: seen.append(dict(transaction.touched)))

    def work(transaction: Transaction) -> str:
        transaction.touch(TOPIC, [3, 1])
        transaction.touch(("entities",), (7,))
        with transaction.aside() as aside:
            aside.touch(TOPIC, [1, 2])
        transaction.evaluate_checks()
        return "done"

    assert await database.write(work) == "done"
    assert seen == [{TOPIC: {1, 2, 3}, ("entities",): {7}}]


async def test_what_touches_nothing_runs_nothing(database: Database) -> None:
    seen: list[Transaction] = []
    connect(database, seen.append)
    await database.write(lambda transaction: take_numbers(transaction, "entity"))
    await database.write(touching())
    assert seen == []


async def test_what_it_writes_is_committed_with_the_transaction_or_not_at_all(
    database: Database,
) -> None:
    connect(database, lambda transaction: take_numbers(transaction, "entity"))
    await database.write(touching(1))
    assert await fetch_counter(database, "entity") == 1

    def fail(transaction: Transaction) -> None:
        transaction.touch(TOPIC, [1])
        transaction.evaluate_checks()
        raise LookupError

    with pytest.raises(LookupError):
        await database.write(fail)
    assert await fetch_counter(database, "entity") == 1


async def test_what_it_raises_rolls_the_transaction_back(database: Database) -> None:
    def refuse(transaction: Transaction) -> None:
        raise LookupError

    connect(database, refuse)

    def work(transaction: Transaction) -> None:
        take_numbers(transaction, "entity")
        transaction.touch(TOPIC, [1])
        transaction.evaluate_checks()

    with pytest.raises(LookupError):
        await database.write(work)
    assert await fetch_counter(database, "entity") == 0
    await database.write(lambda transaction: take_numbers(transaction, "entity"))
    assert await fetch_counter(database, "entity") == 1


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
async def test_a_transaction_that_begins_anew_has_touched_nothing(database: Database) -> None:
    seen: list[set[int]] = []

    def note(transaction: Transaction) -> None:
        seen.append(transaction.touched[TOPIC])
        if len(seen) < 3:
            raise RestartError

    connect(database, note)
    await database.write(evaluating(lambda transaction: transaction.touch(TOPIC, [10 + len(seen)])))
    assert seen == [{10}, {11}, {12}]


async def test_it_runs_for_writes_of_a_database_that_is_watched(database: Database) -> None:
    class Watching:
        statement = None

        @contextmanager
        def write(self) -> Any:
            yield lambda: nullcontext(lambda sql, table: nullcontext())

    seen = []
    watched = observe_database(database, Watching())
    connect(watched, lambda transaction: seen.append(dict(transaction.touched)))
    await watched.write(touching(5))
    await database.write(touching(6))
    assert seen == [{TOPIC: {5}}, {TOPIC: {6}}]


async def test_a_write_that_forgets_to_evaluate_what_it_touched_is_rolled_back(
    database: Database,
) -> None:
    def forget(transaction: Transaction) -> None:
        take_numbers(transaction, "entity")
        transaction.evaluate_checks()
        transaction.touch(TOPIC, [1])

    connect(database, lambda transaction: None)
    with pytest.raises(RuntimeError, match="evaluate_checks must follow touch"):
        await database.write(forget)
    assert await fetch_counter(database, "entity") == 0


@pytest.fixture
async def other(database_url: str) -> AsyncIterator[Database]:
    """The same database, opened once more."""
    opened = await open_database(database_url, connections=3)
    yield opened
    await opened.close()


async def test_transactions_at_the_same_time_do_not_see_what_others_touched(
    database: Database, other: Database
) -> None:
    seen: list[set[int]] = []
    for one in (database, other):
        connect(one, lambda transaction: seen.append(transaction.touched[TOPIC]))
    writes = [one.write(touching(id_)) for id_ in range(10) for one in (database, other)]
    await asyncio.gather(*writes)
    assert sorted(map(sorted, seen)) == sorted([id_] for id_ in range(10) for _ in range(2))
