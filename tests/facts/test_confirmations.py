"""What is found again unchanged: no row of history, and yet known at every time of a collection."""

import random
from collections.abc import Mapping

import msgspec
import pytest

from factbook.clock import DAY, HOUR
from factbook.facts import freshness, retention, store
from factbook.facts import history as fact_history
from factbook.facts.datasource import DataSource, Lifecycle
from factbook.facts.freshness import Observation
from factbook.facts.schema import Fact
from factbook.storage import Database
from tests.facts.test_store import NOW, add_entities, history
from tests.soak import seeds

FACTS = (Fact("lines", "integer"), Fact("tool", "string"))
HOURLY = DataSource(id="coverage", title="Coverage", cadence="0 * * * *", schema=FACTS)
DOWN = {"tool": "upstream-error"}


async def record(
    database: Database,
    hour: int,
    values: Mapping[str, object],
    missing: Mapping[str, str] | None = None,
    *,
    source: DataSource = HOURLY,
    entity_id: int = 1,
) -> None:
    """Store what a collection brings; what is missing could not be asked for."""
    observed = Observation(entity_id, values, missing or {}, frozenset(missing or {}))
    now = NOW + hour * HOUR
    await database.write(lambda tx: store.record_facts(tx, source, [observed], now))


async def hours(
    database: Database,
    start: int | None = None,
    end: int | None = None,
    source_id: str = "coverage",
) -> list[tuple[int, int | None]]:
    """The hours of each row, newest first: when it was written, and confirmed last."""
    first, last = (None if hour is None else NOW + hour * HOUR for hour in (start, end))
    rows = await fact_history.page_history(database, [source_id], 1, first, last, None, 100)
    return [
        (_hour(row.written_at), None if row.confirmed_at is None else _hour(row.confirmed_at))
        for row in rows
    ]


def _hour(time: int) -> int:
    return (time - NOW) // HOUR


@pytest.mark.spec("facts.history-tells-changes-once")
async def test_what_is_found_again_is_one_row_with_its_last_confirmation(
    database: Database,
) -> None:
    for hour in range(6):
        await record(database, hour, {"lines": 80})
    assert await hours(database) == [(0, 5)]
    latest = await store.find_latest(database, "coverage", 1)
    assert latest == freshness.Latest({"lines": 80}, {}, "1.0.0", NOW + 5 * HOUR)
    for hour in (6, 7):
        await record(database, hour, {"lines": 81})
    await record(database, 8, {"lines": 80})
    assert await hours(database) == [(8, None), (6, 7), (0, 5)]


@pytest.mark.spec("facts.history-tells-changes-once")
async def test_a_row_is_found_at_every_time_at_which_it_was_confirmed(database: Database) -> None:
    for hour, lines in enumerate((80, 80, 80, 81, 81)):
        await record(database, hour, {"lines": lines})
    assert await hours(database, 1, 1) == [(0, 2)]
    assert await hours(database, 1, 3) == [(3, 4), (0, 2)]
    assert await hours(database, 4) == [(3, 4)]
    assert await hours(database, 5) == []


async def test_pages_of_history_end_with_what_was_confirmed_since_the_start(
    database: Database,
) -> None:
    sources = [DataSource(id=id_, title=id_, schema=FACTS) for id_ in ("a", "b", "c")]
    for hour in range(3):
        for source in sources:
            await record(database, hour, {"lines": 7}, source=source)
    await record(database, 3, {"lines": 8}, source=sources[1])
    found, place = [], None
    while rows := await fact_history.page_history(database, None, 1, NOW + HOUR, None, place, 1):
        [row] = rows
        place = fact_history.HistoryPosition(row.written_at, row.source_id)
        found.append((row.source_id, _hour(row.written_at)))
    assert found == [("b", 3), ("c", 0), ("b", 0), ("a", 0)]


async def test_another_reason_or_version_is_a_row(database: Database) -> None:
    newer = DataSource(id="coverage", title="Coverage", version="1.1.0", schema=FACTS)
    await record(database, 0, {"lines": 80})
    await record(database, 1, {"lines": 80, "tool": 7})
    await record(database, 2, {"lines": 80, "tool": 7}, source=newer)
    assert await hours(database) == [(2, None), (1, None), (0, None)]


async def test_what_was_out_of_sight_for_longer_than_it_is_kept_is_a_row(
    database: Database,
) -> None:
    await record(database, 0, {"lines": 80})
    await record(database, 1, {"lines": 80})
    await record(database, 4, {"lines": 80})  # two runs were missed
    await record(database, 9, {"lines": 80})
    await record(database, 10, {"lines": 80})
    assert await hours(database) == [(9, 10), (0, 4)]
    assert await hours(database, 5, 8) == []


async def test_a_value_that_was_only_kept_is_not_confirmed(database: Database) -> None:
    whole = {"lines": 80, "tool": "cov"}
    await record(database, 0, whole)
    await record(database, 1, whole)
    for hour in (2, 3):
        await record(database, hour, {"lines": 80}, DOWN)
    await record(database, 4, {}, {"": "upstream-error"})
    await record(database, 5, whole)
    assert await hours(database) == [(5, None), (2, 3), (0, 1)]
    assert [facts for _, facts in await history(database, 1)] == [whole, {"lines": 80}, whole]


