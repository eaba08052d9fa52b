"""From a Git host to the tools: what get-repository-info says, leaf by leaf."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import stamina

from factbook.clock import DAY, MINUTE, iso
from factbook.integrations import SOURCES
from tests.collection.tools import ToolWorld
from tests.conftest import StartService
from tests.fakes.faults import saying, unavailable
from tests.fakes.git import FakeGit, commit, git, hosted
from tests.integrations.git.asking import APP, EVERYTHING, HOST, TOKEN, Collector, full
from tests.service import NOON, Service, component

Make = Callable[..., Awaitable["World"]]
TOOL = "get-repository-info"
VALUES = {name.removeprefix("repository."): value for name, value in EVERYTHING.items()}


def mapped(name: str, path: str = APP, host: str = HOST) -> dict[str, Any]:
    """A component whose source is at the path."""
    entity = component(name)
    location = f"url:https://{host}/{path}"
    entity["metadata"]["annotations"] = {"backstage.io/source-location": location}
    return entity


class World(ToolWorld):
    """A service, a Git host that wants a token, and the collector between them."""

    def __init__(self, service: Service, fake: FakeGit, collector: Collector) -> None:
        self.fake = fake
        super().__init__(service, collector)

    async def refusal(self, name: str = "app") -> str:
        return await self.service.refusal(TOOL, name=name)


@pytest.fixture(autouse=True)
def no_pauses() -> Iterator[None]:
    """Tries follow each other at once."""
    with stamina.set_testing(True, attempts=3, cap=True):
        yield


@pytest.fixture
async def make(start: StartService, tmp_path: Path) -> AsyncIterator[Make]:
    async with AsyncExitStack() as stack:

        async def make(**table: Any) -> World:
            fake = FakeGit(tmp_path / "repositories", token=TOKEN)
            full(fake)
            port = stack.enter_context(hosted(fake))
            collector = Collector(fake, f"http://127.0.0.1:{port}", **{"token": TOKEN} | table)
            stack.push_async_callback(collector.client.aclose)
            service = await start(sources=(*SOURCES, collector.integration.source))
            return World(service, fake, collector)

        yield make


@pytest.mark.spec("tools.facts.real-values", "tools.repository.in-catalog")
async def test_with_all_rights_every_leaf_has_its_value_and_its_time(make: Make) -> None:
    world = await make()
    await world.run(mapped("app"))
    assert await world.told("repository") == (VALUES, {})
    collected = (await world.ask("repository"))["collectedAt"]
    assert set(collected.values()) == {iso(NOON)}
    assert collected.keys() == {path.partition(".")[0] for path in VALUES}


@pytest.mark.slow
@pytest.mark.spec("unknown.reasons-of-collections", "tools.repository.unavailable-is-an-error")
async def test_why_a_repository_is_not_known_is_told_and_costs_the_others_nothing(
    make: Make,
) -> None:
    world = await make()
    git("init", "--quiet", "--bare", str(world.fake.folder / "acme/empty"))
    commit(world.fake.folder / "acme/headless", {"a": b""}, branch="other")
    full(world.fake, "acme/secret")
    world.fake.forbidden = {"acme/secret"}
    plain = component("plain")
    await world.run(
        mapped("app"),
        mapped("other", "acme/app/-/tree/main/web"),
        mapped("empty", "acme/empty"),
        mapped("gone", "acme/gone"),
        mapped("secret", "acme/secret"),
        mapped("headless", "acme/headless"),
        mapped("foreign", host="evil.example.net"),
        mapped("hostile", "acme/%2e%2e/app"),
        plain,
    )
    assert await world.told("repository") == (VALUES, {})
    assert await world.told("repository", "other") == (VALUES, {})
    empty, reasons = await world.told("repository", "empty")
    assert empty == {"filePaths": [], "inCatalog": False} | dict.fromkeys(
        (path for path, value in VALUES.items() if type(value) is int), 0
    )
    assert reasons == {}
    for name, reason in {
        "gone": "not-found",
        "secret": "forbidden",
        "headless": "not-applicable",
        "foreign": "no-annotation",
        "hostile": "bad-annotation",
        "plain": "no-annotation",
    }.items():
        assert reason in await world.refusal(name), name
    assert world.fake.requests["fetch"] == 1  # two entities share a repository


@pytest.mark.spec("tools.facts.misconfigured-is-unavailable")
async def test_with_a_wrong_token_nothing_is_made_up(make: Make) -> None:
    world = await make(token="another")
    await world.run(mapped("app"))
    assert "forbidden" in await world.refusal()


async def test_a_service_without_the_integration_says_so(start: StartService) -> None:
    service = await start()
    await service.push("all", mapped("app"))
    assert "not-configured" in await service.refusal(TOOL, name="app")


async def test_an_entity_that_no_run_has_reached_was_never_collected(make: Make) -> None:
    world = await make()
    assert (await world.service.push("all", mapped("app"))).status_code == 200
    assert "never-collected" in await world.refusal()


@pytest.mark.slow
@pytest.mark.spec("unknown.reasons-of-collections")
async def test_a_limit_in_the_middle_of_a_run_is_told_and_the_rest_follows(make: Make) -> None:
    world = await make()
    names = [f"part-{number}" for number in range(6)]
    for name in names:
        full(world.fake, f"acme/{name}")
    world.fake.fail("fetch", saying({}, 429), times=1, after=2)
    await world.run(*(mapped(name, f"acme/{name}") for name in names))
    asked = [await world.service.ask(TOOL, name=name) for name in names]
    texts = [one["content"][0]["text"] for one in asked if one["isError"]]
    assert 0 < len(texts) < len(names)
    assert all("never-collected" in text or "rate-limited" in text for text in texts)
    world.wait(NOON + 10 * MINUTE)
    await world.run()
    for name in names:
        assert await world.told("repository", name) == (VALUES, {})


@pytest.mark.slow
@pytest.mark.spec("unknown.reasons-of-collections")
async def test_while_the_host_is_down_values_stay_for_three_cadences_and_then_expire(
    make: Make,
) -> None:
    world = await make()
    await world.run(mapped("app"))
    world.fake.fail("refs", unavailable, times=1_000)
    for _ in range(3):
        await world.next_run()
        assert set((await world.ask("repository"))["collectedAt"].values()) == {iso(NOON)}
        assert await world.told("repository") == (VALUES, {})
        assert world.is_stale
    await world.next_run()
    assert "expired" in await world.refusal()
    world.fake.recover()
    world.wait(world.times[0].now + DAY)
    await world.run()
    assert await world.told("repository") == (VALUES, {})
    assert world.fake.requests["fetch"] == 1  # HEAD was the same all the time
