"""From a Gitea to the tools: what a tool call says of a repository, leaf by leaf."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import stamina

from factbook.clock import DAY, HOUR, MINUTE, iso
from factbook.integrations import SOURCES
from tests.collection.tools import ToolWorld, of_shape, pointing
from tests.conftest import StartService
from tests.fakes.faults import unavailable
from tests.fakes.gitea.state import Repository, Token
from tests.integrations.gitea.asking import APP, EVERYTHING, HOST, NEVER_SAID, TOKEN, full, started
from tests.service import NOON, Service, component

Make = Callable[..., Awaitable["World"]]
LISTS = {"collaboration.languages", "collaboration.collaborators"}
NOT_CONFIGURED = {"scannerIssues": "not-configured", "dependencyAlerts": "not-configured"}
NEVER = {name.removeprefix("codehost."): "not-applicable" for name in NEVER_SAID}


mapped = partial(pointing, f"{HOST}/project-slug", APP)


class World(ToolWorld):
    """A service, a Gitea, and the collector between them."""

    def __init__(self, service: Service, repository: Repository, token: Token) -> None:
        self.fake, asking = started(repository, token=token)
        super().__init__(service, asking)


def everything(shape: str) -> dict[str, Any]:
    """What the shape's tool says of a full repository with all rights."""
    found = of_shape(EVERYTHING, shape)
    return found | (dict.fromkeys(NEVER, "unknown") if shape == "codehost" else {})


def unknown(names: set[str]) -> dict[str, Any]:
    """The code-host leaves with these ones unknown."""
    return everything("codehost") | {n: [] if n in LISTS else "unknown" for n in names}


@pytest.fixture
async def make(start: StartService) -> Make:
    async def make(repository: Repository | None = None, token: Token | None = None) -> World:
        _, asking = started(full())
        service = await start(sources=(*SOURCES, asking.integration.source))
        return World(service, repository or full(), token or Token(TOKEN))

    return make


async def check_nothing(world: World, name: str, reason: str) -> None:
    """Every leaf is unknown for this reason."""
    leaves = everything("codehost").keys()
    found = await world.told("codehost", name)
    assert found == (unknown(set(leaves)), dict.fromkeys(leaves, reason))
    security = NOT_CONFIGURED | {"branchProtection": reason}
    assert await world.told("security", name) == ({}, security)
    assert reason in await world.service.refusal("get-repository-info", name=name)


@pytest.mark.spec("tools.facts.real-values", "tools.codehost.windows")
async def test_with_all_rights_every_leaf_has_its_value_or_gitea_never_says_it(make: Make) -> None:
    world = await make()
    await world.run(mapped("app"))
    assert await world.told("codehost") == (everything("codehost"), NEVER)
    assert await world.told("security") == ({"branchProtection": True}, NOT_CONFIGURED)
    assert await world.told("repository") == (everything("repository"), {})
    collected = (await world.ask("codehost"))["collectedAt"]
    assert set(collected.values()) == {iso(NOON)}
    assert collected.keys() == {name.partition(".")[0] for name in everything("codehost")}


@pytest.mark.spec("unknown.reasons-of-collections")
async def test_what_a_reader_may_not_read_is_forbidden_and_no_figure(make: Make) -> None:
    world = await make(token=Token(TOKEN, "read"))
    await world.run(mapped("app"))
    hidden = {
        "collaboration.collaborators",
        "collaboration.collaboratorCount",
        "branchProtection.enforceAdmins",
        "branchProtection.allowForcePushes",
        "branchProtection.requiredSignatures",
        "codeReview.dismissStaleReviews",
        "codeReview.requireCodeOwnerReviews",
        "codeReview.strictRequiredStatusChecks",
    }
    assert await world.told("codehost") == (
        unknown(hidden),
        NEVER | dict.fromkeys(hidden, "forbidden"),
    )
    assert await world.told("security") == ({"branchProtection": True}, NOT_CONFIGURED)
    assert await world.told("repository") == (everything("repository"), {})


