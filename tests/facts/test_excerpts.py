"""Some of a long history: enough to draw, and never too much to read."""

from itertools import pairwise

import msgspec
import pytest

from factbook.clock import HOUR, MINUTE
from factbook.facts import history
from factbook.storage import Database
from tests.service import NOON

COLUMNS = ("source_id", "entity_id", "written_at", "facts", "reasons", "version")
FACTS = {"figure": 1}


async def fill(database: Database, count: int, *, length: int = 0, apart: int = MINUTE) -> None:
    """History of entity 7 that ends at noon, and a row of its neighbours on either side."""
    text = "x" * length
    rows = [
        (
            "builds",
            7,
            NOON - number * apart,
            f'{{"figure":{number},"text":"{text}"}}',
            "{}",
            "1.0.0",
        )
        for number in range(count)
    ]
    rows += [(*one, NOON, "{}", "{}", "1.0.0") for one in (("builds", 6), ("builds", 8), ("c", 7))]
    await database.write(lambda tx: tx.insert("facts_history", COLUMNS, sorted(rows)))


async def spread(database: Database, start: int | None, most: int = 10) -> list[int]:
    """The figures of rows all over a time that ends at noon."""
    found = await history.spread_history(database, "builds", 7, start, NOON, FACTS, most)
    return [msgspec.json.decode(row.facts)["figure"] for row in found.rows]


async def test_few_rows_are_all_there(database: Database) -> None:
    await fill(database, 8)
    assert await spread(database, None) == [7, 6, 5, 4, 3, 2, 1, 0]


async def test_of_many_rows_about_as_many_as_asked_for_are_there(database: Database) -> None:
    await fill(database, 1_000)
    found = await spread(database, None)
    assert 10 <= len(found) <= 12
    assert found[0] == 999
    assert {before - after for before, after in pairwise(found)} == {100}


@pytest.mark.parametrize(("count", "is_whole"), [(1, True), (8, True), (40, False)])
async def test_it_says_whether_rows_are_left_out(
    database: Database, count: int, is_whole: bool
) -> None:
    await fill(database, count)
    found = await history.spread_history(database, "builds", 7, None, NOON, FACTS, 10)
    assert found.is_whole is is_whole


async def test_rows_before_the_start_are_left_out(database: Database) -> None:
    await fill(database, 1_000)
    assert max(await spread(database, NOON - HOUR)) == 60
    assert await spread(database, NOON + HOUR) == []


async def test_without_history_there_is_nothing(database: Database) -> None:
    assert await history.spread_history(database, "builds", 7, None, NOON, FACTS, 10) == (
        [],
        None,
        1,
        True,
    )
    assert await history.recent_history(database, "builds", 7, FACTS, 10) == []


async def test_the_newest_rows_come_in_their_order(database: Database) -> None:
    await fill(database, 100)
    rows = await history.recent_history(database, "builds", 7, FACTS, 3)
    assert [row.written_at for row in rows] == [NOON - 2 * MINUTE, NOON - MINUTE, NOON]


@pytest.mark.parametrize(("length", "count"), [(10, 60), (100_000, 39), (10_000_000, 2)])
def test_the_longer_rows_are_the_fewer_are_read(length: int, count: int) -> None:
    assert history.count_fitting_rows({"text": "x" * length}, 60) == count


async def test_points_are_values_and_what_was_unknown(database: Database) -> None:
    rows = [
        ("builds", 7, NOON, '{"figure":1,"a/\\"b\\"":[2]}', "{}", "1"),
        ("builds", 7, NOON + 1, "{}", '{"figure":"forbidden"}', "1"),
        ("builds", 7, NOON + 2, "{}", "{}", "1"),
        ("builds", 7, NOON + 3, "{}", '{"":"expired"}', "1"),
    ]
    await database.write(lambda tx: tx.insert("facts_history", COLUMNS, rows))
    found = history.fact_points(
        await history.recent_history(database, "builds", 7, FACTS, 10), ["figure", 'a/"b"']
    )
    assert found["figure"] == [(NOON, 1), (NOON + 1, None), (NOON + 3, None)]
    assert found['a/"b"'] == [(NOON, [2]), (NOON + 3, None)]
