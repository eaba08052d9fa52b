"""The clock is set back while the service runs: nothing is lost, refused or kept waiting for good.

Such as by an hour (a wrong time zone) or a year (a clock that was ahead and is corrected).
"""

import json
from functools import partial

import pytest

from factbook.clock import DAY, HOUR, MINUTE, SECOND, milliseconds
from factbook.events.store import number_new_events
from factbook.outbound.client import Governor
from factbook.outbound.outcomes import HostReply
from factbook.scheduling import run_queue
from factbook.scheduling.run_queue import Lane
from factbook.webhooks import sender
from factbook.worker import Worker
from tests.api.defining import define, item, latest, push, pushed
from tests.collection.madeup import DOWN, LIMITED
from tests.collection.world import OPEN, World
from tests.service import NOON, Service, Time, component, registry

YEAR = 365 * DAY
STEPS = pytest.mark.parametrize("step", [HOUR, YEAR], ids=["hour", "year"])
SET = "/api/catalog/factbook-entities/sets/all"


async def seen_at(service: Service) -> int | None:
    """When the token of the tests was used last, as its list tells."""
    listed = (await service.http.get("/api/access/v1/tokens")).json()["tokens"]
    [used] = [token["lastUsedAt"] for token in listed if token["name"] == "test"]
    return None if used is None else milliseconds(used)


@pytest.mark.slow
@pytest.mark.spec("faults.clock")
@STEPS
async def test_tokens_pushes_and_events_go_on_in_their_order(service: Service, step: int) -> None:
    for version in (1, 2):
        answer = await service.push("all", component("web", version=version))
        assert answer.status_code == 200
    before = (await service.http.get("/api/events")).json()
    service.time.advance(-step)
    answer = await service.push("all", component("web", version=3))
    assert (answer.status_code, answer.json()["revision"]) == (200, 3)
    match = {"if-match": answer.headers["etag"]}
    body = {"items": [component("web", version=4)]}
    assert (await service.http.put(SET, json=body, headers=match)).status_code == 200
    items = (await service.http.get(SET)).json()["items"]
    assert [one["entity"]["spec"]["version"] for one in items] == [4]
    revisions = (await service.http.get(f"{SET}/revisions")).json()["revisions"]
    assert [one["revision"] for one in revisions] == [4, 3, 2, 1]
    cursor = {"after": before["nextCursor"]}
    told = (await service.http.get("/api/events", params=cursor)).json()["events"]
    changed = [one["data"]["revision"] for one in told if one["type"] == "set.replaced"]
    assert changed == [3, 4]
    assert (await seen_at(service) or 0) <= service.time()


@pytest.mark.spec("faults.clock")
@STEPS
async def test_a_run_whose_worker_died_before_that_is_taken_over(world: World, step: int) -> None:
    await world.push("web", "shop", "blog", "wiki")
    await world.collector.begin_due()
    time = world.service.time
    lane = Lane("vendor token", 1, 0)
    take = partial(
        run_queue.take_batch, holder="dead", source_ids=["vendor"], lane=lane, now=time()
    )
    assert await world.database.write(take) is not None
    time.advance(-step)
    await passed(world, 3 * MINUTE)
    run = await world.last()
    assert (run.covered, run.failed) == (4, 0)
    assert world.vendor.asked.total() == 4


