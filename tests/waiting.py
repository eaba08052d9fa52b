"""Waiting for what another task, thread or process brings about.

A bound on it ends a test that would wait for ever. It is far above what a loaded machine needs, and
no test shows by it how long anything takes.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

# Ten times the longest pause of a loop, and longer than a page waits before it refreshes.
LONG = 100.0
# Ten times the lease of a process that died.
TAKEN_OVER = 400.0
_PAUSE_SECONDS = 0.02


def until(
    holds: Callable[[], Any],
    seconds: float = LONG,
    *,
    told: Callable[[], object] = lambda: "",
    pause: float = _PAUSE_SECONDS,
) -> None:
    """Look again and again until it holds; raises AssertionError with what `told` returns."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise AssertionError(f"It did not come about within {seconds:.0f} seconds. {told()}")
        time.sleep(pause)


async def soon(
    holds: Callable[[], Awaitable[Any]], seconds: float = LONG, *, pause: float = _PAUSE_SECONDS
) -> None:
    """Look again and again from a task until it holds; raises AssertionError."""
    end = time.monotonic() + seconds
    while not await holds():
        if time.monotonic() > end:
            raise AssertionError(f"It did not come about within {seconds:.0f} seconds.")
        await asyncio.sleep(pause)
