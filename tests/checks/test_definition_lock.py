"""The lock of the definitions: shared by evaluations, held alone by who changes definitions."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from factbook.checks.definitions import (
    definition_versions,
    definition_writes,
    exemption_store,
    publications,
)
from factbook.checks.definitions.definition_versions import check_store, scorecard_store
from factbook.checks.definitions.exemption_store import ExemptionActor, ExemptionRequest
from factbook.checks.definitions.scorecard import ExemptionRules
from factbook.checks.results import evaluator
from factbook.clock import DAY
from factbook.errors import InvalidItemsError
from factbook.storage import Database, Transaction
from tests.checks.catalog import ACTOR, CheckedCatalog, a_check, leaf
from tests.checks.paused_write import PausedWrite, Work
from tests.checks.scorecards import document
from tests.service import NOON, Time
from tests.storage.evaluating import evaluating
from tests.storage.waiting_locks import is_lock_awaited
from tests.waiting import LONG, soon

pytestmark = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)


@pytest.fixture
async def catalog(database: Database) -> CheckedCatalog:
    """Two components, a published check, and a draft of a second version."""
    catalog = CheckedCatalog(database, Time())
    await catalog.push(a="red", b="red")
    await catalog.publish(a_check("c1", leaf("on", "isKnown")))
    await database.write(partial(check_store.put, document=CHECK, actor=ACTOR, now=NOON))
    await database.write(partial(scorecard_store.put, document=SCORECARD, actor=ACTOR, now=NOON))
    return catalog


CHECK = a_check("c1", leaf("open", "isKnown"))
SCORECARD = document(entries=["c1"])
DRAFTS = {check_store: CHECK, scorecard_store: SCORECARD}


def replaced(store: Any) -> Work:
    given = {**DRAFTS[store], "appliesTo": {"kind": "api"}}
    return definition_writes.make_replacement(store, given, ACTOR, NOON, tags=None, publish=True)


def drafted(store: Any) -> Work:
    given = {**DRAFTS[store], "appliesTo": {"kind": "api"}}
    return definition_writes.make_replacement(store, given, ACTOR, NOON, tags=None, publish=False)


def published(store: Any) -> Work:
    return definition_writes.make_publication(
        store, DRAFTS[store]["id"], ACTOR, NOON, None, permitted=True
    )


def deleted(store: Any) -> Work:
    return definition_writes.make_removal(store, DRAFTS[store]["id"], None)


def share(transaction: Transaction) -> None:
    transaction.lock(publications.DEFINITIONS_LOCK, shared=True)


def publishing(catalog: CheckedCatalog) -> asyncio.Future[Any]:
    work = definition_writes.make_publication(check_store, "c1", ACTOR, NOON, None, permitted=True)
    return asyncio.ensure_future(catalog.database.write(work))


def deletion(catalog: CheckedCatalog) -> asyncio.Future[Any]:
    work = definition_writes.make_removal(scorecard_store, "readiness", None)
    return asyncio.ensure_future(catalog.database.write(work))


def putting_into_effect(catalog: CheckedCatalog) -> asyncio.Future[Any]:
    return asyncio.ensure_future(evaluator.finish_publications(catalog.database, catalog.time))


@pytest.mark.slow
@pytest.mark.parametrize("begin", [publishing, deletion, putting_into_effect])
async def test_who_waits_for_the_lock_alone_holds_up_no_write_beside_a_long_one(
    catalog: CheckedCatalog, begin: Callable[[CheckedCatalog], asyncio.Future[Any]]
) -> None:
    database = catalog.database
    if begin is putting_into_effect:
        await publishing(catalog)
    long = PausedWrite(database, share)
    await long.stops()
    waiting = begin(catalog)
    await soon(partial(is_lock_awaited, database))
    async with asyncio.timeout(LONG / 2):
        await catalog.record("b", open=1)
    assert not waiting.done()
    await long.end()
    await waiting


async def test_what_becomes_due_is_looked_for_beside_a_long_write(catalog: CheckedCatalog) -> None:
    long = PausedWrite(catalog.database, share)
    await long.stops()
    async with asyncio.timeout(LONG / 2):
        assert not await evaluator.begin_due_gradings(catalog.database, catalog.time)
    await long.end()


@pytest.mark.parametrize("store", [check_store, scorecard_store])
async def test_a_publication_and_a_batch_never_wait_for_each_other(
    catalog: CheckedCatalog, store: Any
) -> None:
    """A batch notes its progress in rows of what is being published again."""
    database = catalog.database
    await database.write(published(store))

    def note(transaction: Transaction) -> None:
        check_store.note_progress(transaction, ["c1"], 1)
        definition_versions.note_grading_progress(transaction, 1)

    batch = PausedWrite(database, share, note)
    await batch.stops()
    other = PausedWrite(database, replaced(store))
    other.go_on()
    await soon(partial(is_lock_awaited, database))
    await batch.end()
    await other.end()
    assert (batch.runs, other.runs) == (1, 1)


@pytest.mark.slow
@pytest.mark.parametrize("store", [check_store, scorecard_store])
@pytest.mark.parametrize("work", [drafted, replaced, published, deleted])
async def test_changes_of_definitions_never_wait_for_each_other(
    catalog: CheckedCatalog, store: Any, work: Callable[[Any], Work]
) -> None:
    """A publication looks at what reads the check, too, after it has the lock."""
    database, id_ = catalog.database, DRAFTS[store]["id"]
    if store is check_store and work is deleted:
        await database.write(deleted(scorecard_store))

    def change(transaction: Transaction) -> None:
        publications.lock_definitions(transaction)
        check_store.raise_revision(transaction)

    first = PausedWrite(database, change, lambda tx: store.read(tx, id_))
    await first.stops()
    other = PausedWrite(database, work(store))
    other.go_on()
    await soon(partial(is_lock_awaited, database))
    await first.end()
    await other.end()
    assert (first.runs, other.runs) == (1, 1)


@pytest.mark.parametrize(
    "step", [exemption_store.begin_exemptions, exemption_store.expire_exemptions]
)
async def test_exemptions_that_begin_or_end_never_wait_for_a_change_of_definitions(
    catalog: CheckedCatalog, step: Callable[[Transaction, int], Any]
) -> None:
    """The deletion of a check deletes its exemptions, too, after it has the lock."""
    database = catalog.database
    asked = ExemptionRequest("c1", None, "component:default/a", "Frozen", NOON, NOON + DAY)
    ann = ExemptionActor("user:default/ann", may_decide=True)
    rules = [ExemptionRules()]
    one = await database.write(
        lambda tx: exemption_store.store_request(tx, asked, rules, ann, NOON - DAY)
    )
    await database.write(
        evaluating(
            lambda tx: exemption_store.store_decision(
                tx, one.id, "approve", rules, ann, NOON - 1, own=True
            )
        )
    )

    def delete(transaction: Transaction) -> None:
        exemption_store.delete_exemptions(transaction, "check", "c1")

    deleting = PausedWrite(database, publications.lock_definitions, delete)
    await deleting.stops()
    stepping = PausedWrite(database, evaluating(lambda tx: step(tx, NOON + DAY)))
    stepping.go_on()
    await soon(partial(is_lock_awaited, database))
    await deleting.end()
    await stepping.end()
    assert (deleting.runs, stepping.runs) == (1, 1)


async def test_a_draft_cannot_read_a_check_that_is_deleted_meanwhile(
    catalog: CheckedCatalog,
) -> None:
    database = catalog.database
    await database.write(deleted(scorecard_store))
    deleting = PausedWrite(database, deleted(check_store))
    await deleting.stops()
    reader = a_check("c2", leaf("c1", "equal", "pass", source="checks"))
    work = definition_writes.make_replacement(
        check_store, reader, ACTOR, NOON, tags=None, publish=False
    )
    drafting = asyncio.ensure_future(database.write(work))
    await soon(partial(is_lock_awaited, database))
    await deleting.end()
    with pytest.raises(InvalidItemsError):
        await drafting
