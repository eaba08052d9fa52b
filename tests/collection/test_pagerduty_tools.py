"""From a PagerDuty account to the tool: what it says of a service, leaf by leaf."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from factbook.clock import DAY, HOUR, MINUTE, iso
from factbook.integrations import SOURCES
from tests.collection.tools import ToolWorld
from tests.conftest import StartService
from tests.fakes.faults import unavailable
from tests.fakes.pagerduty import Key
from tests.integrations.pagerduty.asking import APP, EVERYTHING, KEY, QUIET, started
from tests.service import NOON, Service, component

Make = Callable[..., Awaitable["World"]]
EVERY = {name.removeprefix("incident."): value for name, value in EVERYTHING.items()}
METRICS = {name: value for name, value in EVERY.items() if name.startswith("incidentMetrics")}
INFO = {name: value for name, value in EVERY.items() if name.startswith("serviceInfo")}
GROUPS = ("incidentMetrics", "serviceInfo")
ACK, UPTIME = "incidentMetrics.meanTimeToFirstAck", "incidentMetrics.upTimePercentage"
RESOLVE = "incidentMetrics.meanTimeToResolve"


def mapped(name: str, service: Any = APP, **annotations: Any) -> dict[str, Any]:
    """A component that points to a service."""
    entity = component(name)
    entity["metadata"]["annotations"] = {"pagerduty.com/service-id": service} | annotations
    return entity


class World(ToolWorld):
    """A service, a PagerDuty, and the collector between them."""

    def __init__(self, service: Service, key: Key, **table: Any) -> None:
        self.fake, asking = started(key=key, **table)
        super().__init__(service, asking)


@pytest.fixture
async def make(start: StartService) -> Make:
    async def make(key: Key | None = None, **table: Any) -> World:
        _, asking = started(**table)
        service = await start(sources=(*SOURCES, asking.integration.source))
        return World(service, key or Key(KEY), **table)

    return make


@pytest.mark.spec("tools.facts.real-values", "sources.configured-integrations-are-listed")
async def test_with_all_rights_every_leaf_has_its_value_and_its_time(make: Make) -> None:
    world = await make()
    await world.run(mapped("app"), mapped("quiet", QUIET))
    assert await world.told("incident") == (EVERY, {})
    collected = (await world.ask("incident"))["collectedAt"]
    assert collected == dict.fromkeys(GROUPS, iso(NOON))
    sources = (await world.service.facts("get-data-source-discovery"))["dataSources"]
    assert "pagerduty" in {one["id"] for one in sources}


async def test_a_service_without_incidents_has_zeros_and_no_means(make: Make) -> None:
    world = await make()
    await world.run(mapped("app", QUIET))
    told, reasons = await world.told("incident")
    assert told == {
        "incidentMetrics.totalIncidents": 0,
        "incidentMetrics.monthlyIncidents": 0,
        "incidentMetrics.quarterlyIncidents": 0,
        UPTIME: 100,
        "serviceInfo.hasEscalationPolicy": False,
        "serviceInfo.hasTeamsAssigned": False,
        "serviceInfo.hasDescription": False,
        "serviceInfo.alertCreationType": "create_incidents",
    }
    assert reasons == dict.fromkeys((RESOLVE, ACK), "not-applicable")


@pytest.mark.spec("unknown.reasons-of-collections")
@pytest.mark.parametrize(
    ("key", "expected", "reasons"),
    [
        (Key(KEY, reads={"services"}), INFO, {"incidentMetrics": "forbidden"}),
        (Key(KEY, reads={"analytics"}), METRICS, {"serviceInfo": "forbidden"}),
        (Key(KEY, reads=set()), {}, dict.fromkeys(GROUPS, "forbidden")),
        (Key("another"), {}, dict.fromkeys(GROUPS, "forbidden")),
        (
            Key(KEY, reads={"services", "incidents"}),
            {k: v for k, v in EVERY.items() if k not in {ACK, UPTIME}} | {RESOLVE: 7065},
            dict.fromkeys((ACK, UPTIME), "forbidden"),
        ),
        (
            Key(KEY, plan_has_analytics=False),
            {k: v for k, v in EVERY.items() if k not in {ACK, UPTIME}} | {RESOLVE: 7065},
            dict.fromkeys((ACK, UPTIME), "feature-off"),
        ),
    ],
    ids=["services", "analytics", "nothing", "unknown key", "no analytics", "not in the plan"],
)
async def test_what_a_key_may_not_read_is_left_out_and_no_figure(
    make: Make, key: Key, expected: dict[str, Any], reasons: dict[str, str]
) -> None:
    world = await make(key)
    await world.run(mapped("app"))
    assert await world.told("incident") == (expected, reasons)


async def test_a_service_that_is_missing_costs_the_others_nothing(make: Make) -> None:
    world = await make()
    others = [mapped(f"other-{i}", f"POTHER{i}") for i in range(5)]
    await world.run(mapped("app"), mapped("gone", "PGONE01"), *others)
    assert await world.told("incident") == (EVERY, {})
    assert await world.told("incident", "gone") == ({}, dict.fromkeys(GROUPS, "not-found"))


@pytest.mark.spec("unknown.reasons-of-collections")
async def test_no_annotation_another_account_and_a_foreign_host_are_told_as_such(
    make: Make,
) -> None:
    world = await make(account="acme")
    keyed = component("keyed")
    keyed["metadata"]["annotations"] = {"pagerduty.com/integration-key": "0123456789abcdef"}
    hostile = {
        "foreign": mapped("foreign", "https://evil.example.net/services/PAPP001"),
        "climbing": mapped("climbing", "../users/me"),
        "other": mapped("other", APP, **{"pagerduty.com/account": "other"}),
        "keyed": keyed,
        "plain": component("plain"),
    }
    own = mapped("app", APP, **{"pagerduty.com/account": "acme"})
    await world.run(own, *hostile.values())
    for name in hostile:
        reason = "bad-annotation" if name in {"foreign", "climbing"} else "no-annotation"
        assert await world.told("incident", name) == ({}, dict.fromkeys(GROUPS, reason))
    assert await world.told("incident") == (EVERY, {})
    assert {one.headers["host"] for one in world.fake.exchanges} == {"api.pagerduty.com"}
    assert world.fake.requests == {"service": 1, "analytics": 3}


@pytest.mark.spec("unknown.reasons-of-collections")
async def test_without_the_integration_everything_is_not_configured(service: Service) -> None:
    world = ToolWorld(service)
    await world.run(mapped("app"))
    assert await world.told("incident") == ({}, dict.fromkeys(GROUPS, "not-configured"))


async def test_an_entity_that_no_run_has_reached_was_never_collected(make: Make) -> None:
    world = await make()
    assert (await world.service.push("all", mapped("app"))).status_code == 200
    assert await world.told("incident") == ({}, dict.fromkeys(GROUPS, "never-collected"))


@pytest.mark.spec("unknown.reasons-of-collections")
async def test_a_limit_in_the_middle_of_a_run_is_told_and_later_keeps_the_last(
    make: Make,
) -> None:
    world = await make(Key(KEY, limit=2))
    await world.run(mapped("app"))
    assert await world.told("incident") == (INFO, {"incidentMetrics": "rate-limited"})
    world.fake.key.limit = 1_000
    world.wait(NOON + MINUTE)
    await world.next_run()
    collected = world.times[0].now
    told, _ = await world.told("incident")
    assert told.keys() == EVERY.keys()
    world.fake.key.limit, world.fake.key.used = 2, 0
    await world.next_run()
    assert (await world.told("incident"))[0] == told
    times = (await world.ask("incident"))["collectedAt"]
    assert times["incidentMetrics"] == iso(collected) < times["serviceInfo"]


@pytest.mark.spec("unknown.reasons-of-collections")
async def test_while_pagerduty_is_down_values_stay_for_three_cadences_and_then_expire(
    make: Make,
) -> None:
    world = await make()
    await world.run(mapped("app"))
    for kind in ("service", "analytics"):
        world.fake.fail(kind, unavailable, times=1_000)
    for _ in range(3):
        await world.next_run()
        assert await world.told("incident") == (EVERY, {})
        assert world.is_stale
        collected = (await world.ask("incident"))["collectedAt"]
        assert set(collected.values()) == {iso(NOON)}
    await world.next_run()
    assert await world.told("incident") == ({}, dict.fromkeys(GROUPS, "expired"))
    world.fake.recover()
    world.wait(world.times[0].now + DAY + HOUR)
    await world.run()
    assert (await world.told("incident"))[1] == {}
