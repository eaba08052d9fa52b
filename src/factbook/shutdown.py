"""Bounded shutdown: cancels tasks, lets clean-up finish, and exits the process in time.

One cancellation isn't enough. PostgreSQL's driver and its pool use `asyncio.wait_for`, which in
Python 3.11 swallows a cancellation that arrives together with the awaited result; the task then
continues as if it had not been cancelled.
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

# Seconds until a task that is still running is cancelled again: clean-up rarely takes that long.
_AGAIN_SECONDS: Final = 1.0
# Seconds after which a task that ignores every cancellation is left behind.
_CANCEL_SECONDS: Final = 5.0
# Seconds within which a process exits once it has no request to finish. Together with the 30 for
# requests, this stays below the 40 after which `deploy/` has the process killed.
STOP_SECONDS: Final = 9.0
# Of these, how long an unreachable database may delay each release of a lease or of work.
RELEASE_SECONDS: Final = 1.5
# How long threads may take to end once all other work is done.
_THREADS_SECONDS: Final = 1.0
_DONE: Final = 0
_FAILED: Final = 1


async def cancel(
    tasks: Iterable["asyncio.Task[Any]"], seconds: float = _CANCEL_SECONDS
) -> list["asyncio.Task[Any]"]:
    """Cancel tasks until they have ended; returns and logs those left after `seconds`.

    Finishes even if the caller is cancelled meanwhile, and then raises that cancellation.
    """
    return await uninterrupted(_cancel(tasks, seconds))


async def uninterrupted(work: Coroutine[Any, Any, T]) -> T:
    """Finish the work however often the caller is cancelled, and return its result.

    Raises CancelledError afterwards if the caller was cancelled.
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

    Uses a thread, as both the event loop and a writing thread may hang.
    """

    def fail() -> None:
        reason = f"It did not end within {seconds:g} seconds, and was ended."
        log.error("process.stuck", reason=reason)
        _exit(_FAILED)

    return _timer(seconds, fail)


def exit_in_order(bound: threading.Timer) -> None:
    """Exit soon, without waiting for threads that a library cannot interrupt.

    `bound` is the timer from `exit_within`.
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


def _exit(status: int) -> None:
    sys.stderr.flush()
    os._exit(status)
