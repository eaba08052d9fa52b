"""The durable engine: each batch done once, whatever becomes of the workers."""

import asyncio

import pytest

from factbook.clock import HOUR, MINUTE, SECOND
from factbook.scheduling import run_queue
from factbook.scheduling.gaps import RunGap
from factbook.scheduling.run_queue import HELD, BatchFigures, LostBatchError, Queue
from factbook.storage import Database, Transaction
from tests.scheduling.work import NOW, begin, claim, finish, rows, the_run

REFUSED = {RunGap("", "forbidden", "final"): 2}

# Claiming


async def test_batches_of_a_queue_are_done_one_after_another(database: Database) -> None:
    run_id = await begin(database, 2)
    [first] = await claim(database)
    assert await claim(database, "b") == []
    assert await finish(database, first) is None
    [second] = await claim(database, "b")
    assert (first.work, second.work) == ("work 0", "work 1")
    ended = await finish(database, second, BatchFigures(1, 2, 0, 0, 7, 900, REFUSED), NOW + 5)
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
            lambda tx, now=now: run_queue.claim(tx, "a", sources, 1, now)  # type: ignore[misc]
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
    assert await database.write(lambda tx: run_queue.renew(tx, batches, later)) == []
    assert await claim(database, "b", now=NOW + HELD) == []
    assert len(await claim(database, "b", now=later + HELD)) == 1
    assert await database.write(lambda tx: run_queue.renew(tx, batches, later)) == batches


async def test_a_batch_that_was_released_is_free_at_once_and_was_not_an_attempt(
    database: Database,
) -> None:
    await begin(database, 1)
    await claim(database, "a")
    await database.write(lambda tx: run_queue.release(tx, "a"))
    [batch] = await claim(database, "b")
    assert batch.attempts == 1


async def test_what_is_stored_with_a_lost_batch_is_undone(database: Database) -> None:
    await begin(database, 1)
    [lost] = await claim(database, "a")
    await claim(database, "b", now=NOW + HELD)

    def store(transaction: Transaction) -> None:
        transaction.run("INSERT INTO leases VALUES ('mine', 'a', 1)")
        run_queue.finish(transaction, lost, BatchFigures(1), NOW)

    with pytest.raises(LostBatchError):
        await database.write(store)
    assert await rows(database, "leases") == 0


# Trying again


async def test_what_is_left_of_a_batch_waits_and_keeps_the_run_open(database: Database) -> None:
    run_id = await begin(database, 1)
    [batch] = await claim(database)
    later = NOW + MINUTE
    await database.write(
        lambda tx: run_queue.finish(tx, batch, BatchFigures(1), NOW, left=["x", "y"], next_at=later)
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
    await database.write(lambda tx: run_queue.pause(tx, "token", later))
    await database.write(lambda tx: run_queue.pause(tx, "token", later - 1))  # never shorter
    assert await claim(database, now=later - 1) == []
    assert len(await claim(database, now=later - 1, source="snyk")) == 1
    assert len(await claim(database, now=later)) == 1


async def test_a_run_past_its_deadline_is_handed_out_even_from_a_paused_queue(
    database: Database,
) -> None:
    await begin(database, 3, limit=MINUTE)
    await database.write(lambda tx: run_queue.pause(tx, "token", NOW + HOUR))
    assert await claim(database, now=NOW + MINUTE - 1) == []
    overdue = await claim(database, now=NOW + MINUTE)
    assert [(batch.work, batch.paused) for batch in overdue] == [
        ("work 0", True),
        ("work 1", True),
        ("work 2", True),
    ]
