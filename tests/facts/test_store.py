"""The store of facts, on both databases: latest, history, pages, sampling."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from factbook.catalog.store.conditions import EntityRange
from factbook.clock import DAY
from factbook.facts import freshness, retention, store
from factbook.facts.datasource import DataSource
from factbook.facts.freshness import Observation
from factbook.facts.schema import Fact
from factbook.storage import Database, Transaction

NOW = 1_795_000_000_000
SOURCE = DataSource(
    id="coverage",
    title="Coverage",
    version="1.2.0",
    schema=(Fact("lines", "integer"), Fact("tool", "string")),
)

ENTITY_COLUMNS = (
    *("id", "uid", "ref", "kind", "namespace", "name", "etag", "updated_by", "updated_at"),
    *("compliance", "head", "body", "relations"),
)


async def record(
    database: Database,
    entity_id: int,
    values: Mapping[str, object],
    now: int = NOW,
    source: DataSource = SOURCE,
) -> None:
    def write(transaction: Transaction) -> None:
        store.record_facts(transaction, source, [Observation(entity_id, values)], now)

    await database.write(write)


async def history(database: Database, entity_id: int, source_id: str = "coverage") -> list[Any]:
    """Time and facts of each row of history, oldest first."""
    sql = (
        "SELECT written_at, facts FROM facts_history WHERE source_id = ? AND entity_id = ? "
        "ORDER BY written_at"
    )
    rows = await database.all(sql, (source_id, entity_id))
    return [(written_at, msgspec.json.decode(facts)) for written_at, facts in rows]


async def add_entities(database: Database, *refs: str) -> None:
    """Rows of entities with ids 1, 2, … in the order of `refs`."""
    rows = []
    for id_, ref in enumerate(refs, 1):
        kind, _, rest = ref.partition(":")
        namespace, _, name = rest.partition("/")
        rows.append((id_, f"uid-{id_}", ref, kind, namespace, name, "", "", 0, 0, "{", "", "[]"))
    await database.write(lambda transaction: transaction.insert("entities", ENTITY_COLUMNS, rows))


@pytest.mark.spec("facts.latest-is-one-row", "facts.timestamp-is-the-last-good-write")
async def test_the_latest_facts_are_those_written_last(database: Database) -> None:
    await record(database, 1, {"lines": 80, "tool": "cov"})
    await record(database, 1, {"lines": 81}, NOW + 1)
    assert await store.find_latest(database, "coverage", 1) == freshness.Latest(
        {"lines": 81}, {}, "1.2.0", NOW + 1
    )
    assert await database.one("SELECT COUNT(*) FROM facts_latest") == (1,)


@pytest.mark.spec("facts.never-collected-is-empty")
async def test_an_entity_never_collected_has_no_latest_facts(database: Database) -> None:
    await record(database, 1, {"lines": 80})
    assert await store.find_latest(database, "coverage", 2) is None
    assert await store.find_latest(database, "another", 1) is None
    assert await store.list_latest(database, 2) == {}


@pytest.mark.spec("facts.history-is-append-only")
async def test_every_record_that_differs_is_appended_to_history(database: Database) -> None:
    await record(database, 1, {"lines": 80})
    await record(database, 1, {"lines": 81}, NOW + 1)
    await record(database, 1, {"lines": 80}, NOW + 2)
    assert await history(database, 1) == [
        (NOW, {"lines": 80}),
        (NOW + 1, {"lines": 81}),
        (NOW + 2, {"lines": 80}),
    ]


@pytest.mark.spec("facts.history-is-append-only")
async def test_history_is_not_changed_by_a_run_repeated_at_the_same_time(
    database: Database,
) -> None:
    await record(database, 1, {"lines": 80})
    await record(database, 1, {"lines": 99})
    assert await history(database, 1) == [(NOW, {"lines": 80})]


@pytest.mark.spec("facts.wrong-type-is-no-value-with-a-reason")
async def test_a_value_of_the_wrong_type_is_stored_as_a_reason(database: Database) -> None:
    await record(database, 1, {"lines": "80", "tool": "cov"})
    assert await store.find_latest(database, "coverage", 1) == freshness.Latest(
        {"tool": "cov"},
        {"lines": "upstream-error: expected an integer, not this string"},
        "1.2.0",
        NOW,
    )


async def test_reasons_of_the_collection_win_over_those_of_the_check(database: Database) -> None:
    observed = [
        freshness.Observation(1, {"lines": None}, {"lines": "forbidden"}),
        freshness.Observation(2, {"lines": 7}),
    ]
    await database.write(lambda t: store.record_facts(t, SOURCE, observed, NOW))
    first = await store.find_latest(database, "coverage", 1)
    second = await store.find_latest(database, "coverage", 2)
    assert first == freshness.Latest({}, {"lines": "forbidden"}, "1.2.0", NOW)
    assert second == freshness.Latest({"lines": 7}, {}, "1.2.0", NOW)


async def test_the_facts_of_an_entity_are_found_by_source(database: Database) -> None:
    other = DataSource(id="another", title="Another", schema=SOURCE.schema)
    await record(database, 1, {"lines": 80})
    await record(database, 1, {"tool": "☃ \0"}, NOW + 5, other)
    assert await store.list_latest(database, 1) == {
        "another": freshness.Latest({"tool": "☃ \0"}, {}, "1.0.0", NOW + 5),
        "coverage": freshness.Latest({"lines": 80}, {}, "1.2.0", NOW),
    }


REFS = ("component:default/b", "api:default/a", "component:other/a", "component:default/a")


async def collected(database: Database) -> None:
    """Four entities, of which only the last two components and the API have a value."""
    await add_entities(database, *REFS)
    await record(database, 1, {"lines": "no number"})
    for entity_id in (2, 3, 4):
        await record(database, entity_id, {"lines": entity_id})


async def refs(database: Database, **arguments: Any) -> list[str]:
    return [row.ref for row in await tracked(database, **arguments)]


async def tracked(database: Database, **arguments: Any) -> list[store.Tracked]:
    pages = store.page_tracked(database, SOURCE, EntityRange(**{"limit": 10, **arguments}))
    return [row async for page in pages for row in page]


@pytest.mark.spec("facts.tracked")
async def test_tracked_entities_have_a_value_and_are_ordered_by_reference(
    database: Database,
) -> None:
    await collected(database)
    assert await refs(database) == [
        "api:default/a",
        "component:default/a",
        "component:other/a",
    ]
    assert await store.count_tracked(database, SOURCE, EntityRange(), 10) == 3
    assert await store.count_tracked(database, SOURCE, EntityRange(), 2) == 2


async def test_a_page_holds_stored_facts_and_their_time(database: Database) -> None:
    await collected(database)
    [row] = await tracked(database, kind="api")
    assert msgspec.json.encode(row.facts) == b'{"lines":2}'
    assert row.brought_at == NOW


async def test_kind_and_namespace_narrow_a_page_and_the_count(database: Database) -> None:
    await collected(database)
    assert await refs(database, kind="component", namespace="other") == ["component:other/a"]
    assert await store.count_tracked(database, SOURCE, EntityRange("component"), 10) == 2
    assert await store.count_tracked(database, SOURCE, EntityRange(namespace="default"), 10) == 2
    assert await store.count_tracked(database, SOURCE, EntityRange("system"), 10) == 0


async def test_pages_go_on_after_the_last_reference(database: Database) -> None:
    await collected(database)
    assert await refs(database, limit=2) == ["api:default/a", "component:default/a"]
    assert await refs(database, limit=2, after="component:default/a") == ["component:other/a"]
    assert await refs(database, limit=2, after="component:other/a") == []


async def test_all_pages_together_are_every_tracked_entity(database: Database) -> None:
    await collected(database)
    rows = await tracked(database, kind="component", limit=None)
    assert [row.ref for row in rows] == ["component:default/a", "component:other/a"]


async def test_facts_of_an_entity_that_is_gone_are_on_no_page(database: Database) -> None:
    await record(database, 99, {"lines": 1})
    assert await refs(database) == []


async def sample(database: Database, found: list[dict[str, object]], now: int) -> None:
    """Sample the facts of the entities 0, 1, …"""

    def write(transaction: Transaction) -> None:
        store.append_samples(transaction, "entity-metadata", enumerate(found), now, "1.0.0")

    await database.write(write)


@pytest.mark.spec("facts.catalog-facts-sampled-daily")
async def test_a_sample_adds_only_what_differs_from_the_last_one(database: Database) -> None:
    days: list[list[dict[str, object]]] = [
        [{"hasTitle": True}, {"hasTitle": False}],
        [{"hasTitle": True}, {"hasTitle": True}],
        [{"hasTitle": False}, {"hasTitle": True}],
        [{"hasTitle": True}, {"hasTitle": True}],
    ]
    for day, found in enumerate(days):
        await sample(database, found, NOW + day * DAY)
    first = await history(database, 0, "entity-metadata")
    second = await history(database, 1, "entity-metadata")
    assert [(at - NOW) // DAY for at, _ in first] == [0, 2, 3]
    assert [(at - NOW) // DAY for at, _ in second] == [0, 1]
    assert await store.find_latest(database, "entity-metadata", 1) is None


async def test_forgetting_drops_everything_about_the_entities(database: Database) -> None:
    for entity_id in (1, 2, 3):
        await record(database, entity_id, {"lines": 1})
    await database.write(lambda transaction: retention.delete_facts(transaction, [1, 3]))
    assert await store.list_latest(database, 1) == {}
    assert await history(database, 3) == []
    assert await store.list_latest(database, 2) != {}
    assert len(await history(database, 2)) == 1


async def test_what_one_source_brought_can_be_forgotten_alone(database: Database) -> None:
    other = DataSource(id="another", title="Another", schema=SOURCE.schema)
    await record(database, 1, {"lines": 1})
    await record(database, 1, {"lines": 2}, source=other)
    await database.write(lambda transaction: retention.delete_facts(transaction, [1], "coverage"))
    assert list(await store.list_latest(database, 1)) == ["another"]


async def test_forgetting_nobody_is_nothing(database: Database) -> None:
    await record(database, 1, {"lines": 1})
    await database.write(lambda transaction: retention.delete_facts(transaction, []))
    assert await store.find_latest(database, "coverage", 1) is not None
