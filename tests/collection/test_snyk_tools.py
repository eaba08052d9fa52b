"""From a Snyk to the security tool: what a call says of an entity, leaf by leaf."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from factbook.clock import DAY, MINUTE, iso
from factbook.facts import store
from factbook.integrations import SOURCES
from factbook.scheduling import runs
from factbook.scheduling.runs import RunRecord, fetch_source_health
from tests.collection.tools import ToolWorld
from tests.conftest import StartService
from tests.fakes.faults import unavailable
from tests.fakes.snyk import Organization, Token, uuid
from tests.integrations.snyk.asking import ACME, EVERYTHING, GROUP, KEY, OTHER, full, named, started
from tests.service import NOON, Service, component

Make = Callable[..., Awaitable["World"]]
REST = {"dependencyAlerts": "not-configured", "branchProtection": "not-configured"}
KNOWN = ("high", "medium", "low")
FULL = {f"scannerIssues.{name}": value for name, value in EVERYTHING.items()}


def mapped(name: str, **annotations: str) -> dict[str, Any]:
    """A component with these annotations; `project_ids` is of snyk.io."""
    entity = component(name)
    entity["metadata"]["annotations"] = named(annotations or {"slug": "acme/app"})
    return entity


class World(ToolWorld):
    """A service, a Snyk, and the collector between them."""

    def __init__(self, service: Service, token: Token, **table: Any) -> None:
        self.fake, asking = started(full(), Organization(2), token=token, **table)
        super().__init__(service, asking)

    async def why(self, name: str = "app") -> str:
        """The one reason for a group that is left out."""
        figures, reasons = await self.told("security", name)
        assert figures == {}
        assert reasons.items() >= REST.items()
        assert reasons.keys() == REST.keys() | {"scannerIssues"}
        return reasons["scannerIssues"]


@pytest.fixture
async def make(start: StartService) -> Make:
    async def make(token: Token | None = None, **table: Any) -> World:
        _, asking = started()
        service = await start(sources=(*SOURCES, asking.integration.source))
        return World(service, token or Token(KEY), **table)

    return make


@pytest.mark.spec("tools.facts.real-values")
async def test_with_all_rights_every_leaf_has_its_value_and_its_time(make: Make) -> None:
    world = await make()
    await world.run(mapped("app"), mapped("clean", slug="acme/clean"))
    assert await world.told("security") == (FULL, REST)
    assert await world.told("security", "clean") == (dict.fromkeys(FULL, 0), REST)
    collected = (await world.ask("security"))["collectedAt"]
    assert collected == {"scannerIssues": iso(NOON)}
    assert world.fake.requests == {"projects": 3}


async def test_exact_counts_are_told_in_their_place(make: Make) -> None:
    world = await make(exact=True)
    await world.run(mapped("app"))
    figures = {"total": 3, "critical": 1, "high": 1, "medium": 0, "low": 1}
    expected = {f"scannerIssues.{name}": figure for name, figure in figures.items()}
    assert await world.told("security") == (expected, REST)


@pytest.mark.spec("tools.facts.misconfigured-is-unavailable", "unknown.reasons-of-collections")
@pytest.mark.parametrize(
    "token",
    [
        Token("another"),
        Token(KEY, plan_has_api=False),
        Token(KEY, reads_history=False),
        Token(KEY, forbidden=frozenset({1})),
    ],
    ids=["unknown key", "free plan", "no project history", "no organization"],
)
async def test_what_the_key_may_not_read_is_left_out_as_forbidden(make: Make, token: Token) -> None:
    world = await make(token)
    await world.run(mapped("app"))
    assert await world.why() == "forbidden"


@pytest.mark.spec("unknown.reasons-of-collections", "tools.security.unavailable-groups-are-omitted")
async def test_what_cannot_be_determined_is_left_out_with_its_reason(make: Make) -> None:
    world = await make()
    entities = {
        "gone": ({"targets": "acme/gone"}, "not-found"),
        "unmentioned": ({"slug": "acme/gone"}, "no-annotation"),
        "elsewhere": ({"slug": "acme/app", "org_id": OTHER}, "no-annotation"),
        "foreign": ({"location": "url:https://evil.example.net/acme/clean"}, "no-annotation"),
        "partly": ({"project_ids": f"{uuid(10)},{uuid(99)}"}, "not-found"),
        "unscanned": ({"slug": "acme/new"}, "not-applicable"),
        "deactivated": ({"slug": "acme/old"}, "feature-off"),
        "stranger": ({"slug": "acme/app", "org_id": uuid(9)}, "no-annotation"),
        "climbing": ({"slug": "acme/app", "org_id": "../../self"}, "no-annotation"),
        "hostile": ({"project_ids": "https://evil.example.net/"}, "bad-annotation"),
    }
    await world.run(
        mapped("app"),
        component("plain"),
        *(mapped(name, **annotations) for name, (annotations, _) in entities.items()),
    )
    assert await world.told("security") == (FULL, REST)
    assert await world.why("plain") == "no-annotation"
    assert {name: await world.why(name) for name in entities} == {
        name: reason for name, (_, reason) in entities.items()
    }
    assert world.fake.requests == {"projects": 3}


async def test_a_target_that_is_renamed_is_not_found_by_name_and_still_found_by_id(
    make: Make,
) -> None:
    world = await make()
    clean = next(one for one in full().projects if one.target == "acme/clean")
    by_id = mapped("by-id", target_id=clean.target_id)
    await world.run(mapped("app", slug="acme/clean"), by_id)
    for one in world.fake.organizations.values():
        for project in one.projects:
            if project.id == clean.id:
                project.target, project.target_number = "acme/tidy", int(clean.target_id[:8], 16)
    await world.next_run()
    assert await world.why() == "no-annotation"
    assert await world.told("security", "by-id") == (dict.fromkeys(FULL, 0), REST)


@pytest.mark.spec("tools.facts.unconfigured-is-unavailable")
async def test_without_the_integration_the_group_is_left_out_as_not_configured(
    start: StartService,
) -> None:
    service = await start()
    assert (await service.push("all", mapped("app"))).status_code == 200
    told = await service.facts("get-security-metrics", name="app")
    assert told["unknownReasons"] == REST | {"scannerIssues": "not-configured"}
    assert "scannerIssues" not in told


@pytest.mark.spec("unknown.reasons-of-collections")
async def test_a_limit_in_the_middle_of_the_first_run_is_told_and_passes(make: Make) -> None:
    world = await make(exact=True)
    world.fake.limit = 3
    await world.run(mapped("app"))
    assert await world.why() == "rate-limited"
    world.fake.limit = None
    world.wait(NOON + 20 * MINUTE)
    await world.run()
    figures, reasons = await world.told("security")
    assert (figures["scannerIssues.total"], reasons) == (3, REST)


@pytest.mark.spec("unknown.reasons-of-collections")
async def test_while_snyk_is_down_values_stay_for_three_cadences_and_then_expire(
    make: Make,
) -> None:
    world = await make()
    await world.run(mapped("app"))
    world.fake.fail("projects", unavailable, times=1_000)
    for _ in range(3):
        await world.next_run()
        assert await world.told("security") == (FULL, REST)
        assert world.is_stale
        assert (await world.ask("security"))["collectedAt"] == {"scannerIssues": iso(NOON)}
    await world.next_run()
    assert await world.why() == "expired"
    world.fake.recover()
    world.wait(world.times[0].now + DAY)
    await world.run()
    assert await world.told("security") == (FULL, REST)


async def test_a_repository_that_snyk_does_not_have_is_skipped_and_no_failure(make: Make) -> None:
    world = await make()
    await world.run(mapped("app"), mapped("unmentioned", slug="acme/gone"))
    run = await last(world)
    assert (run.entities, run.covered, run.failed, run.skipped) == (1, 1, 0, 1)
    assert (run.state, run.error) == ("done", None)
    [gap] = await runs.list_gaps(world.service.state.database, run.id)
    assert (gap.kind, gap.entities) == ("skipped", 1)


async def test_a_project_without_one_figure_is_said_and_not_listed_again(make: Make) -> None:
    world = await make(organizations=[ACME])
    world.fake.lacking = frozenset({"critical"})
    await world.run(mapped("app"))
    run = await last(world)
    assert (run.state, run.covered, run.failed, run.incomplete) == ("partial", 1, 0, 1)
    assert run.error == "upstream-error: Snyk left out a figure of a project"
    assert world.fake.requests == {"projects": 2}
    found = await store.list_latest_by_ref(world.service.state.database, "component:default/app")
    assert found["snyk"].facts == {f"{GROUP}.{name}": EVERYTHING[name] for name in KNOWN}


async def last(world: World) -> RunRecord:
    """The run that ended last."""
    found = await fetch_source_health(world.service.state.database, "snyk")
    assert found is not None
    assert found.last is not None
    return found.last
