"""The store of scorecards: drafts, versions, and slots of their levels."""

import asyncio
from typing import Any

import pytest

from factbook.checks.definitions import publications
from factbook.checks.definitions.definition_versions import check_store, scorecard_store
from factbook.errors import ConflictError, InvalidItemsError, NotFoundError
from factbook.storage import Database, Transaction
from tests.checks.scorecards import ACTOR, add_checks, document, effect, publish, put, stored
from tests.service import NOON

pytestmark = pytest.mark.both_databases


@pytest.fixture(autouse=True)
async def checks(database: Database) -> None:
    await add_checks(database, "c1", "c2", "c3")


async def test_a_new_scorecard_is_a_draft_until_it_is_published(database: Database) -> None:
    made = await put(database, document())
    assert (made.draft, made.newest, made.version) == (document(), None, "0.0.0")
    assert made.current == document()
    pending = await publish(database)
    assert (pending.draft, pending.pending, pending.slot) == (None, document(), None)
    assert (pending.pending_slot, pending.graded_up_to) == (1, 0)
    assert await effect(database) == ["readiness"]
    found = await stored(database)
    assert (found.published, found.pending, found.version) == (document(), None, "1.0.0")
    assert (found.slot, found.pending_slot, found.graded_at) == (1, None, NOON)
    assert [one.version for one in await scorecard_store.versions(database, "readiness")] == [
        "1.0.0"
    ]
    assert await effect(database) == []


async def test_other_levels_are_graded_in_a_slot_of_their_own(database: Database) -> None:
    await put(database, document())
    await publish(database)
    await effect(database)
    await put(database, document(entries=["c1"]))
    pending = await publish(database)
    assert (pending.published, pending.slot, pending.pending_slot) == (document(), 1, 2)
    await effect(database)
    found = await stored(database)
    assert (found.published, found.slot) == (document(entries=["c1"]), 2)
    assert found.version == "1.1.0"


async def test_other_words_are_in_effect_at_once(database: Database) -> None:
    await put(database, document())
    await publish(database)
    await effect(database)
    await put(database, document(title="Ready", target={"level": "silver", "by": "2027-01-01"}))
    found = await publish(database)
    assert found.published is not None
    assert (found.published["title"], found.pending, found.version) == ("Ready", None, "1.0.1")


async def test_a_document_equal_to_the_published_one_discards_the_draft(
    database: Database,
) -> None:
    await put(database, document())
    await publish(database)
    await put(database, document(title="Other"))
    found = await put(database, document())
    assert found.draft is None
    assert (await publish(database)).pending_version == "1.0.0"


async def test_mistakes_are_refused_with_their_paths_and_nothing_is_stored(
    database: Database,
) -> None:
    with pytest.raises(InvalidItemsError) as raised:
        await put(database, document(entries=["c1", "c9"], owner="team"))
    paths = [one["path"] for one in raised.value.details["problems"]]
    assert sorted(paths) == ["entries[1].check", "owner"]
    assert await scorecard_store.everything(database) == []
    with pytest.raises(NotFoundError):
        await publish(database, "absent")


async def test_an_id_is_taken_once(database: Database) -> None:
    def create(transaction: Transaction) -> object:
        return scorecard_store.create(transaction, document(), ACTOR, NOON)

    await database.write(create)
    with pytest.raises(ConflictError):
        await database.write(create)


async def test_one_of_two_creations_at_a_time_wins(database: Database) -> None:
    def create(transaction: Transaction) -> object:
        return scorecard_store.create(transaction, document(), ACTOR, NOON)

    found = await asyncio.gather(
        *(database.write(create) for _ in range(4)), return_exceptions=True
    )
    assert sorted(type(one).__name__ for one in found) == ["ConflictError"] * 3 + [
        "StoredScorecard"
    ]


async def test_scorecards_with_a_check_are_graded_again_and_all_from_the_first_entity(
    database: Database,
) -> None:
    for id_ in ("a", "b", "c"):
        entries: list[Any] = ["c1"] if id_ != "c" else ["c2"]
        await put(database, document(id_, entries=entries))
        await publish(database, id_)
    await effect(database)

    def again(transaction: Transaction) -> None:
        transaction.lock(publications.DEFINITIONS_LOCK)
        scorecard_store.grade_again(transaction, ["c1"], NOON + 5)

    await database.write(again)
    found = {one.id: one for one in await scorecard_store.everything(database)}
    assert [found[id_].graded_up_to for id_ in "abc"] == [0, 0, None]
    assert found["a"].pending == found["a"].published
    slots = [one.slot for one in found.values()] + [found[id_].pending_slot for id_ in "ab"]
    assert len(set(slots)) == 5
    await effect(database)
    found = {one.id: one for one in await scorecard_store.everything(database)}
    assert [found[id_].graded_at for id_ in "abc"] == [NOON + 5, NOON + 5, NOON]
    assert [found[id_].version for id_ in "abc"] == ["1.0.0"] * 3


async def test_every_change_makes_processes_reload(database: Database) -> None:
    before = await check_store.revision(database)
    await put(database, document())
    middle = await check_store.revision(database)
    await publish(database)
    await effect(database)
    after = await check_store.revision(database)
    assert before < middle < after
    await put(database, document())
    assert await check_store.revision(database) == after


async def test_what_is_deleted_is_gone(database: Database) -> None:
    await put(database, document())
    await publish(database)
    assert await database.write(lambda tx: scorecard_store.delete(tx, "readiness"))
    assert not await database.write(lambda tx: scorecard_store.delete(tx, "readiness"))
    assert await scorecard_store.one(database, "readiness") is None
    assert await scorecard_store.versions(database, "readiness") == []
