"""Readings of a few origins: all that came from others stays as it is."""

from dataclasses import replace

import pytest

from factbook.importers.snapshot import ImportedItem, ReadingProblem, SnapshotPart
from factbook.storage import Database
from tests.importers.reading import Imports, item, part


@pytest.fixture
def imports(database: Database) -> Imports:
    return Imports(database)


def some(*items: ImportedItem, origins: set[str], complete: bool = True) -> SnapshotPart:
    return replace(part(*items, complete=complete), only=frozenset(origins))


async def test_only_what_came_from_them_changes(imports: Imports) -> None:
    await imports.write(part(item("a", origin="one"), item("b", origin="one"), item("c")))
    await imports.write(some(item("a", origin="one"), item("d", origin="one"), origins={"one"}))
    assert await imports.names() == ["a", "c", "d"]


async def test_what_another_origin_brought_is_not_taken(imports: Imports) -> None:
    await imports.write(part(item("a", origin="one"), item("b", origin="two")))
    await imports.write(some(item("b", origin="one", external_id="7"), origins={"one"}))
    assert await imports.names() == ["b"]
    await imports.write(some(origins={"one"}))
    assert await imports.names() == ["b"]


async def test_nothing_is_removed_by_an_incomplete_one(imports: Imports) -> None:
    await imports.write(part(item("a", origin="one"), item("b")))
    await imports.write(some(origins={"one"}, complete=False))
    assert await imports.names() == ["a", "b"]


async def test_many_removals_are_left_to_a_reading_of_everything(imports: Imports) -> None:
    many = [item(f"a{number:02}", origin="one") for number in range(11)]
    await imports.write(part(*many, item("b")))
    assert len((await imports.write(some(origins={"one"}))).undecided) == 11
    assert len(await imports.names()) == 12
    assert (await imports.record()).state == "complete"
    await imports.write(part(item("b")))
    assert len((await imports.record()).held) == 11
    assert not (await imports.write(some(origins={"one"}))).undecided
    await imports.write(some(item("c"), origins={"repository c"}))
    record = await imports.record()
    assert (record.state, len(record.held), record.items) == ("held", 11, 13)


async def test_what_is_found_again_is_not_held_any_more(imports: Imports) -> None:
    await imports.write(part(*(item(name) for name in "abc")))
    await imports.write(part())
    await imports.write(some(item("a"), origins={"repository a"}))
    assert list((await imports.record()).held) == ["component:default/b", "component:default/c"]
    broken = some(origins={"repository b"})
    await imports.write(replace(broken, unread=broken.only or frozenset()))
    assert list((await imports.record()).held) == ["component:default/c"]
    await imports.write(some(item("c"), origins={"repository c"}))
    record = await imports.record()
    assert (record.state, record.held, record.reason) == ("complete", [], "")
    assert await imports.names() == ["a", "b", "c"]


async def test_problems_of_others_stay(imports: Imports) -> None:
    told = [ReadingProblem("one", "is broken"), ReadingProblem("two", "is broken, too")]
    await imports.write(part(item("a", origin="one"), problems=told))
    before = await imports.record()
    await imports.write(some(item("a", origin="one"), origins={"one"}))
    after = await imports.record()
    assert after.problems == told[1:]
    assert (after.problem_count, after.read_at) == (1, before.read_at)


async def test_a_problem_that_stays_is_told_once(imports: Imports) -> None:
    await imports.write(part(item("a"), item("b"), item("c")))
    failed = [ReadingProblem("repository b", "cannot be read again")]
    for _ in range(3):
        again = some(item("a"), origins={"repository a"}, complete=False)
        await imports.write(replace(again, problems=tuple(failed)))
    record = await imports.record()
    assert (record.problem_count, record.problems) == (1, failed)
    broken = some(origins={"repository b"})
    await imports.write(replace(broken, unread=broken.only or frozenset()))
    assert (await imports.record()).problem_count == 0
