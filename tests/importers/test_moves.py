"""Things that get another name keep their ids, facts and history."""

from typing import Any

import pytest

from factbook.catalog.store import stored_sets
from factbook.catalog.store.diff import Guards
from factbook.clock import DAY
from factbook.importers import writer
from factbook.importers.snapshot import ImportedItem
from tests.api.defining import define, history, latest, push, pushed
from tests.api.defining import item as fact
from tests.importers.organization import CATALOG, Organization, file, repository
from tests.importers.reading import IMPORTER, PART, SET, Imports, item, part
from tests.service import Service, component, resource


@pytest.fixture
def imports(service: Service) -> Imports:
    return Imports(service.state.database)


def thing(number: int, name: str, **more: Any) -> ImportedItem:
    return item(name, origin=f"repository {number}", external_id=f"repository/{number}", **more)


async def test_a_renamed_thing_keeps_its_id(service: Service, imports: Imports) -> None:
    await imports.write(part(thing(1, "old"), thing(2, "other")))
    uid = await imports.uid("old")
    result = await imports.write(part(thing(1, "new"), thing(2, "other")))
    assert await imports.names() == ["new", "other"]
    assert await imports.uid("new") == uid
    assert result.changes == {"added": 1, "updated": 0, "removed": 1, "unchanged": 1}
    shown = await service.catalog("component:default/new")
    assert shown is not None
    assert shown["metadata"]["uid"] == uid


@pytest.mark.both_databases
async def test_many_renames_are_no_removals(imports: Imports) -> None:
    await imports.write(part(*(thing(n, f"a{n}") for n in range(40))))
    uids = {n: await imports.uid(f"a{n}") for n in range(40)}
    await imports.write(part(*(thing(n, f"b{n}") for n in range(40))))
    assert (await imports.record()).state == "complete"
    assert {n: await imports.uid(f"b{n}") for n in range(40)} == uids


async def test_a_rename_is_seen_by_an_incomplete_reading_too(imports: Imports) -> None:
    await imports.write(part(thing(1, "old"), thing(2, "other")))
    uid = await imports.uid("old")
    await imports.write(part(thing(1, "new"), complete=False))
    assert (await imports.names(), await imports.uid("new")) == (["new", "other"], uid)


@pytest.mark.both_databases
async def test_names_go_back_and_forth(imports: Imports) -> None:
    await imports.write(part(thing(1, "a")))
    uid = await imports.uid("a")
    for name in ("b", "a", "c", "b"):
        await imports.write(part(thing(1, name)))
        assert (await imports.names(), await imports.uid(name)) == ([name], uid)


async def test_a_name_that_another_thing_takes_leads_to_that_thing(imports: Imports) -> None:
    await imports.write(part(thing(1, "a"), thing(2, "b")))
    first, second = await imports.uid("a"), await imports.uid("b")
    await imports.write(part(thing(1, "x"), thing(2, "a")))
    assert await imports.names() == ["a", "x"]
    assert (await imports.uid("x"), await imports.uid("a")) == (first, second)


@pytest.mark.both_databases
async def test_things_swap_their_names(imports: Imports) -> None:
    await imports.write(part(thing(1, "a"), thing(2, "b"), thing(3, "c")))
    uids = [await imports.uid(name) for name in "abc"]
    await imports.write(part(thing(1, "b"), thing(2, "c"), thing(3, "a")))
    assert [await imports.uid(name) for name in "bca"] == uids


async def test_a_namesake_waits_while_removals_are_held(imports: Imports) -> None:
    await imports.write(part(*(thing(n, f"a{n}") for n in range(20))))
    uid = await imports.uid("a0")
    await imports.write(part(*(thing(n + 20, f"a{n}") for n in range(20))))
    assert (len((await imports.record()).held), await imports.uid("a0")) == (20, uid)
    await writer.apply_removals(imports.target, IMPORTER, PART, imports.actor)
    await imports.write(part(*(thing(n + 20, f"a{n}") for n in range(20))))
    assert await imports.uid("a0") not in (None, uid)


async def test_a_thing_stays_where_it_is_until_its_new_name_is_free(imports: Imports) -> None:
    await imports.write(part(thing(1, "a"), thing(2, "b")))
    uids = [await imports.uid(name) for name in "ab"]
    await imports.write(part(thing(1, "b"), complete=False))
    assert [await imports.uid(name) for name in "ab"] == uids


@pytest.mark.both_databases
async def test_a_removed_thing_that_comes_back_under_another_name_is_the_same(
    imports: Imports,
) -> None:
    await imports.write(part(thing(1, "a"), thing(2, "b")))
    uid = await imports.uid("a")
    await imports.write(part(thing(2, "b")))
    await imports.write(part(thing(2, "b"), thing(3, "a")))
    assert await imports.uid("a") != uid
    await imports.write(part(thing(2, "b"), thing(3, "a"), thing(1, "x")))
    assert await imports.uid("x") == uid


