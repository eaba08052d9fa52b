"""Meter of the calls of tools by token, written once a minute beside the answers."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Final

import structlog

from factbook.auth import tokens
from factbook.auth.tokens import TokenUsage, UsageDay
from factbook.clock import DAY, Clock
from factbook.errors import UnavailableError
from factbook.storage import Database

log = structlog.get_logger("factbook.usage")

SHOWN_DAYS: Final = 30
_PAUSE: Final = 60.0  # seconds


class UsageMeter:
    """Counts in memory; a process that is killed loses a minute of them at most."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        spawn: Callable[[Coroutine[Any, Any, object]], None],
    ) -> None:
        self._database = database
        self._clock = clock
        self._spawn = spawn
        self._unwritten: dict[UsageDay, TokenUsage] = {}
        self._day = 0
        # Calls and size of each token on that day.
        self._counted: dict[str, list[int]] = {}
        self._writes_later = False

    def add(self, token_id: str, size: int, now: int) -> None:
        """Count a call answered now whose result has so many characters."""
        day = now // DAY
        if day != self._day:
            self._gather()
            self._day = day
        counted = self._counted.get(token_id)
        if counted is None:
            self._counted[token_id] = [1, size]
        else:
            counted[0] += 1
            counted[1] += size
        if not self._writes_later:
            self._writes_later = True
            self._spawn(self._write_later())

    async def of(self, ids: Sequence[str]) -> dict[str, TokenUsage]:
        """The use of each of these tokens in the last thirty days, with what is not written yet."""
        first = self._clock() // DAY - SHOWN_DAYS + 1
        self._gather()
        unwritten = list(self._unwritten.items())
        found = await tokens.sum_token_usage(self._database, ids, first)
        shown = {id_: found.get(id_, TokenUsage()) for id_ in ids}
        for key, more in unwritten:
            if key.token_id in shown and key.day >= first:
                shown[key.token_id] = shown[key.token_id].plus(more)
        return shown

    async def write(self) -> None:
        """Write what was counted so far."""
        self._gather()
        found, self._unwritten = self._unwritten, {}
        if not found:
            return
        try:
            await self._database.write(partial(tokens.add_token_usage, found=found))
        except UnavailableError as error:
            log.warning("usage.unavailable", cause=error.cause)
            for key, lost in found.items():
                self._unwritten[key] = self._unwritten.get(key, TokenUsage()).plus(lost)

    def _gather(self) -> None:
        """Put what was counted beside what is not written yet."""
        counted, self._counted = self._counted, {}
        for token_id, found in counted.items():
            key = UsageDay(token_id, self._day)
            before = self._unwritten.get(key, TokenUsage())
            self._unwritten[key] = before.plus(TokenUsage(*found))

    async def _write_later(self) -> None:
        await asyncio.sleep(_PAUSE)
        self._writes_later = False
        await self.write()
