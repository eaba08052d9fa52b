"""From a Prometheus to the tools: what tool calls say of a service, leaf by leaf."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from factbook.clock import DAY, MINUTE, iso
from factbook.integrations import SOURCES
from tests.collection.tools import ToolWorld
from tests.conftest import StartService
from tests.fakes.faults import Fault, saying, unavailable
from tests.fakes.prometheus import Server
from tests.integrations.prometheus import asking as example
from tests.service import NOON, Service, component

Make = Callable[..., Awaitable["World"]]
OBSERVABILITY = "get-observability-metrics"
ANNOTATION = "prometheus.io/service"


def mapped(name: str, service: str = "checkout", **annotations: str) -> dict[str, Any]:
    """A component that points to a service."""
    entity = component(name)
    entity["metadata"]["annotations"] = {ANNOTATION: service} | annotations
    return entity


def everything(shape: str) -> dict[str, Any]:
    """What the shape's tool says of `checkout` when all is known."""
    prefix = f"{shape}."
    return {
        name.removeprefix(prefix): value
        for name, value in example.EVERYTHING.items()
        if name.startswith(prefix)
    }


NEVER = {name.removeprefix("incident."): word for name, word in example.NEVER.items()}
INFO = {name: value for name, value in everything("incident").items() if "serviceInfo" in name}
METRICS = {name: value for name, value in everything("incident").items() if name not in INFO}


class World(ToolWorld):
    """A service, a Prometheus with its Alertmanager, and the collector between them."""

    def __init__(self, service: Service, server: Server | None, table: dict[str, Any]) -> None:
        self.fake, asking = example.started(server, **table)
        super().__init__(service, asking)

    async def incident(self, name: str = "checkout") -> tuple[dict[str, Any], dict[str, str]]:
        """Every leaf of the incident metrics, and the reasons."""
        return await self.told("incident", name)

    async def refusal(self, name: str = "checkout") -> str:
        """Why there are no observability metrics."""
        return await self.service.refusal(OBSERVABILITY, name=name)


@pytest.fixture
async def make(start: StartService) -> Make:
    async def make(server: Server | None = None, **table: Any) -> World:
        _, asking = example.started()
        service = await start(sources=(*SOURCES, asking.integration.source))
        return World(service, server, table)

    return make


@pytest.mark.spec("tools.facts.real-values", "tools.incident.units")
async def test_every_leaf_that_can_be_known_has_its_value_and_its_time(make: Make) -> None:
    world = await make()
    await world.run(mapped("checkout"), mapped("same"), mapped("by-labels", "checkout"))
    for name in ("checkout", "same", "by-labels"):
        assert await world.incident(name) == (everything("incident"), NEVER)
        assert await world.told("observability", name) == (everything("observability"), {})
    collected = (await world.ask("incident", "checkout"))["collectedAt"]
    assert collected == {"incidentMetrics": iso(NOON), "serviceInfo": iso(NOON)}
    # Entities that name the same service share its answers.
    assert world.fake.requests.total() == 23


@pytest.mark.spec("tools.facts.misconfigured-is-unavailable")
async def test_with_a_credential_that_is_refused_nothing_is_made_up(make: Make) -> None:
    world = await make(token="wrong")
    await world.run(mapped("checkout"))
    groups = {"incidentMetrics": "forbidden", "serviceInfo": "forbidden"}
    assert await world.incident() == ({}, groups)
    assert "forbidden" in await world.refusal()


@pytest.mark.spec("unknown.reasons-of-collections")
async def test_what_alertmanager_alone_knows_is_left_out_without_it(make: Make) -> None:
    world = await make(alertmanager_url="", alertmanager_token="")
    await world.run(mapped("checkout"))
    metrics = "incidentMetrics.meanTimeToFirstAck"
    reasons = {"serviceInfo": "feature-off", metrics: "not-applicable"}
    assert await world.incident() == (METRICS, reasons)
    assert await world.told("observability", "checkout") == (everything("observability"), {})


