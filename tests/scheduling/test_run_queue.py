"""The durable queue: the result of each batch is stored once, whoever works on it."""

import asyncio
import threading
from functools import partial

import pytest

from factbook.clock import HOUR, MINUTE
from factbook.scheduling import run_queue
from factbook.scheduling.run_queue import Batch, BatchFigures, Lane, LostBatchError, Queue
from factbook.scheduling.runs import RunGap
from factbook.storage import Database, Transaction
from factbook.storage.database_url import open_database
from tests.scheduling.work import LANE, NOW, begin, finish, rows, take, taken, the_run

REFUSED = {RunGap("", "forbidden", "final"): 2}

# What is taken


async def test_batches_of_a_lane_are_taken_one_after_another(database: Database) -> None:
    run_id = await begin(database, 2)
    first = await take(database)
    assert await finish(database, first) is None
    second = await take(database)
    assert (first.work, second.work) == ("work 0", "work 1")
    ended = await finish(database, second, BatchFigures(1, 2, 0, 0, 7, 900, REFUSED), NOW + 5)
    assert ended is not None
    assert ended.run == await the_run(database, run_id)
    run = ended.run
    assert (run.covered, run.failed, run.calls, run.rate_limit_left) == (2, 2, 7, 900)
    assert (run.state, run.error, run.duration) == ("partial", "forbidden", 5)
    assert await rows(database, "batches") == 0


async def test_a_queue_has_as_many_lanes_as_it_allows_batches_at_once(database: Database) -> None:
    await begin(database, 5, queue=Queue("token", 3))
    lanes = await run_queue.list_ready_lanes(database, ["github"], NOW)
    assert sorted(lanes) == [("token", 3, 0), ("token", 3, 1), ("token", 3, 2)]
    found = [(await take(database, lane=lane)).number for lane in sorted(lanes)]
    assert found == [0, 1, 2]


async def test_no_lane_is_told_in_which_nothing_is_ready(database: Database) -> None:
    await begin(database, 1, queue=Queue("token", 3))
    assert await run_queue.list_ready_lanes(database, ["github"], NOW) == [("token", 3, 0)]
    assert await run_queue.list_ready_lanes(database, ["github"], NOW - 1) == []
    assert await run_queue.list_ready_lanes(database, ["snyk"], NOW) == []


async def test_what_was_asked_for_comes_first(database: Database) -> None:
    await begin(database, 2)
    await begin(database, 2, whole=False)
    order = []
    for _ in range(4):
        batch = await take(database)
        order.append(batch.run_id)
        await finish(database, batch)
    assert order == [2, 2, 1, 1]


async def test_what_a_process_does_not_know_is_left_to_others(database: Database) -> None:
    await begin(database, 1, source="new-in-the-next-release")
    assert await taken(database) is None
    assert await taken(database, sources=("new-in-the-next-release",)) is not None


async def test_what_somebody_asks_for_comes_before_what_is_left_of_a_run_of_everything(
    database: Database,
) -> None:
    await begin(database, 1)
    batch = await take(database)
    await database.write(
        lambda tx: run_queue.finish_batch(tx, batch, BatchFigures(1), NOW, left=["x"], next_at=NOW)
    )
    asked = await begin(database, 1, whole=False)
    assert (await take(database)).run_id == asked


async def test_the_next_batch_is_begun_with_the_end_of_the_one_before_or_not_at_all(
    database: Database,
) -> None:
    await begin(database, 3)
    first = await take(database)
    second = await database.write(partial(ended_with_next, first))
    assert second is not None
    assert (second.number, second.attempts) == (1, 1)
    with pytest.raises(LostBatchError):
        await database.write(partial(ended_with_next, first))
    third = await take(database)
    assert (third.number, third.attempts) == (2, 1)


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
async def test_a_batch_that_is_being_deleted_is_passed_over(
    database: Database, database_url: str
) -> None:
    await begin(database, 3)
    first = await take(database)
    other = await open_database(database_url, connections=3)
    ends, deleted, loop = threading.Event(), asyncio.Event(), asyncio.get_running_loop()

    def delete(transaction: Transaction) -> None:
        transaction.run("DELETE FROM batches WHERE number = 1")
        loop.call_soon_threadsafe(deleted.set)
        assert ends.wait(60)

    deleting = asyncio.create_task(other.write(delete))
    await deleted.wait()
    following = await database.write(partial(ended_with_next, first))
    ends.set()
    await deleting
    await other.close()
    assert following is not None
    assert following.number == 2


def ended_with_next(batch: Batch, transaction: Transaction) -> Batch | None:
    run_queue.finish_batch(transaction, batch, BatchFigures(1), NOW)
    return run_queue.take_batch(
        transaction, "a", ["github"], LANE, NOW, suspects=False, alone=False
    )


# Ends of processes


async def test_what_a_dead_process_had_is_taken_at_once_and_what_it_still_brings_is_refused(
    database: Database,
) -> None:
    await begin(database, 1)
    lost = await take(database, "a")
    taken = await take(database, "b")
    assert (taken.work, taken.attempts, taken.suspect) == (lost.work, 2, True)
    assert await finish(database, taken) is not None
    with pytest.raises(LostBatchError):
        await finish(database, lost)


async def test_of_two_that_end_the_same_batch_at_once_one_stores_its_result(
    database: Database,
) -> None:
    run_id = await begin(database, 1)
    one = await take(database, "a")
    other = await take(database, "b")
    ends = await asyncio.gather(
        finish(database, one), finish(database, other), return_exceptions=True
    )
    assert sorted(isinstance(end, LostBatchError) for end in ends) == [False, True]
    assert (await the_run(database, run_id)).covered == 1


