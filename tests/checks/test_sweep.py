"""What a release that does not evaluate has written: a sweep finds it."""

from collections.abc import AsyncIterator

import pytest
from structlog.testing import capture_logs

from factbook.catalog.store import stored_entities
from factbook.checks.results import evaluator
from factbook.checks.results.evaluator import Evaluation, StateSweep
from factbook.clock import DAY, HOUR, MINUTE
from factbook.storage import Database, Transaction
from factbook.storage.database_url import open_database
from tests.checks import scorecards
from tests.checks.catalog import CheckedCatalog, a_check, leaf
from tests.checks.test_scorecard_histories import verify as verify_levels
from tests.checks.verification import verify
from tests.service import Time

pytestmark = pytest.mark.both_databases

FEW = a_check("few", leaf("open", "lessThan", 1))
_COUNTS = "SELECT slot, owner, passing FROM check_counts WHERE passing <> 0 ORDER BY slot, owner"
_WRITTEN = (
    "SELECT t.* FROM check_states t ORDER BY entity_id",
    "SELECT t.* FROM check_changes t ORDER BY id",
    "SELECT t.* FROM check_counts t ORDER BY slot, owner",
    "SELECT t.* FROM scorecard_levels t ORDER BY entity_id",
    "SELECT t.* FROM scorecard_counts t ORDER BY slot, owner, level",
    "SELECT t.* FROM scorecard_label_counts t ORDER BY slot, label, value, level",
    "SELECT t.* FROM events t ORDER BY id",
)


@pytest.fixture
async def catalog(database: Database) -> CheckedCatalog:
    """Two components, a check and a scorecard."""
    catalog = CheckedCatalog(database, Time())
    await catalog.push(a="red", b="red")
    await catalog.record("a", open=0)
    await catalog.publish(FEW)
    await scorecards.put(
        database, scorecards.document(entries=[{"check": "few", "level": "silver"}])
    )
    await scorecards.publish(database)
    await evaluator.finish_gradings(database, catalog.time)
    return catalog


@pytest.fixture
async def before(catalog: CheckedCatalog, database_url: str) -> AsyncIterator[CheckedCatalog]:
    """The same catalog as the release before writes it: nothing is evaluated."""
    database = await open_database(database_url, connections=3)
    found = CheckedCatalog.__new__(CheckedCatalog)
    found.database, found.time = database, catalog.time
    yield found
    await database.close()


async def restart(catalog: CheckedCatalog) -> None:
    """Have a process start, and work for some minutes."""
    evaluation = Evaluation(catalog.database, catalog.time)
    for _ in range(6):
        await evaluation.tick()
        catalog.time.advance(MINUTE)


async def agree(catalog: CheckedCatalog) -> None:
    """Compare states, levels and their counts with an evaluation anew."""
    await verify(catalog.database, catalog.time())
    await verify_levels(catalog.database, catalog.time())
    rows = await catalog.database.all("SELECT entity_id FROM scorecard_levels")
    entities = await catalog.database.all("SELECT id FROM entities")
    assert sorted(rows) == sorted(entities)


async def test_facts_that_the_release_before_recorded_are_evaluated(
    catalog: CheckedCatalog, before: CheckedCatalog
) -> None:
    await before.record("a", open=9)
    with pytest.raises(AssertionError):
        await verify(catalog.database, catalog.time())
    await restart(catalog)
    await agree(catalog)
    found = await catalog.database.all("SELECT why FROM check_changes")
    assert found == [('{"sweep":true}',)]


async def test_entities_that_the_release_before_changed_and_removed_are_counted_right(
    catalog: CheckedCatalog, before: CheckedCatalog
) -> None:
    await before.push(b="blue", c="red")
    await catalog.push(b="blue", c="red")
    await evaluator.finish_publications(catalog.database, catalog.time)
    await evaluator.evaluate_due(catalog.database, catalog.time)
    with pytest.raises(AssertionError):
        await verify(catalog.database, catalog.time())
    await restart(catalog)
    await agree(catalog)


async def test_states_and_levels_go_with_entities_that_the_release_before_removed(
    catalog: CheckedCatalog, before: CheckedCatalog
) -> None:
    await before.push(b="red")
    await restart(catalog)
    await agree(catalog)
    assert len(await catalog.database.all("SELECT entity_id FROM check_states")) == 1


