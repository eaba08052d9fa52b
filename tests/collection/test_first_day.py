"""A first day with many repositories: limits that are met in the middle of a run end no run."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from factbook.clock import HOUR, MINUTE
from factbook.facts import store
from factbook.integrations import SOURCES
from factbook.scheduling.runs import RunRecord, list_recent_runs
from tests.collection.tools import ToolWorld
from tests.conftest import StartService
from tests.fakes.github.app import FakeGitHub
from tests.fakes.github.faults import secondary_limit
from tests.fakes.github.state import Repository
from tests.integrations.github.asking import TOKEN, started
from tests.service import NOON, component

COUNT = 40
FILES = "repository.totalFiles"
Make = Callable[[], Awaitable[tuple[ToolWorld, FakeGitHub]]]


@pytest.fixture
async def make(start: StartService) -> Make:
    async def make() -> tuple[ToolWorld, FakeGitHub]:
        names = [f"acme/app-{number}" for number in range(COUNT)]
        few = [Repository(name, files=["README.md"], alerts={"OPEN": 1}) for name in names]
        fake, asking = started(*few)
        service = await start(sources=(*SOURCES, asking.integration.source))
        return ToolWorld(service, asking), fake

    return make


def mapped(number: int) -> dict[str, Any]:
    """A component that points to one of the repositories."""
    entity = component(f"app-{number}")
    entity["metadata"]["annotations"] = {"github.com/project-slug": f"acme/app-{number}"}
    return entity


async def the_run(world: ToolWorld) -> RunRecord:
    """The first run."""
    return (await list_recent_runs(world.service.state.database, "github", 9))[-1]


async def with_files(world: ToolWorld) -> int:
    """How many entities have their files."""
    refs = [f"component:default/app-{number}" for number in range(COUNT)]
    found = [await store.list_latest_by_ref(world.service.state.database, ref) for ref in refs]
    return sum(FILES in latest["github"].facts for latest in found)


async def test_a_limit_of_an_hour_is_waited_for_in_the_run(make: Make) -> None:
    world, fake = await make()
    token = fake.tokens[TOKEN]
    token.limits["core"] = 30
    await world.run(*(mapped(number) for number in range(COUNT)))
    assert (await the_run(world)).state == "running"
    assert 0 < await with_files(world) < COUNT
    world.wait(NOON + HOUR)
    token.used["core"], token.reset_at = 0, NOON + 2 * HOUR
    await world.run()
    run = await the_run(world)
    assert (run.state, run.covered, run.incomplete) == ("done", COUNT, 0)
    assert await with_files(world) == COUNT
    assert fake.requests["tree"] <= COUNT + 1


@pytest.mark.slow
async def test_a_run_goes_on_after_every_limit_as_long_as_it_gets_on(make: Make) -> None:
    world, fake = await make()
    for _ in range(9):
        fake.fail("tree", secondary_limit, after=4)
    await world.run(*(mapped(number) for number in range(COUNT)))
    for minutes in range(2, 32, 2):
        world.wait(NOON + minutes * MINUTE)
        await world.run()
    run = await the_run(world)
    assert (run.state, run.covered, run.incomplete) == ("done", COUNT, 0)
    assert await with_files(world) == COUNT


@pytest.mark.slow
async def test_a_limit_that_lets_nothing_through_ends_the_run(make: Make) -> None:
    world, fake = await make()
    fake.fail("tree", secondary_limit, times=1_000)
    await world.run(*(mapped(number) for number in range(COUNT)))
    for minutes in range(5, 45, 5):
        world.wait(NOON + minutes * MINUTE)
        await world.run()
    run = await the_run(world)
    assert (run.state, run.incomplete) == ("partial", COUNT)
    assert fake.requests["tree"] < 6 * 10
