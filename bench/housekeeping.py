"""A process that trims over and over, as the housekeeping of a worker does every ten minutes.

Between two rounds its clock moves on by ten minutes, so that there is as much to trim as there
would be.
"""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.databases import Database
from bench.processes import on_core
from bench.service import settings as environment_of
from factbook import worker
from factbook.backend import Backend
from factbook.clock import MINUTE, now
from factbook.settings.table import load_settings
from factbook.telemetry import logs

_ROUND = 10 * MINUTE


class Sweeper:
    """A process that trims while it is told to."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self.pid = process.pid

    def go(self) -> None:
        """Begin."""
        self._say("go")

    def rest(self) -> int:
        """End with this round; the number of rounds so far."""
        self._say("rest")
        assert self._process.stdout
        return int(self._process.stdout.readline())

    def _say(self, word: str) -> None:
        assert self._process.stdin
        self._process.stdin.write(f"{word}\n")
        self._process.stdin.flush()


@contextmanager
def sweeper(database: Database, folder: Path, core: int) -> Iterator[Sweeper]:
    """A process that is ready to trim, on this core."""
    given = environment_of(database) | {"FACTBOOK_LOG_LEVEL": "error"}
    root = Path(__file__).parent.parent
    with on_core(core):
        process = subprocess.Popen(
            [sys.executable, "-m", "bench.housekeeping"],
            cwd=root,
            env=given,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
    with process:
        try:
            assert process.stdout
            process.stdout.readline()
            yield Sweeper(process)
        finally:
            process.terminate()


async def _main() -> None:
    settings = load_settings()
    logs.configure_logs(settings)
    app = Backend.of(settings)
    async with app.opened() as database:
        sources = tuple((await app.registry(database).current()).sources.values())
        began, rounds, wanted = now(), 0, asyncio.Event()

        async def trim() -> None:
            nonlocal rounds
            while wanted.is_set():
                await worker.sweep(database, settings, sources, began + rounds * _ROUND)
                rounds += 1

        print("ready", flush=True)
        while await asyncio.to_thread(sys.stdin.readline) == "go\n":
            wanted.set()
            task = asyncio.create_task(trim())
            await asyncio.to_thread(sys.stdin.readline)
            wanted.clear()
            await task
            print(rounds, flush=True)


if __name__ == "__main__":
    asyncio.run(_main())
