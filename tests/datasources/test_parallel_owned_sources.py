"""Writes of sources by members of their groups, beside others on PostgreSQL that meet them."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from factbook.auth.permissions import FACT_WRITE, SOURCE_WRITE
from factbook.catalog.people_trust import PeopleTrust
from factbook.datasources.define import OwnedSource
from factbook.datasources.stores import StoredSource, source_store
from factbook.errors import NotAllowedError
from factbook.facts import pushed_facts
from factbook.facts.pushed_facts import FactItem, FactItemResult
from factbook.storage import Database, Transaction
from tests.api.defining import pushed
from tests.catalog.test_parallel_pushes import END, Push, replace
from tests.service import NOON, component
from tests.storage.waiting_locks import is_lock_awaited
from tests.waiting import soon
from tests.web.scoring import group, person

KIM, ADA = "user:default/kim", "user:default/ada"
OURS, THEIRS = "group:default/team-a", "group:default/team-b"
WEB = "component:default/web"

pytestmark = [
    pytest.mark.parametrize("database_url", ["postgresql"], indirect=True),
    pytest.mark.spec("roles.groups-write-what-they-own"),
]


@pytest.fixture
async def other(database: Database) -> Database:
    """The database of somebody else, with two groups, a member of one, and its source."""
    await replace(database, "people", group("team-a"), group("team-b"), person("kim", "team-a"))
    await replace(database, "all", component("web", owner="team-a"))
    await put(database.write, "Made", actor=ADA)
    return database


def owned(write: Any, needed: str = SOURCE_WRITE) -> Any:
    """The runner of a write of the source by the member."""
    return OwnedSource("coverage", KIM, PeopleTrust(("*",)), {}, needed).guarding(write)


async def put(write: Any, title: str, *, owner: str = OURS, actor: str = KIM) -> StoredSource:
    """Make a draft of the source."""
    document = pushed(title=title, owner=owner)
    work = partial(source_store.put, document=document, actor=actor, now=NOON)
    stored: StoredSource = await write(work)
    return stored


def stored(transaction: Transaction) -> list[FactItemResult]:
    """Store a fact of the source about the entity of the group."""
    source = source_store.existing_within(transaction, "coverage").shown()
    return pushed_facts.push_facts(transaction, source, [FactItem(WEB, {"lines": 1}, NOON)], NOON)


async def leaves(database: Database, write: Any = None) -> None:
    """Let the member go to the other group."""
    people = group("team-a"), group("team-b"), person("kim", "team-b")
    await replace(database, "people", *people, write=write)


WRITES: dict[str, Callable[[Any], Any]] = {
    "a draft": lambda write: put(owned(write), "Changed"),
    "facts": lambda write: owned(write, FACT_WRITE)(stored),
    "a deletion": lambda write: owned(write)(partial(source_store.delete, id_="coverage")),
}
EACH = pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)


@EACH
async def test_who_leaves_the_group_stays_a_member_until_a_write_that_has_begun_is_over(
    other: Database, base: Database, write: Callable[[Any], Any]
) -> None:
    first = Push(base, END)
    await first.reach(write(first.write))
    leaving = asyncio.ensure_future(leaves(other))
    await soon(partial(is_lock_awaited, other))
    assert not leaving.done()
    await first.end()
    await leaving
    await put(other.write, "Made", actor=ADA)
    with pytest.raises(NotAllowedError):
        await write(other.write)


@EACH
async def test_a_write_that_begins_while_its_member_leaves_is_refused(
    other: Database, base: Database, write: Callable[[Any], Any]
) -> None:
    first = Push(base, END)
    await first.reach(leaves(first.database, write=first.write))
    second = asyncio.ensure_future(write(other.write))
    await soon(partial(is_lock_awaited, other))
    await first.end()
    with pytest.raises(NotAllowedError):
        await second
    found = await source_store.existing(other, "coverage")
    assert found.title == "Made"


@EACH
async def test_a_write_that_begins_while_the_source_is_handed_over_is_refused(
    other: Database, base: Database, write: Callable[[Any], Any]
) -> None:
    first = Push(base, END)
    await first.reach(put(first.write, "Theirs", owner=THEIRS, actor=ADA))
    second = asyncio.ensure_future(write(other.write))
    await soon(partial(is_lock_awaited, other))
    await first.end()
    with pytest.raises(NotAllowedError):
        await second
    assert (await source_store.existing(other, "coverage")).title == "Theirs"


async def test_nobody_hands_a_source_over_that_a_member_is_writing(
    other: Database, base: Database
) -> None:
    first = Push(base, END)
    await first.reach(put(owned(first.write), "Changed"))
    second = asyncio.ensure_future(put(other.write, "Theirs", owner=THEIRS, actor=ADA))
    await soon(partial(is_lock_awaited, other))
    assert not second.done()
    assert (await first.end()).title == "Changed"
    assert (await second).title == "Theirs"


async def test_pushes_of_entities_do_not_wait_for_a_member_who_writes_a_source(
    other: Database, base: Database
) -> None:
    first = Push(base, END)
    await first.reach(put(owned(first.write), "Changed"))
    await replace(other, "all", component("web", owner="team-a", type="website"))
    await replace(other, "more", component("api", owner="team-b"))
    assert (await first.end()).title == "Changed"
