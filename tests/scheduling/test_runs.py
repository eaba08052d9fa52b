"""When a run begins and when it ends, what its end says of the source, and when it is forgotten."""

import asyncio

import pytest

from factbook.clock import DAY, HOUR, MINUTE
from factbook.scheduling import run_queue, runs
from factbook.scheduling.run_queue import BatchFigures, Queue
from factbook.scheduling.runs import RunGap
from factbook.storage import Database
from tests.scheduling.work import NOW, begin, finish, rows, take, the_run

LOST = RunGap("", "upstream-error", "passing")
GONE = RunGap("", "not-found", "final")

# Beginning


async def test_a_run_of_a_source_is_not_begun_again_while_one_is_under_way(
    database: Database,
) -> None:
    assert await begin(database) is not None
    assert await begin(database, now=NOW + 1) is None
    assert await begin(database, source="snyk") is not None
    assert await begin(database, whole=False) is not None
    assert await rows(database, "runs") == 3


async def test_of_many_who_begin_a_run_at_once_one_does(database: Database) -> None:
    begun = await asyncio.gather(*(begin(database) for _ in range(8)))
    assert sum(run_id is not None for run_id in begun) == 1
    assert await rows(database, "batches") == 3


async def test_who_decided_before_another_run_began_and_ended_begins_none(
    database: Database,
) -> None:
    await begin(database, 0, now=NOW + 5)
    assert await begin(database, now=NOW + 6, since=NOW) is None
    assert await begin(database, now=NOW + 7, since=NOW + 6) is not None


async def test_a_run_without_anything_to_do_ends_at_once(database: Database) -> None:
    found = await the_run(database, await begin(database, 0))
    assert (found.state, found.finished_at) == ("done", NOW)


# Ending


async def test_of_two_batches_that_end_at_once_one_ends_the_run(database: Database) -> None:
    for round_ in range(5):
        await begin(database, 4, queue=Queue("token", 4), now=NOW + round_)
        lanes = await run_queue.list_ready_lanes(database, ["github"], NOW + round_)
        batches = [await take(database, now=NOW + round_, lane=lane) for lane in lanes]
        ended = await asyncio.gather(*(finish(database, batch) for batch in batches))
        assert sum(one is not None for one in ended) == 1


async def end(database: Database, figures: BatchFigures, now: int) -> str | None:
    await begin(database, 1, now=now)
    batch = await take(database, now=now)
    ended = await finish(database, batch, figures, now)
    assert ended is not None
    return ended.change


async def test_a_source_goes_down_once_and_comes_up_once(database: Database) -> None:
    bad, good = BatchFigures(0, 1, gaps={LOST: 1}), BatchFigures(1)
    figures = [good, bad, bad, good, good]
    changes = [await end(database, one, NOW + number) for number, one in enumerate(figures)]
    assert changes == [None, "down", None, "up", None]
    health = (await runs.fetch_health(database))["github"]
    assert (health.succeeded_at, health.down_since) == (NOW + 4, None)
    await end(database, bad, NOW + 9)
    health = (await runs.fetch_health(database))["github"]
    assert (health.succeeded_at, health.down_since) == (NOW + 4, NOW + 9)
    assert health.last is not None
    assert (health.last.state, health.running) == ("failed", None)


async def test_a_run_for_one_entity_says_nothing_about_the_source(database: Database) -> None:
    await begin(database, 1, whole=False)
    batch = await take(database)
    ended = await finish(database, batch, BatchFigures(0, 1, gaps={GONE: 1}))
    assert ended is not None
    assert ended.change is None
    assert await runs.fetch_health(database) == {}


async def sweep(database: Database, now: int) -> int:
    return await runs.sweep_runs(database, now)


@pytest.mark.slow
async def test_old_runs_are_forgotten_and_the_newest_kept(database: Database) -> None:
    for number in range(runs.RUNS_KEPT + 5):
        await begin(database, 0, now=NOW + number)
        await begin(database, 0, now=NOW + number, whole=False)
        await begin(database, 0, now=NOW + number, source="snyk")
    assert await sweep(database, NOW + DAY) == 15
    assert await rows(database, "runs") == 3 * runs.RUNS_KEPT
    assert await sweep(database, NOW + DAY) == 0
    assert (await runs.fetch_starts(database, NOW + DAY)).last["github"] == NOW + runs.RUNS_KEPT + 4


async def test_a_run_that_nobody_takes_is_given_up(database: Database) -> None:
    run_id = await begin(database, 3, limit=MINUTE)
    await sweep(database, NOW + HOUR)
    assert (await the_run(database, run_id)).state == "running"
    await sweep(database, NOW + HOUR + MINUTE + 1)
    found = await the_run(database, run_id)
    assert (found.state, found.failed, found.error) == ("failed", 3, "no worker took it")
    assert await rows(database, "batches") == 0


async def test_the_health_of_one_source_is_what_it_is_among_all(database: Database) -> None:
    assert await runs.fetch_source_health(database, "github") is None
    for number, figures in enumerate([BatchFigures(1), BatchFigures(0, 1, gaps={LOST: 1})]):
        await end(database, figures, NOW + number)
    await begin(database, 2, now=NOW + 5)
    await begin(database, 1, now=NOW + 6, source="snyk")
    await begin(database, 1, now=NOW + 7, whole=False)
    found = await runs.fetch_source_health(database, "github")
    assert found is not None
    assert found == (await runs.fetch_health(database))["github"]
    assert (found.down_since, found.running is not None) == (NOW + 1, True)
