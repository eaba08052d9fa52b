"""Failures of vendors that are not whole: one call of many, one leaf, in the middle of a run.

Each row is a fault of one kind of call at one vendor, in a run after a good one, with all that the
service says of it. None of them may end as `up` with nothing said.
"""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import pytest

from factbook.clock import MINUTE
from factbook.facts import freshness, store
from factbook.integrations import SOURCES
from factbook.scheduling import runs
from tests.collection.tools import ToolWorld
from tests.conftest import StartService
from tests.fakes import faults
from tests.fakes.faults import Fault, saying
from tests.fakes.github.faults import secondary_limit
from tests.integrations.asking import Asking
from tests.integrations.datadog import asking as datadog
from tests.integrations.gitea import asking as gitea
from tests.integrations.github import asking as github
from tests.integrations.gitlab import asking as gitlab
from tests.integrations.pagerduty import asking as pagerduty
from tests.integrations.snyk import asking as snyk
from tests.service import component

SAML = {"x-github-sso": "required; url=https://github.test/orgs/acme/sso"}
ALLOW_LIST = {
    "message": "`acme` has an IP allow list enabled, and your IP address is not permitted"
}
SCOPES = {"x-oauth-scopes": "gist", "x-accepted-oauth-scopes": "repo"}
SAML_ERROR = {"type": "FORBIDDEN", "path": ["r0"], "extensions": {"saml_failure": True}}
AGAIN = {"link": '<https://gitlab.test/x?page_token=1&per_page=100>; rel="next"'}


def saml_in_graphql() -> Fault:
    return saying({"data": {"r0": None}, "errors": [SAML_ERROR | {"message": "SAML enforcement"}]})


class Case(NamedTuple):
    """A fault of all calls of a kind, and its outcome.

    `place` is a fact that the calls tell, `kept` whether its value of the run before stays.
    `most` bounds the calls of the kind in the whole run, all attempts together.
    """

    vendor: str
    kind: str
    fault: Fault
    state: str
    place: str
    reason: str
    sentence: str
    kept: bool
    most: int


FILES, LANGUAGES = "repository.totalFiles", "codehost.collaboration.languages"
TREE_502 = Case(
    "github", "tree", faults.bad_gateway, "partial", FILES, "upstream-error", "502", True, 9
)
CASES = {
    "rest 502": TREE_502,
    "rest 503": TREE_502._replace(fault=faults.unavailable, sentence="503"),
    "rest not json": TREE_502._replace(fault=faults.not_json, sentence="not JSON"),
    "rest cut off": TREE_502._replace(fault=faults.cut_off, sentence="not JSON"),
    "rest redirects in a loop": TREE_502._replace(
        fault=saying({}, 302, {"location": "/repos/acme/app/git/trees/main"}), sentence="answered"
    ),
    "rest secondary limit": TREE_502._replace(
        fault=secondary_limit, reason="rate-limited", sentence="no call before", most=6
    ),
    "rest 429": TREE_502._replace(
        fault=saying({}, 429), reason="rate-limited", sentence="no call before", most=6
    ),
    "rest 451": TREE_502._replace(fault=saying({}, 451), sentence="legal reasons", most=3),
    "rest 401 in mid-run": TREE_502._replace(
        fault=saying({}, 401), reason="forbidden", sentence="renew it", most=1
    ),
    "rest saml": TREE_502._replace(
        fault=saying({}, 403, SAML), reason="forbidden", sentence="single sign-on", most=1
    ),
    "rest scope": TREE_502._replace(
        fault=saying({"message": "no"}, 403, SCOPES),
        reason="forbidden",
        sentence="contents",
        kept=False,
        most=1,
    ),
    "graphql 502": Case(
        "github",
        "graphql",
        faults.bad_gateway,
        "down",
        LANGUAGES,
        "upstream-error",
        "502",
        True,
        12,
    ),
    "graphql 401": Case(
        "github",
        "graphql",
        saying({}, 401),
        "down",
        LANGUAGES,
        "forbidden",
        "renew it",
        True,
        1,
    ),
    "graphql saml header": Case(
        "github",
        "graphql",
        saying({}, 403, SAML),
        "down",
        LANGUAGES,
        "forbidden",
        "single sign-on",
        True,
        1,
    ),
    "graphql saml error": Case(
        "github",
        "graphql",
        saml_in_graphql(),
        "down",
        LANGUAGES,
        "forbidden",
        "single sign-on",
        True,
        1,
    ),
    "graphql allow list": Case(
        "github",
        "graphql",
        saying(ALLOW_LIST, 403),
        "down",
        LANGUAGES,
        "forbidden",
        "IP allow list",
        True,
        1,
    ),
    "graphql suspended": Case(
        "github",
        "graphql",
        saying({"message": "Your account was suspended"}, 403),
        "down",
        LANGUAGES,
        "forbidden",
        "suspended",
        True,
        1,
    ),
    "graphql limit": Case(
        "github",
        "graphql",
        secondary_limit,
        "down",
        LANGUAGES,
        "rate-limited",
        "no call before",
        True,
        6,
    ),
    "gitlab tree 502": Case(
        "gitlab",
        "tree",
        faults.bad_gateway,
        "partial",
        FILES,
        "upstream-error",
        "502",
        True,
        9,
    ),
    "gitlab one page for ever": Case(
        "gitlab",
        "tree",
        saying([{"path": "a", "type": "blob"}], 200, AGAIN),
        "partial",
        FILES,
        "upstream-error",
        "same page again",
        True,
        6,
    ),
    "gitlab 401": Case(
        "gitlab",
        "graphql",
        saying({"error": "invalid_token"}, 401),
        "down",
        LANGUAGES,
        "forbidden",
        "renew it",
        True,
        1,
    ),
    "gitea languages 502": Case(
        "gitea",
        "languages",
        faults.bad_gateway,
        "partial",
        LANGUAGES,
        "upstream-error",
        "502",
        True,
        9,
    ),
    "datadog slos 403": Case(
        "datadog",
        "slos",
        saying({"errors": ["Forbidden"]}, 403),
        "partial",
        "observability.sloCount",
        "forbidden",
        "403",
        False,
        1,
    ),
    "datadog slos 502": Case(
        "datadog",
        "slos",
        faults.bad_gateway,
        "partial",
        "observability.sloCount",
        "upstream-error",
        "502",
        True,
        9,
    ),
    "datadog monitors 429": Case(
        "datadog",
        "monitors",
        saying({}, 429),
        "partial",
        "observability.monitorCount",
        "rate-limited",
        "no call before",
        True,
        6,
    ),
    "pagerduty analytics 502": Case(
        "pagerduty",
        "analytics",
        faults.bad_gateway,
        "partial",
        "incident.incidentMetrics.totalIncidents",
        "upstream-error",
        "502",
        True,
        36,
    ),
    "snyk 502": Case(
        "snyk",
        "projects",
        faults.bad_gateway,
        "down",
        "security.scannerIssues.total",
        "upstream-error",
        "502",
        True,
        18,
    ),
}


