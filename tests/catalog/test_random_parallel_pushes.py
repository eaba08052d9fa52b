"""Random writes of several people at once: what comes of them is what one after the other would."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from factbook.catalog.sets import Annotator, Prepared, PushRules, prepare_items
from factbook.catalog.store import stored_sets
from factbook.catalog.store.diff import Guards
from factbook.catalog.store.stored_sets import Actor
from factbook.errors import ConflictError, UnavailableError
from factbook.storage import Database
from factbook.storage.database_url import open_database
from tests.catalog.derived import order, verify
from tests.service import NOON, component
from tests.soak import SOAK, seeds

RULES = PushRules(Annotator("factbook", "factbook"))
ACTOR = Actor("user:default/tester", NOON)
SETS = 5
NAMES = 8
PEOPLE = 8
STEPS = 40 if SOAK else 6
SEEDS = seeds(1, soak=40)


@pytest.fixture
async def databases(database: Database, database_url: str) -> AsyncIterator[Sequence[Database]]:
    """One database, as two processes open it."""
    other = await open_database(database_url, connections=6)
    yield database, other
    await other.close()


class Person:
    """Writes at random, and notes what each revision of a set was."""

    def __init__(self, database: Database, seed: str, revisions: dict[str, dict[int, Any]]) -> None:
        self._database = database
        self._chance = random.Random(seed)
        self._revisions = revisions
        self.failed = 0

    async def replace(self, name: str, names: Sequence[str], *, take: bool = False) -> None:
        """Make a set this, if no other owner forbids it."""
        items = self._prepared(name, names)
        guards = Guards(take=take)
        try:
            result = await stored_sets.replace_set(
                self._database, name, items, ACTOR, guards, kept=1_000
            )
        except ConflictError:
            return
        except UnavailableError:  # it may be written or not
            self.failed += 1
            return
        assert result.written is not None
        self._revisions.setdefault(name, {})[result.written.revision] = {
            item.ref: item.etag for item in items
        }

    async def of_one_set(self, number: int) -> None:
        """Replace a set, whose names no other set has, by what points into every set."""
        chosen = self._chance.sample(range(NAMES), self._chance.randint(0, NAMES))
        await self.replace(f"set-{number}", [f"s{number}-{one}" for one in chosen])

    async def of_any(self) -> None:
        """Replace a set by names that others have, too, or remove one of them."""
        name = f"set-{self._chance.randrange(SETS)}"
        chosen = self._chance.sample(range(NAMES), self._chance.randint(0, 4))
        if self._chance.random() < 0.7:
            taken = self._chance.random() < 0.6
            return await self.replace(name, [f"s0-{one}" for one in chosen], take=taken)
        ref = f"component:default/s0-{self._chance.randrange(NAMES)}"
        found = await stored_sets.read_item_by_ref(self._database, ref)
        if found is not None:
            await stored_sets.remove_entity(self._database, found.uid, ACTOR, kept=1_000)
        return None

    def _prepared(self, name: str, names: Sequence[str]) -> list[Prepared]:
        raw = [msgspec.Raw(msgspec.json.encode(self._entity(one))) for one in names]
        return list(prepare_items(raw, name, RULES).items)

    def _entity(self, name: str) -> dict[str, Any]:
        chance = self._chance
        targets = {
            f"component:default/s{chance.randrange(SETS)}-{chance.randrange(NAMES)}"
            for _ in range(chance.randint(0, 3))
        } - {f"component:default/{name}"}
        new = {f"key-{chance.randrange(40)}": "value"}
        return component(name, annotations=new, dependsOn=sorted(targets))


@pytest.mark.slow
@pytest.mark.spec("push.sets-at-the-same-time")
@pytest.mark.parametrize("seed", SEEDS)
async def test_random_pushes_of_different_sets_lose_nothing_and_never_wait_in_a_circle(
    databases: Sequence[Database], seed: int
) -> None:
    revisions: dict[str, dict[int, Any]] = {}

    async def live(number: int) -> None:
        person = Person(databases[number % 2], f"{seed} {number}", revisions)
        for step in range(STEPS):
            await person.of_one_set((number + step) % SETS)

    with capture_logs() as logs:
        await asyncio.gather(*(live(number) for number in range(PEOPLE)))
    assert [one for one in logs if one["event"] == "write.again"] == []
    entities = await verify(databases[0])
    for name, found in revisions.items():
        last = found[max(found)]
        assert {row.ref: row.etag for row in entities if row.set == name} == last
        assert sorted(await order(databases[0], name)) == sorted(last)


@pytest.mark.slow
@pytest.mark.spec("push.sets-at-the-same-time")
@pytest.mark.parametrize("seed", SEEDS)
async def test_random_writes_about_the_same_references_leave_nothing_half_done(
    databases: Sequence[Database], seed: int
) -> None:
    async def live(number: int) -> None:
        person = Person(databases[number % 2], f"{seed} {number}", {})
        for _ in range(STEPS):
            await person.of_any()

    await asyncio.gather(*(live(number) for number in range(PEOPLE)))
    entities = await verify(databases[0])
    removed = {row[0] for row in await databases[0].all("SELECT ref FROM removed_entities")}
    assert not removed & {row.ref for row in entities}


@pytest.mark.slow
@pytest.mark.spec("faults.kills")
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
async def test_pushes_whose_connections_are_ended_amid_others_leave_nothing_half_done(
    databases: Sequence[Database],
) -> None:
    people = [Person(databases[number % 2], f"killed {number}", {}) for number in range(PEOPLE)]

    async def live(number: int) -> None:
        for step in range(STEPS):
            await people[number].of_one_set((number + step) % SETS)

    async def kill() -> None:
        chance = random.Random(1)
        while True:
            await databases[0].all(_END_ONE, (chance.random(),))

    killing = asyncio.create_task(kill())
    await asyncio.gather(*(live(number) for number in range(PEOPLE)))
    killing.cancel()
    await asyncio.wait([killing])
    await people[0].replace("set-1", ["s1-1"])
    await verify(databases[0])
    assert sum(person.failed for person in people) > 0


# Of those who have a set or references for themselves now and then one.
_END_ONE = """
SELECT pg_terminate_backend(pid) FROM (
    SELECT DISTINCT pid FROM pg_locks
    WHERE locktype = 'advisory' AND mode = 'ExclusiveLock' AND granted AND ? < 0.05
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    LIMIT 1
) AS one
"""
