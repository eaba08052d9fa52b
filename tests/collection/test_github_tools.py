"""From a GitHub to the tools: what a tool call says of a repository, leaf by leaf."""

from collections.abc import Awaitable, Callable
from functools import partial

import pytest

from factbook.clock import DAY, HOUR, MINUTE, iso
from factbook.integrations import SOURCES
from tests.collection.tools import ToolWorld, of_shape, pointing
from tests.conftest import StartService
from tests.fakes.faults import unavailable
from tests.fakes.github.state import Repository, Ruleset, Token
from tests.integrations.github.asking import APP, EVERYTHING, TOKEN, full, started
from tests.service import NOON, Service, component

Make = Callable[..., Awaitable["World"]]
SCANNER = {"scannerIssues": "not-configured"}


mapped = partial(pointing, "github.com/project-slug", APP)
everything = partial(of_shape, EVERYTHING)


class World(ToolWorld):
    """A service, a GitHub, and the collector between them."""

    def __init__(self, service: Service, repository: Repository, token: Token) -> None:
        self.fake, asking = started(repository, token=token)
        super().__init__(service, asking)


@pytest.fixture
async def make(start: StartService) -> Make:
    async def make(repository: Repository | None = None, token: Token | None = None) -> World:
        _, asking = started(full())
        service = await start(sources=(*SOURCES, asking.integration.source))
        return World(service, repository or full(), token or Token(TOKEN))

    return make


@pytest.mark.spec("tools.facts.real-values", "tools.codehost.windows")
async def test_with_all_rights_every_leaf_has_its_value_and_its_time(make: Make) -> None:
    world = await make()
    await world.run(mapped("app"))
    codehost, reasons = await world.told("codehost")
    assert codehost == everything("codehost")
    assert reasons == {}
    security, reasons = await world.told("security")
    assert (security, reasons) == (everything("security"), SCANNER)
    repository, reasons = await world.told("repository")
    assert (repository, reasons) == (everything("repository"), {})
    collected = (await world.ask("codehost"))["collectedAt"]
    assert set(collected.values()) == {iso(NOON)}
    assert collected.keys() == {name.partition(".")[0] for name in codehost}


@pytest.mark.spec("unknown.reasons-of-collections")
async def test_what_a_token_without_admin_may_not_read_is_forbidden_and_no_figure(
    make: Make,
) -> None:
    world = await make(token=Token(TOKEN, permission="READ"))
    await world.run(mapped("app"))
    codehost, reasons = await world.told("codehost")
    different = {path for path, value in everything("codehost").items() if codehost[path] != value}
    assert {codehost[path] for path in different if path != "collaboration.collaborators"} == {
        "unknown"
    }
    assert codehost["collaboration.collaborators"] == []
    assert reasons == dict.fromkeys(different, "forbidden")
    assert "branchProtection.enforceAdmins" in different
    security, reasons = await world.told("security")
    assert security == {"branchProtection": True}
    assert reasons == SCANNER | {"dependencyAlerts": "forbidden"}


@pytest.mark.spec("tools.facts.misconfigured-is-unavailable")
async def test_with_a_token_that_github_does_not_know_nothing_is_made_up(make: Make) -> None:
    world = await make(token=Token("ghp_another_token"))
    await world.run(mapped("app"))
    codehost, reasons = await world.told("codehost")
    lists = {"collaboration.languages", "collaboration.collaborators"}
    assert {value for path, value in codehost.items() if path not in lists} == {"unknown"}
    assert reasons == dict.fromkeys(codehost, "forbidden")
    assert "forbidden" in await world.service.refusal("get-repository-info", name="app")


@pytest.mark.spec("unknown.reasons-of-collections")
async def test_alerts_that_are_switched_off_are_left_out_and_no_zeros(make: Make) -> None:
    repository = full()
    repository.has_alerts = False
    world = await make(repository)
    await world.run(mapped("app"))
    security, reasons = await world.told("security")
    assert security == {"branchProtection": True}
    assert reasons == SCANNER | {"dependencyAlerts": "feature-off"}


async def test_a_repository_that_is_missing_costs_the_others_nothing(make: Make) -> None:
    world = await make()
    await world.run(mapped("app"), mapped("gone", "acme/gone"))
    assert (await world.told("codehost"))[0] == everything("codehost")
    codehost, reasons = await world.told("codehost", "gone")
    lists = {"collaboration.languages", "collaboration.collaborators"}
    assert {value for path, value in codehost.items() if path not in lists} == {"unknown"}
    assert reasons == dict.fromkeys(codehost, "not-found")
    refusal = await world.service.refusal("get-repository-info", name="gone")
    assert "not-found" in refusal


