"""Digests sent to a receiver: weekly, once, and again where it did not take them."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from factbook.checks import state
from factbook.clock import DAY, HOUR, MINUTE
from factbook.errors import ConflictError, InputError, NotFoundError
from factbook.settings import Settings
from factbook.storage import Database
from factbook.webhooks import GuardedPost, digest_store, digests
from factbook.webhooks.digests import DigestSender
from tests.checks.scorecards import add_checks
from tests.facts.test_store import add_entities
from tests.service import NOON, Time
from tests.webhooks.receiver import NETWORKS, Receiver

KEY = bytes(range(64))
TEAM = "group:default/shop"


@pytest.fixture
async def post() -> AsyncIterator[GuardedPost]:
    found = GuardedPost(Settings(outgoing_networks=NETWORKS))
    yield found
    await found.aclose()


@pytest.fixture
def time() -> Time:
    return Time()


async def make(database: Database, post: GuardedPost, url: str, form: Any = "slack") -> Any:
    return await digests.create(
        post, KEY, "shop", form, url, actor="user:default/ann", now=NOON, write=database.write
    )


async def fail(database: Database, at: int) -> None:
    """A check that fails for an entity of the team."""

    def work(tx: Any) -> None:
        columns = ("check_id", "entity_id", "at", "before", "after", "why")
        tx.insert("check_changes", columns, [("c1", 1, at, state.PASS, state.FAIL, "{}")])

    await database.write(work)


@pytest.fixture(autouse=True)
async def team(database: Database) -> None:
    await add_checks(database, "c1")
    await add_entities(database, "component:default/a")
    row = (1, TEAM, b"\2", None)
    columns = ("entity_id", "owner", "states", "due_at")
    await database.write(lambda tx: tx.insert("check_states", columns, [row]))


def sender(database: Database, post: GuardedPost, time: Time, key: bytes = KEY) -> DigestSender:
    return DigestSender(database, post, lambda: key, time)


async def test_a_team_gets_what_changed_on_monday_and_only_once(
    database: Database, post: GuardedPost, receiver: Receiver, time: Time
) -> None:
    made = await make(database, post, f"{receiver.url}/secret")
    assert "secret" not in repr(await digest_store.listed(database))
    assert made.owner == TEAM
    await fail(database, NOON + HOUR)
    two = [sender(database, post, time) for _ in range(2)]
    assert await two[0].tick() == 0
    # NOON is a Saturday.
    time.advance(made.next_at - NOON)
    assert sum(await asyncio.gather(*(one.tick() for one in two))) == 1
    [message] = receiver.messages
    assert message.path == "/secret"
    assert message.content["text"].endswith("1 fail")
    # Nothing has changed since.
    time.advance(7 * DAY)
    assert await two[0].tick() == 1
    assert len(receiver.messages) == 1
    [stored] = await digest_store.listed(database)
    assert stored.told_up_to == time()
    assert stored.next_at == time() + 7 * DAY


async def test_what_a_receiver_does_not_take_is_told_an_hour_later(
    database: Database, post: GuardedPost, receiver: Receiver, time: Time
) -> None:
    made = await make(database, post, receiver.url, "teams")
    await fail(database, NOON + HOUR)
    time.advance(made.next_at - NOON)
    receiver.status = 500
    courier = sender(database, post, time)
    assert await courier.tick() == 1
    [stored] = await digest_store.listed(database)
    assert (stored.error, stored.told_up_to) == ("answered 500", NOON)
    assert await courier.tick() == 0
    receiver.status = 200
    time.advance(HOUR)
    assert await courier.tick() == 1
    assert receiver.messages[-1].content["type"] == "message"
    [stored] = await digest_store.listed(database)
    assert stored.error is None


async def test_an_address_that_the_key_does_not_open_is_told_as_such(
    database: Database, post: GuardedPost, receiver: Receiver, time: Time
) -> None:
    made = await make(database, post, receiver.url)
    await fail(database, NOON + HOUR)
    time.advance(made.next_at - NOON)
    await sender(database, post, time, bytes(64)).tick()
    [stored] = await digest_store.listed(database)
    assert "another token_key" in (stored.error or "")
    assert receiver.messages == []


async def test_a_digest_that_a_killed_process_began_is_sent_by_another(
    database: Database, post: GuardedPost, receiver: Receiver, time: Time
) -> None:
    made = await make(database, post, receiver.url)
    await fail(database, NOON + HOUR)
    time.advance(made.next_at - NOON)
    assert await database.write(lambda tx: digest_store.claim(tx, time())) is not None
    assert await sender(database, post, time).tick() == 0
    time.advance(10 * MINUTE)
    assert await sender(database, post, time).tick() == 1
    assert len(receiver.messages) == 1


async def test_addresses_pass_the_guard_and_digests_can_be_removed(
    database: Database, post: GuardedPost, receiver: Receiver
) -> None:
    with pytest.raises(InputError):
        await make(database, post, "ftp://example.com")
    guarded = GuardedPost(Settings())
    with pytest.raises(InputError):
        await make(database, guarded, receiver.url)
    await guarded.aclose()
    made = await make(database, post, receiver.url)
    await database.write(lambda tx: digest_store.remove(tx, made.id))
    with pytest.raises(NotFoundError):
        await database.write(lambda tx: digest_store.remove(tx, made.id))


async def test_there_is_a_limit_of_digests(
    database: Database, post: GuardedPost, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digest_store, "MOST", 1)
    await make(database, post, receiver.url)
    with pytest.raises(ConflictError):
        await make(database, post, receiver.url)
