"""A worker in a process of its own, with a made-up vendor that takes its time.

Every target that the vendor is asked for becomes a line of the file `asked`. A target of KILLER
ends the process.
"""

import asyncio
import os
import time
from collections.abc import Sequence
from pathlib import Path

from factbook.app import Application
from factbook.collection.lanes import LaneCollector
from factbook.integrations.integration import Collected, Integration
from factbook.operations import commands
from factbook.outbound.cache import Memory
from factbook.outbound.client import HttpClient
from factbook.settings import Settings
from factbook.telemetry import logs
from tests.collection.madeup import Vendor, integration

SIZE = 5
KILLER = "acme/killer"


class SlowVendor(Vendor):
    """Takes its time, and writes down what it was asked for before it answers."""

    def __init__(self, asked: Path, latency: float) -> None:
        super().__init__()
        self._asked = asked
        self._latency = latency

    async def collect(
        self, targets: Sequence[str], client: HttpClient, memory: Memory, now: int
    ) -> dict[str, Collected]:
        with self._asked.open("a") as file:
            file.write("".join(f"{target}\n" for target in targets))
        if KILLER in targets:
            os._exit(9)
        await asyncio.sleep(self._latency)
        return await super().collect(targets, client, memory, now)


def made_up(vendor: Vendor, at_once: int) -> Integration:
    """Its cadence is rare: after its first run nothing is due."""
    return integration(vendor, cadence="0 0 1 1 *", size=SIZE, at_once=at_once)


def main(
    database_url: str, asked: Path, at_once: int, latency: float, sharing: bool, ahead: float
) -> None:
    """Work, with `at_once` batches under way of `latency` seconds each.

    The clock of the process is `ahead` seconds ahead.
    """
    advance(ahead)
    settings = Settings(database_url=database_url)
    logs.configure_logs(settings)
    vendor = SlowVendor(asked, latency)
    integrations = (made_up(vendor, at_once),)
    app = Application(settings, integrations=integrations, connect=lambda _: vendor.client)
    asyncio.run(commands.run_collector(app, LaneCollector if sharing else None))


def advance(seconds: float) -> None:
    """Set the clock of this process ahead."""
    whole, nanoseconds = time.time, time.time_ns
    time.time = lambda: whole() + seconds
    time.time_ns = lambda: nanoseconds() + int(seconds * 1e9)