async def passed(world: World, duration: int, pause: int = 20 * SECOND) -> None:
    """Let so much time pass in which the collector works."""
    for _ in range(duration // pause):
        world.service.time.advance(pause)
        await world.collector.drain()


@pytest.mark.slow
@pytest.mark.spec("faults.clock")
@STEPS
async def test_sources_are_collected_at_their_cadence_again(world: World, step: int) -> None:
    await world.push("web")
    await passed(world, MINUTE)
    assert world.vendor.asked.total() == 1
    world.service.time.advance(-step)
    await passed(world, 4 * HOUR, 5 * MINUTE)
    assert 4 <= world.vendor.asked.total() - 1 <= 5
    assert (await world.health()).down_since is None


async def test_a_process_that_collects_looks_for_what_is_due_at_once(world: World) -> None:
    await world.collector.tick()
    world.service.time.advance(-YEAR)
    await world.push("web")
    await world.collector.tick()
    assert world.vendor.asked.total() == 1


@pytest.mark.slow
@STEPS
async def test_a_pause_of_a_rate_limit_ends_within_its_longest_time(
    world: World, step: int
) -> None:
    await world.push("web")
    world.vendor.faults[""] = LIMITED
    world.vendor.limit(0, NOON + 5 * MINUTE)
    await passed(world, MINUTE)
    world.vendor.faults.clear()
    world.service.time.advance(-step)
    await passed(world, min(step, DAY) + HOUR, 10 * MINUTE)
    assert (await world.last()).covered == 1


@STEPS
async def test_a_governor_holds_no_call_for_longer_than_a_day(step: int) -> None:
    time = Time()
    governor = Governor(clock=time)
    governor.learn("", HostReply(429, {"retry-after": "3600"}), refused=True)
    assert governor.held_until() == NOON + HOUR
    time.advance(-step)
    held = governor.held_until()
    assert held is None or held - time() <= DAY


@STEPS
async def test_the_work_of_a_process_that_died_before_that_is_taken_over(
    service: Service, step: int
) -> None:
    def worker(holder: str) -> Worker:
        state = service.state
        return Worker(state.database, state.settings, registry(service), service.time, holder)

    assert await worker("dead").work()
    service.time.advance(-step)
    other, rounds = worker("other"), 0
    while not await other.work():
        rounds += 1
        service.time.advance(10 * MINUTE)
    assert rounds <= 3


@STEPS
async def test_messages_that_wait_to_be_sent_again_are_not_forgotten(
    service: Service, step: int
) -> None:
    made = await service.http.post("/api/events/webhooks", json={"url": "https://a.test/"})
    hook, database = made.json()["id"], service.state.database
    await service.push("all", component("web"))
    await number_new_events(database)
    claimed = await database.write(
        lambda tx: sender.claim_webhook(tx, hook, "a", service.time(), 8)
    )
    assert claimed is not None
    message = sender.WebhookMessage("e", "set.replaced", "{}", service.time(), 0)
    failed = [sender.SentMessage(message, "answered 500")]
    finish = partial(sender.finish_delivery, claimed=claimed, sent=failed, place=claimed.next)
    await database.write(lambda tx: finish(tx, now=service.time()))
    service.time.advance(-step)
    service.time.advance(min(step, 9 * HOUR) + MINUTE)
    assert await sender.list_due_webhooks(database, service.time()) == [hook]


@pytest.mark.slow
@pytest.mark.spec("faults.clock")
@STEPS
async def test_pushed_facts_become_the_latest_and_history_keeps_them(
    service: Service, step: int
) -> None:
    await service.push("all", component("web"))
    lifecycle = {"maxItems": 3}
    await define(service, pushed(lifecycle=lifecycle))
    for lines in (1, 2, 3):
        service.time.advance(MINUTE)
        await push(service, item(lines=lines))
    service.time.advance(-step)
    for lines in (4, 5, 6, 7):
        service.time.advance(MINUTE)
        pushed_ = await push(service, item(lines=lines))
        assert pushed_["items"][0]["latest"] is True
        assert (await latest(service))["component:default/web"]["lines"] == lines
    await housekeeping(service)
    assert await kept_lines(service) == {1, 2, 3, 5, 6, 7}
    # Once those times have come again, they count as any.
    service.time.advance(step + HOUR)
    await push(service, item(lines=8))
    await housekeeping(service)
    assert await kept_lines(service) == {2, 3, 8}


async def housekeeping(service: Service) -> None:
    state = service.state
    known = registry(service, tuple((await state.registry.latest()).sources.values()))
    assert await Worker(state.database, state.settings, known, service.time, "a").work()


async def kept_lines(service: Service) -> set[int]:
    rows = await service.state.database.all(
        "SELECT facts FROM facts_history WHERE source_id = 'coverage'"
    )
    return {json.loads(text)["lines"] for (text,) in rows}


async def test_values_of_a_time_far_ahead_expire_when_the_vendor_fails(world: World) -> None:
    await world.push("web")
    await passed(world, MINUTE)
    world.service.time.advance(-YEAR)
    world.vendor.faults[""] = DOWN
    await passed(world, 2 * HOUR, 5 * MINUTE)
    assert await world.values("web") == {}
    world.vendor.faults.clear()
    await passed(world, 2 * HOUR, 5 * MINUTE)
    assert (await world.values("web"))[OPEN] == 0


@pytest.mark.slow
@pytest.mark.spec("faults.clock")
async def test_a_clock_that_leaps_ahead_takes_next_to_nothing_of_what_is_kept(
    service: Service,
) -> None:
    for version in range(4):
        await service.push("all", component("web", version=version))
        service.time.advance(HOUR)
    state = service.state
    worker = Worker(state.database, state.settings, registry(service), service.time, "a")
    assert await worker.work()
    before = await kept(service)
    service.time.advance(YEAR)
    for _ in range(6):
        service.time.advance(10 * MINUTE)
        assert await worker.work()
    service.time.advance(-YEAR)
    assert await worker.work()
    assert await kept(service) == before


async def kept(service: Service) -> dict[str, int]:
    """How much of everything that is trimmed after a time there is."""
    tables = "revisions", "events", "audit", "sessions", "facts_history"
    rows = {
        table: await service.state.database.one(f"SELECT COUNT(*) FROM {table}")  # noqa: S608 - ours
        for table in tables
    }
    return {table: row[0] for table, row in rows.items() if row is not None}
