"""Runs of a source: what is collected when, and what is stored of it, on both databases."""

import asyncio
import re
from typing import Any

import pytest

from factbook import collecting
from factbook.clock import DAY, HOUR, MINUTE, SECOND
from factbook.collecting import Collector
from factbook.facts import store
from factbook.facts.store import Latest
from factbook.scheduling import engine, runs
from factbook.scheduling.runs import Run
from factbook.scheduling.starts import next_start
from factbook.sources import SOURCES
from factbook.sources.integration import Integration
from factbook.storage import Transaction
from factbook.worker import Worker
from tests.collecting.madeup import (
    DENIED,
    DOWN,
    LIMITED,
    Vendor,
    collector,
    integration,
    repository,
)
from tests.service import NOON, Service, component

OPEN, CLOSED, LATEST = "codehost.issues.open", "codehost.issues.closed", "codehost.latest"


class World:
    """A service, a vendor, and a collector between them that a test tells when to work."""

    def __init__(self, service: Service, **options: Any) -> None:
        self.service = service
        self.database = service.state.database
        self.vendor = Vendor()
        self.integration = integration(self.vendor, **options)
        self.collector = self.another("a")

    def another(self, holder: str) -> Collector:
        pair = (self.vendor, self.integration)
        return collector(self.database, pair, clock=self.service.time, holder=holder)

    async def push(self, *names: str) -> None:
        assert (await self.service.push("all", *map(repository, names))).status_code == 200

    async def next_run(self) -> int:
        """Go on to the source's next start, and do what is due."""
        time = self.service.time
        time.now = next_start("vendor", "0 * * * *", time.now)
        await self.collector.drain()
        return time.now

    async def facts(self, name: str, source: str = "vendor") -> Latest | None:
        row = await self.database.one(
            "SELECT id FROM entities WHERE ref = ?", (f"component:default/{name}",)
        )
        assert row is not None
        return await store.latest(self.database, source, row[0])

    async def values(self, name: str) -> dict[str, Any]:
        found = await self.facts(name)
        return {} if found is None else found.facts

    async def reasons(self, name: str) -> dict[str, str]:
        found = await self.facts(name)
        return {} if found is None else found.reasons

    async def health(self) -> runs.Health:
        return (await runs.health(self.database))["vendor"]

    async def last(self) -> Run:
        found = (await self.health()).last
        assert found is not None
        return found

    async def count(self, table: str) -> int:
        row = await self.database.one(f"SELECT COUNT(*) FROM {table}")  # noqa: S608 - own words
        assert row is not None
        return int(row[0])


@pytest.fixture
def world(service: Service) -> World:
    return World(service)


# What is collected


async def test_a_run_collects_every_entity_that_the_filter_lets_through(world: World) -> None:
    names = [f"part-{number}" for number in range(7)]
    pushed = [*map(repository, names), component("unmapped")]
    await world.service.push("all", *pushed)
    world.vendor.open.update({"acme/part-0": 4})
    await world.collector.drain()
    found = await world.facts("part-0")
    values = {OPEN: 4, CLOSED: 0, LATEST: "of acme/part-0"}
    assert found == Latest(values, {}, "1.0.0", NOON)
    assert await world.facts("unmapped") is None
    assert set(world.vendor.asked) == {f"acme/{name}" for name in names}
    run = await world.last()
    assert (run.state, run.covered, run.failed, run.calls) == ("done", 7, 0, 3)
    assert await world.count("batches") == 0


async def test_a_source_runs_once_for_each_moment_of_its_cadence(world: World) -> None:
    await world.push("web")
    await world.collector.drain()
    await world.collector.drain()
    assert world.vendor.asked.total() == 1
    start = next_start("vendor", "0 * * * *", NOON)
    assert NOON < start < NOON + 15 * MINUTE
    world.service.time.now = start - 1
    await world.collector.drain()
    assert world.vendor.asked.total() == 1
    world.service.time.now = start
    await world.collector.drain()
    assert world.vendor.asked.total() == 2
    world.service.time.advance(5 * DAY)
    await world.collector.drain()
    assert world.vendor.asked.total() == 3  # one makes up for all that were missed


