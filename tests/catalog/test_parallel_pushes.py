"""Pushes at the same time on PostgreSQL: of different sets, and where their entities meet."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

import msgspec
import pytest

from factbook.catalog.sets import Annotator, PushRules, prepare_item, prepare_items
from factbook.catalog.store import stored_entities, stored_sets
from factbook.catalog.store.diff import Guards
from factbook.catalog.store.stored_sets import Actor, PushResult
from factbook.errors import ConflictError, UnavailableError
from factbook.storage import Database, Transaction
from factbook.storage.database import observe_database
from factbook.storage.database_url import open_database
from tests.catalog.paused import Pause
from tests.service import NOON, component
from tests.storage.waiting_locks import is_lock_awaited
from tests.waiting import soon

RULES = PushRules(Annotator("factbook", "factbook"))
ACTOR = Actor("user:default/tester", NOON)

pytestmark = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)

# The last before those that write what other pushes may write, too.
LAST = "INSERT INTO events"
# One more, by which a push has done everything but to commit.
END = "SELECT 'the end'"


class Push:
    """A push that is stopped before a statement."""

    def __init__(self, database: Database, before: str) -> None:
        self._pause = Pause(before)
        self.database = observe_database(database, self._pause)
        self._task: asyncio.Task[Any] | None = None

    async def reach(self, work: Awaitable[Any]) -> None:
        """Begin, and return when it has stopped."""
        self._task = asyncio.ensure_future(work)
        reached = asyncio.ensure_future(self._pause.reached.wait())
        await asyncio.wait([reached, self._task], return_when=asyncio.FIRST_COMPLETED)
        assert reached.done(), self._task

    async def write(self, function: Callable[[Transaction], PushResult]) -> PushResult:
        """Run the function, and one statement more."""

        def work(transaction: Transaction) -> PushResult:
            result = function(transaction)
            transaction.one(END)
            return result

        return await self.database.write(work)

    def stop(self) -> None:
        """Stop here, in the thread that writes."""
        self._pause.stop()

    async def end(self) -> Any:
        """Go on, and return its result."""
        self._pause.end()
        assert self._task is not None
        return await self._task


@pytest.fixture
async def other(database: Database, database_url: str) -> AsyncIterator[Database]:
    """The database of another process."""
    other = await open_database(database_url, connections=6)
    yield other
    await other.close()


@pytest.fixture
async def paused(database: Database, database_url: str) -> AsyncIterator[Callable[..., Push]]:
    """Makes pushes that stop, on a connection of their own."""
    base = await open_database(database_url, connections=6)
    yield lambda before=LAST: Push(base, before)
    await base.close()


async def replace(
    database: Database, name: str, *entities: dict[str, Any], take: bool = False, write: Any = None
) -> PushResult:
    raw = [msgspec.Raw(json.dumps(entity).encode()) for entity in entities]
    items = prepare_items(raw, name, RULES).items
    guards = Guards(take=take)
    return await stored_sets.replace_set(database, name, items, ACTOR, guards, kept=5, write=write)


async def put(
    database: Database, name: str | None, entity: dict[str, Any], write: Any = None
) -> PushResult:
    [item] = prepare_item(msgspec.Raw(json.dumps(entity).encode()), name, RULES).items
    guards = Guards()
    return await stored_sets.put_entity(
        database, name, item, ACTOR, guards, RULES, kept=5, write=write
    )


def of(name: str, *targets: str, **spec: Any) -> dict[str, Any]:
    """A component that depends on others."""
    return component(name, dependsOn=[f"component:default/{one}" for one in targets], **spec)


async def uid(database: Database, name: str) -> str:
    found = await stored_entities.read_entity(database, f"component:default/{name}")
    assert found is not None
    return found.uid


async def met(database: Database, name: str) -> set[str]:
    """What a component depends on, marked by >, and what depends on it, marked by <."""
    found = await stored_entities.read_entity(database, f"component:default/{name}")
    assert found is not None
    marks = {"dependsOn": ">", "dependencyOf": "<"}
    return {
        marks[each["type"]] + each["targetRef"].rpartition("/")[2]
        for each in json.loads(found.relations)
        if each["type"] in marks
    }


@pytest.mark.spec("push.sets-at-the-same-time")
async def test_a_push_waits_for_none_of_another_set(
    other: Database, paused: Callable[..., Push]
) -> None:
    first = paused()
    new = {"labels": {"never-seen": "before"}}
    await first.reach(replace(first.database, "one", of("a") | {"metadata": {"name": "a"} | new}))
    await replace(other, "two", of("b") | {"metadata": {"name": "b"} | new})
    await put(other, None, of("c", "b"))
    assert await stored_sets.remove_entity(other, await uid(other, "c"), ACTOR, kept=5)
    await first.end()
    assert {one.id for one in await stored_sets.list_sets(other)} == {"one", "two"}
    ids = await other.all("SELECT id FROM entities UNION ALL SELECT id FROM removed_entities")
    assert len(set(ids)) == 3


@pytest.mark.spec("catalog.relations-in-the-push-transaction")
async def test_no_edge_is_lost_to_an_entity_that_another_push_is_just_adding(
    other: Database, paused: Callable[..., Push]
) -> None:
    first = paused()
    await first.reach(replace(first.database, "one", of("a", "b")))
    await replace(other, "two", of("b", "a"))
    await first.end()
    assert await met(other, "a") == {">b", "<b"}
    assert await met(other, "b") == {">a", "<a"}


@pytest.mark.spec("catalog.relations-in-the-push-transaction")
async def test_pushes_whose_entities_point_at_each_other_both_succeed_whoever_is_first(
    other: Database, paused: Callable[..., Push]
) -> None:
    await replace(other, "one", of("a"))
    await replace(other, "two", of("b"))
    first, second = paused(), paused()
    await first.reach(replace(first.database, "one", of("a", "b")))
    await second.reach(replace(second.database, "two", of("b", "a")))
    ended = asyncio.ensure_future(first.end())
    assert (await second.end()).written.revision == 2
    assert (await ended).written.revision == 2
    assert await met(other, "a") == {">b", "<b"}
    assert await met(other, "b") == {">a", "<a"}


async def test_two_pushes_that_point_at_one_entity_of_a_third_set_both_show_there(
    other: Database, paused: Callable[..., Push]
) -> None:
    await replace(other, "three", of("hub"))
    first = paused()
    await first.reach(replace(first.database, "one", of("a", "hub", "missing")))
    await replace(other, "two", of("b", "hub", "missing"))
    await replace(other, "three", of("hub", "a"), of("missing"))
    await first.end()
    assert await met(other, "hub") == {"<a", "<b", ">a"}
    assert await met(other, "missing") == {"<a", "<b"}
    assert await met(other, "a") == {">hub", ">missing", "<hub"}


@pytest.mark.spec("catalog.relations-in-the-push-transaction")
@pytest.mark.parametrize("others", [[], ["hub"]])
async def test_a_push_that_meets_another_one_about_to_commit_waits_and_sees_its_edges(
    other: Database, paused: Callable[..., Push], others: list[str]
) -> None:
    await replace(other, "three", of("hub"))
    first = paused(END)
    await first.reach(replace(first.database, "one", of("a", "hub", "new"), write=first.write))
    second = asyncio.ensure_future(replace(other, "two", of("b", "hub"), of("new", *others)))
    await soon(partial(is_lock_awaited, other))
    await first.end()
    await second
    new = {"<new"} if "hub" in others else set()
    assert await met(other, "hub") == {"<a", "<b"} | new
    assert "<a" in await met(other, "new")


async def test_an_entity_that_goes_while_another_push_points_at_it_comes_back_with_that_edge(
    other: Database, paused: Callable[..., Push]
) -> None:
    await replace(other, "two", of("b"))
    first = paused()
    await first.reach(replace(first.database, "one", of("a", "b")))
    await replace(other, "two")
    await first.end()
    await replace(other, "two", of("b"))
    assert await met(other, "b") == {"<a"}


async def test_an_edge_that_goes_while_another_push_adds_its_end_is_shown_nowhere(
    other: Database, paused: Callable[..., Push]
) -> None:
    await replace(other, "two", of("b", "a"))
    first = paused()
    await first.reach(replace(first.database, "one", of("a"), of("c", "a")))
    await replace(other, "two", of("b"))
    await first.end()
    assert await met(other, "a") == {"<c"}


@pytest.mark.spec("conflict.writes-nothing")
async def test_of_two_sets_that_add_one_reference_the_second_is_refused_when_the_first_is_stored(
    other: Database, paused: Callable[..., Push]
) -> None:
    first = paused()
    await first.reach(replace(first.database, "one", of("a"), of("z")))
    second = asyncio.ensure_future(replace(other, "two", of("z"), of("b"), of("a")))
    await first.end()
    with pytest.raises(ConflictError) as refused:
        await second
    assert refused.value.details["conflicts"] == [
        {"entityRef": f"component:default/{name}", "owner": "one"} for name in "az"
    ]
    assert await stored_entities.read_entity(other, "component:default/b") is None


async def test_a_reference_that_another_push_adds_and_does_not_keep_is_free(
    other: Database, paused: Callable[..., Push]
) -> None:
    first = paused()

    def failing(function: Callable[[Transaction], PushResult]) -> Awaitable[PushResult]:
        def work(transaction: Transaction) -> PushResult:
            function(transaction)
            raise LookupError

        return first.database.write(work)

    await first.reach(replace(first.database, "one", of("a"), write=failing))
    second = asyncio.ensure_future(replace(other, "two", of("a")))
    with pytest.raises(LookupError):
        await first.end()
    assert (await second).written is not None


async def test_an_entity_is_taken_from_a_set_only_between_two_of_its_pushes(
    other: Database, paused: Callable[..., Push]
) -> None:
    await replace(other, "one", of("a"), of("b"))
    first = paused()
    await first.reach(replace(first.database, "one", of("a", "c"), of("b")))
    taking = asyncio.ensure_future(replace(other, "two", of("a", "d"), take=True))
    assert (await first.end()).written.revision == 2
    assert (await taking).plan.changes["added"] == 1
    assert [one[:3] for one in await stored_sets.list_sets(other)] == [("one", 1, 3), ("two", 1, 1)]
    assert await met(other, "a") == {">d"}


async def test_an_entity_that_others_added_and_removed_meanwhile_keeps_its_id(
    other: Database, paused: Callable[..., Push]
) -> None:
    first = paused("INSERT INTO entities")
    await first.reach(replace(first.database, "one", of("a")))
    await put(other, None, of("a"))
    known = await uid(other, "a")
    assert await stored_sets.remove_entity(other, known, ACTOR, kept=5)
    await first.end()
    assert await uid(other, "a") == known


@pytest.mark.spec("faults.kills")
async def test_a_push_whose_connection_is_ended_lets_go_of_its_locks(
    other: Database, paused: Callable[..., Push]
) -> None:
    await replace(other, "two", of("b"))
    first = paused()
    await first.reach(replace(first.database, "one", of("a", "b")))
    await other.all(
        "SELECT pg_terminate_backend(pid) FROM pg_locks "
        "WHERE locktype = 'advisory' AND mode = 'ExclusiveLock' "
        "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    )
    await replace(other, "one", of("c", "b"))
    with pytest.raises(UnavailableError):
        await first.end()
    assert await met(other, "b") == {"<c"}


@pytest.mark.slow
async def test_a_push_that_points_into_very_many_sets_is_alone(
    other: Database, paused: Callable[..., Push]
) -> None:
    names = [f"n{number}" for number in range(260)]
    await asyncio.gather(*(replace(other, name, of(name)) for name in names))
    await replace(other, "hub", of("hub", *names))
    assert await met(other, "n0") == {"<hub"}
    assert await met(other, "hub") == {f">{name}" for name in names}


async def test_a_release_before_this_one_and_this_one_wait_for_each_other(
    other: Database, paused: Callable[..., Push]
) -> None:
    order: list[str] = []
    first = paused()

    def old(transaction: Transaction) -> None:
        transaction.lock("catalog")
        order.append("old")

    await first.reach(replace(first.database, "one", of("a")))
    waiting = asyncio.ensure_future(other.write(old))
    last = asyncio.ensure_future(replace(other, "two", of("b")))
    order.append("new")
    await first.end()
    await waiting
    await last
    assert order == ["new", "old"]
