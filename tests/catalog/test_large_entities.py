"""An entity with very many relations: what a write of it costs, in rows and not in time."""

import json
from typing import Any

import msgspec
import pytest

from factbook.catalog import piecewise
from factbook.catalog.sets import (
    Annotator,
    EntityLimits,
    Prepared,
    PushRules,
    prepare_item,
    prepare_items,
)
from factbook.catalog.store import stored_entities, stored_sets
from factbook.catalog.store.diff import Guards
from factbook.catalog.store.stored_sets import Actor
from factbook.storage import Database
from tests.catalog.counted import CountedWrite
from tests.service import NOON, component

LIMITS = EntityLimits(relations=1_000_000, values=1_000_000)
RULES = PushRules(Annotator("factbook", "factbook"), limits=LIMITS)
HUB = "component:default/hub"


def targets(count: int, first: int = 0) -> list[str]:
    return [f"component:default/target-{number:06d}" for number in range(first, first + count)]


class Catalog:
    """A catalog whose writes are counted."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.write = CountedWrite(database)

    async def put(self, entity: dict[str, Any]) -> None:
        [item] = prepare_item(msgspec.Raw(json.dumps(entity).encode()), None, RULES).items
        await self._put(item)

    async def _put(self, item: Prepared) -> None:
        actor = Actor("user:default/tester", NOON)
        await stored_sets.put_entity(
            self.database, None, item, actor, Guards(), RULES, kept=5, write=self.write
        )

    async def replace(self, entities: list[dict[str, Any]]) -> None:
        raw = [msgspec.Raw(json.dumps(entity).encode()) for entity in entities]
        items, actor = prepare_items(raw, "set", RULES).items, Actor("user:default/tester", NOON)
        await stored_sets.replace_set(
            self.database, "set", items, actor, Guards(), kept=5, write=self.write
        )

    async def remove(self, ref: str) -> None:
        found = await stored_entities.read_entity(self.database, ref)
        assert found is not None
        actor = Actor("user:default/tester", NOON)
        await stored_sets.remove_entity(self.database, found.uid, actor, kept=5, write=self.write)

    async def relations(self, ref: str) -> list[tuple[str, str]]:
        found = await stored_entities.read_entity(self.database, ref)
        assert found is not None
        return [(each["type"], each["targetRef"]) for each in json.loads(found.relations)]


@pytest.fixture
def catalog(database: Database) -> Catalog:
    return Catalog(database)


@pytest.mark.spec("limits.large-entities-are-linear")
async def test_a_change_of_one_relation_writes_as_many_rows_however_many_stay(
    catalog: Catalog,
) -> None:
    written = []
    for count in (10, 1_000):
        wanted = targets(count)
        await catalog.put(component("hub", dependsOn=wanted))
        wanted[-1] = "component:default/other"
        await catalog.put(component("hub", dependsOn=wanted))
        written.append([catalog.write.written[table] for table in ("relations", "entities")])
        assert catalog.write.written["search"] == 4
        shown = await catalog.relations(HUB)
        assert shown == [*(("dependsOn", ref) for ref in sorted(wanted)), OWNED]
    # The row of the entity is written with its document, and with its relations.
    assert written == [[2, 2], [2, 2]]


OWNED = ("ownedBy", "group:default/team-a")


@pytest.mark.spec("limits.large-entities-are-linear")
async def test_a_change_of_the_text_reads_and_writes_no_relation(catalog: Catalog) -> None:
    entity = component("hub", dependsOn=targets(1_000))
    await catalog.put(entity)
    entity["metadata"]["description"] = "another"
    await catalog.put(entity)
    assert catalog.write.written["relations"] == 0
    assert catalog.write.written["search"] <= 2
    assert catalog.write.read < 20
    assert len(await catalog.relations(HUB)) == 1_001


@pytest.mark.spec("limits.large-entities-are-linear")
async def test_the_cost_of_a_new_entity_and_of_its_end_grows_with_its_relations(
    catalog: Catalog,
) -> None:
    rows: list[tuple[int, int]] = []
    for count in (100, 1_000):
        await catalog.put(component("hub", dependsOn=targets(count)))
        put = catalog.write.read + catalog.write.written.total()
        await catalog.remove(HUB)
        rows.append((put, catalog.write.read + catalog.write.written.total()))
    (small_put, small_end), (large_put, large_end) = rows
    assert large_put <= 10 * small_put
    assert large_end <= 10 * small_end
    # Nothing is read of targets that do not exist.
    assert large_put < 4_100


@pytest.mark.slow
@pytest.mark.spec("limits.large-entities-are-linear")
async def test_a_push_of_one_entity_rewrites_its_target_once_however_many_point_at_that(
    catalog: Catalog,
) -> None:
    await catalog.put(component("hub"))
    await catalog.put(component("many", dependencyOf=targets(500), dependsOn=[HUB]))
    for number in range(50):
        await catalog.put(component(f"source-{number}", dependsOn=[HUB]))
    # The target is read with its relations, and written as one row beside the new entity.
    assert catalog.write.read < 3 * 52
    assert catalog.write.written["entities"] == 2
    assert len(await catalog.relations(HUB)) == 52


@pytest.mark.slow
@pytest.mark.spec("limits.large-entities-are-linear")
async def test_what_comes_and_goes_at_an_entity_with_many_relations_reads_none_that_stay(
    catalog: Catalog,
) -> None:
    many = [component(f"source-{number:04}", dependsOn=[HUB]) for number in range(2_000)]
    await catalog.replace(many)
    await catalog.put(component("hub"))
    assert len(await catalog.relations(HUB)) == 2_001
    read = []
    await catalog.put(component("another", dependsOn=[HUB], providesApis=["api:default/x"]))
    read.append(catalog.write.read)
    assert ("dependencyOf", "component:default/another") in await catalog.relations(HUB)
    await catalog.put(component("another", dependencyOf=[HUB]))
    read.append(catalog.write.read)
    assert ("dependsOn", "component:default/another") in await catalog.relations(HUB)
    await catalog.remove("component:default/another")
    read.append(catalog.write.read)
    await catalog.put(component("hub", dependsOn=["component:default/other"]))
    read.append(catalog.write.read)
    shown = await catalog.relations(HUB)
    assert shown == sorted([*INCOMING, ("dependsOn", "component:default/other"), OWNED])
    assert max(read) < 30


INCOMING = [("dependencyOf", f"component:default/source-{number:04}") for number in range(2_000)]


@pytest.mark.slow
@pytest.mark.spec("limits.one-entity-blocks-nobody")
async def test_no_call_of_the_database_takes_more_rows_than_a_piece(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    piece = 2_000
    monkeypatch.setattr(piecewise, "PIECE", piece)
    # Enough for their text to be large, too.
    wanted = targets(piece + 1_000)
    await catalog.put(component("hub", dependsOn=wanted))
    assert max(catalog.write.most.values()) <= piece
    await catalog.put(component("hub", dependsOn=targets(len(wanted), first=len(wanted))))
    assert max(catalog.write.most.values()) <= piece
    assert len(await catalog.relations(HUB)) == len(wanted) + 1
    await catalog.remove(HUB)
    assert max(catalog.write.most.values()) <= piece
    assert await stored_entities.read_entity(catalog.database, HUB) is None


@pytest.mark.slow
@pytest.mark.spec("limits.one-entity-blocks-nobody")
async def test_of_long_documents_few_are_taken_apart_at_a_time(catalog: Catalog) -> None:
    short = [component(f"s{number}") for number in range(50)]
    long = [component(f"l{number}", text="x" * 1_500_000) for number in range(5)]
    await catalog.replace(short)
    assert catalog.write.most["entities"] == 50
    await catalog.replace(long)
    assert catalog.write.most["entities"] == 2
    await catalog.replace([each | {"apiVersion": "v2"} for each in long])
    assert catalog.write.most["entities"] == 1
    assert catalog.write.written["entities"] == 5


async def test_values_that_compare_as_the_same_are_told_apart(catalog: Catalog) -> None:
    for value in (True, 1, 1.5, "1"):
        await catalog.put(component("hub", flag=value))
        rows = await catalog.database.all(
            "SELECT s.value FROM search s JOIN search_keys k ON k.id = s.key_id "
            "WHERE k.key = 'spec.flag'"
        )
        assert rows == [("true" if value is True else str(value),)]
