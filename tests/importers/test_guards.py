"""What readings may do to a set: incomplete, empty, narrower and contested ones."""

from dataclasses import replace

import msgspec
import pytest

from factbook.catalog import sets
from factbook.catalog.store import stored_sets
from factbook.catalog.store.diff import Guards
from factbook.catalog.store.stored_sets import Actor
from factbook.errors import NotFoundError, PreconditionFailedError
from factbook.importers import writer
from factbook.importers.snapshot import ImportedItem, ReadingProblem
from factbook.importers.writer import get_stored_part
from factbook.storage import Database
from tests.importers.reading import IMPORTER, PART, SET, Imports, item, part
from tests.service import component


@pytest.fixture
def imports(database: Database) -> Imports:
    return Imports(database)


def items(*numbers: int) -> list[ImportedItem]:
    return [item(f"c{number:03}") for number in numbers]


async def push(imports: Imports, set_name: str, *names: str, take: bool = False) -> None:
    raw = [msgspec.Raw(msgspec.json.encode(component(name))) for name in names]
    prepared = sets.prepare_items(raw, set_name, imports.target.rules).items
    actor = Actor("user:default/pusher", imports.now)
    guards = Guards(take=take)
    await stored_sets.replace_set(imports.database, set_name, prepared, actor, guards, kept=50)


async def test_a_complete_reading_becomes_the_content_of_the_set(imports: Imports) -> None:
    await imports.write(part(*items(1, 2)))
    result = await imports.write(part(*items(2, 3)))
    assert await imports.names() == ["c002", "c003"]
    assert result.changes == {"added": 1, "updated": 0, "removed": 1, "unchanged": 1}
    assert (await imports.record()).state == "complete"


async def test_the_same_reading_again_makes_no_revision(imports: Imports) -> None:
    await imports.write(part(*items(1, 2)))
    result = await imports.write(part(*items(2, 1)))
    assert (result.changes["unchanged"], await imports.revision()) == (2, 1)


async def test_an_incomplete_reading_adds_and_removes_nothing(imports: Imports) -> None:
    await imports.write(part(*items(1, 2)))
    await imports.write(part(*items(3), complete=False))
    assert await imports.names() == ["c001", "c002", "c003"]
    record = await imports.record()
    assert (record.state, record.complete_at) == ("partial", record.read_at - 1_000)


async def test_an_empty_reading_waits_for_a_person(imports: Imports) -> None:
    await imports.write(part(*items(1, 2)))
    await imports.write(part())
    assert await imports.names() == ["c001", "c002"]
    record = await imports.record()
    assert (record.state, list(record.held)) == (
        "held",
        ["component:default/c001", "component:default/c002"],
    )
    assert "nothing was found" in record.reason


async def test_an_empty_reading_of_nothing_is_complete(imports: Imports) -> None:
    await imports.write(part())
    assert (await imports.record()).state == "complete"


@pytest.mark.parametrize(("count", "gone"), [(3, 2), (11, 10), (29, 3), (200, 21)])
async def test_more_removals_than_the_limit_are_held_while_the_rest_is_written(
    imports: Imports, count: int, gone: int
) -> None:
    await imports.write(part(*items(*range(count))))
    await imports.write(part(*items(*range(gone, count), 500)))
    assert len(await imports.names()) == count + 1
    record = await imports.record()
    share = "half" if gone * 2 > count else "a tenth"
    reason = f"{gone} of {count} would be removed, which is more than {share} of the part"
    assert (len(record.held), record.reason) == (gone, reason)


@pytest.mark.parametrize(("count", "gone"), [(2, 1), (4, 2), (30, 3), (200, 20)])
async def test_removals_up_to_the_limit_are_written(
    imports: Imports, count: int, gone: int
) -> None:
    await imports.write(part(*items(*range(count))))
    await imports.write(part(*items(*range(gone, count))))
    assert len(await imports.names()) == count - gone


async def test_held_removals_are_applied_on_demand(imports: Imports) -> None:
    await imports.write(part(*items(*range(30))))
    await imports.write(part(*items(0)))
    await writer.apply_removals(imports.target, IMPORTER, PART, imports.actor)
    assert await imports.names() == ["c000"]
    assert (await imports.record()).state == "complete"
    with pytest.raises(NotFoundError):
        await writer.apply_removals(imports.target, IMPORTER, PART, imports.actor)


