"""Evaluation beside writes: of what is published and of what is due, in whichever process."""

from functools import partial
from typing import Final

from factbook.audit import trail
from factbook.audit.trail import AuditEntry, Caller
from factbook.checks.background import due, publication, regrade
from factbook.checks.background.sweep import StateSweep
from factbook.checks.exemptions import exemption_store
from factbook.checks.exemptions.exemption import Exemption
from factbook.checks.versions.check_store import check_store
from factbook.clock import MINUTE, Clock
from factbook.storage import Database, Transaction

# A state may be so late that changes as time passes.
_DUE_EVERY: Final = MINUTE
# The actor of what happens because time passes.
_SELF: Final = "factbook"


class Evaluation:
    """Evaluation that is left in a database; several processes may share the work."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._settled: int | None = None  # the revision after which nothing was left to publish
        self._due_at: int | None = None
        self._sweep = StateSweep(database, clock)

    async def tick(self) -> None:
        """Do what is left; a check published by any process is begun within a second."""
        revision = await check_store.revision(self._database)
        if revision == 0:
            return
        if revision != self._settled:
            await publication.finish(self._database, self._clock)
            await regrade.finish(self._database, self._clock)
            # Another process may do it, and be killed.
            self._settled = revision if await self._is_settled() else None
        now = self._clock()
        if self._due_at is None or not now < self._due_at <= now + _DUE_EVERY:
            self._due_at = now + _DUE_EVERY
            await due.work(self._database, self._clock)
            await self._exempt()
            await regrade.begin_due(self._database, self._clock)
        await self._sweep.tick()

    async def _is_settled(self) -> bool:
        database = self._database
        return await publication.is_settled(database) and await regrade.is_settled(database)

    async def _exempt(self) -> None:
        """Let exemptions begin and end, each step in a transaction that evaluates the entity."""
        for step in (exemption_store.begin, exemption_store.announce, self._expire):
            while await self._database.write(partial(step, now=self._clock())):
                pass

    def _expire(self, transaction: Transaction, now: int) -> list[Exemption]:
        expired = exemption_store.expire(transaction, now)
        entries = [AuditEntry("exemption.expire", one.id, one.render()) for one in expired]
        caller = Caller(_SELF, now)
        trail.append_all(transaction, [trail.record(caller, entry) for entry in entries])
        return expired
