"""The state of a source: the same word, whoever asks."""

import re
from typing import Any

import pytest

from factbook.clock import DAY, HOUR
from factbook.integrations import SOURCES
from factbook.operations.doctor import examination
from factbook.operations.doctor.database import Finding
from tests.collection.madeup import DOWN, Vendor, integration
from tests.collection.world import LATEST, World


async def told(world: World) -> dict[str, Any]:
    """The state as discovery, the metrics and the doctor give it."""
    discovery = await world.service.facts("get-data-source-discovery")
    [health] = [one["health"] for one in discovery["dataSources"] if one["id"] == "vendor"]
    metrics = (await world.service.http.get("/metrics")).text
    [metric] = re.findall(r'factbook_source_state{source="vendor",state="(\w+)"} 1', metrics)
    [up] = re.findall(r'factbook_source_up{source="vendor"} (\S+)', metrics)
    found: list[Finding] = []
    source = world.integration.source
    async for finding in examination.check_sources(
        world.database, [source], world.service.time.now
    ):
        found.append(finding)
    return {"discovery": health["state"], "metric": metric, "up": float(up), "doctor": found[0]}


@pytest.fixture
async def world(start: Any) -> World:
    source = integration(Vendor()).source
    return World(await start(sources=[*SOURCES, source]))


async def attempts(world: World) -> None:
    for _ in range(4):
        world.service.time.advance(2 * 60_000)
        await world.collector.drain()


@pytest.mark.spec("collecting.one-state")
@pytest.mark.parametrize(
    ("fault", "state"), [({}, "up"), ({LATEST: DOWN}, "partial"), (DOWN, "down")]
)
async def test_discovery_metrics_and_doctor_give_one_state(
    world: World, fault: Any, state: str
) -> None:
    await world.push("web")
    world.vendor.faults[""] = fault
    await world.collector.drain()
    await attempts(world)
    found = await told(world)
    assert (found["discovery"], found["metric"]) == (state, state)
    assert found["up"] == float(state == "up")
    assert (found["doctor"].state == "ok") is (state == "up")


async def test_a_source_that_nobody_collects_is_late_everywhere(world: World) -> None:
    await world.push("web")
    await world.collector.drain()
    world.service.time.advance(DAY + HOUR)
    found = await told(world)
    assert (found["discovery"], found["metric"], found["up"]) == ("late", "late", 0)
    assert found["doctor"].state != "ok"
