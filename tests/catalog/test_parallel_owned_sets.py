"""Pushes of members to sets of their groups, beside others on PostgreSQL that meet them or not."""

import asyncio
import json
from functools import partial
from typing import Any

import msgspec
import pytest

from factbook.catalog.people_trust import PeopleTrust
from factbook.catalog.sets import prepare_items
from factbook.catalog.store import stored_sets
from factbook.catalog.store.diff import Guards
from factbook.catalog.store.stored_sets import Actor, OwnedSet, PushResult
from factbook.errors import NotAllowedError
from factbook.storage import Database
from tests.catalog.test_parallel_pushes import END, RULES, Push, put, replace
from tests.service import NOON, component
from tests.storage.waiting_locks import is_lock_awaited
from tests.waiting import soon
from tests.web.scoring import group, person

KIM = "user:default/kim"
OURS = "one", "two"

pytestmark = [
    pytest.mark.parametrize("database_url", ["postgresql"], indirect=True),
    pytest.mark.spec("roles.groups-write-what-they-own"),
]


@pytest.fixture
async def other(database: Database) -> Database:
    """The database of somebody else, with two groups, a member of one, and a set of each."""
    await replace(database, "people", group("team-a"), group("team-b"), person("kim", "team-a"))
    await replace(database, "ours", *map(component, OURS))
    await replace(database, "theirs", component("api", owner="team-b"))
    return database


async def push_ours(
    database: Database, *names: str, type: str = "service", write: Any = None
) -> PushResult:
    """Push the set of the group as its member.

    Of the same names another type changes no relation, so that nothing of the group is written.
    """
    raw = [msgspec.Raw(json.dumps(component(name, type=type)).encode()) for name in names]
    items = prepare_items(raw, "ours", RULES).items
    owned = OwnedSet("ours", KIM, PeopleTrust(("*",)))
    guards, actor = Guards(owned=owned), Actor(KIM, NOON)
    return await stored_sets.replace_set(
        database, "ours", items, actor, guards, kept=5, write=write
    )


async def names_of(database: Database, name: str) -> set[str]:
    """The names of the entities in a set."""
    content = await stored_sets.page_content(database, name, 10)
    return {one.ref.rpartition("/")[2] for one in content.items}


async def types_of(database: Database, name: str) -> set[str]:
    """The types of the entities in a set."""
    content = await stored_sets.page_content(database, name, 10)
    return {json.loads(one.document)["spec"]["type"] for one in content.items}


async def test_a_push_of_another_set_does_not_wait_for_one_of_a_member(
    other: Database, base: Database
) -> None:
    first = Push(base, END)
    await first.reach(push_ours(first.database, "three", write=first.write))
    await replace(other, "theirs", component("api", owner="team-b", type="website"))
    await put(other, "more", component("four", owner="team-b"))
    assert await names_of(other, "ours") == {*OURS}
    assert (await first.end()).grant == "group group:default/team-a"
    assert await names_of(other, "ours") == {"three"}


async def test_who_leaves_the_group_stays_a_member_until_a_push_that_has_begun_is_over(
    other: Database, base: Database
) -> None:
    first = Push(base, END)
    await first.reach(push_ours(first.database, *OURS, type="library", write=first.write))
    leaving = asyncio.ensure_future(
        replace(other, "people", group("team-a"), group("team-b"), person("kim", "team-b"))
    )
    await soon(partial(is_lock_awaited, other))
    assert not leaving.done()
    await first.end()
    await leaving
    with pytest.raises(NotAllowedError):
        await push_ours(other, *OURS)
    assert await types_of(other, "ours") == {"library"}


@pytest.mark.parametrize(
    "people",
    [
        [group("team-a"), group("team-b"), person("kim", "team-b")],
        [group("team-a"), group("team-b")],
    ],
    ids=["to another group", "for good"],
)
async def test_a_push_that_begins_while_its_member_leaves_is_refused(
    other: Database, base: Database, people: list[dict[str, Any]]
) -> None:
    first = Push(base, END)
    await first.reach(replace(first.database, "people", *people, write=first.write))
    second = asyncio.ensure_future(push_ours(other, *OURS, type="library"))
    await soon(partial(is_lock_awaited, other))
    await first.end()
    with pytest.raises(NotAllowedError):
        await second
    assert await types_of(other, "ours") == {"service"}


async def test_a_member_whom_a_group_names_loses_it_with_the_group(
    other: Database, base: Database
) -> None:
    named = group("team-a")
    named["spec"]["members"] = ["kim"]
    await replace(other, "people", named, person("kim"))
    first = Push(base, END)
    emptied = [group("team-a"), person("kim")]
    await first.reach(replace(first.database, "people", *emptied, write=first.write))
    second = asyncio.ensure_future(push_ours(other, *OURS, type="library"))
    await soon(partial(is_lock_awaited, other))
    await first.end()
    with pytest.raises(NotAllowedError):
        await second


@pytest.mark.parametrize("name", ["new", "one"])
async def test_what_becomes_of_others_meanwhile_is_not_removed_by_a_member(
    other: Database, base: Database, name: str
) -> None:
    first = Push(base, END)
    foreign = component(name, owner="team-b")
    await first.reach(put(first.database, "ours", foreign, write=first.write))
    second = asyncio.ensure_future(push_ours(other))
    await soon(partial(is_lock_awaited, other))
    await first.end()
    with pytest.raises(NotAllowedError):
        await second
    assert await names_of(other, "ours") == {*OURS, name}


async def test_nothing_of_others_comes_into_a_set_that_a_member_is_pushing(
    other: Database, base: Database
) -> None:
    first = Push(base, END)
    await first.reach(push_ours(first.database, write=first.write))
    foreign = component("new", owner="team-b")
    second = asyncio.ensure_future(put(other, "ours", foreign))
    await soon(partial(is_lock_awaited, other))
    assert (await first.end()).plan.changes["removed"] == len(OURS)
    await second
    with pytest.raises(NotAllowedError):
        await push_ours(other)