def annotated(**annotations: str) -> dict[str, Any]:
    entity = component("app")
    entity["metadata"]["annotations"] = annotations
    return entity


VENDORS: dict[str, tuple[Callable[[], tuple[Any, Asking]], dict[str, Any]]] = {
    "github": (
        lambda: github.started(github.full()),
        annotated(**{"github.com/project-slug": github.APP}),
    ),
    "gitlab": (
        lambda: gitlab.started(gitlab.full()),
        annotated(**{"gitlab.com/project-slug": gitlab.APP}),
    ),
    "gitea": (
        lambda: gitea.started(gitea.full()),
        annotated(**{f"{gitea.HOST}/project-slug": gitea.APP}),
    ),
    "datadog": (datadog.started, annotated(**{"datadoghq.com/service-name": "app"})),
    "pagerduty": (
        pagerduty.started,
        annotated(**{"pagerduty.com/service-id": pagerduty.APP}),
    ),
    "snyk": (snyk.started, annotated(**snyk.named({"slug": "acme/app"}))),
}
Make = Callable[[str], Awaitable[tuple[ToolWorld, Any]]]


@pytest.fixture
async def make(start: StartService) -> Make:
    async def make(vendor: str) -> tuple[ToolWorld, Any]:
        started, entity = VENDORS[vendor]
        fake, asking = started()
        service = await start(sources=(*SOURCES, asking.integration.source))
        world = ToolWorld(service, asking)
        await world.run(entity)
        return world, fake

    return make


async def next_run(world: ToolWorld) -> None:
    """The next run to its end, with the pauses between its attempts."""
    await world.next_run()
    source = world.askings[0].integration.source.id
    for _ in range(30):
        found = await runs.fetch_source_health(world.service.state.database, source)
        if found is None or found.running is None:
            break
        world.wait(world.service.time.now + 2 * MINUTE)
        await world.collector.drain()


@pytest.mark.slow
@pytest.mark.usefixtures("no_pauses")
@pytest.mark.spec("collecting.partial-runs")
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_a_failure_is_said_counted_and_tried_again_as_the_table_says(
    make: Make, case: Case
) -> None:
    world, fake = await make(case.vendor)
    before = await latest(world)
    assert case.place in before.facts
    change_head(fake)
    fake.requests.clear()
    fake.fail(case.kind, case.fault, times=10_000)
    await next_run(world)
    source = world.askings[0].integration.source
    found = await runs.fetch_source_health(world.service.state.database, source.id)
    assert found is not None
    assert found.last is not None
    state, sentence = freshness.source_condition(source, found, found.last.finished_at or 0)
    assert state == case.state
    assert case.sentence in sentence
    listed = await runs.list_gaps(world.service.state.database, found.last.id)
    assert any(gap.reason.startswith(case.reason) for gap in listed)
    after = await latest(world)
    assert (after.facts.get(case.place) == before.facts[case.place]) is case.kept
    assert 0 < fake.requests[case.kind] <= case.most


@pytest.mark.usefixtures("no_pauses")
async def test_only_the_calls_that_failed_are_made_again(make: Make) -> None:
    world, fake = await make("github")
    change_head(fake)
    fake.requests.clear()
    fake.fail("tree", faults.bad_gateway, times=3)
    await next_run(world)
    assert fake.requests["graphql"] == 1
    assert fake.requests["tree"] == 4
    found = await runs.fetch_source_health(world.service.state.database, "github")
    assert found is not None
    assert found.last is not None
    assert (found.last.state, found.last.incomplete) == ("done", 0)


async def latest(world: ToolWorld) -> freshness.Latest:
    source = world.askings[0].integration.source.id
    found = await store.list_latest_by_ref(world.service.state.database, "component:default/app")
    return found[source]


def change_head(fake: Any) -> None:
    """Let a code host have a commit that was not read yet, whose tree is the same."""
    for one in [*getattr(fake, "repositories", []), *getattr(fake, "projects", [])]:
        one.commits += 1