@pytest.mark.spec("unknown.reasons-of-collections")
async def test_a_short_storage_gives_no_incident_metrics_and_its_facts_stay(make: Make) -> None:
    server = example.full()
    server.oldest = example.NOW - 90 * example.DAY
    world = await make(server)
    await world.run(mapped("checkout"))
    reasons = {"incidentMetrics": "not-applicable"}
    reasons["serviceInfo.alertCreationType"] = "not-applicable"
    assert await world.incident() == (INFO, reasons)
    stored = await world.service.facts(
        "get-entity-facts", dataSourceId="prometheus", name="checkout"
    )
    assert stored["facts"]["incident.incidentMetrics.quarterlyIncidents"] == 4
    assert "incident.incidentMetrics.totalIncidents" not in stored["facts"]


async def test_a_service_that_is_not_known_costs_the_others_nothing(make: Make) -> None:
    world = await make()
    await world.run(mapped("checkout"), mapped("gone", "gone"))
    assert await world.incident() == (everything("incident"), NEVER)
    groups = {"incidentMetrics": "not-found", "serviceInfo": "not-found"}
    assert await world.incident("gone") == ({}, groups)
    assert "not-found" in await world.refusal("gone")


@pytest.mark.spec("unknown.reasons-of-collections")
async def test_no_annotation_and_a_hostile_one_lead_nowhere(make: Make) -> None:
    world = await make()
    plain = component("plain")
    name = {"prometheus.io/service-name": "https://evil.example.com/"}
    await world.run(
        plain,
        mapped("many-lines", "a\nb", **name),
        mapped("address", "https://evil.example.com/x"),
        mapped("query", 'checkout"} or up{x=~".*'),
    )
    groups = ("incidentMetrics", "serviceInfo")
    assert await world.incident("plain") == ({}, dict.fromkeys(groups, "no-annotation"))
    assert await world.incident("many-lines") == ({}, dict.fromkeys(groups, "bad-annotation"))
    for hostile in ("address", "query"):
        assert await world.incident(hostile) == ({}, dict.fromkeys(groups, "not-found"))
    assert set(world.fake.proofs) == {"prometheus.example.com"}


@pytest.mark.spec("unknown.reasons-of-collections")
async def test_a_rate_limit_in_the_middle_keeps_the_last_values(make: Make) -> None:
    world = await make()
    await world.run(mapped("checkout"))
    world.fake.fail("began", saying({}, 429, {"retry-after": "900"}), after=1, times=1_000)
    await world.next_run()
    assert await world.incident() == (everything("incident"), NEVER)
    times = (await world.ask("incident", "checkout"))["collectedAt"]
    assert times["incidentMetrics"] == iso(NOON)
    assert times["serviceInfo"] > iso(NOON)


@pytest.mark.spec("unknown.reasons-of-collections")
async def test_while_prometheus_is_down_values_stay_for_three_cadences_and_then_expire(
    make: Make,
) -> None:
    world = await make()
    await world.run(mapped("checkout"))
    for kind in ("rules", "values"):
        world.fake.fail(kind, unavailable, times=1_000)
    for _ in range(3):
        await world.next_run()
        assert await world.incident() == (everything("incident"), NEVER)
        assert world.is_stale
    await world.next_run()
    assert await world.incident() == ({}, {"incidentMetrics": "expired", "serviceInfo": "expired"})
    assert "expired" in await world.refusal()
    world.fake.recover()
    world.wait(world.times[0].now + DAY)
    await world.run()
    assert await world.told("observability", "checkout") == (everything("observability"), {})


@pytest.mark.spec("collecting.partial-runs")
@pytest.mark.parametrize("fault", [saying({}, 404), saying({"status": "success", "data": 5})])
async def test_good_answers_that_cannot_be_used_are_asked_for_again_in_the_same_run(
    make: Make, fault: Fault
) -> None:
    world = await make()
    world.fake.fail("values", fault, times=1)
    await world.run(mapped("checkout"))
    assert (await world.incident())[0] == {}
    world.wait(NOON + MINUTE)
    await world.collector.drain()
    assert await world.incident() == (everything("incident"), NEVER)


async def test_an_entity_that_no_run_has_reached_was_never_collected(make: Make) -> None:
    world = await make()
    assert (await world.service.push("all", mapped("checkout"))).status_code == 200
    groups = {"incidentMetrics": "never-collected", "serviceInfo": "never-collected"}
    assert await world.incident() == ({}, groups)
