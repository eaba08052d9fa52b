"""Bounded log of refused calls, written to the audit in batches."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import structlog

from factbook.audit import trail
from factbook.audit.trail import Record
from factbook.clock import Clock
from factbook.errors import UnavailableError
from factbook.http.admission import RateLimit
from factbook.observability.metrics import Metrics
from factbook.storage import Database

log = structlog.get_logger("factbook.audit")

_MOST_WAITING = 10_000


class Refusals:
    """Records of refused calls, written in batches, beside the answers.

    Repeated refusals must not fill the disk: per minute an address gets 60 records, and addresses
    that have no known caller share one a second, with a burst of 3600. The rest is counted.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        metrics: Metrics,
        spawn: Callable[[Coroutine[Any, Any, object]], None],
    ) -> None:
        self._database = database
        self._metrics = metrics
        self._spawn = spawn
        # Half of the 60 at once, and half in the course of a minute.
        self._of_address = RateLimit(0.5, 30, clock)
        self._of_nobody = RateLimit(1, 3600, clock)
        self._waiting: list[Record] = []
        self._lock = asyncio.Lock()

    def add(self, record: Record) -> None:
        """Queue a record."""
        if (
            len(self._waiting) >= _MOST_WAITING
            or self._of_address.take(record.address)
            or (not record.actor and self._of_nobody.take(""))
        ):
            self._metrics.left_out_of_audit(1)
            return
        self._waiting.append(record)
        if len(self._waiting) == 1:
            self._spawn(self.write())

    async def write(self) -> None:
        """Return when every record added so far is written."""
        async with self._lock:
            records, self._waiting = self._waiting, []
            if not records:
                return
            try:
                await self._database.write(partial(trail.append_all, records=records))
            except UnavailableError:
                self._metrics.left_out_of_audit(len(records))
                log.warning("audit.unavailable", records=len(records))
