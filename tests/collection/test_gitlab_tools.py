"""From a GitLab to the tools: what a tool call says of a project, leaf by leaf."""

from collections.abc import Awaitable, Callable
from functools import partial

import pytest

from factbook.clock import DAY, HOUR, MINUTE, iso
from factbook.integrations import SOURCES
from tests.collection.tools import ToolWorld, of_shape, pointing
from tests.conftest import StartService
from tests.fakes.faults import unavailable
from tests.fakes.gitlab.state import Project, Token
from tests.integrations.gitlab.asking import APP, EVERYTHING, NOT_APPLICABLE, TOKEN, full, started
from tests.service import NOON, Service, component

Make = Callable[..., Awaitable["World"]]
NEITHER = {"scannerIssues": "not-configured", "dependencyAlerts": "not-configured"}
LISTS = {"collaboration.languages", "collaboration.collaborators"}


mapped = partial(pointing, "gitlab.com/project-slug", APP)
everything = partial(of_shape, EVERYTHING)


class World(ToolWorld):
    """A service, a GitLab, and the collector between them."""

    def __init__(self, service: Service, project: Project, token: Token) -> None:
        self.fake, asking = started(project, token=token)
        super().__init__(service, asking)

    async def lacking(self, name: str = "app") -> dict[str, str]:
        """The reasons of the leaves of the code-host shape that are not as for a full project.

        None of them has a value.
        """
        found, reasons = await self.told("codehost", name)
        expected = everything("codehost")
        lost = {path for path in found if found[path] != expected.get(path)}
        assert {found[path] for path in lost - LISTS} <= {"unknown"}
        assert all(found[path] == [] for path in lost & LISTS)
        assert lost == set(reasons)
        return reasons


NOT_OF_GITLAB = {name.removeprefix("codehost."): reason for name, reason in NOT_APPLICABLE.items()}
ALL_LEAVES = {*everything("codehost"), *NOT_OF_GITLAB}


@pytest.fixture
async def make(start: StartService) -> Make:
    async def make(
        project: Project | None = None, token: Token | None = None, *, configured: bool = True
    ) -> World:
        _, asking = started(full())
        sources = (asking.integration.source,) if configured else ()
        service = await start(sources=(*SOURCES, *sources))
        return World(service, project or full(), token or Token(TOKEN))

    return make


@pytest.mark.spec("tools.facts.real-values", "tools.codehost.windows")
async def test_with_all_rights_every_leaf_of_gitlab_has_its_value_and_its_time(make: Make) -> None:
    world = await make()
    await world.run(mapped("app"))
    assert await world.lacking() == NOT_OF_GITLAB
    assert await world.told("security") == (everything("security"), NEITHER)
    assert await world.told("repository") == (everything("repository"), {})
    collected = (await world.ask("codehost"))["collectedAt"]
    assert set(collected.values()) == {iso(NOON)}
    assert collected.keys() == {name.partition(".")[0] for name in ALL_LEAVES}


@pytest.mark.spec("unknown.reasons-of-collections")
async def test_what_a_token_below_maintainer_may_not_read_is_forbidden_and_no_figure(
    make: Make,
) -> None:
    world = await make(token=Token(TOKEN, is_maintainer=False, is_member=False))
    await world.run(mapped("app"))
    forbidden = [
        *("collaboration.collaborators", "collaboration.collaboratorCount"),
        *("branchProtection.enabled", "branchProtection.requiredLinearHistory"),
        *("branchProtection.allowDeletions", "branchProtection.allowForcePushes"),
        "branchProtection.requiredSignatures",
        *("codeReview.dismissStaleReviews", "codeReview.requireCodeOwnerReviews"),
        *("codeReview.requireLastPushApproval", "codeReview.strictRequiredStatusChecks"),
        "codeReview.requiredApprovingReviewCount",
    ]
    assert await world.lacking() == NOT_OF_GITLAB | dict.fromkeys(forbidden, "forbidden")
    assert await world.told("security") == ({}, NEITHER | {"branchProtection": "forbidden"})
    assert (await world.told("repository"))[0] == everything("repository")


@pytest.mark.spec("tools.facts.misconfigured-is-unavailable")
async def test_with_a_token_that_gitlab_does_not_know_nothing_is_made_up(make: Make) -> None:
    world = await make(token=Token("glpat-another"))
    await world.run(mapped("app"))
    assert await world.lacking() == dict.fromkeys(ALL_LEAVES, "forbidden")
    assert "forbidden" in await world.service.refusal("get-repository-info", name="app")


