"""Runs in which single facts fail: counted, shown, and only they are asked for again."""

from typing import Any

import pytest

from factbook.clock import MINUTE, SECOND
from factbook.integrations import SOURCES
from factbook.outbound.outcomes import Missing, Outcome
from factbook.scheduling import runs
from tests.collection.madeup import DOWN, LIMITED, Vendor, integration
from tests.collection.world import CLOSED, LATEST, OPEN, World
from tests.service import NOON

EXPIRED = Missing(Outcome.REFUSED, "vendor.test: answered 401; the credential has expired")


async def ended(world: World) -> None:
    """Let the attempts of the run go by."""
    await world.collector.drain()
    for _ in range(3):
        world.service.time.advance(MINUTE)
        await world.collector.drain()


@pytest.mark.spec("collecting.partial-runs")
async def test_a_run_in_which_one_fact_fails_for_a_passing_reason_is_partial(world: World) -> None:
    await world.push("web", "shop")
    world.vendor.faults["acme/web"] = {LATEST: DOWN}
    await ended(world)
    run = await world.last()
    assert (run.state, run.covered, run.failed, run.incomplete) == ("partial", 2, 0, 1)
    assert run.error == "upstream-error: vendor.test: answered 502"
    [gap] = await runs.list_gaps(world.database, run.id)
    assert (gap.place, gap.kind, gap.entities) == (LATEST, "passing", 1)


async def test_only_the_targets_with_failing_facts_are_asked_again(world: World) -> None:
    await world.push("web", "shop")
    world.vendor.faults["acme/web"] = {LATEST: DOWN}
    await ended(world)
    assert world.vendor.asked == {"acme/web": 3, "acme/shop": 1}


async def test_what_came_with_a_failing_fact_is_stored_at_once(world: World) -> None:
    await world.push("web")
    world.vendor.faults["acme/web"] = {LATEST: DOWN}
    await world.collector.drain()
    assert await world.values("web") == {OPEN: 0, CLOSED: 0}
    assert (await world.health()).last is None  # still under way


async def test_a_fact_that_recovers_within_the_run_leaves_no_trace(world: World) -> None:
    await world.push("web")
    world.vendor.faults["acme/web"] = {LATEST: DOWN}
    await world.collector.drain()
    world.vendor.faults.clear()
    world.service.time.advance(30 * SECOND)
    await world.collector.drain()
    run = await world.last()
    assert (run.state, run.covered, run.incomplete, run.error) == ("done", 1, 0, None)
    assert (await world.values("web"))[LATEST] == "of acme/web"


async def test_a_limit_on_single_facts_continues_in_the_same_run(world: World) -> None:
    await world.push("web")
    world.vendor.faults["acme/web"] = {LATEST: LIMITED}
    reset = NOON + 5 * MINUTE
    world.vendor.limit(0, reset)
    await world.collector.drain()
    world.vendor.faults.clear()
    world.service.time.now = reset
    await world.collector.drain()
    assert (await world.last()).state == "done"
    assert await world.reasons("web") == {}


@pytest.mark.spec("collecting.refused-credentials-say-nothing")
async def test_a_refused_credential_keeps_values_and_is_not_tried_again(world: World) -> None:
    await world.push("web")
    await world.collector.drain()
    world.vendor.faults[""] = EXPIRED
    await world.next_run()
    run = await world.last()
    assert (run.state, run.failed) == ("failed", 1)
    assert world.vendor.asked == {"acme/web": 2}
    assert (await world.values("web"))[LATEST] == "of acme/web"


async def test_a_refused_credential_is_no_change_to_null(start: Any) -> None:
    vendor = Vendor()
    world = World(await start(sources=[*SOURCES, integration(vendor).source]))
    await world.push("web")
    await world.collector.drain()
    world.vendor.faults[""] = EXPIRED
    await world.next_run()
    changed = await world.service.facts(
        "get-changed-facts", since="2026-11-21T00:00:00Z", dataSourceId="vendor"
    )
    assert changed["changes"] == []


async def test_the_error_of_a_run_is_the_commonest_of_all_its_batches(world: World) -> None:
    names = [f"part-{number}" for number in range(9)]
    await world.push(*names)
    for name in names[:6]:
        world.vendor.faults[f"acme/{name}"] = EXPIRED
    for name in names[6:]:
        world.vendor.faults[f"acme/{name}"] = Missing(Outcome.NOT_FOUND, "no such repository")
    await ended(world)
    assert "expired" in str((await world.last()).error)


async def test_a_right_that_is_lacking_for_every_entity_makes_a_run_partial(world: World) -> None:
    await world.push("web", "shop")
    world.vendor.faults[""] = {LATEST: Missing(Outcome.DENIED, "vendor.test: answered 403")}
    await ended(world)
    run = await world.last()
    assert (run.state, run.error) == ("partial", "forbidden: vendor.test: answered 403")


async def test_what_one_entity_does_not_show_makes_no_run_partial(world: World) -> None:
    await world.push("web", "shop")
    world.vendor.faults["acme/web"] = {LATEST: Missing(Outcome.DENIED)}
    await ended(world)
    assert (await world.last()).state == "done"


async def test_skipped_entities_are_counted_by_their_reason(world: World) -> None:
    service = world.service
    entity = {"apiVersion": "backstage.io/v1alpha1", "kind": "Component"}
    metadata = {"name": "x", "annotations": {"vendor.test/slug": "nonsense"}}
    spec = {"type": "service", "lifecycle": "production", "owner": "a"}
    await service.push("other", entity | {"metadata": metadata, "spec": spec})
    await ended(world)
    run = await world.last()
    [gap] = await runs.list_gaps(world.database, run.id)
    assert (run.state, gap.kind, gap.entities) == ("done", "skipped", 1)
    assert gap.reason.startswith("no-annotation")
