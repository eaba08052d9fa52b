"""Trimming history to the lifecycle of its source, on both databases."""

import pytest

from factbook.clock import DAY, HOUR, MINUTE
from factbook.facts import pushed_facts, retention, store
from factbook.facts.datasource import DataSource, Lifecycle
from factbook.facts.pushed_facts import FactItem
from factbook.storage import Database
from tests.facts.test_store import NOW, SOURCE, add_entities, history, record

WEB = "component:default/web"
ONE_DAY = Lifecycle(time_to_live={"days": 1})


def kept(lifecycle: Lifecycle | None, id_: str = "coverage") -> DataSource:
    return DataSource(id=id_, title="Coverage", lifecycle=lifecycle, schema=SOURCE.schema)


async def sweep(database: Database, lifecycle: Lifecycle | None, now: int = NOW) -> int:
    return await retention.sweep_history(database, [kept(lifecycle)], now)


async def hours_left(database: Database, entity_id: int) -> list[int]:
    return [(at - NOW) // HOUR for at, _ in await history(database, entity_id)]


async def hourly(database: Database, entity_id: int, *hours: int) -> None:
    for hour in hours:
        await record(database, entity_id, {"lines": hour}, NOW + hour * HOUR)


async def push(database: Database, hour: int) -> None:
    item = FactItem(WEB, {"lines": hour}, NOW + hour * HOUR)
    [outcome] = await database.write(lambda tx: pushed_facts.push_facts(tx, SOURCE, [item], NOW))
    assert outcome.accepted


@pytest.mark.spec("facts.history-is-trimmed-by-lifecycle")
async def test_a_sweep_keeps_the_newest_items_of_each_entity(database: Database) -> None:
    await hourly(database, 1, *range(5))
    await hourly(database, 2, 0, 1)
    assert await sweep(database, Lifecycle(max_items=3), NOW + 5 * HOUR) == 2
    assert await hours_left(database, 1) == [2, 3, 4]
    assert await hours_left(database, 2) == [0, 1]


@pytest.mark.spec("facts.history-is-trimmed-by-lifecycle")
async def test_a_sweep_drops_what_has_outlived_its_time(database: Database) -> None:
    await hourly(database, 1, *range(5))
    assert await sweep(database, ONE_DAY, NOW + DAY + 2 * HOUR) == 2
    assert await hours_left(database, 1) == [2, 3, 4]
    assert await sweep(database, ONE_DAY, NOW + 9 * DAY) == 3


async def test_what_came_since_the_last_sweep_is_trimmed(database: Database) -> None:
    three = Lifecycle(max_items=3)
    await hourly(database, 1, 0, 1, 2)
    await hourly(database, 2, 0, 1, 2)
    assert await sweep(database, three, NOW + 3 * HOUR) == 0
    await hourly(database, 2, 3, 4)
    assert await sweep(database, three, NOW + 5 * HOUR) == 2
    assert await sweep(database, three, NOW + 5 * HOUR) == 0
    assert await hours_left(database, 1) == [0, 1, 2]
    assert await hours_left(database, 2) == [2, 3, 4]


async def test_what_was_given_its_time_before_the_sweep_and_stored_after_it_is_trimmed(
    database: Database,
) -> None:
    await hourly(database, 1, 0, 1)
    now = NOW + 2 * HOUR
    assert await sweep(database, Lifecycle(max_items=2), now) == 0
    await record(database, 1, {"lines": 5}, now - 4 * MINUTE)
    assert await sweep(database, Lifecycle(max_items=2), now + 10 * MINUTE) == 1
    assert len(await history(database, 1)) == 2


async def test_of_what_was_pushed_with_times_long_past_too_much_goes(database: Database) -> None:
    await add_entities(database, WEB)
    for hour in (50, 51, 52):
        await push(database, hour)
    assert await sweep(database, Lifecycle(max_items=3), NOW + 60 * HOUR) == 0
    await push(database, 7)
    await push(database, 51 - 2)
    assert await sweep(database, Lifecycle(max_items=3), NOW + 61 * HOUR) == 2
    assert await hours_left(database, 1) == [50, 51, 52]


async def test_when_a_source_is_to_keep_fewer_items_all_its_entities_are_trimmed(
    database: Database,
) -> None:
    await hourly(database, 1, *range(5))
    await hourly(database, 2, *range(4))
    for most, gone in ((4, 1), (5, 0), (4, 0), (2, 4)):
        assert await sweep(database, Lifecycle(max_items=most), NOW + 9 * HOUR) == gone
    assert [await hours_left(database, entity_id) for entity_id in (1, 2)] == [[3, 4], [2, 3]]


async def test_items_from_a_time_of_another_lifecycle_are_trimmed(database: Database) -> None:
    two = Lifecycle(max_items=2)
    await hourly(database, 1, 0, 1)
    assert await sweep(database, two, NOW + 2 * HOUR) == 0
    await hourly(database, 1, 3, 4, 5)
    assert await sweep(database, ONE_DAY, NOW + 6 * HOUR) == 0
    assert await sweep(database, two, NOW + 40 * HOUR) == 3
    assert await hours_left(database, 1) == [4, 5]


async def test_a_sweep_leaves_other_sources_and_the_latest_facts(database: Database) -> None:
    other = kept(None, "another")
    await record(database, 1, {"lines": 1}, source=other)
    await record(database, 1, {"lines": 1})
    assert await retention.sweep_history(database, [kept(ONE_DAY), other], NOW + 9 * DAY) == 1
    assert await history(database, 1) == []
    assert len(await history(database, 1, "another")) == 1
    assert await store.find_latest(database, "coverage", 1) is not None


async def test_history_without_a_lifecycle_is_kept(database: Database) -> None:
    await hourly(database, 1, 0, 1, 2)
    assert await sweep(database, None, NOW + 999 * DAY) == 0
    assert await hours_left(database, 1) == [0, 1, 2]


@pytest.mark.parametrize("lifecycle", [Lifecycle(max_items=1), ONE_DAY])
async def test_a_sweep_of_many_rows_goes_in_small_steps(
    database: Database, monkeypatch: pytest.MonkeyPatch, lifecycle: Lifecycle
) -> None:
    monkeypatch.setattr(retention, "_ROWS_AT_ONCE", 2)
    for entity_id in (1, 2, 3):
        await hourly(database, entity_id, *range(4))
    assert await sweep(database, lifecycle, NOW + DAY + 3 * HOUR) == 9
    assert [await hours_left(database, entity_id) for entity_id in (1, 2, 3)] == [[3]] * 3
    for entity_id in (1, 2, 3):
        await hourly(database, entity_id, *range(40, 44))
    assert await sweep(database, lifecycle, NOW + 2 * DAY + 19 * HOUR) == 12
    assert [await hours_left(database, entity_id) for entity_id in (1, 2, 3)] == [[43]] * 3


async def test_sources_are_trimmed_side_by_side(database: Database) -> None:
    sources = [kept(Lifecycle(max_items=1), f"items-{n}") for n in range(3)]
    sources += [kept(ONE_DAY, f"days-{n}") for n in range(3)]
    for source in sources:
        await record(database, 1, {"lines": 1}, source=source)
        await record(database, 1, {"lines": 2}, NOW + HOUR, source=source)
    assert await retention.sweep_history(database, sources, NOW + DAY + 1) == 6
    for source in sources:
        assert await history(database, 1, source.id) == [(NOW + HOUR, {"lines": 2})]
