"""What `/metrics` says of webhooks."""

import re

from factbook.clock import DAY
from factbook.storage import Transaction
from factbook.webhooks import digests as webhook_digests
from tests.api.checking import DIGESTS
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


async def test_a_digest_that_does_not_arrive_is_counted(world: World, receiver: Receiver) -> None:
    service = world.service
    wanted = {"form": "slack", "url": f"{receiver.url}/digest", "cadence": "daily", "hour": 13}
    made = await service.http.post(DIGESTS, json=wanted)
    assert made.status_code == 201, made.text
    receiver.statuses["/digest"] = 500
    tried = await service.http.post(f"{DIGESTS}/{made.json()['id']}/test")
    assert tried.json()["delivered"] is False
    assert (await digests(world)) == (1, 0)

    def fail(tx: Transaction) -> None:
        claimed = webhook_digests.claim_digest(tx, NOON + 2 * DAY)
        assert claimed
        webhook_digests.fail_digest(tx, claimed, "answered 500", NOON + 2 * DAY, NOON + 3 * DAY)

    await service.state.database.write(fail)
    assert (await digests(world)) == (0, 1)


async def digests(world: World) -> tuple[float, float]:
    """The number of digests that arrive, and of those that do not."""
    text = (await world.service.http.get("/metrics")).text
    found = dict(re.findall(r"^factbook_digests\{state=\"(\w+)\"\} (\S+)$", text, re.MULTILINE))
    return float(found["arriving"]), float(found["failing"])
