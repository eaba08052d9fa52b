"""Digests sent to a receiver: in their time, once, and again where it did not take them."""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
import structlog

from factbook.checks import state
from factbook.clock import DAY, HOUR, MINUTE
from factbook.errors import ConflictError, InputError, NotFoundError
from factbook.outbound.outcomes import HostReply
from factbook.schemas.events import DigestForm
from factbook.settings import Settings
from factbook.storage import Database
from factbook.webhooks import digests
from factbook.webhooks.digests import DigestCadence, DigestSender, StoredDigest, WantedDigest
from factbook.webhooks.sender import GuardedPost, Post
from tests.checks.scorecards import add_checks
from tests.facts.test_store import add_entities
from tests.service import NOON, Time
from tests.webhooks.receiver import NETWORKS, Receiver

KEY = bytes(range(64))
TEAM = "group:default/shop"
WEEKLY = DigestCadence()


@pytest.fixture
async def post() -> AsyncIterator[GuardedPost]:
    found = GuardedPost(Settings(outgoing_networks=NETWORKS))
    yield found
    await found.aclose()


@pytest.fixture
def time() -> Time:
    return Time()


async def make(
    database: Database,
    post: Post,
    url: str,
    form: DigestForm = "slack",
    owner: str | None = "shop",
    cadence: DigestCadence = WEEKLY,
) -> StoredDigest:
    wanted = WantedDigest(owner, form, cadence, url)
    return await digests.create_digest(
        database, post, KEY, wanted, actor="user:default/ann", now=NOON, write=database.write
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
    await add_entities(database, "component:default/a", TEAM)
    row = (1, TEAM, b"\2", None)
    columns = ("entity_id", "owner", "states", "due_at")
    await database.write(lambda tx: tx.insert("check_states", columns, [row]))


def sender(database: Database, post: Post, time: Time, key: bytes = KEY) -> DigestSender:
    return DigestSender(database, post, lambda: key, time)


async def stored(database: Database) -> StoredDigest:
    [found] = await digests.list_digests(database)
    return found


class Replying:
    """What answers as told by address, and keeps the headers of what came."""

    def __init__(self, replies: Mapping[str, HostReply]) -> None:
        self.replies = dict(replies)
        self.sent: list[tuple[str, str]] = []

    async def __call__(self, url: str, headers: Mapping[str, str], body: bytes) -> HostReply:
        self.sent.append((url, headers["idempotency-key"]))
        return self.replies[url]

    async def check(self, url: str) -> None:
        """Every address will do."""

    async def aclose(self) -> None:
        """Nothing is open."""


async def test_a_team_gets_what_changed_on_monday_and_only_once(
    database: Database, post: GuardedPost, receiver: Receiver, time: Time
) -> None:
    made = await make(database, post, f"{receiver.url}/secret")
    assert "secret" not in repr(await digests.list_digests(database))
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
    found = await stored(database)
    assert found.told_up_to == time() - MINUTE
    assert found.next_at == time() + 7 * DAY
    assert found.sent_at == made.next_at


@pytest.mark.both_databases
async def test_every_change_is_told_in_one_period_and_no_other(
    database: Database, post: GuardedPost, receiver: Receiver, time: Time
) -> None:
    cadence = DigestCadence("daily", hour=13)
    made = await make(database, post, receiver.url, cadence=cadence)
    courier, texts = sender(database, post, time), []
    # Each at the hour itself, at the end of a period, and in the middle of one.
    for at in (made.next_at, made.next_at + DAY - MINUTE, made.next_at + DAY + 5 * HOUR):
        await fail(database, at)
    time.advance(made.next_at - NOON)
    for _ in range(4):
        before = len(receiver.messages)
        assert await courier.tick() == 1
        texts.append([one.content["text"][-6:] for one in receiver.messages[before:]])
        time.advance(DAY)
    assert texts == [[], ["1 fail"], ["1 fail"], []]


async def test_what_a_receiver_does_not_take_is_told_an_hour_later_and_then_less_often(
    database: Database, post: GuardedPost, receiver: Receiver, time: Time
) -> None:
    made = await make(database, post, receiver.url, "teams")
    await fail(database, NOON + HOUR)
    time.advance(made.next_at - NOON)
    receiver.status = 500
    courier = sender(database, post, time)
    assert await courier.tick() == 1
    found = await stored(database)
    assert (found.error, found.told_up_to, found.failures) == ("answered 500", NOON, 1)
    assert await courier.tick() == 0
    time.advance(HOUR)
    assert await courier.tick() == 1
    time.advance(HOUR)
    assert await courier.tick() == 0
    receiver.status = 202
    time.advance(HOUR)
    assert await courier.tick() == 1
    # Each is about the same period, and says so.
    keys = {one.headers["idempotency-key"] for one in receiver.messages}
    assert keys == {f"{made.id}.{made.next_at - MINUTE}"}
    bodies = {re.sub(rb"As of [^\"]+", b"", one.body) for one in receiver.messages}
    assert len(bodies) == 1
    found = await stored(database)
    assert (found.error, found.failures, found.next_at) == (None, 0, made.next_at + 7 * DAY)


async def test_of_three_addresses_the_one_that_fails_keeps_no_other_waiting(
    database: Database, time: Time
) -> None:
    good, bad, busy = (f"https://{name}.example.com/" for name in ("good", "bad", "busy"))
    post = Replying(
        {
            bad: HostReply(200, body=b"no_service"),
            busy: HostReply(429, {"retry-after": "7200"}),
            good: HostReply(200, body=b"ok"),
        }
    )
    made = [await make(database, post, url) for url in (bad, busy, good)]
    await fail(database, NOON + HOUR)
    time.advance(made[0].next_at - NOON)
    courier = sender(database, post, time)
    assert await courier.tick() == 3
    errors = {one.url: one.error for one in await digests.list_digests(database)}
    assert errors == {
        "https://bad.example.com": "answered 200: no_service",
        "https://busy.example.com": "answered 429",
        "https://good.example.com": None,
    }
    post.replies[busy] = post.replies[bad] = HostReply(200, body=b"ok")
    time.advance(HOUR)
    # The receiver asked for two hours.
    assert await courier.tick() == 1
    time.advance(HOUR)
    assert await courier.tick() == 1
    assert sorted(url for url, _ in post.sent) == [bad, bad, busy, busy, good]


async def test_receivers_that_are_slow_keep_no_other_waiting(
    database: Database, time: Time
) -> None:
    released = asyncio.Event()

    class Slow(Replying):
        async def __call__(self, url: str, headers: Mapping[str, str], body: bytes) -> HostReply:
            if "slow" in url:
                await released.wait()
            reply = await super().__call__(url, headers, body)
            if len(self.sent) == 20:
                released.set()
            return reply

    urls = [f"https://slow-{n}.example.com/" for n in range(5)]
    urls += [f"https://quick-{n}.example.com/" for n in range(20)]
    post = Slow(dict.fromkeys(urls, HostReply(200, body=b"ok")))
    made = [await make(database, post, url) for url in urls]
    await fail(database, NOON + HOUR)
    time.advance(made[0].next_at - NOON)
    async with asyncio.timeout(60):
        assert await sender(database, post, time).tick() == 25
    assert all("quick" in url for url, _ in post.sent[:20])


@pytest.mark.both_databases
async def test_a_message_leads_to_the_scorecards_of_its_team(
    database: Database, post: GuardedPost, receiver: Receiver, time: Time
) -> None:
    for owner in ("shop", "gone", None):
        await make(database, post, receiver.url, owner=owner)
    await fail(database, NOON + HOUR)
    row = ("group:default/gone",)
    await database.write(lambda tx: tx.run("UPDATE check_states SET owner = ?", row))
    made = await digests.list_digests(database)
    time.advance(made[0].next_at - NOON)
    courier = DigestSender(database, post, lambda: KEY, time, "https://facts.example.com")
    assert await courier.tick() == 3
    links = [one.content["blocks"][-1]["elements"][0]["url"] for one in receiver.messages]
    assert links == ["https://facts.example.com/scorecards"] * 2
    await database.write(lambda tx: tx.run("UPDATE check_states SET owner = ?", (TEAM,)))
    await fail(database, time() + HOUR)
    time.advance(7 * DAY)
    assert await courier.tick() == 3
    found = {one.content["blocks"][-1]["elements"][0]["url"] for one in receiver.messages[2:]}
    assert found == {
        "https://facts.example.com/catalog/group/default/shop#standing",
        "https://facts.example.com/scorecards",
    }


async def test_what_failed_for_a_week_is_told_with_the_next_one(
    database: Database, post: GuardedPost, receiver: Receiver, time: Time
) -> None:
    made = await make(database, post, receiver.url)
    await fail(database, NOON + HOUR)
    time.advance(made.next_at - NOON)
    receiver.status = 500
    courier = sender(database, post, time)
    await courier.tick()
    time.advance(7 * DAY + HOUR)
    receiver.status = 200
    assert await courier.tick() == 1
    assert receiver.messages[-1].content["text"] == "2026-11-21 to 2026-11-30: 1 fail"
    assert (await stored(database)).next_at == made.next_at + 14 * DAY


async def test_an_address_that_the_key_does_not_open_is_told_as_such(
    database: Database, post: GuardedPost, receiver: Receiver, time: Time
) -> None:
    made = await make(database, post, receiver.url)
    await fail(database, NOON + HOUR)
    time.advance(made.next_at - NOON)
    await sender(database, post, time, bytes(64)).tick()
    assert "another token_key" in ((await stored(database)).error or "")
    with pytest.raises(ConflictError):
        await digests.send_test_digest(database, post, bytes(64), made.id, time())
    assert receiver.messages == []


@pytest.mark.both_databases
async def test_a_digest_that_a_killed_process_sent_is_sent_again_about_the_same_period(
    database: Database, post: GuardedPost, receiver: Receiver, time: Time
) -> None:
    made = await make(database, post, receiver.url)
    await fail(database, NOON + HOUR)
    time.advance(made.next_at - NOON)
    # It was killed between the reply and its record.
    claimed = await database.write(lambda tx: digests.claim_digest(tx, time()))
    assert claimed is not None
    assert await sender(database, post, time).tick() == 0
    await fail(database, time() + MINUTE)
    time.advance(10 * MINUTE)
    assert await sender(database, post, time).tick() == 1
    [message] = receiver.messages
    assert message.headers["idempotency-key"] == f"{made.id}.{made.next_at - MINUTE}"
    assert message.content["text"].endswith("1 fail")
    # If it was only slow, what it records at last is not taken any more.
    end = await stored(database)
    await database.write(lambda tx: digests.fail_digest(tx, claimed, "late", time(), time() + DAY))
    assert await stored(database) == end


@pytest.mark.both_databases
async def test_a_digest_that_is_changed_while_it_is_sent_stays_as_it_was_changed(
    database: Database, post: GuardedPost, receiver: Receiver, time: Time
) -> None:
    made = await make(database, post, receiver.url)
    time.advance(made.next_at - NOON)
    claimed = await database.write(lambda tx: digests.claim_digest(tx, time()))
    assert claimed is not None
    daily = WantedDigest(None, "teams", DigestCadence("daily", hour=6, time_zone="Asia/Tokyo"))
    changed = await digests.change_digest(
        database, post, KEY, made.id, daily, now=time(), write=database.write
    )
    await database.write(lambda tx: digests.finish_digest(tx, claimed, 1, {}, 2, 3))
    assert await stored(database) == changed
    # Another owner is told of what changes from then on.
    assert (changed.owner, changed.told_up_to, changed.url) == ("", time(), made.url)
    assert changed.next_at == made.next_at + 13 * HOUR


async def test_a_test_sends_what_there_is_by_now_and_tells_it_again_in_its_time(
    database: Database, post: GuardedPost, receiver: Receiver, time: Time
) -> None:
    made = await make(database, post, receiver.url)
    tried = await digests.send_test_digest(database, post, KEY, made.id, NOON)
    assert (tried.status, tried.error) == (204, None)
    await fail(database, NOON + HOUR)
    await digests.send_test_digest(database, post, KEY, made.id, NOON + 2 * HOUR)
    assert [one.content["text"] for one in receiver.messages] == [
        "2026-11-21 to 2026-11-21: nothing changed",
        "2026-11-21 to 2026-11-21: 1 fail",
    ]
    assert await stored(database) == made
    receiver.status = 410
    tried = await digests.send_test_digest(database, post, KEY, made.id, NOON)
    assert (tried.status, tried.error) == (410, "answered 410")


@pytest.mark.both_databases
async def test_addresses_pass_the_guard_and_digests_can_be_removed(
    database: Database, post: GuardedPost, receiver: Receiver
) -> None:
    with pytest.raises(InputError):
        await make(database, post, "ftp://example.com")
    guarded = GuardedPost(Settings())
    with pytest.raises(InputError):
        await make(database, guarded, receiver.url)
    made = await make(database, post, receiver.url)
    wanted = WantedDigest(None, "slack", WEEKLY, f"{receiver.url}/other")
    with pytest.raises(InputError):
        await digests.change_digest(
            database, guarded, KEY, made.id, wanted, now=NOON, write=database.write
        )
    await guarded.aclose()
    await digests.delete_digest(made.id, write=database.write)
    with pytest.raises(NotFoundError):
        await digests.delete_digest(made.id, write=database.write)
    with pytest.raises(NotFoundError):
        await digests.change_digest(
            database, post, KEY, made.id, wanted, now=NOON, write=database.write
        )


async def test_no_address_is_in_the_log_or_in_what_is_stored_of_a_failure(
    database: Database, time: Time
) -> None:
    url = "https://hooks.example.com/services/T0/hidden"
    post = Replying({url: HostReply(404, body=b"hidden")})
    with structlog.testing.capture_logs() as logs:
        made = await make(database, post, url)
        await fail(database, NOON + HOUR)
        time.advance(made.next_at - NOON)
        await sender(database, post, time).tick()
    [row] = await database.all("SELECT * FROM digests")
    texts = [str(bytes(one) if isinstance(one, memoryview) else one) for one in row]
    assert post.sent
    assert not [text for text in (str(logs), *texts) if "hidden" in text]
    assert (await stored(database)).error == "answered 404"


async def test_there_is_a_limit_of_digests(
    database: Database, post: GuardedPost, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digests, "MOST_DIGESTS", 1)
    await make(database, post, receiver.url)
    with pytest.raises(ConflictError):
        await make(database, post, receiver.url)


async def test_a_time_zone_that_there_is_not_is_refused(
    subtests: pytest.Subtests, database: Database, post: GuardedPost, receiver: Receiver
) -> None:
    for name in ("", "Nowhere", "../etc/passwd", "/etc/localtime", "x" * 500, "\0"):
        with subtests.test(name=name), pytest.raises(InputError, match="timeZone"):
            await make(database, post, receiver.url, cadence=DigestCadence(time_zone=name))
