"""The store of checks: drafts, versions, slots, and which check reads which."""

from typing import Any

import pytest

from factbook.checks.definitions import publications
from factbook.checks.definitions.definition_versions import StoredCheck, check_store
from factbook.errors import ConflictError, InvalidItemsError, NotFoundError
from factbook.storage import Database, Transaction
from tests.service import NOON

pytestmark = pytest.mark.both_databases

ACTOR = "user:default/tester"


def document(id_: str, value: object = True, **members: Any) -> dict[str, Any]:
    """A check on one fact."""
    rule = {"source": "github", "fact": "protected", "operator": "equal", "value": value}
    return {"id": id_, "title": id_, "rule": rule, **members}


def reading(id_: str, *others: str) -> dict[str, Any]:
    """A check that other checks pass."""
    leaf = {"source": "checks", "operator": "equal", "value": "pass"}
    return document(id_) | {"rule": {"all": [{**leaf, "fact": one} for one in others]}}


async def put(database: Database, given: dict[str, Any]) -> StoredCheck:
    return await database.write(lambda tx: check_store.put(tx, given, ACTOR, NOON))


async def publish(database: Database, id_: str) -> StoredCheck:
    return await database.write(lambda tx: check_store.publish(tx, id_, ACTOR, NOON))


async def effect(database: Database, *ids: str) -> None:
    def work(tx: Transaction) -> None:
        tx.lock(publications.DEFINITIONS_LOCK)
        found = [one for one in check_store.all_within(tx) if one.id in ids]
        check_store.put_into_effect(tx, found, NOON)

    await database.write(work)


async def stored(database: Database, id_: str) -> StoredCheck:
    found = await check_store.one(database, id_)
    assert found is not None
    return found


async def test_a_new_check_is_a_draft_until_it_is_published(database: Database) -> None:
    made = await put(database, document("a"))
    assert (made.draft, made.published, made.version) == (document("a"), None, "0.0.0")
    pending = await publish(database, "a")
    assert (pending.draft, pending.published, pending.pending) == (None, None, document("a"))
    assert (pending.slot, pending.pending_slot, pending.evaluated_up_to) == (None, 1, 0)
    await effect(database, "a")
    found = await stored(database, "a")
    assert (found.published, found.pending, found.version) == (document("a"), None, "1.0.0")
    assert (found.slot, found.pending_slot, found.in_effect_at) == (1, None, NOON)


async def test_readers_have_the_version_before_until_the_next_is_in_effect(
    database: Database,
) -> None:
    await put(database, document("a"))
    await publish(database, "a")
    await effect(database, "a")
    await put(database, document("a", value=False))
    await publish(database, "a")
    found = await stored(database, "a")
    assert (found.current, found.version, found.slot) == (document("a"), "1.0.0", 1)
    assert (found.pending_version, found.pending_slot) == ("1.1.0", 2)
    await effect(database, "a")
    found = await stored(database, "a")
    assert (found.current, found.version) == (document("a", value=False), "1.1.0")
    assert found.slot == 2
    assert [one.version for one in await check_store.versions(database, "a")] == ["1.1.0", "1.0.0"]
    assert await check_store.version(database, "a", "1.0.0") == document("a")


async def test_another_text_is_in_effect_at_once(database: Database) -> None:
    await put(database, document("a"))
    await publish(database, "a")
    await effect(database, "a")
    await put(database, document("a", description="Better words"))
    found = await publish(database, "a")
    assert (found.version, found.slot, found.pending_slot) == ("1.0.1", 1, None)
    assert found.current["description"] == "Better words"


async def test_a_draft_equal_to_what_is_published_is_none(database: Database) -> None:
    await put(database, document("a"))
    await publish(database, "a")
    await put(database, document("a", value=False))
    found = await put(database, document("a"))
    assert found.draft is None
    before = await check_store.revision(database)
    assert await put(database, document("a")) == found
    assert await publish(database, "a") == found
    assert await check_store.revision(database) == before


async def test_a_slot_is_given_again_only_once_it_is_cleared(database: Database) -> None:
    for id_ in ("a", "b"):
        await put(database, document(id_))
        await publish(database, id_)
    await effect(database, "a", "b")
    assert await database.write(lambda tx: check_store.delete(tx, "a"))
    await put(database, document("c"))
    assert (await publish(database, "c")).pending_slot == 3
    assert await check_store.one(database, "a") is None
    assert await check_store.versions(database, "a") == []


