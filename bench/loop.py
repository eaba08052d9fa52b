"""The loop of one process that collects: what a batch of one target takes of the processor.

python -m bench.loop [N]        with so many batches waiting (1000), on SQLite in memory
"""

import asyncio
import gc
import logging
import secrets
import sys
import tempfile
import time

import structlog

from factbook.settings import Settings
from tests import memory
from tests.collection.madeup import Vendor, collector, integration, repository
from tests.service import started

AT_ONCE = 8
MINUTES = 600


async def measure(url: str, count: int) -> float:
    """Milliseconds of the processor for each batch: planned before, begun, asked for and stored."""
    async with started(Settings(database_url=url, token_key=secrets.token_hex())) as service:
        answer = await service.push("all", *(repository(f"r{number}") for number in range(count)))
        assert answer.status_code == 200, answer.text
        vendor = Vendor()
        source = integration(vendor, size=1, at_once=AT_ONCE, minutes=MINUTES)
        one = collector(service.state.database, (vendor, source), slots=AT_ONCE)
        await one.begin_due()
        gc.collect()
        begun = time.process_time()
        await one.drain()
        used = time.process_time() - begun
        await one.stop()
    assert vendor.asked.total() == count
    return used / count * 1000


def main() -> None:
    """Measure once: what it is compared with is another checkout."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    with tempfile.TemporaryDirectory(dir=memory.folder()) as folder:
        used = asyncio.run(measure(f"sqlite:///{folder}/factbook.db", count))
    print(f"{used:.3f} ms a batch, {count} waiting")


if __name__ == "__main__":
    main()
