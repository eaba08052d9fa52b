"""Writes that stop before their commit, so that others come between."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

from factbook.storage import Database, Transaction
from tests.waiting import LONG

Work = Callable[[Transaction], Any]


class PausedWrite:
    """A write that stops in its midst until it is told to go on; `runs` counts its attempts."""

    def __init__(self, database: Database, first: Work, then: Work = lambda _: None) -> None:
        self.runs = 0
        self._first, self._then = first, then
        self._goes_on = threading.Event()
        self._loop, self._stopped = asyncio.get_running_loop(), asyncio.Event()
        self._task = asyncio.create_task(database.write(self))

    def __call__(self, transaction: Transaction) -> None:
        self.runs += 1
        self._first(transaction)
        self._loop.call_soon_threadsafe(self._stopped.set)
        assert self._goes_on.wait(LONG)
        self._then(transaction)

    async def stops(self) -> None:
        await self._stopped.wait()

    def go_on(self) -> None:
        self._goes_on.set()

    async def end(self) -> None:
        self._goes_on.set()
        await self._task
