"""The durable engine alone: how many batches a second, and what a second worker brings.

python -m bench.engine          on SQLite, and on a PostgreSQL that it starts
"""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from functools import partial

from factbook.clock import now
from factbook.collection.collector import Collector
from factbook.scheduling import run_queue
from factbook.scheduling.run_queue import BatchFigures, Lane, Queue, RunOrder
from factbook.storage import Database
from factbook.storage.database_url import open_database
from factbook.storage.migrations import migrate
from tests.postgresql import PostgreSQLServer

CREDENTIALS = 20
SLOTS = 8
ROUNDS = 3

FAR = 10**9
SOURCES = [f"source-{number}" for number in range(CREDENTIALS)]


async def fill(url: str, batches: int) -> None:
    """Queue so many batches for each credential."""
    database = await open_database(url)
    await migrate(database, now())
    for source in SOURCES:
        works = [f"work {number}" for number in range(batches)]
        order = RunOrder(source, Queue(source), works, "cadence", True, now() + FAR, batches)
        await database.write(partial(run_queue.enqueue_run, order=order, now=now()))
    await database.close()


async def work(url: str, latency: float) -> None:
    """Do batches that take so many seconds until none is left; print how many and how long."""
    database = await open_database(url)
    started = time.perf_counter()
    done = await _drain(database, f"worker-{os.getpid()}", latency)
    print(done, time.perf_counter() - started)
    await database.close()


async def _drain(database: Database, holder: str, latency: float) -> int:
    slots, done = asyncio.Semaphore(SLOTS), 0

    async def serve(lane: Lane) -> int:
        take = partial(run_queue.take_batch, holder=holder, source_ids=SOURCES, lane=lane)
        done = 0
        while True:
            async with slots:
                end = time.monotonic() + Collector.TURN
                while time.monotonic() < end:
                    batch = await database.write(partial(take, now=now()))
                    if batch is None:
                        return done
                    await asyncio.sleep(latency)
                    figures = BatchFigures(1)
                    finish = partial(
                        run_queue.finish_batch, batch=batch, figures=figures, now=now()
                    )
                    await database.write(finish)
                    done += 1

    while lanes := await run_queue.list_ready_lanes(database, SOURCES, now()):
        done += sum(await asyncio.gather(*map(serve, lanes)))
    return done


def workers(url: str, count: int, latency: float) -> list[tuple[int, float]]:
    """(batches, seconds) of each of so many processes that work at once."""
    command = [sys.executable, "-m", "bench.engine", "work", url, str(latency)]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(count)]
    lines = [process.communicate()[0].split() for process in started]
    return [(int(done), float(seconds)) for done, seconds in lines]


def measure(name: str, url: str, *, count: int, batches: int, latency: float) -> None:
    """Fill, work, and print."""
    asyncio.run(fill(url, batches))
    found = workers(url, count, latency)
    seconds = max(seconds for _, seconds in found)
    shares = " + ".join(str(done) for done, _ in found)
    rate = sum(done for done, _ in found) / seconds
    print(
        f"{name}, {count} x {latency * 1000:.0f} ms: {shares} in {seconds:.2f} s, {rate:.0f}/s",
        flush=True,
    )


def main() -> None:
    """Every measurement, in turns."""
    with tempfile.TemporaryDirectory() as folder, PostgreSQLServer.start() as server:
        for round_ in range(ROUNDS):
            for case, (count, batches, latency) in enumerate(((1, 100, 0.0), (1, 50, 0.05))):
                name = f"bench_{round_}_{case}"
                url = f"sqlite:///{folder}/{name}.db"
                measure("SQLite", url, count=count, batches=batches, latency=latency)
                with server.database(name) as url:
                    measure("PostgreSQL", url, count=count, batches=batches, latency=latency)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(work(sys.argv[2], float(sys.argv[3])))
    else:
        main()