async def test_those_that_read_a_check_come_into_effect_with_it(database: Database) -> None:
    for given in (document("a"), reading("b", "a"), reading("c", "b"), document("d")):
        await put(database, given)
        await publish(database, given["id"])
    await effect(database, "a", "b", "c", "d")
    await put(database, document("a", value=False))
    await publish(database, "a")
    found = await check_store.everything(database)
    assert {one.id: one.pending_version for one in found} == {
        "a": "1.1.0",
        "b": "1.0.0",
        "c": "1.0.0",
        "d": None,
    }
    assert [one.evaluated_up_to for one in found] == [0, 0, 0, None]
    assert len({slot for one in found for slot in (one.slot, one.pending_slot) if slot}) == 7


@pytest.mark.parametrize(
    "next_version",
    # The version in effect of the second would follow from a former one of the first.
    [reading("b", "a"), document("b", value=False)],
    ids=["reads it still", "no longer reads it"],
)
async def test_a_check_waits_for_all_that_read_it_before_it_is_in_effect(
    database: Database, next_version: dict[str, Any]
) -> None:
    for given in (document("a"), reading("b", "a"), document("c")):
        await put(database, given)
        await publish(database, given["id"])
    await effect(database, "a", "b", "c")
    for given in (document("a", value=False), next_version, document("c", value=False)):
        await put(database, given)
        await publish(database, given["id"])
    await database.write(
        lambda tx: check_store.note_progress(tx, ["a", "c"], publications.LAST_PLACE)
    )
    assert [one.id for one in await database.write(check_store.ready)] == ["c"]
    await database.write(lambda tx: check_store.note_progress(tx, ["b"], publications.LAST_PLACE))
    assert [one.id for one in await database.write(check_store.ready)] == ["a", "b", "c"]


async def test_a_check_that_would_read_itself_is_refused_with_the_path(
    subtests: pytest.Subtests, database: Database
) -> None:
    for one in (document("a"), reading("c", "a"), reading("b", "c")):
        await put(database, one)
    cases = {
        "b": "the check would read itself: a → b → c → a",
        "a": "the check would read itself: a → a",
        "nope": "there is no check nope",
    }
    for read, message in cases.items():
        with subtests.test(read=read):
            with pytest.raises(InvalidItemsError) as refused:
                await put(database, reading("a", read))
            problem = {"path": "rule.all[0].fact", "message": message}
            assert refused.value.details["problems"] == [problem]
            assert (await stored(database, "a")).draft == document("a")


async def test_a_draft_does_not_hide_what_is_published_of_others(database: Database) -> None:
    """What is in effect would read itself, with states that depend on the order of evaluation."""
    for given in (document("a"), reading("b", "a"), reading("c", "b")):
        await put(database, given)
        await publish(database, given["id"])
    await put(database, document("b"))
    await put(database, reading("a", "c"))
    with pytest.raises(InvalidItemsError) as refused:
        await publish(database, "a")
    message = "the check would read itself: a → c → b → a; publish the draft of b first"
    assert refused.value.details["problems"] == [{"path": "rule.all[0].fact", "message": message}]
    await publish(database, "b")
    assert (await publish(database, "a")).pending == reading("a", "c")


async def test_a_check_that_others_read_is_not_deleted(database: Database) -> None:
    await put(database, document("a"))
    await put(database, reading("b", "a"))
    with pytest.raises(ConflictError, match="b read the check a"):
        await database.write(lambda tx: check_store.delete(tx, "a"))
    assert await database.write(lambda tx: check_store.delete(tx, "b"))
    assert await database.write(lambda tx: check_store.delete(tx, "a"))
    assert not await database.write(lambda tx: check_store.delete(tx, "a"))


async def test_what_is_not_there_is_not_published(database: Database) -> None:
    with pytest.raises(NotFoundError):
        await publish(database, "nope")
    await put(database, document("a"))
    with pytest.raises(ConflictError, match="already a check a"):
        await database.write(lambda tx: check_store.create(tx, document("a"), ACTOR, NOON))