@pytest.mark.both_databases
async def test_a_restored_revision_gives_names_back(imports: Imports) -> None:
    await imports.write(part(thing(1, "a"), thing(2, "b")))
    uids = [await imports.uid(name) for name in "ab"]
    await imports.write(part(thing(1, "b"), thing(3, "a")))
    await stored_sets.restore_revision(
        imports.database, SET, 1, imports.actor, Guards(), imports.target.rules, kept=5
    )
    assert [await imports.uid(name) for name in "ab"] == uids


async def test_a_push_cannot_claim_what_an_import_removed(
    service: Service, imports: Imports
) -> None:
    await imports.write(part(thing(1, "a"), thing(2, "b")))
    uid = await imports.uid("a")
    await imports.write(part(thing(2, "b")))
    domain = imports.target.rules.annotator.domain
    await service.push(
        "mine", resource("mine", annotations={f"{domain}/external-id": "repository/1"})
    )
    claimed = await service.catalog("resource:default/mine")
    assert claimed is not None
    assert claimed["metadata"]["uid"] != uid
    await imports.write(part(thing(2, "b"), thing(1, "x")))
    assert await imports.uid("x") == uid


async def test_a_name_of_something_that_was_removed_is_free(imports: Imports) -> None:
    await imports.write(part(thing(1, "a"), thing(2, "b")))
    uid, gone = await imports.uid("a"), await imports.uid("b")
    await imports.write(part(thing(1, "a")))
    await imports.write(part(thing(1, "b")))
    assert await imports.uid("b") == uid
    rows = await imports.database.all("SELECT uid FROM removed_entities")
    assert [row[0] for row in rows] == [gone]


async def test_a_new_name_that_a_push_owns_is_left_there(
    service: Service, imports: Imports
) -> None:
    await imports.write(part(thing(1, "a"), thing(2, "b")))
    await service.push("mine", component("c"))
    result = await imports.write(part(thing(1, "c"), thing(2, "b")))
    assert (await imports.names(), len(result.conflicts)) == (["b"], 1)
    assert await imports.refs("mine") == ["component:default/c"]


async def test_a_plan_moves_nothing(imports: Imports) -> None:
    await imports.write(part(thing(1, "old")))
    await imports.write(part(thing(1, "new")), dry_run=True)
    assert await imports.names() == ["old"]


async def test_facts_and_history_stay(service: Service, imports: Imports) -> None:
    old, new = "component:default/old", "component:default/new"
    await define(service, pushed())
    await imports.write(part(thing(1, "old")))
    await push(service, fact(old, lines=1))
    service.time.advance(DAY)
    await push(service, fact(old, lines=2))
    before = await history(service, old)
    await imports.write(part(thing(1, "new")))
    assert await latest(service) == {new: {"lines": 2}}
    after = await history(service, new)
    assert [one["facts"] for one in after] == [one["facts"] for one in before]
    assert len(after) == 2


async def test_a_repository_that_gets_a_name_and_then_a_file_stays_the_same(
    imports: Imports,
) -> None:
    organization = Organization(repository("shop", 7), repository("other", 8), people=False)
    await imports.write_all(await organization.part())
    set_name = "import/fake/acme.repositories"
    uid = await imports.uid("shop")
    organization.fake.repositories[0].name = "acme/store"
    await imports.write_all(await organization.part())
    assert await imports.refs(set_name) == ["component:default/other", "component:default/store"]
    assert await imports.uid("store") == uid
    organization.fake.repositories[0].texts = {CATALOG: file("storefront").encode()}
    organization.fake.repositories[0].commits += 1
    await imports.write_all(await organization.part())
    assert await imports.uid("storefront") == uid


async def test_what_a_renamed_repository_held_stays_while_its_files_cannot_be_read(
    imports: Imports,
) -> None:
    texts = {CATALOG: f"{file('shop')}---\n{file('shop-db', 'Resource')}"}
    several = repository("shop", 7, texts=texts), repository("other", 8)
    organization = Organization(*several, people=False)
    await imports.write_all(await organization.part())
    one = organization.fake.repositories[0]
    one.name, one.commits, one.texts = "acme/store", 2, {CATALOG: b"a: ["}
    for _ in range(2):
        await imports.write_all(await organization.part())
    refs = ["component:default/other", "component:default/shop", "resource:default/shop-db"]
    assert await imports.refs("import/fake/acme.repositories") == refs
