"""Counts of checks day by day, and what is kept of changes."""

import pytest

from factbook.checks.results import state_store
from factbook.checks.results.state_store import DayCounts, StateCounts
from factbook.clock import DAY, Throttle
from factbook.storage import Database
from tests.checks.catalog import CheckedCatalog, a_check, leaf
from tests.service import NOON, Time

pytestmark = pytest.mark.both_databases

FIRST = NOON // DAY


@pytest.fixture
async def catalog(database: Database) -> CheckedCatalog:
    """Two components of two teams, of which one passes."""
    catalog = CheckedCatalog(database, Time())
    await catalog.push(a="red", b="blue")
    await catalog.record("a", on=True)
    await catalog.record("b", on=False)
    await catalog.publish(a_check("on", leaf("on", "equal", value=True)))
    return catalog


async def live(catalog: CheckedCatalog) -> list[int]:
    """Five days: on the third the first component fails, on the fifth it is gone.

    Returns how many counts each day kept.
    """
    kept = []
    for day in range(5):
        if day == 2:
            await catalog.record("a", on=False)
        if day == 4:
            await catalog.push(b="blue")
        kept.append(await state_store.record_days(catalog.database, catalog.time(), Throttle()))
        catalog.time.advance(DAY)
    return kept


async def test_days_are_kept_where_they_differ(catalog: CheckedCatalog) -> None:
    database = catalog.database
    assert await live(catalog) == [2, 0, 1, 0, 1]
    found = await state_store.read_day_totals(database, "on", FIRST + 1, FIRST + 4)
    assert [(one.day - FIRST, one.counts) for one in found] == [
        (1, StateCounts(passing=1, failing=1)),
        (2, StateCounts(failing=2)),
        (3, StateCounts(failing=2)),
        (4, StateCounts(failing=1)),
    ]


async def test_a_day_that_is_recorded_again_is_as_it_is_then(catalog: CheckedCatalog) -> None:
    database, now = catalog.database, catalog.time()
    assert await state_store.record_days(database, now, Throttle()) == 2
    assert await state_store.record_days(database, now, Throttle()) == 0
    await catalog.record("a", on=False)
    assert await state_store.record_days(database, now, Throttle()) == 1
    found = await state_store.read_day_totals(database, "on", FIRST, FIRST)
    assert found == [DayCounts(FIRST, StateCounts(failing=2))]


async def test_old_days_and_changes_are_forgotten_but_for_what_later_days_rest_on(
    catalog: CheckedCatalog,
) -> None:
    database = catalog.database
    await live(catalog)
    before = await state_store.read_day_totals(database, "on", FIRST + 3, FIRST + 4)
    assert await state_store.sweep_days(database, NOON + 3 * DAY, Throttle()) == 1
    assert await state_store.read_day_totals(database, "on", FIRST + 3, FIRST + 4) == before
    assert len(await database.all(_CHANGES)) == 1
    assert await state_store.sweep_changes(database, NOON + 2 * DAY, Throttle()) == 0
    assert await state_store.sweep_changes(database, NOON + 3 * DAY, Throttle()) == 1
    assert await database.all(_CHANGES) == []


_CHANGES = "SELECT id FROM check_changes"