async def test_a_clock_that_was_set_back_confirms_nothing(database: Database) -> None:
    await record(database, 5, {"lines": 80})
    await record(database, 2, {"lines": 80})
    await record(database, 3, {"lines": 80})
    assert await hours(database) == [(5, None), (2, None)]
    await record(database, 4, {"lines": 81})
    assert await hours(database) == [(5, None), (4, None), (2, 3)]


async def test_rows_of_a_release_that_writes_one_for_each_collection_are_gone_on_from(
    database: Database,
) -> None:
    await record(database, 0, {"lines": 80})
    await record(database, 1, {"lines": 80})
    await _as_the_release_before(database, 2, '{"lines":80}')
    await record(database, 3, {"lines": 80})
    await _as_the_release_before(database, 4, '{"lines":81}')
    await record(database, 5, {"lines": 82})
    # The release before did not note when the earlier row was confirmed last.
    assert await hours(database) == [(5, None), (4, None), (2, None), (0, None)]


async def _as_the_release_before(database: Database, hour: int, facts: str) -> None:
    row = ("coverage", 1, NOW + hour * HOUR, facts, "{}", "1.0.0")
    columns = ("source_id", "entity_id", "written_at", "facts", "reasons", "version")
    await database.write(lambda tx: tx.insert("facts_history", columns, [row]))
    await database.write(
        lambda tx: tx.run("UPDATE facts_latest SET written_at = ?, facts = ?", (row[2], facts))
    )


async def test_an_entity_that_is_tracked_no_more_was_known_until_then(database: Database) -> None:
    await add_entities(database, "component:default/web")
    for hour in range(3):
        await record(database, hour, {"lines": 80})
    apis = DataSource(
        id="coverage", title="Coverage", entity_filter=[{"kind": "api"}], schema=FACTS
    )
    assert await database.write(lambda tx: retention.drop_untracked(tx, apis)) == 1
    assert await store.find_latest(database, "coverage", 1) is None
    assert await hours(database, 1) == [(0, 2)]


# Retention


def kept(lifecycle: Lifecycle) -> DataSource:
    return DataSource(
        id="coverage", title="Coverage", cadence="0 * * * *", lifecycle=lifecycle, schema=FACTS
    )


ONE_DAY = kept(Lifecycle(time_to_live={"days": 1}))


async def sweep(database: Database, hour: int) -> int:
    return await retention.sweep_history(database, [ONE_DAY], NOW + hour * HOUR)


async def test_a_row_is_as_old_as_its_last_confirmation(database: Database) -> None:
    for hour in range(50):
        await record(database, hour, {"lines": 80}, source=ONE_DAY)
        assert await sweep(database, hour) == 0
    await record(database, 50, {"lines": 81}, source=ONE_DAY)
    assert await sweep(database, 49 + 24) == 0
    assert await hours(database) == [(50, None), (0, 49)]
    assert await sweep(database, 49 + 24 + 24) == 2  # the newest is from hour 50
    assert await hours(database) == []


async def test_what_is_trimmed_and_found_again_is_a_row(database: Database) -> None:
    weekly = DataSource(
        id="coverage",
        title="Coverage",
        cadence="0 0 * * 1",
        lifecycle=ONE_DAY.lifecycle,
        schema=FACTS,
    )
    await record(database, 0, {"lines": 80}, source=weekly)
    assert await sweep(database, 30) == 1
    await record(database, 7 * 24, {"lines": 80}, source=weekly)
    assert await hours(database) == [(7 * 24, None)]


async def test_a_number_of_items_counts_what_differs(database: Database) -> None:
    two = kept(Lifecycle(max_items=2))
    for hour in range(12):
        await record(database, hour, {"lines": hour // 4}, source=two)
    assert await retention.sweep_history(database, [two], NOW + DAY) == 1
    assert await hours(database) == [(8, 11), (4, 7)]


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(2, soak=5))
async def test_whatever_happens_each_collection_is_told_at_its_time(
    database: Database, seed: int
) -> None:
    chance, told, hour = random.Random(seed), dict[int, dict[str, object]](), 0
    for _ in range(60):
        hour += chance.choice((1, 1, 1, 2, 3, 30))
        values: dict[str, object] = {"lines": chance.choice((80, 80, 80, 81))}
        missing = DOWN if chance.random() < 0.2 else {}
        if not missing:
            values["tool"] = "cov"
        if chance.random() < 0.1:
            values, missing = {}, {"": "upstream-error"}
        await record(database, hour, values, missing)
        if values:
            told[hour] = values
    for at in range(hour + 1):
        time = NOW + at * HOUR
        rows = await fact_history.page_history(database, ["coverage"], 1, time, time, None, 9)
        found = [msgspec.json.decode(row.facts) for row in rows]
        if at in told:
            assert found == [told[at]]
        else:
            assert len(found) <= 1
