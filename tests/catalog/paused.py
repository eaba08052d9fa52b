"""An observer of a database that stops its writes before a certain statement."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from factbook.storage.database import Around, Running

_LONGEST = 60


class Pause:
    """Stops each write before a statement that begins so, or before rows come into a table."""

    statement: None = None

    def __init__(self, before: str) -> None:
        self._before = before
        self.reached = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._over = threading.Event()

    def stop(self) -> None:
        """Stop the thread until the end."""
        self._loop.call_soon_threadsafe(self.reached.set)
        assert self._over.wait(_LONGEST)

    def end(self) -> None:
        """Let writes go on, and none stop any more."""
        self._over.set()

    @contextmanager
    def write(self) -> Iterator[Running]:
        yield self._running

    @contextmanager
    def _running(self) -> Iterator[Around]:
        yield self._around

    def _around(self, sql: str, table: str) -> AbstractContextManager[None]:
        if f"{sql} INTO {table}".startswith(self._before):
            self.stop()
        return nullcontext()
