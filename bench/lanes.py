"""Workers that share the collection: what a second one brings, and what one that is idle takes.

python -m bench.lanes           on a PostgreSQL that it starts
"""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median

import psycopg

from factbook.app import Application
from factbook.clock import now
from factbook.collection.lanes import LaneCollector
from factbook.integrations.integration import Collected, Integration
from factbook.operations import commands
from factbook.outbound.cache import Memory
from factbook.outbound.client import HttpClient
from factbook.scheduling import run_queue
from factbook.scheduling.run_queue import Queue, RunOrder
from factbook.settings import Settings
from factbook.storage.database_url import open_database
from factbook.storage.migrations import migrate
from tests.collection.madeup import Vendor, integration
from tests.postgresql import PostgreSQLServer

CREDENTIALS = 20
BATCHES = 30
LATENCY = 0.2
ROUNDS = 3
IDLE_SECONDS = 30
FAR = 10**9
NAMES = [f"source-{number}" for number in range(CREDENTIALS)]


class Slow(Vendor):
    """Takes its time for each batch."""

    async def collect(
        self, targets: Sequence[str], client: HttpClient, memory: Memory, now: int
    ) -> dict[str, Collected]:
        await asyncio.sleep(LATENCY)
        return await super().collect(targets, client, memory, now)


def sources(vendor: Vendor) -> tuple[Integration, ...]:
    """One for each credential; they are never due."""
    return tuple(integration(vendor, name, cadence="0 0 1 1 *") for name in NAMES)


def work(url: str) -> None:
    """Be a worker."""
    vendor = Slow()
    app = Application(
        Settings(database_url=url), integrations=sources(vendor), connect=lambda _: vendor.client
    )
    asyncio.run(commands.run_collector(app, LaneCollector))


async def fill(url: str) -> None:
    """Queue the batches of each credential."""
    database = await open_database(url)
    for name in NAMES:
        works = [f'[["target-{number}", []]]' for number in range(BATCHES)]
        order = RunOrder(name, Queue(f"{name} token"), works, "asked", False, now() + FAR, BATCHES)
        await database.write(partial(run_queue.enqueue_run, order=order, now=now()))
    await database.close()


async def prepare(url: str) -> None:
    """Make the tables, and runs of everything, so that nothing is due."""
    database = await open_database(url)
    await migrate(database, now())
    for name in NAMES:
        order = RunOrder(name, Queue(f"{name} token"), [], "cadence", True, now() + FAR, 0)
        await database.write(partial(run_queue.enqueue_run, order=order, now=now()))
    await database.close()


@contextmanager
def workers(url: str, count: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """So many workers that have started."""
    command = [sys.executable, "-m", "bench.lanes", "work", url]
    started = [
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(count)
    ]
    time.sleep(15)
    try:
        yield started
    finally:
        for one in started:
            one.send_signal(signal.SIGTERM)
        for one in started:
            one.wait()


def seconds_of(url: str) -> float:
    """How long the workers take for what is queued now."""
    asyncio.run(fill(url))
    begun = time.monotonic()
    with psycopg.connect(url, autocommit=True) as connection:
        while connection.execute("SELECT 1 FROM batches LIMIT 1").fetchone():
            time.sleep(0.05)
    return time.monotonic() - begun


def used(pid: int) -> tuple[float, float]:
    """Seconds of the processor, and megabytes, that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return ticks / os.sysconf("SC_CLK_TCK"), pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def main() -> None:
    """Every measurement, in turns."""
    with PostgreSQLServer.start() as server:
        found: dict[int, list[float]] = {1: [], 2: []}
        for round_ in range(ROUNDS):
            for count, seconds in found.items():
                with server.database(f"lanes_{round_}_{count}") as url:
                    asyncio.run(prepare(url))
                    with workers(url, count) as running:
                        seconds.append(seconds_of(url))
                        print(f"{count} workers: {seconds[-1]:.2f} s", flush=True)
                        if round_ == 0:
                            before, _ = used(running[0].pid)
                            time.sleep(IDLE_SECONDS)
                            after, memory = used(running[0].pid)
                            share = (after - before) / IDLE_SECONDS
                            print(f"idle: {memory:.0f} MB, {share:.1%} of a core", flush=True)
        print(f"two take {median(found[2]) / median(found[1]):.2f} of one's time")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        work(sys.argv[2])
    else:
        main()
