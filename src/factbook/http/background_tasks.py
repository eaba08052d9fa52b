"""Background tasks beside requests, until the service ends."""

import asyncio
from collections.abc import Coroutine, Iterator
from typing import Any

import structlog

from factbook import shutdown
from factbook.errors import UnavailableError

log = structlog.get_logger("factbook")


class Tasks:
    """Set of tasks, each kept until it is done; its exception is logged."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[object]] = set()

    def __iter__(self) -> "Iterator[asyncio.Task[object]]":
        """Iterate over the running tasks."""
        return iter(self._tasks)

    def spawn(self, work: Coroutine[Any, Any, object]) -> None:
        """Start a task."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    async def finish(self) -> None:
        """Cancel all tasks until they have ended."""
        await shutdown.cancel(self._tasks)

    def _done(self, task: "asyncio.Task[object]") -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, UnavailableError):
            log.warning("task.unavailable", cause=error.cause)
        elif error is not None:
            log.error("task.failed", exc_info=error)
