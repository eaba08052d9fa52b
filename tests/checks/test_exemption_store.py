"""The store of exemptions: requests, decisions at the same moment, and ends that pass."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from factbook.checks.definitions import exemption_store
from factbook.checks.definitions.exemption_store import (
    EntityExemptions,
    Exemption,
    ExemptionActor,
    ExemptionFilter,
    ExemptionRequest,
)
from factbook.checks.definitions.scorecard import ExemptionRules
from factbook.clock import DAY
from factbook.errors import (
    ConflictError,
    FactbookError,
    InvalidItemsError,
    NotAllowedError,
    NotFoundError,
)
from factbook.events.store import EventFilter, page_events
from factbook.storage import Database, Transaction
from tests.facts.test_store import add_entities
from tests.service import NOON

pytestmark = pytest.mark.both_databases

A, B = "component:default/a", "component:default/b"
ANN = ExemptionActor("user:default/ann", may_decide=True)
BOB = ExemptionActor("user:default/bob", may_decide=True)
EVE = ExemptionActor("user:default/eve", groups=frozenset({"group:default/y"}))


@pytest.fixture(autouse=True)
async def entities(database: Database) -> None:
    await add_entities(database, A, B)


async def asked(database: Database, now: int = NOON, **members: Any) -> Exemption:
    wanted = ExemptionRequest("c1", None, A, "Frozen", NOON, NOON + 30 * DAY)._replace(**members)
    rules = [ExemptionRules(permanent=wanted.scorecard is not None)]
    return await database.write(
        lambda tx: exemption_store.store_request(tx, wanted, rules, ANN, now)
    )


async def decided(database: Database, one: Exemption, what: Any, now: int = NOON) -> Exemption:
    return await database.write(
        lambda tx: exemption_store.store_decision(
            tx, one.id, what, [], BOB, now, comment="As agreed"
        )
    )


async def holding(database: Database, now: int = NOON) -> dict[int, EntityExemptions]:
    return await database.write(lambda tx: exemption_store.list_holding_exemptions(tx, [1, 2], now))


async def told(database: Database) -> list[tuple[str, str]]:
    page = await page_events(database, None, EventFilter(entity=A), 100)
    return [(one.type, one.data["exemption"]["state"]) for one in page.events]


async def test_a_request_exempts_nobody_before_it_is_approved(database: Database) -> None:
    made = await asked(database)
    assert made.state == "requested"
    assert await holding(database) == {}
    approved = await decided(database, made, "approve")
    assert await exemption_store.get_exemption(database, made.id) == approved
    assert (approved.decided_by, approved.comment) == (BOB.ref, "As agreed")
    assert await holding(database) == {1: EntityExemptions(frozenset({"c1"}))}
    assert await holding(database, NOON + 30 * DAY) == {}
    assert await told(database) == [
        ("exemption.requested", "requested"),
        ("exemption.decided", "approved"),
    ]


async def test_an_exemption_that_begins_later_touches_its_entity_then(database: Database) -> None:
    made = await asked(database, check=None, scorecard="s", starts_at=NOON + DAY, until=None)
    await decided(database, made, "approve")
    assert await holding(database) == {}

    def begin(transaction: Transaction, now: int) -> tuple[int, set[int]]:
        found = exemption_store.begin_exemptions(transaction, now)
        return len(found), transaction.touched.get(exemption_store.EXEMPTIONS_TOPIC, set())

    for now, wanted in ((NOON, (0, set())), (NOON + DAY, (1, {1})), (NOON + DAY, (0, set()))):
        assert await database.write(partial(begin, now=now)) == wanted
    found = await holding(database, NOON + DAY)
    assert found == {1: EntityExemptions(scorecards=frozenset({"s"}))}


async def test_what_has_begun_holds_for_a_process_whose_clock_is_behind(
    database: Database,
) -> None:
    later = NOON + DAY
    made = await asked(database, starts_at=later)
    await decided(database, made, "approve")
    await asked(database, check="c2")
    assert await holding(database, later - 1) == {}
    await database.write(lambda tx: exemption_store.begin_exemptions(tx, later))
    assert await holding(database, later - 1) == {1: EntityExemptions(frozenset({"c1"}))}
    assert await holding(database, NOON + 30 * DAY) == {}
    await decided(database, made, "revoke", later - 1)
    assert await holding(database, later - 1) == {}


async def test_one_of_two_decisions_at_the_same_moment_counts(database: Database) -> None:
    made = await asked(database)
    found = await asyncio.gather(
        decided(database, made, "approve"), decided(database, made, "deny"), return_exceptions=True
    )
    good = [one for one in found if isinstance(one, Exemption)]
    bad = [one for one in found if isinstance(one, ConflictError)]
    assert (len(good), len(bad)) == (1, 1)
    assert (await exemption_store.get_exemption(database, made.id)).state == good[0].state
    assert len(await told(database)) == 2


async def test_one_of_two_requests_of_the_same_at_a_moment_is_stored(database: Database) -> None:
    found = await asyncio.gather(asked(database), asked(database), return_exceptions=True)
    assert sorted(type(one).__name__ for one in found) == ["ConflictError", "Exemption"]
    await asked(database, check="c2")
    await asked(database, entity=B)


async def test_a_denied_request_may_be_asked_again(database: Database) -> None:
    await decided(database, await asked(database), "deny")
    again = await asked(database)
    assert again.state == "requested"


async def test_what_is_refused_leaves_nothing_and_tells_nothing(database: Database) -> None:
    refused: list[tuple[type[FactbookError], Callable[[], Any]]] = [
        (NotFoundError, lambda: asked(database, entity="component:default/none")),
        (InvalidItemsError, lambda: asked(database, until=None)),
    ]
    for error, attempt in refused:
        with pytest.raises(error):
            await attempt()
    assert await exemption_store.list_exemptions(database, ExemptionFilter(), 10) == []
    made = await asked(database)
    for work in (
        lambda tx: exemption_store.store_decision(tx, made.id, "approve", [], ANN, NOON),
        lambda tx: exemption_store.store_decision(
            tx, made.id, "deny", [ExemptionRules(approvers=("group:default/x",))], EVE, NOON
        ),
    ):
        with pytest.raises(NotAllowedError):
            await database.write(work)
    with pytest.raises(NotFoundError):
        await database.write(
            lambda tx: exemption_store.store_decision(tx, "none", "deny", [], BOB, NOON)
        )
    assert await told(database) == [("exemption.requested", "requested")]


async def test_ends_pass_for_exemptions_and_requests_alike(database: Database) -> None:
    first = await asked(database, until=NOON + DAY)
    await decided(database, first, "approve")
    second = await asked(database, check="c2", until=NOON + DAY)
    kept = await asked(database, check="c3", until=NOON + DAY + 1)

    def expire(transaction: Transaction) -> list[str]:
        found = [one.id for one in exemption_store.expire_exemptions(transaction, NOON + DAY)]
        touched = transaction.touched.get(exemption_store.EXEMPTIONS_TOPIC, set())
        assert touched == ({1} if found else set())
        return found

    assert sorted(await database.write(expire)) == sorted([first.id, second.id])
    assert await database.write(expire) == []
    states = {
        one.id: one.state
        for one in await exemption_store.list_exemptions(database, ExemptionFilter(), 10)
    }
    assert states == {first.id: "expired", second.id: "expired", kept.id: "requested"}
    assert [type_ for type_, _ in await told(database)].count("exemption.expired") == 2
    with pytest.raises(ConflictError):
        await decided(database, second, "approve", NOON + DAY)


async def test_processes_that_expire_together_tell_of_each_exemption_once(
    database: Database,
) -> None:
    for number in range(5):
        await asked(database, check=f"c{number}", until=NOON + DAY)
    found = await asyncio.gather(
        *(
            database.write(lambda tx: exemption_store.expire_exemptions(tx, NOON + DAY))
            for _ in range(3)
        )
    )
    assert sum(map(len, found)) == 5
    assert [type_ for type_, _ in await told(database)].count("exemption.expired") == 5


async def test_the_end_of_an_exemption_is_announced_once_a_week_before(
    database: Database,
) -> None:
    made = await asked(database)
    await asked(database, check="c2")  # undecided, so nothing ends
    await decided(database, made, "approve")

    async def announced(now: int) -> int:
        return len(await database.write(lambda tx: exemption_store.announce_endings(tx, now)))

    assert await announced(NOON + 23 * DAY - 1) == 0
    assert await announced(NOON + 23 * DAY) == 1
    assert await announced(NOON + 24 * DAY) == 0
    assert (await told(database))[-1] == ("exemption.expiring", "approved")


async def test_exemptions_are_listed_newest_first_in_pages_and_by_what_is_wanted(
    database: Database,
) -> None:
    made = [await asked(database, NOON + n, check=f"c{n}") for n in range(4)]
    other = await asked(database, NOON + 9, entity=B, check=None, scorecard="s")
    await decided(database, made[0], "approve")
    page = await exemption_store.list_exemptions(database, ExemptionFilter(entity=A), 2)
    assert [one.check for one in page] == ["c3", "c2"]
    place = page[-1].requested_at, page[-1].id
    rest = await exemption_store.list_exemptions(database, ExemptionFilter(entity=A), 9, place)
    assert [one.check for one in rest] == ["c1", "c0"]
    for wanted, found in (
        (ExemptionFilter(state="approved"), made[0].id),
        (ExemptionFilter(scorecard="s"), other.id),
        (ExemptionFilter(check="c2"), made[2].id),
    ):
        assert [one.id for one in await exemption_store.list_exemptions(database, wanted, 9)] == [
            found
        ]


async def test_exemptions_of_what_is_deleted_are_gone(database: Database) -> None:
    await asked(database)
    kept = await asked(database, check=None, scorecard="s")
    await database.write(lambda tx: exemption_store.delete_exemptions(tx, "check", "c1"))
    assert await exemption_store.list_exemptions(database, ExemptionFilter(), 9) == [kept]
    await database.write(lambda tx: exemption_store.delete_exemptions(tx, "scorecard", "s"))
    assert await exemption_store.list_exemptions(database, ExemptionFilter(), 9) == []
