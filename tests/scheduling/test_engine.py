"""The durable engine: each batch done once, whatever becomes of the workers."""

import asyncio

import pytest

from factbook.clock import DAY, HOUR, MINUTE, SECOND
from factbook.scheduling import engine, runs
from factbook.scheduling.engine import HELD, Batch, Figures, LostBatchError, Order, Queue
from factbook.scheduling.runs import Run
from factbook.storage import Database, Transaction

NOW = 1_795_262_400_000
DONE = Figures(1)
TOKEN = Queue("token")


async def begin(
    database: Database,
    count: int = 3,
    *,
    source: str = "github",
    queue: Queue = TOKEN,
    whole: bool = True,
    now: int = NOW,
    since: int = engine.NEVER,
    limit: int = HOUR,
) -> int | None:
    works = [f"work {number}" for number in range(count)]
    order = Order(source, queue, works, "cadence", whole, now + limit, count)
    begun = await database.write(lambda tx: engine.enqueue(tx, order, now, since=since))
    return None if begun is None else begun.run_id


async def claim(
    database: Database,
    holder: str = "a",
    *,
    limit: int = 10,
    now: int = NOW,
    source: str = "github",
) -> list[Batch]:
    return await database.write(lambda tx: engine.claim(tx, holder, [source], limit, now))


async def finish(
    database: Database, batch: Batch, figures: Figures = DONE, now: int = NOW
) -> runs.Ended | None:
    return await database.write(lambda tx: engine.finish(tx, batch, figures, now))


async def the_run(database: Database, run_id: int | None) -> Run:
    assert run_id is not None
    found = await runs.run(database, run_id)
    assert found is not None
    return found


async def rows(database: Database, table: str) -> int:
    row = await database.one(f"SELECT COUNT(*) FROM {table}")  # noqa: S608 - a test's own words
    assert row is not None
    return int(row[0])


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


# Claiming


async def test_batches_of_a_queue_are_done_one_after_another(database: Database) -> None:
    run_id = await begin(database, 2)
    [first] = await claim(database)
    assert await claim(database, "b") == []
    assert await finish(database, first) is None
    [second] = await claim(database, "b")
    assert (first.work, second.work) == ("work 0", "work 1")
    ended = await finish(database, second, Figures(1, 2, 7, 900, "forbidden"), NOW + 5)
    assert ended is not None
    assert ended.run == await the_run(database, run_id)
    run = ended.run
    assert (run.covered, run.failed, run.calls, run.rate_limit_left) == (2, 2, 7, 900)
    assert (run.state, run.error, run.duration) == ("partial", "forbidden", 5)
    assert await rows(database, "batches") == 0


async def test_a_queue_that_allows_more_has_more_under_way(database: Database) -> None:
    await begin(database, 5, queue=Queue("token", 3))
    assert len(await claim(database, "a", limit=2)) == 2
    assert len(await claim(database, "b", limit=9)) == 1


async def test_many_workers_who_claim_at_once_never_get_the_same(database: Database) -> None:
    await begin(database, 40, queue=Queue("token", 40))
    found = await asyncio.gather(*(claim(database, f"w{n}", limit=7) for n in range(8)))
    numbers = [batch.number for batches in found for batch in batches]
    assert sorted(numbers) == list(range(40))


async def test_queues_take_turns_and_what_was_asked_for_comes_first(database: Database) -> None:
    await begin(database, 2)
    await begin(database, 2, whole=False)
    await begin(database, 2, source="snyk", queue=Queue("other"))
    sources = ["github", "snyk"]
    order = []
    for now in range(NOW, NOW + 6):
        [batch] = await database.write(
            lambda tx, now=now: engine.claim(tx, "a", sources, 1, now)  # type: ignore[misc]
        )
        order.append((batch.queue, batch.run_id))
        await finish(database, batch)
    assert [queue for queue, _ in order] == ["other", "token", "other", "token", "token", "token"]
    assert [run_id for queue, run_id in order if queue == "token"] == [2, 2, 1, 1]


async def test_a_worker_leaves_what_it_does_not_know_to_others(database: Database) -> None:
    await begin(database, 1, source="new-in-the-next-release")
    assert await claim(database) == []
    assert len(await claim(database, source="new-in-the-next-release")) == 1


# Falling silent


async def test_a_silent_workers_batch_is_taken_over_and_what_it_brings_is_refused(
    database: Database,
) -> None:
    await begin(database, 1)
    [lost] = await claim(database, "a")
    assert await claim(database, "b", now=NOW + HELD - 1) == []
    [taken] = await claim(database, "b", now=NOW + HELD)
    assert (taken.work, taken.attempts) == (lost.work, 2)
    with pytest.raises(LostBatchError):
        await finish(database, lost)
    assert await finish(database, taken) is not None
    assert HELD < 45 * SECOND


async def test_a_worker_that_took_its_own_batch_over_may_not_finish_the_first_claim(
    database: Database,
) -> None:
    await begin(database, 1)
    [first] = await claim(database, "a")
    [second] = await claim(database, "a", now=NOW + HELD)
    with pytest.raises(LostBatchError):
        await finish(database, first)
    assert await finish(database, second) is not None


async def test_who_renews_keeps_the_batch(database: Database) -> None:
    await begin(database, 1)
    batches = await claim(database, "a")
    later = NOW + HELD - 1
    assert await database.write(lambda tx: engine.renew(tx, batches, later)) == []
    assert await claim(database, "b", now=NOW + HELD) == []
    assert len(await claim(database, "b", now=later + HELD)) == 1
    assert await database.write(lambda tx: engine.renew(tx, batches, later)) == batches


