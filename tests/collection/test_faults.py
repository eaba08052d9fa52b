"""What goes wrong in a run: no failure costs another entity its facts."""

from typing import Any

from factbook.clock import HOUR, MINUTE, SECOND
from factbook.integrations.integration import Integration
from factbook.scheduling.schedule import find_next_start
from tests.collection.madeup import DOWN, LIMITED, collector
from tests.collection.world import CLOSED, LATEST, OPEN, World
from tests.service import NOON, Service


async def test_a_failing_target_is_tried_again_and_costs_no_other_its_facts(world: World) -> None:
    await world.push("web", "shop", "bad")
    world.vendor.faults["acme/bad"] = DOWN
    await world.collector.drain()
    assert (await world.values("web"))[OPEN] == 0
    assert (await world.health()).last is None  # still under way
    for pause in (30 * SECOND, MINUTE):
        assert (await world.reasons("bad"))[""].startswith("upstream-error")
        world.service.time.advance(pause)
        await world.collector.drain()
    assert world.vendor.asked == {"acme/web": 1, "acme/shop": 1, "acme/bad": 3}
    assert await world.reasons("bad") == {"": "upstream-error: vendor.test: answered 502"}
    run = await world.last()
    assert (run.state, run.covered, run.failed) == ("partial", 2, 1)
    assert run.error == "upstream-error: vendor.test: answered 502"


async def test_a_target_that_recovers_within_the_run_is_covered(world: World) -> None:
    await world.push("web")
    world.vendor.faults[""] = DOWN
    await world.collector.drain()
    world.vendor.faults.clear()
    world.service.time.advance(30 * SECOND)
    await world.collector.drain()
    assert (await world.last()).covered == 1
    assert (await world.health()).down_since is None


async def test_a_target_that_breaks_the_integration_costs_no_other_its_facts(
    service: Service,
) -> None:
    world = World(service, size=20)
    names = [f"part-{number}" for number in range(20)]
    await world.push(*names)
    world.vendor.faults["acme/part-13"] = KeyError("nobody expected that")
    for _ in range(10):
        await world.collector.drain()
        world.service.time.advance(30 * SECOND)
    run = await world.last()
    assert (run.covered, run.failed) == (19, 1)
    assert await world.reasons("part-13") == {
        "": "upstream-error: the collection failed; the log has more"
    }


async def test_a_value_of_the_wrong_type_costs_no_other_value(world: World) -> None:
    await world.push("web")
    world.vendor.open["acme/web"] = "many"  # type: ignore[assignment]
    await world.collector.drain()
    assert await world.values("web") == {CLOSED: 0, LATEST: "of acme/web"}
    assert (await world.reasons("web"))[OPEN].startswith("upstream-error: expected")


async def test_a_vendor_that_never_answers_is_given_up_at_the_timeout(service: Service) -> None:
    world = World(service, minutes=1)
    await world.push("web", "shop", "blog", "wiki")

    async def hang() -> None:
        world.service.time.advance(HOUR)
        raise TimeoutError

    world.vendor.faults[""] = hang
    await world.collector.drain()
    run = await world.last()
    assert (run.state, run.failed) == ("failed", 4)
    assert world.vendor.asked.total() == 3  # the second batch was past the deadline
    assert "longer than its timeout" in (await world.reasons("wiki"))[""]


async def test_a_rate_limit_pauses_the_queue_until_it_is_reset(service: Service) -> None:
    world = World(service, size=1)
    await world.push("web", "shop", "blog")
    world.vendor.faults["acme/shop"] = LIMITED
    reset = NOON + 5 * MINUTE
    world.vendor.limit(0, reset)
    await world.collector.drain()
    assert world.vendor.asked.total() == 2
    world.service.time.now = reset - 1
    await world.collector.drain()
    assert world.vendor.asked.total() == 2
    world.vendor.faults.clear()
    world.service.time.now = reset
    await world.collector.drain()
    assert world.vendor.asked == {"acme/web": 1, "acme/shop": 2, "acme/blog": 1}
    run = await world.last()
    assert (run.covered, run.failed, run.rate_limit_left) == (3, 0, 0)


async def test_a_limit_that_no_counter_tells_pauses_the_queue_until_the_client_says(
    service: Service,
) -> None:
    world = World(service, size=1)
    await world.push("web", "shop")
    world.vendor.faults["acme/web"] = LIMITED
    world.vendor.limit(70, NOON + HOUR)
    resumes = world.vendor.client.counted.resumes_at = NOON + 7 * MINUTE
    await world.collector.drain()
    world.service.time.now = resumes - 1
    await world.collector.drain()
    assert world.vendor.asked == {"acme/web": 1}
    world.vendor.faults.clear()
    world.service.time.now = resumes
    await world.collector.drain()
    assert world.vendor.asked == {"acme/web": 2, "acme/shop": 1}


async def test_a_rate_limit_that_outlasts_the_run_keeps_the_last_values(service: Service) -> None:
    world = World(service, size=1)
    await world.push("web", "shop")
    await world.collector.drain()
    world.vendor.faults[""] = LIMITED
    start = find_next_start("vendor", "0 * * * *", NOON)
    world.vendor.limit(0, start + 50 * MINUTE)
    await world.next_run()
    world.service.time.advance(20 * MINUTE)
    await world.collector.drain()
    assert world.vendor.asked.total() == 3
    run = await world.last()
    assert (run.state, run.failed) == ("failed", 2)
    assert str(run.error).startswith("rate-limited")
    for name in ("web", "shop"):
        found = await world.facts(name)
        assert found is not None
        assert (found.facts[OPEN], found.written_at, found.reasons) == (0, NOON, {})


async def test_a_source_that_cannot_be_planned_is_down_and_runs_again(world: World) -> None:
    await world.push("web")
    broken = dict[str, Any](vars(world.integration))

    def fail(targets: object) -> list[list[str]]:
        raise ValueError("broken")

    broken["batches"] = fail
    pair = (world.vendor, Integration(**broken))
    worker = collector(world.database, pair, clock=world.service.time)
    await worker.drain()
    health = await world.health()
    assert (health.down_since, (await world.last()).state) == (NOON, "failed")
    await world.next_run()
    assert (await world.health()).down_since is None
