"""What `/metrics` says of webhooks."""

import re

from tests.service import NOON, component
from tests.webhooks.conftest import World
from tests.webhooks.receiver import Receiver


async def shown(world: World) -> dict[str, float]:
    """The samples that are about webhooks."""
    text = (await world.service.http.get("/metrics")).text
    found = re.findall(r"^factbook_(webhook\S+) (\S+)$", text, re.MULTILINE)
    return {name: float(value) for name, value in found}


async def test_what_a_webhook_was_not_told_yet_has_an_age(world: World, receiver: Receiver) -> None:
    await world.hook(f"{receiver.url}/down", "set.replaced")
    receiver.statuses["/down"] = 500
    await world.service.push("shop", component("web"))
    world.service.time.advance(60_000)
    await world.courier.drain()
    failing = await shown(world)
    assert failing['webhooks{state="enabled"}'] == 1
    assert failing['webhook_messages{state="waiting"}'] == 1
    assert failing['webhook_messages_sent_total{outcome="failed"}'] == 1
    # A minute after it happened it was tried for the first time.
    assert failing["webhook_oldest_timestamp_seconds"] == NOON / 1000 + 60
    receiver.statuses.clear()
    await world.later(3600)
    well = await shown(world)
    assert well['webhook_messages{state="waiting"}'] == 0
    assert well['webhook_messages_sent_total{outcome="delivered"}'] == 1
    assert "webhook_oldest_timestamp_seconds" not in well


async def test_a_webhook_that_is_gone_is_counted_as_disabled(
    world: World, receiver: Receiver
) -> None:
    await world.hook(f"{receiver.url}/gone", "set.replaced")
    receiver.statuses["/gone"] = 410
    await world.service.push("shop", component("web"))
    await world.courier.drain()
    found = await shown(world)
    assert found['webhooks{state="disabled"}'] == 1
    assert found['webhooks{state="enabled"}'] == 0
    assert "webhook_oldest_timestamp_seconds" not in found