async def test_what_may_have_killed_a_process_is_begun_last(database: Database) -> None:
    await begin(database, 2)
    assert (await take(database, "dead")).number == 0
    other = await take(database)
    assert (other.number, other.suspect) == (1, False)
    await finish(database, other)
    assert await taken(database, suspects=False) is None
    suspect = await take(database)
    assert (suspect.number, suspect.suspect, suspect.attempts) == (0, True, 2)


async def test_the_suspect_that_was_begun_most_often_comes_last(database: Database) -> None:
    await begin(database, 2)
    killer = await take(database, "dead")
    await take(database, "dead")
    assert (await take(database, "dead too")).number == killer.number
    assert (await take(database)).number == 1


async def test_a_batch_that_was_released_is_free_at_once_and_was_not_an_attempt(
    database: Database,
) -> None:
    await begin(database, 1)
    await take(database, "a")
    await database.write(lambda tx: run_queue.release_batches(tx, "a"))
    batch = await take(database, "b")
    assert (batch.attempts, batch.suspect) == (1, False)


async def test_a_batch_that_was_postponed_keeps_its_attempt(database: Database) -> None:
    await begin(database, 1)
    batch = await take(database)
    await database.write(lambda tx: run_queue.postpone_batch(tx, batch, NOW + MINUTE))
    assert await taken(database, now=NOW + MINUTE - 1) is None
    again = await take(database, now=NOW + MINUTE)
    assert (again.attempts, again.suspect) == (2, False)


async def test_what_is_stored_with_a_lost_batch_is_undone(database: Database) -> None:
    await begin(database, 1)
    lost = await take(database, "a")
    ended = await take(database, "b")
    await finish(database, ended)

    def store(transaction: Transaction) -> None:
        transaction.run("INSERT INTO leases VALUES ('mine', 'a', 1)")
        run_queue.finish_batch(transaction, lost, BatchFigures(1), NOW)

    with pytest.raises(LostBatchError):
        await database.write(store)
    assert await rows(database, "leases") == 0


CLAIMED_BEFORE = """
UPDATE batches SET holder = 'old', held_until = ?, attempts = attempts + 1
WHERE run_id = ? AND number = ?
"""
FINISHED_BEFORE = """
DELETE FROM batches WHERE run_id = ? AND number = ? AND holder = 'old' AND attempts = ?
"""


@pytest.mark.parametrize("older_first", [True, False])
async def test_beside_a_worker_of_the_release_before_each_result_is_stored_once(
    database: Database, older_first: bool
) -> None:
    await begin(database, 1)
    if older_first:
        key = (1, 0)
        await database.write(lambda tx: tx.run(CLAIMED_BEFORE, (NOW + MINUTE, *key)))
        batch = await take(database)
        attempts = 1
    else:
        batch = await take(database)
        key = batch[:2]
        await database.write(lambda tx: tx.run(CLAIMED_BEFORE, (NOW + MINUTE, *key)))
        attempts = 2
    ends = await asyncio.gather(
        finish(database, batch),
        database.write(lambda tx: tx.run(FINISHED_BEFORE, (*key, attempts))),
        return_exceptions=True,
    )
    stored = [not isinstance(ends[0], LostBatchError), ends[1] == 1]
    assert sorted(stored) == [False, True]


# Trying again


async def test_what_is_left_of_a_batch_waits_and_keeps_the_run_open(database: Database) -> None:
    run_id = await begin(database, 1)
    batch = await take(database)
    later = NOW + MINUTE
    await database.write(
        lambda tx: run_queue.finish_batch(
            tx, batch, BatchFigures(1), NOW, left=["x", "y"], next_at=later
        )
    )
    assert (await the_run(database, run_id)).state == "running"
    assert await taken(database, now=later - 1) is None
    first = await take(database, now=later)
    assert (first.work, first.attempts, first.suspect) == ("x", 2, False)
    await finish(database, first)
    second = await take(database, now=later)
    assert second.work == "y"
    assert await finish(database, second) is not None
    assert (await the_run(database, run_id)).covered == 3


async def test_a_paused_queue_rests_until_its_time(database: Database) -> None:
    await begin(database, 1)
    await begin(database, 1, source="snyk", queue=Queue("other"))
    other = Lane("other", 1, 0)
    later = NOW + MINUTE
    await database.write(lambda tx: run_queue.pause_queue(tx, "token", later))
    await database.write(lambda tx: run_queue.pause_queue(tx, "token", later - 1))  # never shorter
    assert await taken(database, now=later - 1) is None
    assert await run_queue.list_ready_lanes(database, ["github", "snyk"], later - 1) == [other]
    assert await taken(database, now=later - 1, sources=("snyk",), lane=other) is not None
    assert await taken(database, now=later) is not None


async def test_a_run_past_its_deadline_is_handed_out_even_from_a_paused_queue(
    database: Database,
) -> None:
    await begin(database, 3, limit=MINUTE)
    await database.write(lambda tx: run_queue.pause_queue(tx, "token", NOW + HOUR))
    assert await taken(database, now=NOW + MINUTE - 1) is None
    assert await run_queue.list_ready_lanes(database, ["github"], NOW + MINUTE) == [LANE]
    overdue = await take(database, now=NOW + MINUTE)
    assert (overdue.work, overdue.paused) == ("work 0", True)