async def test_discarded_removals_stay_until_they_were_found_again(imports: Imports) -> None:
    await imports.write(part(*items(1, 2)))
    await imports.write(part())
    await writer.discard_removals(imports.target, IMPORTER, PART)
    await imports.write(part(*items(3)))
    assert await imports.names() == ["c001", "c002", "c003"]
    assert (await imports.record()).state == "complete"
    await imports.write(part(*items(1, 2, 3)))
    await imports.write(part(*items(2, 3)))
    assert await imports.names() == ["c002", "c003"]


@pytest.mark.both_databases
async def test_what_is_found_again_during_an_apply_is_not_removed(imports: Imports) -> None:
    await imports.write(part(*items(1, 2)))
    await imports.write(part())
    target = imports.first(lambda: imports.write(part(*items(1, 2))))
    with pytest.raises(PreconditionFailedError):
        await writer.apply_removals(target, IMPORTER, PART, imports.actor)
    record = await imports.record()
    assert await imports.names() == ["c001", "c002"]
    assert (record.state, record.read_at, list(record.held)) == ("complete", imports.now, [])


@pytest.mark.both_databases
async def test_a_discard_writes_nothing_over_a_reading_that_came_meanwhile(
    imports: Imports,
) -> None:
    await imports.write(part(*items(1, 2)))
    await imports.write(part())
    target = imports.first(lambda: imports.write(part(*items(1, 2))))
    with pytest.raises(PreconditionFailedError):
        await writer.discard_removals(target, IMPORTER, PART)
    record = await imports.record()
    assert (record.state, record.read_at, list(record.spared)) == ("complete", imports.now, [])


@pytest.mark.both_databases
async def test_a_reading_counts_with_a_discard_that_came_meanwhile(imports: Imports) -> None:
    await imports.write(part(*items(1, 2)))
    await imports.write(part())
    usual = imports.target
    imports.target = imports.first(lambda: writer.discard_removals(usual, IMPORTER, PART))
    await imports.write(part())
    record = await imports.record()
    assert (record.state, record.read_at, list(record.held)) == ("complete", imports.now, [])
    assert await imports.names() == ["c001", "c002"]


@pytest.mark.both_databases
async def test_a_first_reading_counts_with_another_that_came_meanwhile(imports: Imports) -> None:
    broken = ReadingProblem("", "answered 429")
    first = part(*items(1), complete=False, problems=[broken], rights=["public"])
    other = Imports(imports.database)
    imports.target = imports.first(lambda: other.write(part(rights=["private"])))
    await imports.write(first)
    assert (await imports.record()).rights == ["private"]


async def test_what_is_found_again_is_not_held_any_more(imports: Imports) -> None:
    await imports.write(part(*items(1, 2)))
    await imports.write(part())
    await imports.write(part(*items(1, 2)))
    record = await imports.record()
    assert (record.state, list(record.held)) == ("complete", [])


async def test_a_reading_with_fewer_rights_is_not_believed(imports: Imports) -> None:
    await imports.write(part(*items(1, 2), rights=["public", "private"]))
    await imports.write(part(*items(1), rights=["public"]))
    record = await imports.record()
    assert await imports.names() == ["c001", "c002"]
    assert (record.state, list(record.held)) == ("held", ["component:default/c002"])
    assert "private" in record.reason
    await imports.write(part(*items(1), rights=["public"]))
    assert await imports.names() == ["c001", "c002"]
    await writer.apply_removals(imports.target, IMPORTER, PART, imports.actor)
    await imports.write(part(rights=["public"], complete=False))
    assert await imports.names() == ["c001"]


async def test_a_broken_origin_keeps_its_last_good_entities(imports: Imports) -> None:
    await imports.write(part(*items(1, 2)))
    await imports.write(part(*items(2), unread=["repository c001"]))
    assert await imports.names() == ["c001", "c002"]
    await imports.write(part(*items(2)))
    assert await imports.names() == ["c002"]