async def test_entities_that_point_to_the_same_share_one_answer(world: World) -> None:
    pushed = [repository(f"part-{number}", "acme/mono") for number in range(5)]
    await world.service.push("all", *pushed)
    world.vendor.open["acme/mono"] = 9
    await world.collector.drain()
    assert world.vendor.asked == {"acme/mono": 1}
    for number in range(5):
        assert (await world.values(f"part-{number}"))[OPEN] == 9
    assert (await world.last()).covered == 5


async def test_entities_without_a_target_are_skipped_with_the_reason_stored_once(
    world: World,
) -> None:
    await world.service.push("all", repository("web"), repository("odd", "no-slash"))
    await world.collector.drain()
    assert await world.reasons("odd") == {"": "no-annotation: not owner/name"}
    run = await world.last()
    assert (run.state, run.covered, run.skipped) == ("done", 1, 1)
    rows = await world.count("facts_history")
    await world.next_run()
    assert await world.count("facts_history") == rows + 1  # of web alone


async def test_an_entity_whose_annotations_break_the_integration_costs_no_other_its_facts(
    world: World,
) -> None:
    await world.service.push("all", repository("web"), repository("odd", "broken"))
    await world.collector.drain()
    assert (await world.values("web"))[LATEST] == "of acme/web"
    assert (await world.reasons("odd"))[""].startswith("upstream-error: ")
    run = await world.last()
    assert (run.state, run.covered, run.failed) == ("partial", 1, 1)


async def test_an_entity_that_loses_its_annotation_loses_its_latest_facts(world: World) -> None:
    await world.push("web", "shop")
    await world.collector.drain()
    await world.service.push("all", component("web"), repository("shop"))
    await world.next_run()
    assert await world.facts("web") is None
    assert await world.facts("shop") is not None


async def test_a_draft_is_collected_on_demand_only(service: Service) -> None:
    world = World(service, draft=True)
    await world.push("web")
    await world.collector.drain()
    assert world.vendor.asked.total() == 0


async def test_a_large_catalog_is_read_in_portions(world: World) -> None:
    count = 1_200
    await world.push(*(f"part-{number}" for number in range(count)))
    await world.collector.drain()
    run = await world.last()
    assert (run.covered, len(world.vendor.asked)) == (count, count)
    assert set(world.vendor.asked.values()) == {1}


async def test_what_was_not_collected_for_longest_comes_first(service: Service) -> None:
    world = World(service, size=1)
    await world.push("old")
    await world.collector.drain()
    await world.push("old", "new")
    world.service.time.now = next_start("vendor", "0 * * * *", world.service.time.now)
    await world.collector.begin_due()
    rows = await world.database.all("SELECT work FROM batches ORDER BY number")
    assert ["new" in work for (work,) in rows] == [True, False]


# What goes wrong


async def test_a_failing_target_is_tried_again_and_costs_no_other_its_facts(world: World) -> None:
    await world.push("web", "shop", "bad")
    world.vendor.faults["acme/bad"] = DOWN
    await world.collector.drain()
    assert (await world.values("web"))[OPEN] == 0
    assert (await world.health()).last is None  # still under way
    for pause in (30 * SECOND, MINUTE):
        assert await world.facts("bad") is None
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


async def test_a_rate_limit_that_outlasts_the_run_keeps_the_last_values(service: Service) -> None:
    world = World(service, size=1)
    await world.push("web", "shop")
    await world.collector.drain()
    world.vendor.faults[""] = LIMITED
    start = next_start("vendor", "0 * * * *", NOON)
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


# Several workers


async def test_two_workers_share_a_run_and_double_nothing(service: Service) -> None:
    world = World(service, size=1, at_once=4)
    await world.push(*(f"part-{number}" for number in range(60)))
    workers = [world.another(f"w{number}") for number in range(4)]
    await asyncio.gather(*(worker.drain() for worker in workers))
    assert set(world.vendor.asked.values()) == {1}
    assert (await world.last()).covered == 60
    assert await world.count("facts_history") == 60
    assert await world.count("runs") == 1


