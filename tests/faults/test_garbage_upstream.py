"""A vendor answers garbage for an hour: the last values stay, calls stay few, and it recovers."""

import random
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import pytest
from structlog.testing import capture_logs

from factbook.clock import HOUR, MINUTE
from factbook.facts import store
from factbook.facts.freshness import Latest
from factbook.integrations.integration import Integration
from factbook.scheduling import runs
from factbook.scheduling.runs import SourceHealth
from factbook.scheduling.schedule import find_next_start
from tests.collection.tools import Dispatcher, ToolWorld
from tests.datasources import asking as custom
from tests.fakes import garbage
from tests.fakes.fake import Fake
from tests.fakes.faults import Fault
from tests.integrations.datadog import asking as datadog
from tests.integrations.gitea import asking as gitea
from tests.integrations.github import asking as github
from tests.integrations.gitlab import asking as gitlab
from tests.integrations.pagerduty import asking as pagerduty
from tests.integrations.prometheus import asking as prometheus
from tests.integrations.snyk import asking as snyk
from tests.service import Service, component

ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
ROUND = 5 * MINUTE
# Of what a good run asks: a run tries a target three times, a client each call three times, and
# there are runs of up to four times an hour.
MOST_CALLS = 40
KEY = custom.KEY


class Upstream(NamedTuple):
    """A vendor that can be told to fail, and the service that collects from it."""

    service: Service
    fake: Fake
    integration: Integration
    collector: Dispatcher
    wait: Callable[[int], None]

    async def latest(self) -> Latest:
        """What is stored of the one component."""
        found = await store.list_latest_by_ref(self.service.state.database, "component:default/app")
        return found[self.integration.source.id]

    async def health(self) -> SourceHealth:
        return (await runs.fetch_health(self.service.state.database))[self.integration.source.id]

    async def pass_by(self, duration: int) -> None:
        for _ in range(duration // ROUND):
            self.wait(self.service.time() + ROUND)
            await self.collector.drain()

    async def next_run(self) -> None:
        source = self.integration.source
        assert source.cadence is not None
        self.wait(find_next_start(source.id, source.cadence, self.service.time()))
        await self.collector.drain()

    async def next_run_and_more(self) -> None:
        """The next run, and what it tries again."""
        await self.next_run()
        await self.pass_by(30 * MINUTE)

    def answers(self, fault: Fault) -> None:
        """Let it answer so from now on, whatever it is asked."""
        for kind in list(self.fake.requests):
            self.fake.fail(kind, fault, times=100_000)


VENDORS: dict[str, tuple[Callable[[], Any], dict[str, str]]] = {
    "github": (lambda: github.started(github.full()), {"github.com/project-slug": github.APP}),
    "gitlab": (lambda: gitlab.started(gitlab.full()), {"gitlab.com/project-slug": gitlab.APP}),
    "gitea": (lambda: gitea.started(gitea.full()), {f"{gitea.HOST}/project-slug": gitea.APP}),
    "snyk": (snyk.started, {"snyk.io/target-name": "acme/app"}),
    "pagerduty": (pagerduty.started, {"pagerduty.com/service-id": pagerduty.APP}),
    "datadog": (datadog.started, {"datadoghq.com/service-name": "app"}),
    "prometheus": (prometheus.started, {"prometheus.io/service": "checkout"}),
}
Begin = Callable[[str], Awaitable[Upstream]]


@pytest.fixture
async def begin(service: Service) -> Begin:
    """A vendor by its name, from which everything was collected once."""

    async def begin(vendor: str) -> Upstream:
        upstream = _custom(service) if vendor == "custom" else _configured(service, vendor)
        entity = component("app")
        entity["metadata"]["annotations"] = (
            {KEY: "build"} if vendor == "custom" else VENDORS[vendor][1]
        )
        assert (await service.push("all", entity)).status_code == 200
        await upstream.collector.drain()
        return upstream

    return begin


def _configured(service: Service, vendor: str) -> Upstream:
    fake, asking = VENDORS[vendor][0]()
    world = ToolWorld(service, asking)
    return Upstream(service, fake, asking.integration, world.collector, world.wait)


def _custom(service: Service) -> Upstream:
    api = custom.Api(**{"api/builds": {"ok": True, "count": 3, "names": ["a", "b"]}})
    facts = {"ok": ("boolean", "ok"), "count": ("integer", "count"), "names": ("set", "names")}
    source = custom.definition(facts=facts, path="/builds")
    world = custom.collecting(service, api, source)

    def wait(moment: int) -> None:
        service.time.now = moment

    return Upstream(service, api, world.integrations[0], world.collector, wait)


EVERY = pytest.mark.parametrize("vendor", [*VENDORS, "custom"])


@pytest.mark.slow
@pytest.mark.spec("faults.garbage-upstream")
@ON_SQLITE
@EVERY
async def test_an_hour_of_garbage_leaves_the_last_values_and_few_calls(
    begin: Begin, vendor: str
) -> None:
    upstream, chance = await begin(vendor), random.Random(3)
    good, calls = await upstream.latest(), upstream.fake.requests.total()
    assert good.facts
    with capture_logs() as logs:
        upstream.answers(garbage.any_of(list(garbage.whole(chance).values()), chance))
        await upstream.next_run()
        await upstream.pass_by(HOUR)
    kept = await upstream.latest()
    assert kept.facts == good.facts
    assert upstream.fake.requests.total() - calls <= MOST_CALLS * calls
    health = await upstream.health()
    assert health.down_since is not None
    assert health.last is not None
    assert (health.last.error or "").startswith("upstream-error: ")
    assert [one for one in logs if one["event"].endswith(".failed")] == []
    assert [one["event"] for one in logs].count("source.down") == 1
    upstream.fake.recover()
    await upstream.next_run_and_more()
    again = await upstream.latest()
    assert again.written_at > good.written_at
    assert (again.reasons, again.kept) == (good.reasons, {})
    assert (await upstream.health()).down_since is None


@pytest.mark.slow
@pytest.mark.spec("faults.garbage-upstream")
@ON_SQLITE
@EVERY
async def test_values_of_wrong_types_become_unknown_and_never_values(
    begin: Begin, vendor: str
) -> None:
    upstream, chance = await begin(vendor), random.Random(4)
    types = {fact.name: fact for fact in upstream.integration.source.schema}
    good = await upstream.latest()
    upstream.answers(garbage.of_wrong_types(chance))
    with capture_logs() as logs:
        for _ in range(3):
            await upstream.next_run_and_more()
            latest = await upstream.latest()
            checked = upstream.integration.source.check(latest.facts)
            assert checked.reasons == {}, checked.reasons
            assert latest.facts.keys() <= types.keys()
    assert [one for one in logs if one["event"].endswith(".failed")] == []
    upstream.fake.recover()
    await upstream.next_run_and_more()
    again = await upstream.latest()
    assert (again.facts.keys(), again.reasons) == (good.facts.keys(), good.reasons)


@pytest.mark.slow
@ON_SQLITE
@EVERY
async def test_limits_that_cannot_be_keep_nobody_from_asking(begin: Begin, vendor: str) -> None:
    upstream = await begin(vendor)
    chance = random.Random(5)
    upstream.answers(garbage.any_of(list(garbage.LIMITS.values()), chance))
    for _ in range(4):
        before = (await upstream.latest()).written_at
        await upstream.next_run()
        latest = await upstream.latest()
        assert latest.written_at > before
        assert latest.kept == {}