@pytest.mark.spec("unknown.reasons-of-collections")
async def test_what_is_switched_off_or_not_part_of_the_plan_has_no_zeros(make: Make) -> None:
    project = full()
    project.has_issues = project.premium = project.enterprise = False
    del project.protected[1]["code_owner_approval_required"]
    world = await make(project)
    await world.run(mapped("app"))
    off = [
        *(path for path in ALL_LEAVES if path.startswith("issues.")),
        "branchProtection.requiredSignatures",
        *("codeReview.dismissStaleReviews", "codeReview.requireCodeOwnerReviews"),
        *("codeReview.requireLastPushApproval", "codeReview.requiredApprovingReviewCount"),
        *("codeReview.codeownersHasErrors", "codeReview.codeownersErrorCount"),
    ]
    assert await world.lacking() == NOT_OF_GITLAB | dict.fromkeys(off, "feature-off")


async def test_a_missing_project_costs_the_others_nothing_and_a_renamed_one_is_followed(
    make: Make,
) -> None:
    project = full()
    project.old_names = ["acme/old"]
    world = await make(project)
    await world.run(mapped("app"), mapped("gone", "acme/gone"), mapped("old", "acme/old"))
    assert await world.lacking() == NOT_OF_GITLAB
    assert await world.lacking("old") == NOT_OF_GITLAB
    assert await world.lacking("gone") == dict.fromkeys(ALL_LEAVES, "not-found")
    assert "not-found" in await world.service.refusal("get-repository-info", name="gone")


@pytest.mark.spec("unknown.reasons-of-collections")
async def test_no_annotation_and_a_foreign_host_are_told_as_such(make: Make) -> None:
    world = await make()
    foreign = {"backstage.io/source-location": "url:https://evil.example.net/acme/app"}
    other = {"gitlab.com/instance": "evil.example.net"}
    await world.run(
        mapped("app"),
        mapped("foreign", **foreign),
        mapped("instance", **other),
        mapped("climbing", "acme/%2e%2e/../app"),
        component("plain"),
    )
    for name in ("plain", "foreign", "instance", "climbing"):
        reason = "bad-annotation" if name == "climbing" else "no-annotation"
        assert await world.lacking(name) == dict.fromkeys(ALL_LEAVES, reason)
    assert world.fake.requests["graphql"] == 2
    assert world.fake.requests["other"] == 0


@pytest.mark.spec("unknown.reasons-of-collections")
async def test_a_rate_limit_on_the_way_is_told_and_later_keeps_the_last(make: Make) -> None:
    token = Token(TOKEN, limit=1_000, used=1_000 - 102, reset_at=NOON + 30 * MINUTE)
    world = await make(token=token)
    await world.run(mapped("app"))
    reasons = await world.lacking()
    assert set(reasons.values()) == {"rate-limited", "not-applicable"}
    assert reasons["codeReview.dismissStaleReviews"] == "rate-limited"
    token.used = 0
    world.wait(NOON + HOUR)
    await world.next_run()
    assert await world.lacking() == NOT_OF_GITLAB
    token.used, token.reset_at = token.limit, NOON + 3 * DAY
    await world.next_run()
    assert await world.lacking() == NOT_OF_GITLAB


@pytest.mark.spec("unknown.reasons-of-collections")
async def test_while_the_host_is_down_values_stay_for_three_cadences_and_then_expire(
    make: Make,
) -> None:
    world = await make()
    await world.run(mapped("app"))
    world.fake.fail("graphql", unavailable, times=1_000)
    for _ in range(3):
        await world.next_run()
        assert await world.lacking() == NOT_OF_GITLAB
        assert world.is_stale
        assert set((await world.ask("codehost"))["collectedAt"].values()) == {iso(NOON)}
    await world.next_run()
    reasons = await world.lacking()
    assert {path for path, reason in reasons.items() if reason == "expired"} >= set(
        everything("codehost")
    )
    world.fake.recover()
    world.wait(world.times[0].now + DAY + HOUR)
    await world.run()
    assert await world.lacking() == NOT_OF_GITLAB


async def test_where_gitlab_is_not_configured_its_annotation_says_nothing(make: Make) -> None:
    world = await make(configured=False)
    assert (await world.service.push("all", mapped("app"))).status_code == 200
    assert await world.lacking() == dict.fromkeys(ALL_LEAVES, "not-configured")
