"""Evaluation beside writes: of what is published and of what is due, in whichever process."""

from typing import Final

from factbook.checks import check_store, due, publishing
from factbook.clock import MINUTE, Clock
from factbook.storage import Database

# A state may be so late that changes as time passes.
_DUE_EVERY: Final = MINUTE


class Evaluation:
    """What is left to evaluate in a database; several processes may share the work."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._settled: int | None = None  # the revision after which nothing was left to publish
        self._due_at: int | None = None

    async def tick(self) -> None:
        """Do what is left; a check published by any process is begun within a second."""
        revision = await check_store.revision(self._database)
        if revision == 0:
            return
        if revision != self._settled:
            await publishing.finish(self._database, self._clock)
            # Another process may do it, and be killed.
            self._settled = revision if await publishing.is_settled(self._database) else None
        now = self._clock()
        if self._due_at is None or not now < self._due_at <= now + _DUE_EVERY:
            self._due_at = now + _DUE_EVERY
            await due.work(self._database, self._clock)
