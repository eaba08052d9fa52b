"""Long values, such as the files of a repository: stored seldom, and told with every row."""

import random
from collections.abc import Mapping
from dataclasses import replace

import msgspec
import pytest

from factbook.clock import DAY, HOUR
from factbook.facts import history, retention, store
from factbook.facts.datasource import DataSource, Lifecycle
from factbook.facts.freshness import Observation
from factbook.facts.schema import Fact
from factbook.storage import Database
from tests.facts.test_store import NOW, add_entities
from tests.soak import SOAK

FACTS = (Fact("issues", "integer"), Fact("files", "set"), Fact("topics", "set"))
MONTHS = Lifecycle(time_to_live={"days": 90})
REPOSITORY = DataSource(id="a", title="A", cadence="0 * * * *", lifecycle=MONTHS, schema=FACTS)
# Rows that are counted may go at any time, so each of them has all of its values.
COUNTED = replace(REPOSITORY, id="b", lifecycle=Lifecycle(max_items=10_000))
FILES = [f"src/package_{number % 40}/module_{number}.py" for number in range(200)]
MORE = [*FILES, "src/new.py"]
TOPICS = [f"a topic of some length, number {number}" for number in range(20)]
DOWN = "upstream-error"
WEB = "component:default/web"

pytestmark = pytest.mark.spec("facts.history-tells-changes-once")


async def record(
    database: Database,
    hour: int,
    values: Mapping[str, object],
    missing: Mapping[str, str] | None = None,
    source: DataSource = REPOSITORY,
) -> None:
    """Store what a collection brings; what is missing could not be asked for."""
    observed = Observation(1, values, missing or {}, frozenset(missing or {}))
    await database.write(lambda tx: store.record_facts(tx, source, [observed], NOW + hour * HOUR))