async def test_a_worker_that_falls_silent_loses_its_batch_and_stores_nothing(
    world: World,
) -> None:
    await world.push("web")
    asked, answer = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        asked.set()
        await answer.wait()

    world.vendor.faults[""] = wait
    silent = asyncio.create_task(world.collector.drain())
    await asked.wait()
    world.vendor.faults.clear()
    world.service.time.advance(engine.HELD)
    await world.another("b").drain()
    world.vendor.open["acme/web"] = 99
    answer.set()
    await silent
    assert (await world.values("web"))[OPEN] == 0
    assert await world.count("facts_history") == 1


async def test_a_worker_that_renews_keeps_its_batch(world: World) -> None:
    await world.push("web")
    asked, answer = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        asked.set()
        await answer.wait()

    world.vendor.faults[""] = wait
    slow = asyncio.create_task(world.collector.drain())
    await asked.wait()
    for _ in range(9):
        world.service.time.advance(engine.RENEWED_EVERY)
        await world.collector.renew()
    await world.another("b").drain()
    answer.set()
    await slow
    assert world.vendor.asked.total() == 1
    assert (await world.last()).covered == 1


async def test_a_worker_that_stops_leaves_its_batch_to_others_at_once(world: World) -> None:
    await world.push("web")
    asked = asyncio.Event()

    async def hang() -> None:
        asked.set()
        await asyncio.Event().wait()

    world.vendor.faults[""] = hang
    await world.collector.begin_due()
    await world.collector.take()
    await asked.wait()
    await world.collector.stop()
    world.vendor.faults.clear()
    await world.another("b").drain()
    assert (await world.last()).covered == 1


# Memory


async def test_an_integration_remembers_from_run_to_run_until_its_days_are_over(
    world: World,
) -> None:
    await world.push("web")
    world.vendor.remembers = True
    await world.collector.drain()
    await world.next_run()
    assert world.vendor.recalled == [None, b"acme/web"]
    assert await world.count("memories") == 2
    world.service.time.advance(2 * DAY)
    await world.collector.drain()
    assert world.vendor.recalled[2:] == [None]
    later = world.service.time() + 2 * DAY

    def sweep(transaction: Transaction) -> int:
        return collecting.sweep_memories(transaction, ["vendor"], later)

    assert await world.database.write(sweep) == 1
    gone = later + 40 * DAY
    without = await world.database.write(
        lambda transaction: collecting.sweep_memories(transaction, ["another"], gone)
    )
    assert (without, await world.count("memories")) == (1, 0)


# Asked for


def worker(world: World) -> Worker:
    state = world.service.state
    return Worker(state.database, state.settings, SOURCES, world.service.time, "a", world.collector)


@pytest.mark.spec("catalog.refresh")
async def test_refreshing_an_entity_collects_it_from_every_integration(world: World) -> None:
    await world.push("web", "shop")
    await world.collector.drain()
    world.vendor.open["acme/web"] = 5
    world.service.time.advance(SECOND)
    body = {"entityRef": "component:web"}
    answer = await world.service.http.post("/api/catalog/refresh", json=body)
    assert answer.status_code == 200
    assert await worker(world).collect() == 1
    await world.collector.drain()
    assert (await world.values("web"))[OPEN] == 5
    assert world.vendor.asked == {"acme/web": 2, "acme/shop": 1}
    assert (await world.last()).covered == 2  # the figures of the source are those of whole runs


async def test_what_is_asked_for_comes_before_the_rest_of_a_run(service: Service) -> None:
    world = World(service, size=1)
    await world.push("a", "b", "c")
    await world.collector.begin_due()
    await world.service.http.post("/api/catalog/refresh", json={"entityRef": "component:c"})
    await worker(world).collect()
    [first] = await world.database.write(
        lambda transaction: engine.claim(transaction, "x", ["vendor"], 1, NOON)
    )
    assert "acme/c" in first.work


