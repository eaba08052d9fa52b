"""Batches that end their processes: they are given up, listed and tried again."""

import pytest

from factbook.collection import collector
from factbook.scheduling import runs
from tests.collection.world import OPEN, World
from tests.conftest import StartService
from tests.service import Service
from tests.web.running import world as shown_world
from tests.web.visiting import signed_in, words

pytestmark = pytest.mark.both_databases


async def test_a_batch_that_ends_its_processes_is_given_up_and_listed(world: World) -> None:
    await world.push("web")
    await world.collector.begin_due()
    await world.lose(collector.MOST_ATTEMPTS)
    await world.collector.drain()
    assert world.vendor.asked.total() == 0
    run = await world.last()
    assert (run.failed, run.error) == (
        1,
        "upstream-error: the collection ended without a result time and again",
    )
    [listed] = await runs.list_given_up_batches(world.database)
    assert (listed.run_id, listed.attempts) == (run.id, collector.MOST_ATTEMPTS)
    assert "acme/web" in listed.work


async def test_one_attempt_fewer_gives_nothing_up(world: World) -> None:
    await world.push("web")
    await world.collector.begin_due()
    await world.lose(collector.MOST_ATTEMPTS - 1)
    await world.collector.drain()
    assert (await world.last()).covered == 1
    assert await runs.list_given_up_batches(world.database) == []


async def test_what_ends_its_processes_costs_the_others_one_attempt_at_most(
    service: Service,
) -> None:
    world = World(service, size=1)
    await world.push("a", "b", "c")
    await world.collector.begin_due()
    begun = await world.lose(3)
    assert len(set(begun)) == 3
    await world.collector.drain()
    assert (await world.last()).covered == 3


async def test_a_later_run_of_everything_takes_what_it_has_collected_off_the_list(
    world: World,
) -> None:
    await world.push("web")
    await world.collector.begin_due()
    await world.lose(collector.MOST_ATTEMPTS)
    await world.collector.drain()
    await world.next_run()
    assert (await world.values("web"))[OPEN] == 0
    assert await runs.list_given_up_batches(world.database) == []


async def test_the_page_of_runs_lists_what_was_given_up_and_tries_it_again(
    start: StartService,
) -> None:
    world = await shown_world(start)
    await world.push("web", "shop")
    await world.collector.begin_due()
    await world.lose(collector.MOST_ATTEMPTS)
    await world.collector.drain()
    visitor = await signed_in(world.service)
    page = words(await visitor.text("/data-sources/vendor/runs"))
    assert "2 entities, begun 6 times" in page
    assert "acme/web" in page
    answer = await visitor.send("/data-sources/vendor/given-up")
    assert answer.status_code == 303
    await world.collector.drain()
    page = words(await visitor.text(answer.headers["location"]))
    assert "2 covered" in page
    assert "Given up" not in words(await visitor.text("/data-sources/vendor/runs"))
    assert (await world.values("web"))[OPEN] == 0


async def test_trying_again_when_nothing_was_given_up_says_so(start: StartService) -> None:
    world = await shown_world(start)
    visitor = await signed_in(world.service)
    await visitor.open("/data-sources/vendor/runs")
    page = words(await visitor.done("/data-sources/vendor/given-up"))
    assert "Nothing of vendor that was given up can be collected." in page