@pytest.mark.spec("unknown.reasons-of-collections")
async def test_what_is_switched_off_is_said_so_and_no_zeros(make: Make) -> None:
    world = await make(replace(full(), has_pulls=False, has_issues=False))
    await world.run(mapped("app"))
    groups = ("pullRequests.", "mergeTime.", "latestMergedPR.", "issues.")
    off = {name for name in everything("codehost") if name.startswith(groups)}
    assert await world.told("codehost") == (unknown(off), NEVER | dict.fromkeys(off, "feature-off"))


@pytest.mark.spec("tools.facts.misconfigured-is-unavailable")
async def test_with_a_token_that_the_server_does_not_know_nothing_is_made_up(make: Make) -> None:
    world = await make(token=Token("another"))
    await world.run(mapped("app"))
    await check_nothing(world, "app", "forbidden")


async def test_one_that_is_missing_costs_the_others_nothing_and_a_renamed_one_is_followed(
    make: Make,
) -> None:
    world = await make(replace(full(), old_names=["acme/old"]))
    await world.run(mapped("app", "acme/old"), mapped("gone", "acme/gone"))
    assert await world.told("codehost") == (everything("codehost"), NEVER)
    await check_nothing(world, "gone", "not-found")


@pytest.mark.spec(
    "unknown.reasons-of-collections", "sources.annotations-choose-among-the-configured"
)
async def test_no_annotation_and_a_foreign_host_are_told_as_such(make: Make) -> None:
    world = await make()
    foreign = component("foreign")
    foreign["metadata"]["annotations"] = {
        "backstage.io/source-location": "url:https://evil.example.net/acme/app",
        "evil.example.net/project-slug": "acme/app",
    }
    await world.run(component("plain"), foreign, mapped("hostile", "//evil.example.net/app"))
    for name in ("plain", "foreign"):
        await check_nothing(world, name, "no-annotation")
    await check_nothing(world, "hostile", "bad-annotation")
    assert world.fake.requests == {}


async def test_where_gitea_is_not_configured_all_is_unknown_for_that_reason(
    service: Service,
) -> None:
    assert (await service.push("all", mapped("app"))).status_code == 200
    found = await service.facts("get-codehost-metrics", name="app")
    assert found["unknownReasons"] == {"*": "not-configured"}


@pytest.mark.spec("unknown.reasons-of-collections")
async def test_a_limit_in_the_middle_keeps_what_was_read_and_the_last_values(make: Make) -> None:
    world = await make()
    world.fake.limit = 5
    await world.run(mapped("app"))
    codehost, reasons = await world.told("codehost")
    assert codehost["pullRequests.merged"] == 3
    assert codehost["issues.total"] == 4
    limited = {name for name, reason in reasons.items() if reason == "rate-limited"}
    assert {"issues.closedLastMonth", "branchProtection.enabled"} <= limited
    assert reasons == dict.fromkeys(limited, "rate-limited")
    world.fake.limit = None
    await world.next_run()
    assert await world.told("codehost") == (everything("codehost"), NEVER)
    world.fake.limit = 0
    world.wait(world.times[0].now + 5 * HOUR + 59 * MINUTE)
    await world.next_run()
    assert await world.told("codehost") == (everything("codehost"), NEVER)


@pytest.mark.spec("unknown.reasons-of-collections")
async def test_while_the_host_is_down_values_stay_for_three_cadences_and_then_expire(
    make: Make,
) -> None:
    world = await make()
    await world.run(mapped("app"))
    world.fake.fail("repository", unavailable, times=1_000)
    with stamina.set_testing(True, attempts=3, cap=True):  # tries without pauses
        for _ in range(3):
            await world.next_run()
            assert (await world.told("codehost"))[0] == everything("codehost")
            assert world.is_stale
        await world.next_run()
    codehost, reasons = await world.told("codehost")
    assert codehost == unknown(set(codehost))
    assert reasons == dict.fromkeys(codehost, "expired") | NEVER
    assert "expired" in await world.service.refusal("get-repository-info", name="app")
    world.fake.recover()
    world.wait(world.times[0].now + DAY)
    await world.run()
    assert await world.told("codehost") == (everything("codehost"), NEVER)
