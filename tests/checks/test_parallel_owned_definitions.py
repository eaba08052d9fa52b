"""Writes of checks and scorecards by members of their groups, beside others on PostgreSQL."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import pytest

from factbook.catalog.people_trust import PeopleTrust
from factbook.checks.definitions import definition_writes, publications
from factbook.checks.definitions.definition_versions import (
    StagedStore,
    check_store,
    scorecard_store,
)
from factbook.checks.definitions.definition_writes import OwnedStaged
from factbook.checks.results import incremental
from factbook.errors import NotAllowedError
from factbook.storage import Database, Transaction
from factbook.storage.database import ChecksPort
from tests.catalog.test_parallel_pushes import END, Push, replace
from tests.checks.catalog import a_check, leaf
from tests.checks.paused_write import PausedWrite, Work
from tests.checks.scorecards import document
from tests.datasources.test_parallel_owned_sources import ADA, KIM, OURS, THEIRS, leaves
from tests.service import NOON, Time, component
from tests.storage.waiting_locks import is_lock_awaited
from tests.waiting import LONG, soon
from tests.web.scoring import group, person

pytestmark = [
    pytest.mark.parametrize("database_url", ["postgresql"], indirect=True),
    pytest.mark.spec("roles.groups-write-what-they-own"),
]


class CountedRunner:
    """A runner of writes that counts how often their functions are run."""

    def __init__(self, write: Any) -> None:
        self._write = write
        self.count = 0

    def __call__(self, function: Callable[[Transaction], Any], /) -> Any:
        def counted(transaction: Transaction) -> Any:
            self.count += 1
            return function(transaction)

        return self._write(counted)


class OwnedKind(NamedTuple):
    """Checks or scorecards, with one of them."""

    store: StagedStore[Any]
    document: dict[str, Any]

    @property
    def id(self) -> str:
        return str(self.document["id"])

    def draft(self, title: str, owner: str = OURS, actor: str = KIM) -> Work:
        """The work that makes a draft of it."""
        changed = {**self.document, "title": title, "owner": owner}
        return definition_writes.make_replacement(
            self.store, changed, actor, NOON, tags=None, publish=False
        )

    def owned(self, write: Any) -> Any:
        """The runner of a write of it by the member."""
        return OwnedStaged(self.store, self.id, KIM, PeopleTrust(("*",))).guarding(write)

    async def title(self, database: Database) -> str:
        """The title that was written last."""
        stored = await self.store.existing(database, self.id)
        return str(stored.written["title"])


KINDS = {
    "check": OwnedKind(check_store, a_check("c1", leaf("on", "isKnown"))),
    "scorecard": OwnedKind(scorecard_store, document("s1", entries=["other"])),
}
WRITES: dict[str, Callable[[OwnedKind], Work]] = {
    "a draft": lambda kind: kind.draft("Changed"),
    "a publication": lambda kind: definition_writes.make_publication(
        kind.store, kind.id, KIM, NOON, None, permitted=True
    ),
    "a deletion": lambda kind: definition_writes.make_removal(kind.store, kind.id, None),
}
EACH = pytest.mark.parametrize("work", WRITES.values(), ids=WRITES)


def attach_stopped_evaluation(base: Database, push: Push) -> None:
    """Have the checks evaluated by the push, which stops before it evaluates them."""
    incremental.attach_evaluation(base, Time())
    port = base.remembered.of(ChecksPort)
    evaluate = port.evaluation
    assert evaluate is not None

    def stop_first(transaction: Transaction) -> object:
        push.stop()
        return evaluate(transaction)

    port.evaluation = stop_first


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> OwnedKind:
    """Each of both kinds."""
    return KINDS[request.param]


@pytest.fixture
async def other(database: Database, kind: OwnedKind) -> Database:
    """The database of somebody else, with a member of one of two groups, and what it owns."""
    await replace(database, "people", group("team-a"), group("team-b"), person("kim", "team-a"))
    read = a_check("other", leaf("on", "isKnown"))
    for one in (OwnedKind(check_store, read), kind):
        await database.write(one.draft("Made", actor=ADA))
    return database


@pytest.mark.slow
@EACH
async def test_who_leaves_the_group_stays_a_member_until_a_write_that_has_begun_is_over(
    other: Database, base: Database, kind: OwnedKind, work: Callable[[OwnedKind], Work]
) -> None:
    first = Push(base, END)
    await first.reach(kind.owned(first.write)(work(kind)))
    leaving = asyncio.ensure_future(leaves(other))
    await soon(partial(is_lock_awaited, other))
    assert not leaving.done()
    await first.end()
    await leaving
    await other.write(kind.draft("Made", actor=ADA))
    with pytest.raises(NotAllowedError):
        await kind.owned(other.write)(work(kind))


@pytest.mark.slow
@EACH
@pytest.mark.parametrize("evaluates", [False, True], ids=["", "evaluating"])
async def test_a_write_that_begins_while_its_member_leaves_is_refused(
    other: Database,
    base: Database,
    kind: OwnedKind,
    work: Callable[[OwnedKind], Work],
    evaluates: bool,
) -> None:
    """Neither waits for the other, though evaluations share the lock of the definitions."""
    first = Push(base, END)
    if evaluates:
        attach_stopped_evaluation(base, first)
    leaving, writing = CountedRunner(first.write), CountedRunner(other.write)
    await first.reach(leaves(first.database, write=leaving))
    second = asyncio.ensure_future(kind.owned(writing)(work(kind)))
    await soon(partial(is_lock_awaited, other))
    await first.end()
    with pytest.raises(NotAllowedError):
        await second
    assert await kind.title(other) == "Made"
    # A write that cannot have the locks at once begins anew; none is the victim of a circle.
    assert (leaving.count, writing.count) == (1, 2)


@EACH
async def test_a_write_that_begins_while_its_definition_is_handed_over_is_refused(
    other: Database, base: Database, kind: OwnedKind, work: Callable[[OwnedKind], Work]
) -> None:
    first = Push(base, END)
    await first.reach(first.write(kind.draft("Theirs", THEIRS, ADA)))
    second = asyncio.ensure_future(kind.owned(other.write)(work(kind)))
    await soon(partial(is_lock_awaited, other))
    await first.end()
    with pytest.raises(NotAllowedError):
        await second
    assert await kind.title(other) == "Theirs"


async def test_nobody_hands_a_definition_over_that_a_member_is_writing(
    other: Database, base: Database, kind: OwnedKind
) -> None:
    first = Push(base, END)
    await first.reach(kind.owned(first.write)(kind.draft("Changed")))
    second = asyncio.ensure_future(other.write(kind.draft("Theirs", THEIRS, ADA)))
    await soon(partial(is_lock_awaited, other))
    assert not second.done()
    assert (await first.end()).title == "Changed"
    assert (await second).title == "Theirs"


async def test_pushes_of_people_do_not_wait_for_a_member_who_waits_for_a_long_evaluation(
    other: Database, kind: OwnedKind
) -> None:
    incremental.attach_evaluation(other, Time())
    long = PausedWrite(other, publications.share_definitions)
    await long.stops()
    writing = asyncio.ensure_future(kind.owned(other.write)(kind.draft("Changed")))
    await soon(partial(is_lock_awaited, other))
    async with asyncio.timeout(LONG / 2):
        await leaves(other)
        await replace(other, "more", component("api", owner="team-b"))
    assert not writing.done()
    await long.end()
    with pytest.raises(NotAllowedError):
        await writing
