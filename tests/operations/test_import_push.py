"""Snapshots pushed to a server: what readings may do to a set that nothing locks between."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

import httpx2
import pytest

from factbook.catalog.sets import PushRules
from factbook.client import Client
from factbook.importers.snapshot import ImportedItem, ReadingProblem, Snapshot, SnapshotPart
from factbook.operations import imports
from factbook.operations.imports import PushedPart, push_snapshot
from factbook.settings import Settings
from tests.cli.bridge import Bridge
from tests.importers.reading import item, part
from tests.service import Service, component
from tests.soak import seeds

SET = "fake.all"
RULES = PushRules.of(Settings())
FAILED = ReadingProblem("", "answered 429")

T = TypeVar("T")
Meanwhile = Callable[[], Awaitable[object]]


class Meddled(Bridge):
    """The way to a service; before the next request with this method, something else is done."""

    def __init__(self, service: Service) -> None:
        super().__init__(service)
        self.meanwhile: list[tuple[str, Meanwhile]] = []

    async def _handle(self, request: httpx2.Request) -> httpx2.Response:
        waiting, self.meanwhile = self.meanwhile, []
        for method, done in waiting:
            if method == request.method:
                await done()
            else:
                self.meanwhile.append((method, done))
        return await super()._handle(request)


class SnapshotPushes:
    """A service, and snapshots that are pushed to it."""

    def __init__(self, service: Service, token: str) -> None:
        self.service = service
        self.token = token
        self.transport = Meddled(service)

    async def push(
        self,
        *items: ImportedItem,
        remove: bool = False,
        dry_run: bool = False,
        complete: bool = True,
    ) -> PushedPart:
        """Push a snapshot with these items."""
        return await self.push_part(part(*items, complete=complete), remove=remove, dry_run=dry_run)

    async def push_part(
        self, pushed: SnapshotPart, *, remove: bool = False, dry_run: bool = False
    ) -> PushedPart:
        def work(client: Client) -> PushedPart:
            given = Snapshot((pushed,))
            [found] = push_snapshot(client, "fake", given, RULES, dry_run=dry_run, remove=remove)
            return found

        return await self._done(work)

    async def names(self, set_name: str = SET) -> list[str]:
        """The names in a set, sorted."""

        def work(client: Client) -> list[str]:
            if set_name not in [one.id for one in client.sets()]:
                return []
            return sorted(one.entity_ref.partition("/")[2] for one in client.set(set_name).items)

        return await self._done(work)

    async def _done(self, work: Callable[[Client], T]) -> T:
        def done() -> T:
            with Client("http://127.0.0.1:8000", self.token, transport=self.transport) as client:
                return work(client)

        return await asyncio.to_thread(done)


@pytest.fixture
async def pushes(service: Service) -> SnapshotPushes:
    """Pushes with the permissions that the guide names."""
    token = await service.token("catalog.entity.read", "catalog.entity-set.write")
    return SnapshotPushes(service, token)


def items(*numbers: int) -> list[ImportedItem]:
    return [item(f"c{number:03}") for number in numbers]


async def test_a_complete_reading_becomes_the_content_of_the_set(pushes: SnapshotPushes) -> None:
    await pushes.push(*items(1, 2))
    result = await pushes.push(*items(2, 3))
    assert await pushes.names() == ["c002", "c003"]
    assert (result.set, result.changes.added, result.changes.removed) == (SET, 1, 1)


async def test_the_same_reading_again_makes_no_revision(pushes: SnapshotPushes) -> None:
    await pushes.push(*items(1, 2))
    result = await pushes.push(*items(2, 1))
    assert (result.changes.unchanged, result.changes.updated) == (2, 0)


async def test_a_plan_writes_nothing(pushes: SnapshotPushes) -> None:
    result = await pushes.push(*items(1, 2), dry_run=True)
    assert (await pushes.names(), len(result.difference)) == ([], 2)


async def test_an_incomplete_reading_adds_and_removes_nothing(pushes: SnapshotPushes) -> None:
    await pushes.push(*items(1, 2))
    result = await pushes.push(*items(3), complete=False)
    assert (await pushes.names(), result.complete) == (["c001", "c002", "c003"], False)


async def test_what_came_from_an_origin_that_cannot_be_read_stays(pushes: SnapshotPushes) -> None:
    await pushes.push(*items(1, 2))
    await pushes.push_part(part(*items(2), unread=["repository c001"]))
    assert await pushes.names() == ["c001", "c002"]


@pytest.mark.parametrize("left", [[], [0]])
async def test_too_many_removals_are_held_until_somebody_asks_for_them(
    pushes: SnapshotPushes, left: list[int]
) -> None:
    await pushes.push(*items(*range(30)))
    result = await pushes.push(*items(*left))
    assert (len(await pushes.names()), len(result.held)) == (30, 30 - len(left))
    assert result.reason
    await pushes.push(*items(*left), remove=True)
    assert len(await pushes.names()) == len(left)
    await pushes.push(*items(*left, 7, 8))
    assert await pushes.names() == [*(f"c{number:03}" for number in left), "c007", "c008"]


async def test_an_entity_of_another_set_stays_there_and_its_owner_is_named(
    pushes: SnapshotPushes,
) -> None:
    await pushes.service.push("payments", component("c001"))
    result = await pushes.push(*items(1, 2))
    assert (await pushes.names(), await pushes.names("payments")) == (["c002"], ["c001"])
    [problem] = result.problems
    assert problem.message == (
        "component:default/c001 is owned by payments, and stays as it is there"
    )


async def test_an_entity_that_is_not_valid_is_a_problem_and_loses_nothing(
    pushes: SnapshotPushes,
) -> None:
    await pushes.push(*items(1, 2))
    broken = item("c001", entity=component("c001") | {"kind": "Not a kind"})
    result = await pushes.push(broken, *items(2))
    assert (await pushes.names(), len(result.problems)) == (["c001", "c002"], 1)


@pytest.mark.parametrize("method", ["GET", "PUT"])
async def test_what_is_pushed_meanwhile_counts(pushes: SnapshotPushes, method: str) -> None:
    await pushes.push(*items(1, 2))

    async def meanwhile() -> None:
        await pushes.service.push(SET, component("c001"), component("c009"))

    pushes.transport.meanwhile.append((method, meanwhile))
    await pushes.push(*items(1, 3), complete=False)
    assert await pushes.names() == ["c001", "c003", "c009"]


async def test_pages_of_two_revisions_are_read_again(
    pushes: SnapshotPushes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imports, "_PAGE", 2)
    await pushes.push(*items(1, 2, 3, 4, 5))

    async def second_page() -> None:
        pushes.transport.meanwhile.append(("GET", change))

    async def change() -> None:
        given = [component(f"c{number:03}") for number in (1, 2, 3, 4, 5, 6)]
        await pushes.service.push(SET, *given)

    pushes.transport.meanwhile.append(("GET", second_page))
    await pushes.push(*items(7), complete=False)
    assert await pushes.names() == [f"c{number:03}" for number in range(1, 8)]


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(1, soak=3))
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_no_bad_reading_removes_what_is_still_there_and_a_good_one_converges(
    pushes: SnapshotPushes, seed: int
) -> None:
    dice = random.Random(seed)
    there = set(range(40))
    await pushes.push(*items(*there))
    for number in range(100, 112):
        known = set(await pushes.names())
        there -= set(dice.sample(sorted(there), 2))
        there.add(number)
        still = {f"c{one:03}" for one in there}
        some = [one for one in there if dice.random() < 0.6]
        match dice.randrange(3):
            case 0:
                await pushes.push(*items(*some), complete=False)
            case 1:
                await pushes.push()
            case _:
                unread = [f"repository c{one:03}" for one in there - set(some)]
                await pushes.push_part(part(*items(*some), unread=unread, problems=[FAILED]))
        assert known & still <= set(await pushes.names())
        if dice.random() < 0.4:
            await pushes.push(*items(*there), remove=True)
            assert set(await pushes.names()) == still
    await pushes.push(*items(*there), remove=True)
    assert set(await pushes.names()) == {f"c{one:03}" for one in there}