async def test_counts_that_are_wrong_are_repaired(catalog: CheckedCatalog) -> None:
    def spoil(transaction: Transaction) -> None:
        transaction.run("UPDATE check_counts SET passing = passing + 3")
        transaction.run("UPDATE scorecard_counts SET entities = entities - 1, score = 7")
        transaction.run("UPDATE scorecard_label_counts SET entities = entities + 1")
        transaction.run(
            "INSERT INTO check_counts (slot, owner, passing, failing, undecided, exempt, "
            "inapplicable) SELECT slot, 'group:default/gone', 1, 0, 0, 0, 0 FROM checks"
        )

    right = await catalog.database.all(_COUNTS)
    await catalog.database.write(spoil)
    assert await catalog.database.all(_COUNTS) != right
    await restart(catalog)
    await agree(catalog)
    assert await catalog.database.all(_COUNTS) == right


async def test_labels_of_which_the_release_before_knew_nothing_are_counted(
    catalog: CheckedCatalog,
) -> None:
    def forget(transaction: Transaction) -> None:
        transaction.run("UPDATE scorecard_levels SET labels = ''")
        transaction.run("DELETE FROM scorecard_label_counts")

    await catalog.database.write(forget)
    with pytest.raises(AssertionError):
        await verify_levels(catalog.database, catalog.time())
    await restart(catalog)
    await agree(catalog)


async def test_what_is_written_while_a_process_runs_is_swept_once_a_day(
    catalog: CheckedCatalog, before: CheckedCatalog
) -> None:
    sweep = StateSweep(catalog.database, catalog.time)
    catalog.time.advance(MINUTE)
    await sweep.finish()
    catalog.time.advance(MINUTE)
    await sweep.finish()
    await before.record("a", open=9)
    catalog.time.advance(HOUR)
    await sweep.finish()
    with pytest.raises(AssertionError):
        await verify(catalog.database, catalog.time())
    catalog.time.advance(DAY)
    await sweep.finish()
    await agree(catalog)


async def test_a_sweep_of_what_is_right_writes_nothing_but_its_progress(
    catalog: CheckedCatalog,
) -> None:
    # Where the database has it, the transaction that wrote a row tells it from an equal one.
    is_versioned = catalog.database.dialect == "postgresql"
    reads = [sql.replace("t.*", "xmin::text, t.*") if is_versioned else sql for sql in _WRITTEN]
    was = [await catalog.database.all(sql) for sql in reads]
    with capture_logs() as logs:
        await restart(catalog)
    assert [await catalog.database.all(sql) for sql in reads] == was
    assert logs == []


@pytest.mark.slow
async def test_a_sweep_goes_on_where_another_process_was(
    catalog: CheckedCatalog, before: CheckedCatalog
) -> None:
    names = {f"c{number:04}": "red" for number in range(900)}
    await catalog.push(**names)
    first = StateSweep(catalog.database, catalog.time)
    assert await first.tick()
    # It is killed; the last entity has not been reached.
    await before.record("c0000", open=9)
    await before.record("c0899", open=9)
    last = await stored_entities.read_entity_id(catalog.database, "component:default/c0899")
    second = StateSweep(catalog.database, catalog.time)
    await second.finish()
    changed = await catalog.database.all("SELECT entity_id FROM check_changes ORDER BY id DESC")
    assert changed[0] == (last,)
    with pytest.raises(AssertionError):
        await verify(catalog.database, catalog.time())
    # Its own sweep, after its start, begins with the first.
    catalog.time.advance(MINUTE)
    await second.finish()
    await agree(catalog)


@pytest.mark.slow
async def test_processes_that_sweep_and_write_together_leave_what_an_evaluation_anew_finds(
    catalog: CheckedCatalog, before: CheckedCatalog, database_url: str
) -> None:
    await catalog.push(**{f"c{number:04}": "red" for number in range(600)})
    await before.push(**{f"c{number:04}": "blue" for number in range(300, 700)})
    sweeps = [StateSweep(catalog.database, catalog.time) for _ in range(2)]
    for step in range(8):
        await sweeps[step % 2].tick()
        await catalog.record(f"c{300 + 40 * step:04}", open=step % 3)
    for sweep in sweeps:
        await sweep.finish()
    catalog.time.advance(MINUTE)
    for sweep in sweeps:
        await sweep.finish()
    await agree(catalog)
    assert len(await catalog.database.all("SELECT entity_id FROM check_states")) == 400