async def test_a_renamed_repository_is_followed(make: Make) -> None:
    repository = full()
    repository.old_names = ["acme/old"]
    world = await make(repository)
    await world.run(mapped("app", "acme/old"))
    assert (await world.told("codehost"))[0] == everything("codehost")


@pytest.mark.spec("unknown.reasons-of-collections")
async def test_no_annotation_and_a_foreign_host_are_told_as_such(make: Make) -> None:
    world = await make()
    foreign = {"backstage.io/source-location": "url:https://evil.example.net/acme/app"}
    plain = component("plain")
    await world.run(mapped("app"), mapped("foreign", **foreign), plain)
    for name in ("plain", "foreign"):
        codehost, reasons = await world.told("codehost", name)
        assert set(reasons.values()) == {"no-annotation"}
        assert reasons.keys() == codehost.keys()
    assert world.fake.requests == {"graphql": 1, "tree": 1}


@pytest.mark.spec("unknown.reasons-of-collections")
async def test_a_rate_limit_before_the_first_value_is_told_and_later_keeps_the_last(
    make: Make,
) -> None:
    token = Token(TOKEN)
    token.used["graphql"] = token.limits["graphql"]
    token.reset_at = NOON + 30 * MINUTE
    world = await make(token=token)
    await world.run(mapped("app"))
    _, reasons = await world.told("codehost")
    assert set(reasons.values()) <= {"rate-limited", "never-collected"}
    assert reasons
    token.used["graphql"] = 0
    world.wait(NOON + HOUR)
    await world.run()
    assert (await world.told("codehost"))[0] == everything("codehost")


@pytest.mark.spec("tool-error.upstream-fault")
async def test_a_host_that_is_down_from_the_start_is_told_and_nothing_is_made_up(
    make: Make,
) -> None:
    world = await make()
    world.fake.fail("graphql", unavailable, times=1_000)
    await world.run(mapped("app"))
    for minutes in (5, 10):
        world.wait(NOON + minutes * MINUTE)
        await world.run()
    codehost, reasons = await world.told("codehost")
    assert reasons == dict.fromkeys(codehost, "upstream-error")
    refusal = await world.service.refusal("get-repository-info", name="app")
    assert "upstream-error" in refusal


@pytest.mark.spec("unknown.reasons-of-collections")
async def test_while_the_host_is_down_values_stay_for_three_cadences_and_then_expire(
    make: Make,
) -> None:
    world = await make()
    await world.run(mapped("app"))
    world.fake.fail("graphql", unavailable, times=1_000)
    for _ in range(3):
        await world.next_run()
        found = await world.ask("codehost")
        assert set(found["collectedAt"].values()) == {iso(NOON)}
        assert (await world.told("codehost"))[0] == everything("codehost")
        assert world.is_stale
    await world.next_run()
    codehost, reasons = await world.told("codehost")
    assert set(reasons.values()) == {"expired"}
    assert reasons.keys() == codehost.keys()
    world.fake.recover()
    world.wait(world.times[0].now + DAY)
    await world.run()
    assert (await world.told("codehost"))[0] == everything("codehost")


@pytest.mark.spec("tools.repository.limit-on-paths")
async def test_a_limit_shortens_the_paths_and_not_their_number(make: Make) -> None:
    world = await make()
    await world.run(mapped("app"))
    found = await world.service.facts("get-repository-info", name="app", limit=2)
    assert found["filePaths"] == EVERYTHING["repository.filePaths"][:2]
    assert found["totalFiles"] == 6


async def test_an_entity_that_no_run_has_reached_was_never_collected(make: Make) -> None:
    world = await make()
    assert (await world.service.push("all", mapped("app"))).status_code == 200
    _, reasons = await world.told("codehost")
    assert set(reasons.values()) == {"never-collected"}


@pytest.mark.spec("unknown.reasons-of-collections")
async def test_what_exceeds_a_limit_of_ours_says_so_on_the_value(make: Make) -> None:
    repository = full()
    repository.collaborators = [f"user-{number:04}" for number in range(1_250)]
    world = await make(repository)
    await world.run(mapped("app"))
    codehost, reasons = await world.told("codehost")
    assert reasons == {"collaboration.collaborators": "too-large"}
    assert codehost["collaboration.collaborators"] == []
    assert codehost["collaboration.collaboratorCount"] == 1_250


@pytest.mark.spec("unknown.reasons-of-collections")
async def test_a_bypass_of_robots_leaves_administrators_bound(make: Make) -> None:
    repository = full()
    repository.classic = None
    repository.rulesets = [Ruleset("RS_1", [("DELETION", {})], ["App", "DeployKey"])]
    world = await make(repository)
    await world.run(mapped("app"))
    codehost, _ = await world.told("codehost")
    assert codehost["branchProtection.enforceAdmins"] is True