async def test_a_batch_that_was_released_is_free_at_once_and_was_not_an_attempt(
    database: Database,
) -> None:
    await begin(database, 1)
    await claim(database, "a")
    await database.write(lambda tx: engine.release(tx, "a"))
    [batch] = await claim(database, "b")
    assert batch.attempts == 1


async def test_what_is_stored_with_a_lost_batch_is_undone(database: Database) -> None:
    await begin(database, 1)
    [lost] = await claim(database, "a")
    await claim(database, "b", now=NOW + HELD)

    def store(transaction: Transaction) -> None:
        transaction.run("INSERT INTO leases VALUES ('mine', 'a', 1)")
        engine.finish(transaction, lost, Figures(1), NOW)

    with pytest.raises(LostBatchError):
        await database.write(store)
    assert await rows(database, "leases") == 0


# Trying again


async def test_what_is_left_of_a_batch_waits_and_keeps_the_run_open(database: Database) -> None:
    run_id = await begin(database, 1)
    [batch] = await claim(database)
    later = NOW + MINUTE
    await database.write(
        lambda tx: engine.finish(tx, batch, Figures(1), NOW, left=["x", "y"], next_at=later)
    )
    assert (await the_run(database, run_id)).state == "running"
    assert await claim(database, now=later - 1) == []
    [first] = await claim(database, now=later)
    assert (first.work, first.attempts) == ("x", 2)
    await finish(database, first)
    [second] = await claim(database, now=later)
    assert second.work == "y"
    assert await finish(database, second) is not None
    assert (await the_run(database, run_id)).covered == 3


async def test_a_paused_queue_rests_until_its_time(database: Database) -> None:
    await begin(database, 1)
    await begin(database, 1, source="snyk", queue=Queue("other"))
    later = NOW + MINUTE
    await database.write(lambda tx: engine.pause(tx, "token", later))
    await database.write(lambda tx: engine.pause(tx, "token", later - 1))  # never shorter
    assert await claim(database, now=later - 1) == []
    assert len(await claim(database, now=later - 1, source="snyk")) == 1
    assert len(await claim(database, now=later)) == 1


async def test_a_run_past_its_deadline_is_handed_out_even_from_a_paused_queue(
    database: Database,
) -> None:
    await begin(database, 3, limit=MINUTE)
    await database.write(lambda tx: engine.pause(tx, "token", NOW + HOUR))
    assert await claim(database, now=NOW + MINUTE - 1) == []
    overdue = await claim(database, now=NOW + MINUTE)
    assert [(batch.work, batch.paused) for batch in overdue] == [
        ("work 0", True),
        ("work 1", True),
        ("work 2", True),
    ]


# Ending


async def test_of_two_batches_that_end_at_once_one_ends_the_run(database: Database) -> None:
    for round_ in range(5):
        await begin(database, 4, queue=Queue("token", 4), now=NOW + round_)
        batches = await claim(database, now=NOW + round_)
        ended = await asyncio.gather(*(finish(database, batch) for batch in batches))
        assert sum(one is not None for one in ended) == 1


async def end(database: Database, figures: Figures, now: int) -> str | None:
    await begin(database, 1, now=now)
    [batch] = await claim(database, now=now)
    ended = await finish(database, batch, figures, now)
    assert ended is not None
    return ended.change


async def test_a_source_goes_down_once_and_comes_up_once(database: Database) -> None:
    bad, good = Figures(0, 1, error="upstream-error"), Figures(1)
    figures = [good, bad, bad, good, good]
    changes = [await end(database, one, NOW + number) for number, one in enumerate(figures)]
    assert changes == [None, "down", None, "up", None]
    health = (await runs.health(database))["github"]
    assert (health.succeeded_at, health.down_since) == (NOW + 4, None)
    await end(database, bad, NOW + 9)
    health = (await runs.health(database))["github"]
    assert (health.succeeded_at, health.down_since) == (NOW + 4, NOW + 9)
    assert health.last is not None
    assert (health.last.state, health.running) == ("failed", None)


async def test_a_run_for_one_entity_says_nothing_about_the_source(database: Database) -> None:
    await begin(database, 1, whole=False)
    [batch] = await claim(database)
    ended = await finish(database, batch, Figures(0, 1, error="not-found"))
    assert ended is not None
    assert ended.change is None
    assert await runs.health(database) == {}


async def sweep(database: Database, now: int) -> int:
    return await runs.sweep(database, now)


async def test_old_runs_are_forgotten_and_the_newest_kept(database: Database) -> None:
    for number in range(runs.KEPT + 5):
        await begin(database, 0, now=NOW + number)
        await begin(database, 0, now=NOW + number, whole=False)
        await begin(database, 0, now=NOW + number, source="snyk")
    assert await sweep(database, NOW + DAY) == 15
    assert await rows(database, "runs") == 3 * runs.KEPT
    assert await sweep(database, NOW + DAY) == 0
    assert (await runs.starts(database)).last["github"] == NOW + runs.KEPT + 4


async def test_a_run_that_nobody_takes_is_given_up(database: Database) -> None:
    run_id = await begin(database, 3, limit=MINUTE)
    await sweep(database, NOW + HOUR)
    assert (await the_run(database, run_id)).state == "running"
    await sweep(database, NOW + HOUR + MINUTE + 1)
    found = await the_run(database, run_id)
    assert (found.state, found.failed, found.error) == ("failed", 3, "no worker took it")
    assert await rows(database, "batches") == 0
