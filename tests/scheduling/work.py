"""Runs of made-up work: begun, taken by holders and finished at given times."""

from collections.abc import Sequence

from factbook.clock import HOUR
from factbook.scheduling import run_queue, runs
from factbook.scheduling.run_queue import Batch, BatchFigures, Lane, Queue, RunOrder
from factbook.scheduling.runs import RunRecord
from factbook.storage import Database

NOW = 1_795_262_400_000
DONE = BatchFigures(1)
TOKEN = Queue("token")
LANE = Lane("token", 1, 0)


async def begin(
    database: Database,
    count: int = 3,
    *,
    source: str = "github",
    queue: Queue = TOKEN,
    whole: bool = True,
    now: int = NOW,
    since: int = run_queue.NEVER,
    limit: int = HOUR,
) -> int | None:
    works = [f"work {number}" for number in range(count)]
    order = RunOrder(source, queue, works, "cadence", whole, now + limit, count)
    begun = await database.write(lambda tx: run_queue.enqueue_run(tx, order, now, since=since))
    return None if begun is None else begun.run_id


async def taken(
    database: Database,
    holder: str = "a",
    *,
    now: int = NOW,
    sources: Sequence[str] = ("github",),
    lane: Lane = LANE,
    suspects: bool = True,
) -> Batch | None:
    return await database.write(
        lambda tx: run_queue.take_batch(tx, holder, sources, lane, now, suspects=suspects)
    )


async def take(
    database: Database,
    holder: str = "a",
    *,
    now: int = NOW,
    sources: Sequence[str] = ("github",),
    lane: Lane = LANE,
) -> Batch:
    batch = await taken(database, holder, now=now, sources=sources, lane=lane)
    assert batch is not None
    return batch


async def finish(
    database: Database, batch: Batch, figures: BatchFigures = DONE, now: int = NOW
) -> runs.EndedRun | None:
    return await database.write(lambda tx: run_queue.finish_batch(tx, batch, figures, now))


async def the_run(database: Database, run_id: int | None) -> RunRecord:
    assert run_id is not None
    found = await runs.fetch_run(database, run_id)
    assert found is not None
    return found


async def rows(database: Database, table: str) -> int:
    row = await database.one(f"SELECT COUNT(*) FROM {table}")  # noqa: S608 - a test's own words
    assert row is not None
    return int(row[0])
