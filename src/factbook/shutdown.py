"""Bounded shutdown: tasks are cancelled, clean-up finishes, and the process exits in time.

One cancellation is not enough. PostgreSQL's driver and its pool wait with `asyncio.wait_for`, which
in Python 3.11 swallows a cancellation that arrives together with the awaited result; the task then
continues as if nobody had cancelled it.
"""

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from typing import Any, Final, TypeVar

import structlog

log = structlog.get_logger("factbook")

T = TypeVar("T")

# Seconds until a task that is still there is cancelled again: clean-up rarely takes as long.
_AGAIN_SECONDS: Final = 1.0
# Seconds after which a task that ignores every cancellation is left behind.
_CANCEL_SECONDS: Final = 5.0
# Seconds within which a process ends once it has no request to finish. With the 30 of requests it
# stays below the 40 after which `deploy/` has it killed.
STOP_SECONDS: Final = 9.0
# Of these, how long a database that is away may hold up each release of what others can take.
RELEASE_SECONDS: Final = 1.5
# How long threads may take to end once all is done.
_THREADS_SECONDS: Final = 1.0
_DONE: Final = 0
_FAILED: Final = 1


async def cancel(
    tasks: Iterable["asyncio.Task[Any]"], seconds: float = _CANCEL_SECONDS
) -> list["asyncio.Task[Any]"]:
    """Cancel tasks until they have ended; returns and logs those left after `seconds`.

    Runs to its end when the caller is cancelled meanwhile, and raises that cancellation then.
    """
    return await uninterrupted(_cancel(tasks, seconds))


async def uninterrupted(work: Coroutine[Any, Any, T]) -> T:
    """Result of the work, which runs to its end however often the caller is cancelled.

    Raises CancelledError afterwards if it was.
    """
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled from None if task.cancelled() else task.exception()
    return task.result()


def exit_within(seconds: float = STOP_SECONDS) -> threading.Timer:
    """Exit this process with an error if it is still running after `seconds`.

    A thread does so: either the event loop or a writing thread may hang.
    """
    return _timer(seconds, partial(_fail, seconds))


def exit_in_order(bound: threading.Timer) -> None:
    """Exit soon, as all is done: threads that a library cannot interrupt are not waited for.

    `bound` is what `exit_within` returned.
    """
    bound.cancel()
    _timer(_THREADS_SECONDS, partial(_exit, _DONE))


async def _cancel(
    tasks: Iterable["asyncio.Task[Any]"], seconds: float
) -> list["asyncio.Task[Any]"]:
    loop, pending = asyncio.get_running_loop(), {task for task in tasks if not task.done()}
    end = loop.time() + seconds
    while pending and (left := end - loop.time()) > 0:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=min(_AGAIN_SECONDS, left))
    for task in pending:
        log.error("task.stuck", task=getattr(task.get_coro(), "__qualname__", task.get_name()))
    return list(pending)


def _timer(seconds: float, act: Callable[[], None]) -> threading.Timer:
    timer = threading.Timer(seconds, act)
    timer.daemon = True
    timer.start()
    return timer


def _fail(seconds: float) -> None:
    log.error("process.stuck", reason=f"It did not end within {seconds:g} seconds, and was ended.")
    _exit(_FAILED)


def _exit(status: int) -> None:
    sys.stderr.flush()
    os._exit(status)
