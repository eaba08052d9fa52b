"""What the service shows of how a source is doing."""

import re
from typing import Any

from factbook.clock import DAY, HOUR
from factbook.integrations import SOURCES
from tests.collection.madeup import Vendor, integration
from tests.collection.world import World
from tests.service import NOON


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
        "cadence_seconds": 3600,
        "rate_limit_remaining": 70,
        "credential_expiry_timestamp_seconds": (NOON + DAY) / 1000,
        "entitiescovered": 2,
        "entitiesfailed": 0,
        "entitiesincomplete": 0,
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
