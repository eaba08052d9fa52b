"""Addresses of webhooks are secrets: whoever knows one can often send to it."""

import asyncio
import json
from typing import Any

import pytest
import structlog

from factbook.clock import MINUTE, SECOND
from factbook.storage import Database, Transaction
from factbook.webhooks import sender
from factbook.webhooks.store import adopt_webhooks
from tests.api.auditing import records
from tests.service import NOON, component
from tests.web.visiting import signed_in
from tests.webhooks.conftest import HOOKS, StartWorld, World
from tests.webhooks.receiver import NETWORKS, Receiver, verified

PATH = "services/T0123/s3cr3t-path"
QUERY = "k=s3cr3t-query"
SECRETS = ("s3cr3t", "T0123")


async def tables(database: Database) -> str:
    """Every row of what webhooks and the audit leave behind."""
    rows = [row for query in _EVERYTHING for row in await database.all(query)]
    return "\n".join(
        str([bytes(one) if isinstance(one, memoryview) else one for one in row]) for row in rows
    )


@pytest.mark.spec("security.webhook-addresses-are-secrets")
async def test_an_address_is_in_the_answer_that_makes_it_and_nowhere_else(
    world: World, receiver: Receiver
) -> None:
    with structlog.testing.capture_logs() as logs:
        hook = await world.hook(f"{receiver.url}/{PATH}?{QUERY}")
        assert hook["url"] == f"{receiver.url}/{PATH}?{QUERY}"
        await world.service.push("shop", component("web"))
        await world.courier.drain()
        receiver.status = 500
        await world.service.push("shop", component("web"), component("api"))
        await world.courier.drain()
        one = f"{HOOKS}/{hook['id']}"
        http = world.service.http
        answers = [
            await http.get(HOOKS),
            await http.get(one),
            await http.post(f"{one}/test"),
            await http.post(f"{one}/enable"),
            await http.get("/metrics"),
            await http.get("/api/events"),
        ]
    assert {message.path for message in receiver.messages} == {f"/{PATH}"}
    assert answers[1].json()["url"] == f"{receiver.url}/…"
    person = await signed_in(world.service)
    pages = [
        await person.text(path)
        for path in (
            "/administration/webhooks",
            f"/administration/webhooks/{hook['id']}",
            "/administration/audit",
        )
    ]
    said = [str(logs), json.dumps(await records(world.service)), await tables(world.database)]
    said += [answer.text for answer in answers] + pages
    assert [text for text in said if any(secret in text for secret in SECRETS)] == []


async def test_an_address_that_is_no_secret_is_shown_whole(
    world: World, receiver: Receiver
) -> None:
    assert (await world.shown(await world.hook(f"{receiver.url}/")))["url"] == receiver.url


async def leave(world: World, hook: dict[str, Any], holder: str = "", held_until: int = 0) -> None:
    """Put a webhook where releases before 0015 stored it, with its address in the clear."""

    def work(transaction: Transaction) -> None:
        transaction.run(_LEAVE, (hook["url"], holder, held_until, hook["id"]))
        transaction.run("DELETE FROM webhook_endpoints WHERE id = ?", (hook["id"],))

    await world.database.write(work)


@pytest.mark.spec("security.webhook-addresses-are-secrets")
async def test_what_an_older_release_stored_is_sealed_by_the_start_and_goes_on(
    start_world: StartWorld, receiver: Receiver
) -> None:
    old = await start_world(outgoing_networks=NETWORKS)
    hook = await old.hook(f"{receiver.url}/{PATH}", "set.replaced")
    await old.service.push("shop", component("web"))
    await leave(old, hook)
    assert "s3cr3t" in await tables(old.database)
    new = await start_world(outgoing_networks=NETWORKS)
    assert (await new.shown(hook))["url"] == f"{receiver.url}/…"
    assert "s3cr3t" not in await tables(new.database)
    await old.courier.drain()
    await new.courier.drain()
    [message] = receiver.messages
    assert message.path == f"/{PATH}"
    assert verified(message, hook["secret"], NOON // SECOND)


async def test_what_an_older_release_beside_adds_is_sealed_by_the_next_round(
    world: World, receiver: Receiver
) -> None:
    hook = await world.hook(f"{receiver.url}/{PATH}", "set.replaced")
    await leave(world, hook)
    await world.service.push("shop", component("web"))
    await world.courier.drain()
    assert [message.path for message in receiver.messages] == [f"/{PATH}"]
    assert "s3cr3t" not in await tables(world.database)


async def test_what_an_older_release_is_sending_is_not_sent_beside_it(
    world: World, receiver: Receiver
) -> None:
    hook = await world.hook(f"{receiver.url}/{PATH}", "set.replaced")
    await world.service.push("shop", component("web"))
    await leave(world, hook, holder="old", held_until=NOON + sender.CLAIM_DURATION)
    await world.courier.drain()
    assert receiver.messages == []
    await world.later(MINUTE // SECOND)
    assert len(receiver.messages) == 1


async def test_no_address_is_sealed_under_a_key_that_does_not_open_its_secret(
    start_world: StartWorld, receiver: Receiver
) -> None:
    """A start with a wrong key is a mistake; what it sealed would be lost when it is mended."""
    right = await start_world(outgoing_networks=NETWORKS)
    hook = await right.hook(f"{receiver.url}/{PATH}", "set.replaced")
    await leave(right, hook)
    wrong = await start_world(outgoing_networks=NETWORKS, token_key="another key " * 4)
    shown = await wrong.shown(hook)
    assert shown["url"] == f"{receiver.url}/…"
    assert (await wrong.service.http.post(f"{HOOKS}/{hook['id']}/test")).status_code == 409
    again = await start_world(outgoing_networks=NETWORKS)
    tried = await again.service.http.post(f"{HOOKS}/{hook['id']}/test")
    assert tried.json()["delivered"] is True
    assert "s3cr3t" not in await tables(again.database)


async def test_an_address_changed_in_the_database_gets_nothing(
    world: World, receiver: Receiver
) -> None:
    first = await world.hook(f"{receiver.url}/first", "set.replaced")
    other = await world.hook(f"{receiver.url}/other", "entity.removed")
    swap = (
        "UPDATE webhook_endpoints SET address = "
        "(SELECT o.address FROM webhook_endpoints o WHERE o.id = ?) WHERE id = ?"
    )
    await world.database.write(lambda tx: tx.run(swap, (other["id"], first["id"])))
    await world.service.push("shop", component("web"))
    await world.courier.drain()
    assert receiver.messages == []


@pytest.mark.both_databases
async def test_two_processes_that_start_at_once_adopt_each_webhook_once(
    world: World, receiver: Receiver
) -> None:
    hooks = [await world.hook(f"{receiver.url}/{number}") for number in range(5)]
    for hook in hooks:
        await leave(world, hook)
    key = world.service.state.token_key
    await asyncio.gather(*(adopt_webhooks(world.database, key) for _ in range(4)))
    listed = (await world.service.http.get(HOOKS)).json()["webhooks"]
    assert sorted(one["id"] for one in listed) == sorted(hook["id"] for hook in hooks)


_EVERYTHING = (
    "SELECT * FROM webhooks",
    "SELECT * FROM webhook_endpoints",
    "SELECT * FROM webhook_retries",
    "SELECT * FROM audit",
    "SELECT * FROM events",
)

_LEAVE = """
INSERT INTO webhooks (
    id, url, types, secret, created_at, created_by, next_position, next_item, holder, held_until
) SELECT id, ?, types, secret, created_at, created_by, next_position, next_item, ?, ?
FROM webhook_endpoints WHERE id = ?
"""
