"""A run that waits for a rate limit is described by every interface, with what is left to do."""

from collections.abc import Callable
from typing import Any

import pytest

from factbook.cli import sources
from factbook.cli.sources import Lines
from factbook.clock import MINUTE, iso
from factbook.facts import freshness
from factbook.integrations import SOURCES
from factbook.operations import commands
from factbook.operations.commands import SourceStatus
from factbook.scheduling import runs
from factbook.scheduling.runs import RunRecord
from tests.collection.madeup import LIMITED, Vendor, integration
from tests.collection.world import World
from tests.conftest import StartService
from tests.service import NOON
from tests.web.visiting import signed_in, words

UNTIL = NOON + 39 * MINUTE
WAIT = "waiting for the rate limit until 12:39 UTC, 2 of 5 entities left"


@pytest.fixture
async def world(start: StartService) -> World:
    """A run that has collected three entities when the limit is reached."""
    source = integration(Vendor(), size=1, minutes=60).source
    world = World(await start(sources=[*SOURCES, source]), size=1, minutes=60)
    await world.push("a", "b", "c", "d", "e")
    world.vendor.faults |= {"acme/d": LIMITED, "acme/e": LIMITED}
    world.vendor.limit(0, UNTIL)
    await world.collector.drain()
    return world


async def shown(world: World) -> dict[str, str]:
    """What each interface says of the source or of its run."""
    service, database, now = world.service, world.database, world.service.time()
    source, known = world.integration.source, await world.health()
    found: dict[str, Any] = {}
    status = SourceStatus(source, known, None, now)
    found["factbook sources"] = sources.tabulate_sources([status]).rows[0][1]
    found["factbook sources --json"] = sources.source_json(status)["health"].get("reason")
    detail = await commands.read_source_detail(database, source, now, failed=False)
    found["factbook sources show"] = detail.condition.reason
    tool = await service.facts("get-data-source-discovery")
    [told] = [one["health"] for one in tool["dataSources"] if one["id"] == "vendor"]
    found["get-data-source-discovery"] = told.get("reason")
    browser = await signed_in(service, f"viewer-{now}", role="viewer")
    [run, *_] = await runs.list_recent_runs(database, "vendor", 1)
    for path in (
        "/data-sources",
        "/data-sources/vendor",
        "/data-sources/vendor/runs",
        f"/data-sources/vendor/runs/{run.id}",
    ):
        found[path] = words(await browser.text(path))
    return {name: text or "" for name, text in found.items()}


async def test_a_wait_is_described_everywhere_until_its_end(world: World) -> None:
    silent = {name: text for name, text in (await shown(world)).items() if WAIT[1:] not in text}
    assert silent == {}
    rest = "/api/tech-insights/v1/data-sources/vendor/runs"
    [run] = (await world.service.http.get(rest)).json()["runs"]
    assert run["waitsUntil"] == iso(UNTIL)
    assert (run["entities"], run["covered"], run["rateLimitLeft"]) == (5, 3, 0)
    one = (await world.service.http.get(f"{rest}/{run['id']}")).json()
    assert one["waitsUntil"] == iso(UNTIL)
    rendered = freshness.render_health(
        world.integration.source, await world.health(), world.service.time()
    )
    assert rendered["wait"] == {
        "until": iso(UNTIL),
        "entities": 5,
        "left": 2,
        "rateLimitLeft": 0,
    }
    world.service.time.now = UNTIL
    assert {name for name, text in (await shown(world)).items() if "waiting for" in text} == set()
    assert (await world.service.http.get(rest)).json()["runs"][0]["waitsUntil"] is None
    world.vendor.faults.clear()
    world.vendor.limit(100, None)
    await world.collector.drain()
    assert (await world.last()).state == "done"
    assert (await world.last()).resumes_at is None


async def test_a_wait_until_another_day_has_its_date(world: World) -> None:
    found = (await world.health()).running
    assert found is not None
    assert "until 2026-11-21 12:39 UTC" in found.wait(NOON - 24 * 60 * MINUTE)


def lines(now: Callable[[], int], *shown: RunRecord) -> None:
    """Show how far a run is, a second apart."""
    passed = iter(range(1_000))
    told = Lines("github", lambda: float(next(passed)), now)
    for run in shown:
        told.show(run)


def test_a_command_that_collects_says_at_once_that_it_waits(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = RunRecord(1, "github", True, "asked", 0, 0, None, 5, 3, 0, 0, 4, 0, None)
    waiting = run._replace(resumes_at=UNTIL)
    lines(lambda: NOON, run, waiting, waiting, run)
    assert capsys.readouterr().err.splitlines() == ["Collecting github", f"github: {WAIT}"]