async def test_a_denied_value_is_unknown_at_once_and_a_failing_one_is_kept(world: World) -> None:
    await world.push("web")
    await world.collector.drain()
    world.vendor.faults["acme/web"] = {"codehost.issues": DOWN, LATEST: DENIED}
    when = await world.next_run()
    found = await world.facts("web")
    assert found is not None
    assert found.facts == {OPEN: 0, CLOSED: 0}
    assert found.kept == {OPEN: NOON, CLOSED: NOON}
    assert (found.reasons, found.written_at) == ({LATEST: "forbidden"}, when)


async def test_values_are_kept_through_three_failing_runs_and_expire_with_the_fourth(
    world: World,
) -> None:
    await world.push("web", "new")
    world.vendor.faults["acme/new"] = DOWN
    await world.collector.drain()
    world.vendor.faults[""] = DOWN
    seen = []
    for _ in range(5):
        await world.next_run()
        for _ in range(3):
            world.service.time.advance(MINUTE)
            await world.collector.drain()
        found = await world.facts("web")
        assert found is not None
        seen.append((found.facts.get(OPEN), found.written_at - NOON, found.reasons.get("")))
    kept, expired = (0, 0, None), (None, 0, "expired")
    assert seen == [kept, kept, kept, expired, expired]
    assert (await world.reasons("new"))[""].startswith("upstream-error")
    world.vendor.faults.clear()
    when = await world.next_run()
    found = await world.facts("web")
    assert found is not None
    assert (found.facts[OPEN], found.reasons, found.written_at) == (0, {}, when)


async def test_an_entity_that_was_never_collected_has_no_time(start: Any) -> None:
    vendor = Vendor()
    source = integration(vendor).source
    world = World(await start(sources=[*SOURCES, source]))
    await world.push("web")
    world.vendor.faults[""] = LIMITED
    world.vendor.limit(0, NOON + HOUR)
    await world.collector.drain()
    found = await world.service.facts("get-entity-facts", dataSourceId="vendor", name="web")
    assert found["facts"] == {}
    assert "timestamp" not in found


async def test_facts_of_an_entity_that_went_meanwhile_are_not_stored(world: World) -> None:
    await world.push("web", "shop")
    await world.collector.begin_due()
    await world.push("shop")
    await world.collector.drain()
    assert await world.count("facts_latest") == 1


async def test_metrics_show_how_a_source_is_doing(start: Any) -> None:
    vendor = Vendor()
    source = integration(vendor).source
    world = World(await start(sources=[*SOURCES, source]))
    await world.push("web", "shop")
    world.vendor.limit(70, NOON + HOUR)
    world.vendor.client.counted.credential_expires_at = NOON + DAY
    await world.collector.drain()
    shown = (await world.service.http.get("/metrics")).text
    found = re.findall(r'factbook_source_(\w+){(?:outcome="(\w+)",)?source="vendor"} (\S+)', shown)
    figures = {name + outcome: float(number) for name, outcome, number in found}
    assert NOON / 1000 < figures.pop("next_run_timestamp_seconds") < (NOON + HOUR) / 1000
    assert figures == {
        "up": 1,
        "last_success_timestamp_seconds": NOON / 1000,
        "last_run_duration_seconds": 0,
        "last_run_calls": 1,
        "rate_limit_remaining": 70,
        "credential_expiry_timestamp_seconds": (NOON + DAY) / 1000,
        "entitiescovered": 2,
        "entitiesfailed": 0,
        "entitiesskipped": 0,
    }


async def test_discovery_shows_how_a_source_is_doing(start: Any) -> None:
    vendor = Vendor()
    source = integration(vendor).source
    world = World(await start(sources=[*SOURCES, source]))
    await world.push("web")
    world.vendor.limit(70, NOON + HOUR)
    await world.collector.drain()
    found = await world.service.facts("get-data-source-discovery")
    [shown] = [one for one in found["dataSources"] if "health" in one]
    assert shown["id"] == "vendor"
    health = shown["health"]
    assert health["state"] == "up"
    assert health["lastSuccess"] == "2026-11-21T12:00:00.000+00:00"
    assert health["nextRun"].startswith("2026-11-21T12:1")
    run = health["lastRun"]
    assert (run["covered"], run["failed"], run["skipped"], run["calls"]) == (1, 0, 0, 1)
    assert (run["state"], run["rateLimitLeft"]) == ("done", 70)