async def test_a_namesake_does_not_replace_what_could_not_be_read(imports: Imports) -> None:
    first = item("shop", origin="web/shop")
    await imports.write(part(first))
    other = replace(item("shop", origin="web-shop"), entity=component("shop", owner="others"))
    await imports.write(part(other, unread=["web/shop"]))
    [stored] = (await get_stored_part(imports.target, SET)).members
    assert (stored.origin, "others" in stored.prepared.document) == ("web/shop", False)
    await imports.write(part(other))
    [stored] = (await get_stored_part(imports.target, SET)).members
    assert stored.origin == "web-shop"


async def test_an_invalid_entity_is_a_problem_with_file_and_line_and_loses_nothing(
    imports: Imports,
) -> None:
    await imports.write(part(*items(1, 2)))
    entity = component("c001") | {"kind": "Not a kind"}
    broken = item("c001", entity=entity, file="catalog-info.yaml", line=3, lines={"kind": 5})
    await imports.write(part(broken, *items(2)))
    assert await imports.names() == ["c001", "c002"]
    [problem] = (await imports.record()).problems
    assert problem.place == "repository c001 catalog-info.yaml:5"
    assert problem.message.startswith("kind: ")


@pytest.mark.parametrize("entity", [{}, {"metadata": []}, {"metadata": {"annotations": 7}}])
async def test_what_is_no_entity_is_a_problem(imports: Imports, entity: dict[str, object]) -> None:
    await imports.write(part(item("c001", entity=entity), *items(2)))
    assert await imports.names() == ["c002"]
    assert (await imports.record()).problem_count > 0


async def test_an_entity_of_a_push_stays_there_and_its_owner_is_named(imports: Imports) -> None:
    await push(imports, "payments", "c001")
    result = await imports.write(part(*items(1, 2)))
    assert (await imports.names(), await imports.refs("payments")) == (
        ["c002"],
        ["component:default/c001"],
    )
    [conflict] = result.conflicts
    assert str(conflict) == (
        "repository c001: component:default/c001 is owned by payments, and stays as it is there"
    )


async def test_what_a_push_takes_stays_taken(imports: Imports) -> None:
    await imports.write(part(*items(1, 2)))
    await push(imports, "payments", "c001", take=True)
    await imports.write(part(*items(1, 2)))
    assert (await imports.names(), await imports.refs("payments")) == (
        ["c002"],
        ["component:default/c001"],
    )


async def test_an_entity_that_was_found_twice_comes_from_the_first_place(imports: Imports) -> None:
    twice = item("c001", origin="another")
    await imports.write_all(part(*items(1)), part(twice, key="more"))
    assert await imports.refs(f"import/{IMPORTER}/more") == []
    [problem] = (await imports.record("more")).problems
    message = "component:default/c001 comes from repository c001 too, which takes precedence"
    assert problem.message == message


async def test_an_entity_moves_from_one_part_to_another(imports: Imports) -> None:
    await imports.write_all(part(*items(1)), part(*items(2, 3), key="more"))
    uid = await imports.uid("c003")
    await imports.write_all(part(*items(1, 3)), part(*items(2), key="more"))
    assert await imports.names() == ["c001", "c003"]
    assert (await imports.uid("c003"), (await imports.record()).problem_count) == (uid, 0)


async def test_a_tentative_entity_is_added_but_changes_nothing(imports: Imports) -> None:
    known = item("c001")
    await imports.write(part(known))
    less = item("c001", entity=component("c001", owner="nobody"), tentative=True)
    await imports.write(part(less, item("c002", tentative=True)))
    assert await imports.names() == ["c001", "c002"]
    row = await imports.database.one(
        "SELECT body FROM entities WHERE ref = 'component:default/c001'"
    )
    assert row is not None
    assert "team-a" in row[0]


async def test_a_plan_writes_nothing(imports: Imports) -> None:
    result = await imports.write(part(*items(1, 2)), dry_run=True)
    assert result.changes["added"] == 2
    assert (await imports.names(), await imports.revision()) == ([], 0)
    row = await imports.database.one("SELECT COUNT(*) FROM import_parts")
    assert row == (0,)


async def test_a_set_says_what_its_entities_come_from(imports: Imports) -> None:
    await imports.write(part(item("c001", external_id="repository/7")))
    row = await imports.database.one("SELECT body FROM entities")
    assert row is not None
    assert '"factbook/import-origin":"repository c001"' in row[0].replace("factbook.io", "factbook")
    assert 'external-id":"repository/7"' in row[0]
    assert SET in row[0]
