"""What changed since some time, told from the history of facts."""

from collections.abc import Mapping
from typing import Any

import pytest

from factbook.facts import history, store
from factbook.facts.datasource import DataSource
from factbook.facts.freshness import Observation
from factbook.facts.history import ChangePosition, FactChange, compare_rows
from factbook.facts.schema import Fact
from factbook.storage import Database
from tests.facts.test_store import NOW, add_entities

HOUR = 3_600_000
WEB, API, DB = "component:default/web", "component:default/api", "resource:default/db"
FACTS = (Fact("lines", "integer"), Fact("tool", "string"))
COVERAGE = DataSource(id="coverage", title="Coverage", version="1.2.0", schema=FACTS)
OTHER = DataSource(id="other", title="Other", schema=FACTS)
LIMITED = frozenset({"lines"})


async def record(
    database: Database,
    hour: int,
    entity_id: int,
    values: Mapping[str, object],
    reasons: Mapping[str, str] | None = None,
    *,
    source: DataSource = COVERAGE,
    passing: frozenset[str] = frozenset(),
) -> None:
    observation = Observation(entity_id, values, reasons or {}, passing)
    await database.write(
        lambda tx: store.record_facts(tx, source, [observation], NOW + hour * HOUR)
    )


async def every(
    database: Database,
    *,
    since: int = 0,
    source: str | None = None,
    kind: str | None = None,
    limit: int = 100,
) -> list[tuple[str, str, int, dict[str, Any]]]:
    """Source, reference, hour and facts of every change, page by page."""
    found: list[FactChange] = []
    place: ChangePosition | None = None
    while True:
        page = await history.page_changes(database, NOW + since * HOUR, source, kind, place, limit)
        assert len(page.changes) <= limit
        found += page.changes
        if page.more is None:
            return [(c.source_id, c.ref, (c.written_at - NOW) // HOUR, c.facts) for c in found]
        place = page.more


async def fill(database: Database) -> None:
    """Six hours of two sources about three entities."""
    await add_entities(database, WEB, API, DB)
    for hour, lines in enumerate([80, 80, 81, 81, 79, 79]):
        await record(database, hour, 1, {"lines": lines, "tool": "cov"})
        await record(database, hour, 3, {"lines": lines}, source=OTHER)
    await record(database, 5, 2, {"lines": 1})


EVERY = [
    ("coverage", WEB, 2, {"lines": (80, 81)}),
    ("other", DB, 2, {"lines": (80, 81)}),
    ("coverage", WEB, 4, {"lines": (81, 79)}),
    ("other", DB, 4, {"lines": (81, 79)}),
]


@pytest.mark.spec("facts.changes-from-history")
async def test_changes_come_oldest_first_with_the_value_before_and_since(
    subtests: pytest.Subtests, database: Database
) -> None:
    await fill(database)
    for limit in (1, 2, 3, 100):
        with subtests.test(limit=limit):
            assert await every(database, limit=limit) == EVERY


@pytest.mark.spec("facts.changes-from-history")
async def test_time_source_and_kind_narrow_the_changes(
    subtests: pytest.Subtests, database: Database
) -> None:
    await fill(database)
    cases: list[tuple[dict[str, Any], list[Any]]] = [
        ({"since": 2}, EVERY),
        ({"since": 3}, EVERY[2:]),
        ({"since": 5}, []),
        ({"source": "other"}, EVERY[1::2]),
        ({"source": "coverage", "since": 3}, EVERY[2:3]),
        ({"source": "nothing"}, []),
        ({"kind": "component"}, EVERY[::2]),
        ({"kind": "resource", "source": "coverage"}, []),
        ({"kind": "api"}, []),
    ]
    for narrowed, expected in cases:
        with subtests.test(narrowed=narrowed):
            assert await every(database, **narrowed) == expected


async def test_a_change_has_the_version_that_wrote_it(database: Database) -> None:
    await fill(database)
    page = await history.page_changes(database, NOW, "coverage", None, None, 1)
    [change] = page.changes
    assert (change.version, change.written_at) == ("1.2.0", NOW + 2 * HOUR)


async def test_the_first_row_of_an_entity_changes_nothing(database: Database) -> None:
    await add_entities(database, WEB)
    await record(database, 0, 1, {"lines": 1})
    assert await every(database) == []


async def test_a_value_that_comes_or_goes_is_a_change_from_or_to_nothing(
    database: Database,
) -> None:
    await add_entities(database, WEB)
    await record(database, 0, 1, {"lines": 1}, {"tool": "not-found"})
    await record(database, 1, 1, {"tool": "cov"}, {"lines": "not-applicable"})
    await record(database, 2, 1, {}, {"": "forbidden"})
    assert await every(database) == [
        ("coverage", WEB, 1, {"lines": (1, None), "tool": (None, "cov")}),
        ("coverage", WEB, 2, {"tool": ("cov", None)}),
    ]


async def test_a_value_kept_through_failures_is_no_change(database: Database) -> None:
    await add_entities(database, WEB)
    await record(database, 0, 1, {"lines": 80, "tool": "a"})
    for hour, tool in ((1, "b"), (2, "c"), (3, "d")):
        failed = {"lines": "rate-limited"}
        await record(database, hour, 1, {"tool": tool}, failed, passing=LIMITED)
    await record(database, 4, 1, {"lines": 80, "tool": "d"})
    await record(database, 5, 1, {"lines": 81, "tool": "d"})
    assert [change[2:] for change in await every(database)] == [
        (1, {"tool": ("a", "b")}),
        (2, {"tool": ("b", "c")}),
        (3, {"tool": ("c", "d")}),
        (5, {"lines": (80, 81)}),
    ]


async def test_a_change_while_a_value_was_kept_names_the_value_before(database: Database) -> None:
    await add_entities(database, WEB)
    await record(database, 0, 1, {"lines": 80, "tool": "a"})
    await record(database, 1, 1, {"tool": "a"}, {"lines": "rate-limited"}, passing=LIMITED)
    await record(database, 2, 1, {"tool": "a"}, {"lines": "not-found"})
    assert [change[2:] for change in await every(database)] == [(2, {"lines": (80, None)})]


async def test_entities_that_are_gone_are_left_out(database: Database) -> None:
    await fill(database)
    await database.write(lambda tx: tx.run("DELETE FROM entities WHERE id = 1"))
    assert await every(database) == EVERY[1::2]


async def test_a_page_looks_at_a_bounded_number_of_rows(database: Database) -> None:
    await add_entities(database, WEB, API)
    columns = ("source_id", "entity_id", "written_at", "facts", "reasons", "version")
    count = history.ROWS_SCANNED + 10
    rows = [
        ("coverage", 1, NOW + number, f'{{"lines":{number // count}}}', "{}", "1.0.0")
        for number in range(count + 1)
    ]
    await database.write(lambda tx: tx.insert("facts_history", columns, rows))
    for source in ("coverage", None):
        first = await history.page_changes(database, NOW, source, None, None, 10)
        assert first.changes == []
        assert first.more == ChangePosition(NOW + history.ROWS_SCANNED - 1, "coverage", 1)
        second = await history.page_changes(database, NOW, source, None, first.more, 10)
        assert [(c.written_at - NOW, c.facts) for c in second.changes] == [
            (count, {"lines": (0, 1)})
        ]
        assert second.more is None


def test_differences_are_between_what_was_known_before_and_since(subtests: pytest.Subtests) -> None:
    cases: list[tuple[list[Any], dict[str, Any]]] = [
        ([({"a": 1}, {}), ({"a": 1}, {})], {}),
        ([({"a": 1}, {}), ({"a": True}, {})], {"a": (True, 1)}),
        ([({"a": [1]}, {}), ({"a": [2]}, {})], {"a": ([2], [1])}),
        ([({"a": 1, "b": 2}, {}), ({"b": 2, "a": 1}, {})], {}),
        ([({}, {"a": "x"}), ({}, {"a": "y"})], {}),
        ([({}, {}), ({"a": 1}, {})], {}),
        ([({}, {"a": "x"}), ({}, {}), ({"a": 1}, {})], {"a": (1, None)}),
        ([({}, {"g": "x"}), ({"g.a": 1, "h": 2}, {})], {"g.a": (1, None)}),
        ([({"a": 1}, {})], {"a": (None, 1)}),
    ]
    for rows, expected in cases:
        with subtests.test(rows=rows):
            assert compare_rows(rows) == expected
