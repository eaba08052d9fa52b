"""States that time changes, of more entities than a transaction takes."""

import pytest

from factbook.checks.results import evaluator, state_store
from factbook.checks.results.evaluator import DueBatchSize
from factbook.checks.results.state_store import StateCounts
from factbook.clock import HOUR
from factbook.storage import Database
from tests.checks.catalog import CheckedCatalog, a_check, leaf
from tests.service import Time


@pytest.mark.both_databases
async def test_all_that_is_due_is_evaluated_in_batches_of_any_size(database: Database) -> None:
    time = Time()
    catalog = CheckedCatalog(database, time)
    names = "abcdefghijkl"
    await catalog.push(**dict.fromkeys(names, "red"))
    for name in names:
        await catalog.record(name, open=1)
    await catalog.publish(a_check("new", leaf("open", "freshWithin", {"hours": 2})))
    time.advance(2 * HOUR + 1)
    database.remembered.of(DueBatchSize).entities = 5
    assert await evaluator.evaluate_due(database, time) == len(names)
    assert await state_store.count_totals(database) == {"new": StateCounts(failing=len(names))}
    assert await evaluator.evaluate_due(database, time) == 0
