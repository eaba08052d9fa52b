"""A simulated day of every vendor with faults: values stay true, and nothing piles up."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from factbook.clock import DAY, HOUR, MINUTE
from factbook.integrations import SOURCES
from factbook.scheduling import runs
from factbook.worker import Worker
from tests.collection.dispatchers import ALONE_OR_SHARING, dispatcher
from tests.collection.test_day import count_objects
from tests.collection.tools import ToolWorld
from tests.conftest import StartService
from tests.fakes.fake import Fake
from tests.fakes.faults import Fault, bad_gateway, cut_off, not_json, saying, unavailable
from tests.integrations.asking import Asking
from tests.integrations.datadog import asking as datadog
from tests.integrations.gitea import asking as gitea
from tests.integrations.github import asking as github
from tests.integrations.gitlab import asking as gitlab
from tests.integrations.pagerduty import asking as pagerduty
from tests.integrations.prometheus import asking as prometheus
from tests.integrations.snyk import asking as snyk
from tests.no_rest import NoRest
from tests.no_retry_delay import no_pauses
from tests.service import NOON, Service, component, registry

__all__ = ["no_pauses"]

pytestmark = [pytest.mark.system, pytest.mark.timeout(1800)]

ENTITIES = 600
REPOSITORIES = 24  # at each code host: more than a request to GitHub or a batch of GitLab takes
STEP = 10 * MINUTE
FAULTS: list[Fault] = [
    bad_gateway,
    unavailable,
    not_json,
    cut_off,
    saying({"message": "Too many requests"}, 429, {"retry-after": "600"}),
    saying({"message": "Forbidden"}, 403),
    saying([], 200),
]
# A run under way keeps a few; what grows would be many more.
SLACK = 1.1


def vendors() -> list[tuple[Fake, Asking]]:
    """Every vendor, code hosts with many repositories."""
    names = [f"acme/r{number}" for number in range(REPOSITORIES)]
    return [
        github.started(*(replace(github.full(), name=name) for name in names)),
        gitlab.started(
            *(replace(gitlab.full(), name=name, number=n) for n, name in enumerate(names, 1))
        ),
        gitea.started(*(replace(gitea.full(), name=name) for name in names)),
        snyk.started(),
        pagerduty.started(),
        datadog.started(),
        prometheus.started(),
    ]


def entity(number: int) -> dict[str, Any]:
    """A component at one of the code hosts, or at none, with a service at the others."""
    made = component(f"part-{number}")
    slug = f"acme/r{number // 4 % REPOSITORIES}"
    host = ["github.com", "gitlab.com", gitea.HOST, None][number % 4]
    annotations = {
        "pagerduty.com/service-id": pagerduty.SERVICES[number % 8].id,
        "datadoghq.com/service-name": "app",
        "prometheus.io/service": "checkout",
        "snyk.io/target-name": "acme/app",
    }
    if host:
        annotations[f"{host}/project-slug"] = slug
    made["metadata"]["annotations"] = annotations
    return made


class Day:
    """A service, every vendor, and the worker between them."""

    def __init__(self, service: Service, made: Sequence[tuple[Fake, Asking]]) -> None:
        self.service = service
        self.chance = random.Random(5)
        self.fakes = [fake for fake, _ in made]
        self.world = ToolWorld(service, *(asking for _, asking in made))
        state = service.state
        known = registry(service, SOURCES, [asking.integration for _, asking in made])
        self.worker = Worker(
            state.database, state.settings, known, service.time, "a", throttle=NoRest
        )

    def inject(self) -> None:
        """Let some requests of some vendors fail; once in a while a whole vendor does."""
        for fake in self.fakes:
            fake.recover()
            chance = self.chance.random()
            for kind in list(fake.requests):
                if chance < 0.1:
                    fake.fail(kind, self.chance.choice(FAULTS), times=10_000)
                elif chance < 0.5:
                    after = self.chance.randrange(20)
                    fake.fail(kind, self.chance.choice(FAULTS), times=3, after=after)

    async def pass_by(self, duration: int) -> None:
        """Let so much time go by, with faults."""
        end = self.service.time() + duration
        while self.service.time() < end:
            self.inject()
            await self.world.run()
            self.world.wait(self.service.time() + STEP)
            await self.worker.work()

    async def rows(self, table: str) -> int:
        """How many there are in a table."""
        row = await self.service.state.database.one(f"SELECT COUNT(*) FROM {table}")  # noqa: S608 - ours
        assert row is not None
        return int(row[0])


@ALONE_OR_SHARING
async def test_a_day_of_every_vendor_with_faults_leaves_nothing_behind(
    start: StartService, sharing: bool
) -> None:
    made = vendors()
    brought = [asking.integration.source for _, asking in made]
    service = await start(sources=(*SOURCES, *brought))
    day = Day(service, made)
    world, integrations = day.world, [asking.integration for _, asking in made]
    async with dispatcher(service, integrations, world.connect, shares=sharing) as collector:
        world.collector = collector
        await day.world.run(*map(entity, range(ENTITIES)))
        await day.pass_by(12 * HOUR)
        tasks, objects, memories = (
            len(asyncio.all_tasks()),
            count_objects(),
            await day.rows("memories"),
        )
        await day.pass_by(12 * HOUR)
        assert service.time() == NOON + DAY

        assert len(asyncio.all_tasks()) == tasks
        assert count_objects() < objects * SLACK
        assert await day.rows("memories") <= memories * SLACK
        sources = [source.id for source in brought]
        assert await day.rows("runs") <= runs.RUNS_KEPT * len(sources)
        assert await day.rows("facts_latest") <= ENTITIES * (len(sources) + len(SOURCES))
        health = await runs.fetch_health(service.state.database)
        assert sorted(health) == sorted(sources)
        for source, found in health.items():
            assert found.last is not None, source
            assert service.time() - found.last.started_at <= 7 * HOUR, source
        await check_values(day)


async def check_values(day: Day) -> None:
    """Check that tools tell what the code hosts have, once these are well again."""
    for fake in day.fakes:
        fake.recover()
    day.world.wait(day.service.time() + 7 * HOUR)
    await day.world.run()
    for number, everything in enumerate((github.EVERYTHING, gitlab.EVERYTHING, gitea.EVERYTHING)):
        told, reasons = await day.world.told("codehost", f"part-{number}")
        known = {f"codehost.{path}": told[path] for path in told if path not in reasons}
        windows = {"LastMonth", "mergedLastMonth", "closedLastMonth"}
        assert {name for name in known if known[name] != everything[name]} <= {
            name for name in known if any(window in name for window in windows)
        }
        assert set(reasons.values()) <= {"not-applicable"}
