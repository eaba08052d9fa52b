"""A fault in one check or scorecard: what is written is kept, and the others are evaluated."""

from contextlib import suppress
from typing import NoReturn

import pytest
from structlog.testing import capture_logs

from factbook.checks.definitions import publications
from factbook.checks.definitions.definition_versions import scorecard_store
from factbook.checks.results import evaluator
from factbook.checks.results.entity_evaluation import CheckCache, CheckSet
from factbook.checks.results.incremental import make_grading
from factbook.checks.state import FAIL, PASS, UNKNOWN
from factbook.errors import UnavailableError
from factbook.storage import Database, Transaction
from factbook.storage.database import RestartError
from tests.checks import scorecards, verification
from tests.checks.catalog import CheckedCatalog, a_check, leaf
from tests.service import Time


@pytest.fixture
async def catalog(database: Database) -> CheckedCatalog:
    """A component that passes two checks."""
    catalog = CheckedCatalog(database, Time())
    await catalog.push(a="red")
    await catalog.record("a", open=0)
    await catalog.publish(
        a_check("few", leaf("open", "lessThan", 1), onUnknown="fail"),
        a_check("none", leaf("open", "equal", 0)),
    )
    return catalog


def raises(*_: object) -> NoReturn:
    """A fault that nobody has foreseen."""
    raise KeyError("a fault in one check")


async def known(catalog: CheckedCatalog) -> CheckSet:
    """The checks as this process evaluates them."""
    return await catalog.database.remembered.of(CheckCache).loaded(catalog.database)


async def states(catalog: CheckedCatalog, name: str) -> dict[str, int]:
    """The stored states of a component."""
    row = await catalog.database.one(
        "SELECT states FROM check_states JOIN entities ON id = entity_id WHERE ref = ?",
        (f"component:default/{name}",),
    )
    assert row is not None
    slots = (await known(catalog)).slots
    return {id_: verification.byte(row[0], slot) for id_, slot in slots.items()}


async def test_a_check_that_raises_is_unknown_and_nothing_that_is_written_fails(
    catalog: CheckedCatalog,
) -> None:
    found = await known(catalog)
    found.by_slot[found.slots["few"]].compiled.evaluate = raises
    with capture_logs() as logs:
        await catalog.record("a", open=2)
        await catalog.push(a="blue", b="red")
    assert await states(catalog, "a") == {"few": UNKNOWN, "none": FAIL}
    assert await states(catalog, "b") == {"few": UNKNOWN, "none": UNKNOWN}
    failed = [one for one in logs if one["event"] == "check.failed"]
    assert [(one["check"], one["log_level"]) for one in failed] == [("few", "error")]


@pytest.mark.both_databases
@pytest.mark.parametrize("error", [RestartError(), UnavailableError("The database is away.")])
async def test_errors_of_the_transaction_are_not_states(
    catalog: CheckedCatalog, error: Exception
) -> None:
    found = await known(catalog)
    check = found.by_slot[found.slots["few"]].compiled
    evaluate, errors = check.evaluate, [error]

    def once(*arguments: object) -> object:
        if errors:
            raise errors.pop()
        return evaluate(*arguments)  # type: ignore[arg-type]

    check.evaluate = once  # type: ignore[assignment]
    with suppress(type(error)):  # PostgreSQL begins a transaction again
        await catalog.record("a", open=2)
    assert await states(catalog, "a") in (
        {"few": PASS, "none": PASS},
        {"few": FAIL, "none": FAIL},
    )


async def test_a_scorecard_that_raises_leaves_its_levels_and_nothing_that_is_written_fails(
    catalog: CheckedCatalog,
) -> None:
    database = catalog.database
    card = scorecards.document(entries=[{"check": "few", "level": "bronze"}, "none"])
    await scorecards.put(database, card)
    await scorecards.publish(database)
    await evaluator.finish_gradings(database, catalog.time)
    before = await database.all("SELECT entity_id, levels FROM scorecard_levels")

    def grading(transaction: Transaction) -> None:
        transaction.lock(publications.DEFINITIONS_LOCK, shared=True)
        found = database.remembered.of(CheckCache).current(transaction)
        for one in make_grading(transaction, found).graders:
            one.grader.encoded = raises  # type: ignore[assignment, method-assign]

    await database.write(grading)
    with capture_logs() as logs:
        await catalog.record("a", open=2)
        await catalog.push(a="blue")
    assert await states(catalog, "a") == {"few": FAIL, "none": FAIL}
    assert await database.all("SELECT entity_id, levels FROM scorecard_levels") == before
    assert [one["scorecard"] for one in logs if one["event"] == "scorecard.failed"] == ["readiness"]


async def test_a_scorecard_that_cannot_be_read_is_left_out(catalog: CheckedCatalog) -> None:
    database = catalog.database
    card = scorecards.document(entries=[{"check": "few", "level": "bronze"}])
    await scorecards.put(database, card)
    await scorecards.publish(database)
    await evaluator.finish_gradings(database, catalog.time)

    def of_a_later_release(transaction: Transaction) -> None:
        transaction.run("UPDATE scorecards SET published = ?", ('{"id": 1}',))
        transaction.lock(publications.DEFINITIONS_LOCK)
        scorecard_store.raise_revision(transaction)

    await database.write(of_a_later_release)
    with capture_logs() as logs:
        await catalog.record("a", open=2)
        await catalog.push(a="blue")
    assert await states(catalog, "a") == {"few": FAIL, "none": FAIL}
    assert {one["slot"] for one in logs if one["event"] == "scorecard.unusable"} == {1}
