"""Webhooks: what is sent, how it is signed, and what happens when it cannot be delivered."""

import asyncio

import pytest
import structlog

from factbook.clock import DAY, HOUR, SECOND
from factbook.events.store import number_new_events
from factbook.webhooks import sender
from factbook.webhooks.sender import RETRY_PAUSES, WINDOW
from factbook.worker import sweep
from tests.service import NOON, component
from tests.webhooks.conftest import HOOKS, World
from tests.webhooks.receiver import Receiver, verified

ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


async def test_an_event_is_sent_signed_in_the_form_of_standard_webhooks(
    world: World, receiver: Receiver
) -> None:
    hook = await world.hook(f"{receiver.url}/hooks?tenant=1")
    await world.service.push("shop", component("web"))
    await world.courier.drain()
    # Several are under way at the same time.
    second, first = sorted(receiver.messages, key=lambda message: message.content["type"])
    assert first.content["type"] == "set.replaced"
    assert first.headers["content-type"] == "application/json"
    assert first.headers["webhook-timestamp"] == str(NOON // SECOND)
    assert second.content == {
        "type": "entity.added",
        "timestamp": "2026-11-21T12:00:00.000+00:00",
        "data": {
            "entityRef": "component:default/web",
            "set": "shop",
            "revision": 1,
            "by": "user:default/tester",
        },
    }
    assert all(verified(one, hook["secret"], NOON // SECOND) for one in receiver.messages)
    changed = first._replace(body=first.body.replace(b"shop", b"show"))
    assert not verified(changed, hook["secret"], NOON // SECOND)
    assert not verified(first, "whsec_" + "A" * 44, NOON // SECOND)
    ids = [one["id"] for one in (await world.service.http.get("/api/events")).json()["events"]]
    assert [first.id, second.id] == ids


async def test_only_what_happens_after_it_was_made_and_of_its_types_is_sent(
    world: World, receiver: Receiver
) -> None:
    await world.service.push("before", component("old"))
    await world.hook(receiver.url, "set.replaced", "entity.removed")
    await world.service.push("shop", component("web"))
    await world.service.push("before")
    await world.courier.drain()
    assert sorted(receiver.said) == [
        ("entity.removed", "component:default/old"),
        ("set.replaced", "before"),
        ("set.replaced", "shop"),
    ]


@pytest.mark.both_databases
@pytest.mark.slow
async def test_many_events_are_sent_each_once(world: World, receiver: Receiver) -> None:
    await world.hook(receiver.url, "entity.added")
    await world.service.push("shop", *(component(f"c{number}") for number in range(50)))
    await asyncio.gather(*(each.drain() for each in (world.courier, world.another())))
    await world.courier.drain()
    assert len(receiver.messages) == 50
    assert set(receiver.ids.values()) == {1}


async def test_what_fails_is_sent_again_with_the_same_id_until_it_arrives(
    world: World, receiver: Receiver
) -> None:
    hook = await world.hook(receiver.url, "set.replaced")
    receiver.status = 503
    await world.service.push("shop", component("web"))
    await world.courier.drain()
    shown = await world.shown(hook)
    assert (shown["waiting"], shown["lastError"]) == (1, "answered 503")
    assert shown["lastFailureAt"] == "2026-11-21T12:00:00.000+00:00"
    await world.later(1)
    assert len(receiver.messages) == 1
    receiver.status = 200
    await world.later(6)
    await world.later(3600)
    first, second = receiver.messages
    assert (first.id, first.body) == (second.id, second.body)
    assert int(second.headers["webhook-timestamp"]) - int(first.headers["webhook-timestamp"]) == 7
    assert verified(second, hook["secret"], NOON // SECOND + 7)
    shown = await world.shown(hook)
    assert (shown["waiting"], shown["givenUp"], shown["disabledAt"]) == (0, 0, None)
    assert shown["lastSuccessAt"] == "2026-11-21T12:00:07.000+00:00"


async def test_a_message_that_fails_does_not_keep_the_next_from_arriving(
    world: World, receiver: Receiver
) -> None:
    await world.hook(receiver.url, "set.replaced")
    receiver.status = 500
    await world.service.push("first", component("a"))
    await world.courier.drain()
    receiver.status = 200
    await world.service.push("second", component("b"))
    await world.courier.drain()
    assert receiver.said[-1] == ("set.replaced", "second")
    await world.later(60)
    assert receiver.said[-1] == ("set.replaced", "first")


@pytest.mark.slow
async def test_a_receiver_that_does_not_answer_delays_no_other(
    world: World, receiver: Receiver
) -> None:
    receiver.held = {"/slow"}
    await world.hook(f"{receiver.url}/slow", "set.replaced")
    await world.hook(f"{receiver.url}/quick", "set.replaced")
    for number in range(12):
        await world.service.push(f"set-{number}", component(f"c{number}"))
    draining = asyncio.create_task(world.courier.drain())
    await asyncio.to_thread(receiver.wait_for, "/quick", 12)
    assert receiver.count("/slow") <= 4
    receiver.may_answer.set()
    await draining
    assert receiver.count("/slow") == 12


async def test_after_a_day_without_success_it_is_disabled_and_what_failed_recorded(
    world: World, receiver: Receiver
) -> None:
    hook = await world.hook(receiver.url, "set.replaced")
    receiver.status = 500
    await world.service.push("shop", component("web"))
    with structlog.testing.capture_logs() as logs:
        await world.courier.drain()
        for pause in RETRY_PAUSES:
            assert (await world.shown(hook))["disabledAt"] is None
            await world.later(pause * 12 // 10 // SECOND)
    assert len(receiver.messages) == len(RETRY_PAUSES) + 1
    assert 22 * HOUR < world.service.time() - NOON < 30 * HOUR
    shown = await world.shown(hook)
    assert shown["disabledAt"] is not None
    assert (shown["waiting"], shown["givenUp"]) == (0, 1)
    [lost] = shown["undelivered"]
    assert (lost["type"], lost["attempts"]) == ("set.replaced", len(RETRY_PAUSES) + 1)
    assert (lost["eventId"], lost["error"]) == (receiver.messages[0].id, "answered 500")
    assert [one for one in logs if one["event"] == "webhook.disabled"] == [
        {
            "event": "webhook.disabled",
            "log_level": "error",
            "webhook": hook["id"],
            "reason": "answered 500",
        }
    ]
    await world.service.push("shop", component("api"))
    await world.later(3600)
    assert len(receiver.messages) == len(RETRY_PAUSES) + 1


@pytest.mark.both_databases
async def test_a_webhook_that_is_enabled_again_gets_what_it_missed(
    world: World, receiver: Receiver
) -> None:
    hook = await world.hook(receiver.url, "set.replaced")
    receiver.status = 410
    await world.service.push("gone", component("web"))
    await world.courier.drain()
    assert (await world.shown(hook))["disabledAt"] is not None
    await world.service.push("meanwhile", component("api"))
    await world.courier.drain()
    assert len(receiver.messages) == 1
    receiver.status = 204
    answer = await world.service.http.post(f"{HOOKS}/{hook['id']}/enable")
    assert (answer.status_code, answer.json()["disabledAt"]) == (200, None)
    await world.courier.drain()
    assert sorted(receiver.said[1:]) == [("set.replaced", "gone"), ("set.replaced", "meanwhile")]


@pytest.mark.slow
async def test_a_message_that_is_given_up_while_others_arrive_disables_nothing(
    world: World, receiver: Receiver
) -> None:
    hook = await world.hook(receiver.url, "set.replaced")
    receiver.status = 500
    await world.service.push("refused", component("web"))
    await world.courier.drain()
    for number, pause in enumerate(RETRY_PAUSES):
        receiver.status = 204
        await world.service.push(f"good-{number}", component(f"c{number}"))
        await world.courier.drain()
        receiver.status = 500
        await world.later(pause * 12 // 10 // SECOND)
    shown = await world.shown(hook)
    assert (shown["disabledAt"], shown["givenUp"]) == (None, 1)
    settings, sources = world.service.state.settings, tuple(world.service.state.sources.values())
    await sweep(world.database, settings, sources, world.service.time() + 31 * DAY)
    assert (await world.shown(hook))["undelivered"] == []


@pytest.mark.slow
@ON_SQLITE
async def test_no_more_than_a_window_waits_for_a_receiver_that_is_away(
    world: World, receiver: Receiver
) -> None:
    hook = await world.hook(receiver.url, "entity.added")
    receiver.status = 500
    await world.service.push("shop", *(component(f"c{n}") for n in range(WINDOW + 20)))
    await world.courier.drain()
    assert (await world.shown(hook))["waiting"] == WINDOW
    assert len(receiver.messages) == WINDOW
    receiver.status = 204
    await world.later(10)
    assert len(set(receiver.ids)) == WINDOW + 20
    assert (await world.shown(hook))["waiting"] == 0


@ON_SQLITE
async def test_a_receiver_that_asks_for_a_pause_gets_it(world: World, receiver: Receiver) -> None:
    await world.hook(receiver.url, "set.replaced")
    receiver.status, receiver.headers = 429, {"retry-after": "600"}
    await world.service.push("shop", component("web"))
    await world.courier.drain()
    await world.later(599)
    assert len(receiver.messages) == 1
    await world.later(1)
    assert len(receiver.messages) == 2


@pytest.mark.both_databases
async def test_what_a_silent_process_had_is_sent_by_another(
    world: World, receiver: Receiver
) -> None:
    hook = await world.hook(receiver.url, "set.replaced")
    await world.service.push("shop", component("web"))
    await number_new_events(world.database)
    claimed = await world.database.write(
        lambda tx: sender.claim_webhook(tx, hook["id"], "dead", NOON, 8)
    )
    assert claimed is not None
    await world.later(30)
    assert receiver.messages == []
    await world.later(11)
    assert receiver.said == [("set.replaced", "shop")]
    late = await world.database.write(
        lambda tx: sender.finish_delivery(tx, claimed, [], claimed.next, NOON)
    )
    assert late is None  # what the silent one has to say does not count any more
    await world.later(60)
    assert len(receiver.messages) == 1


@pytest.mark.both_databases
async def test_a_webhook_that_was_disabled_since_the_queue_was_read_is_not_claimed(
    world: World, receiver: Receiver
) -> None:
    hook = await world.hook(receiver.url, "set.replaced")
    receiver.status = 410
    await world.service.push("shop", component("web"))
    await world.courier.drain()
    assert (await world.shown(hook))["disabledAt"] is not None
    now = world.service.time() + HOUR
    assert (
        await world.database.write(lambda tx: sender.claim_webhook(tx, hook["id"], "other", now, 8))
        is None
    )


@pytest.mark.both_databases
async def test_a_clock_that_is_set_back_keeps_no_message_from_being_sent(
    world: World, receiver: Receiver
) -> None:
    hook = await world.hook(receiver.url, "set.replaced")
    await world.service.push("shop", component("web"))
    await number_new_events(world.database)
    ahead = NOON + 9 * HOUR
    assert await world.database.write(
        lambda tx: sender.claim_webhook(tx, hook["id"], "dead", ahead, 8)
    )
    await world.courier.drain()
    assert receiver.said == [("set.replaced", "shop")]