async def told(database: Database, source: DataSource = REPOSITORY) -> list[tuple[int, str]]:
    """The hour and facts of each row, newest first."""
    rows = await history.page_history(database, [source.id], 1, None, None, None, 10_000)
    return [((row.written_at - NOW) // HOUR, bytes(row.facts).decode()) for row in rows]


async def changes(database: Database, source: DataSource = REPOSITORY) -> list[tuple[int, object]]:
    """The hour of each change, and the values before and after."""
    page = await history.page_changes(database, NOW, source.id, None, None, 10_000)
    return [((one.written_at - NOW) // HOUR, one.facts) for one in page.changes]


async def stored(database: Database) -> int:
    """Characters of all rows."""
    row = await database.one("SELECT SUM(LENGTH(facts)) FROM facts_history")
    assert row is not None
    return int(row[0])


@pytest.mark.slow
async def test_files_that_stay_the_same_are_stored_once_a_day(database: Database) -> None:
    await add_entities(database, WEB)
    for hour in range(72):
        await record(database, hour, {"issues": hour, "files": FILES})
    assert await stored(database) < 4 * len(msgspec.json.encode(FILES)) + 72 * 30
    assert await told(database) == [
        (hour, msgspec.json.encode({"issues": hour, "files": FILES}).decode())
        for hour in reversed(range(72))
    ]
    assert await changes(database) == [
        (hour, {"issues": (hour - 1, hour)}) for hour in range(1, 72)
    ]


async def test_a_change_of_files_tells_those_before_however_long_they_stayed(
    database: Database,
) -> None:
    await add_entities(database, WEB)
    for hour in range(20):
        await record(database, hour, {"issues": hour, "files": FILES})
    await record(database, 20, {"issues": 19, "files": MORE})
    await record(database, 21, {"issues": 19, "files": FILES})
    assert (await changes(database))[-2:] == [
        (20, {"files": (FILES, MORE)}),
        (21, {"files": (MORE, FILES)}),
    ]


async def test_a_chart_of_files_begins_with_those_of_its_first_row(database: Database) -> None:
    await add_entities(database, WEB)
    for hour in range(12):
        await record(database, hour, {"issues": hour, "files": FILES})
    excerpt = await history.spread_history(
        database, "a", 1, NOW + 6 * HOUR, NOW + 12 * HOUR, {"files": FILES}, 100
    )
    points = history.fact_points(excerpt.rows, ["files"])["files"]
    assert {at for at, _ in points} >= {NOW + hour * HOUR for hour in range(6, 12)}
    assert all(value == FILES for _, value in points)


@pytest.mark.slow
async def test_history_tells_the_same_however_it_is_stored(database: Database) -> None:
    await add_entities(database, WEB)
    chance, hour = random.Random(4), 0
    for _ in range(300 if SOAK else 100):
        hour += chance.choice([1, 1, 1, 5, 30])
        values: dict[str, object] = {"issues": chance.randrange(3)}
        values["files"] = chance.choice([FILES, FILES, FILES, MORE, ["README.md"]])
        values["topics"] = chance.choice([TOPICS, TOPICS, TOPICS[1:]])
        lost = chance.choice([*[None] * 8, "files", "topics"])
        if lost is not None:
            del values[lost]
        missing = {} if lost is None else {lost: chance.choice([DOWN, "not-applicable"])}
        for source in (REPOSITORY, COUNTED):
            await record(database, hour, values, missing, source)
    assert await told(database) == await told(database, COUNTED)
    assert await changes(database) == await changes(database, COUNTED)
    lengths = "SELECT SUM(LENGTH(facts)) FROM facts_history GROUP BY source_id ORDER BY source_id"
    [(few,), (many,)] = await database.all(lengths)
    assert few < 0.9 * many


async def test_a_clock_that_was_set_back_leaves_every_row_its_own_files(database: Database) -> None:
    await add_entities(database, WEB)
    for source in (REPOSITORY, COUNTED):
        await record(database, 10, {"issues": 1, "files": FILES}, source=source)
        await record(database, 14, {"issues": 2, "files": FILES}, source=source)
        for hour, issues in ((12, 2), (13, 3), (15, 3), (16, 4)):
            await record(database, hour, {"issues": issues, "files": MORE}, source=source)
    assert await told(database) == await told(database, COUNTED)
    assert await changes(database) == await changes(database, COUNTED)
    assert dict(await told(database))[16] == dict(await told(database, COUNTED))[16]


@pytest.mark.slow
async def test_a_quiet_repository_keeps_its_files_for_as_long_as_it_is_confirmed(
    database: Database,
) -> None:
    daily = replace(REPOSITORY, cadence="0 0 * * *")
    await add_entities(database, WEB)
    for hour in (0, 1, *range(24, 100 * 24, 24)):
        await record(database, hour, {"issues": min(hour, 1), "files": FILES}, source=daily)
        await retention.sweep_history(database, [daily], NOW + hour * HOUR)
    last = 100 * 24
    await retention.sweep_history(database, [daily], NOW + last * HOUR)
    assert [hour for hour, _ in await told(database)] == [1, 0]
    excerpt = await history.spread_history(
        database, "a", 1, NOW + 50 * DAY, NOW + 99 * DAY, {"files": FILES}, 100
    )
    points = history.fact_points(excerpt.rows, ["files"])["files"]
    assert [value for _, value in points] == [FILES] * 2
    await record(database, last, {"issues": 1, "files": MORE}, source=daily)
    assert (await changes(database))[-1] == (last, {"files": (FILES, MORE)})
    # Both go once the second was last found so long ago.
    assert await retention.sweep_history(database, [daily], NOW + last * HOUR + 90 * DAY) == 2
    assert await changes(database) == []


@pytest.mark.slow
async def test_rows_that_share_long_values_go_at_once(database: Database) -> None:
    await add_entities(database, WEB)
    for hour in range(60):
        await record(database, hour, {"issues": hour, "files": FILES})
    shared: list[int] = []
    for hour in range(0, 61, 4):
        shared.append(
            await retention.sweep_history(database, [REPOSITORY], NOW + hour * HOUR + 90 * DAY)
        )
        rows = await told(database)
        assert all("files" in facts for _, facts in rows)
        told_since = [(one, {"issues": (one - 1, one)}) for one, _ in reversed(rows)]
        assert await changes(database) == told_since[1:]
    assert sum(shared) == 60
    assert [number for number in shared if number] == [24, 24, 12]


async def test_a_fact_that_is_dropped_from_the_schema_does_not_come_back(
    database: Database,
) -> None:
    await add_entities(database, WEB)
    await record(database, 0, {"issues": 0, "files": FILES, "topics": TOPICS})
    await database.write(lambda tx: retention.drop_facts(tx, "a", ["topics"]))
    fewer = replace(REPOSITORY, version="2.0.0", schema=FACTS[:2])
    for hour in (1, 2):
        await record(database, hour, {"issues": hour, "files": FILES}, source=fewer)
    found = [msgspec.json.decode(facts).keys() for _, facts in await told(database)]
    assert found == [{"issues", "files"}, {"issues", "files"}, {"issues", "files", "topics"}]


async def test_what_follows_a_row_that_lost_its_long_values_has_them(database: Database) -> None:
    await add_entities(database, WEB)
    for hour in range(2):
        await record(database, hour, {"issues": hour, "files": FILES})
    await database.write(
        lambda tx: tx.run("DELETE FROM facts_history WHERE written_at = ?", (NOW,))
    )
    await record(database, 2, {"issues": 2, "files": FILES})
    await record(database, 3, {"issues": 2, "files": MORE})
    assert ["files" in facts for _, facts in await told(database)] == [True, True, False]
    assert (await changes(database))[-1] == (3, {"files": (FILES, MORE)})


@pytest.mark.slow
@pytest.mark.parametrize("swept_before", [False, True])
async def test_a_source_that_is_to_keep_a_number_keeps_the_values_of_those_rows(
    database: Database, swept_before: bool
) -> None:
    await add_entities(database, WEB)
    for hour in range(30):
        await record(database, hour, {"issues": hour, "files": FILES})
    two = replace(REPOSITORY, lifecycle=Lifecycle(max_items=2))
    if swept_before:
        many = replace(REPOSITORY, lifecycle=Lifecycle(max_items=1000))
        await retention.sweep_history(database, [many], NOW + 24 * HOUR)
        await database.write(lambda tx: tx.run("UPDATE history_trims SET max_items = 2"))
    await retention.sweep_history(database, [two], NOW + 30 * HOUR)
    assert [hour for hour, _ in await told(database)] == [29, 28, 27, 26, 25, 24]
    assert all("files" in facts for _, facts in await told(database))
    for hour in range(30, 34):
        await record(database, hour, {"issues": hour, "files": FILES}, source=two)
    await retention.sweep_history(database, [two], NOW + 34 * HOUR)
    assert [hour for hour, _ in await told(database)] == [33, 32]


@pytest.mark.slow
async def test_values_that_went_with_an_older_row_are_no_change_later(database: Database) -> None:
    await add_entities(database, WEB)
    for hour in range(60):
        await record(database, hour, {"issues": hour, "files": FILES})
    # An earlier release deletes by the age of each row.
    await database.write(
        lambda tx: tx.run("DELETE FROM facts_history WHERE written_at = ?", (NOW,))
    )
    [(_, oldest), *_] = (await told(database))[::-1]
    assert msgspec.json.decode(oldest) == {"issues": 1}
    assert await changes(database) == [
        (hour, {"issues": (hour - 1, hour)}) for hour in range(2, 60)
    ]
