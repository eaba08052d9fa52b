"""Processes for tests of kills, with a vendor that is made up and asked every minute.

    python -m tests.system.busy ASKED --port PORT
    python -m tests.system.busy ASKED

What `factbook serve` serves, or with no port what `factbook worker` does. Whatever the vendor is
asked for at once becomes a line of the file ASKED: the number that it answers for all of these
targets, and the targets.
"""

import asyncio
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import uvicorn

from factbook.app import Application
from factbook.facts.datasource import Lifecycle
from factbook.integrations.integration import Collected
from factbook.operations import commands
from factbook.outbound.cache import Memory
from factbook.outbound.client import HttpClient
from factbook.settings.table import load_settings
from factbook.telemetry import logs
from tests.collection.madeup import Vendor, integration

SIZE = 5
LATENCY = 0.02


class NumberedVendor(Vendor):
    """Answers for all that it is asked at once with a number that it never gave before."""

    def __init__(self, asked: Path) -> None:
        super().__init__()
        self._file = asked

    async def collect(
        self, targets: Sequence[str], client: HttpClient, memory: Memory, now: int
    ) -> dict[str, Collected]:
        number = time.time_ns()
        with self._file.open("a") as file:
            file.write(f"{number} {' '.join(targets)}\n")
        self.open.update(dict.fromkeys(targets, 0))
        for target in targets:
            self.open[target] = number
        await asyncio.sleep(LATENCY)
        return await super().collect(targets, client, memory, now)


def main(asked: str, port: str | None = None) -> None:
    settings = load_settings()
    logs.configure_logs(settings)
    vendor = NumberedVendor(Path(asked))
    # Kept whole: a number of items would leave parts of what was collected at once.
    kept = Lifecycle(time_to_live={"days": 90})
    source = integration(vendor, cadence="* * * * *", size=SIZE, at_once=2, lifecycle=kept)
    app = Application(settings, integrations=(source,), connect=lambda _: vendor.client)
    if port is None:
        asyncio.run(commands.run_collector(app))
    else:
        uvicorn.run(app, port=int(port), loop="uvloop", lifespan="on", log_config=None)


if __name__ == "__main__":
    main(sys.argv[1], *sys.argv[3:4])
