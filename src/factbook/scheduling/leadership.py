"""Choice of the one process that collects, by leases that go by the database's clock.

Workers go before servers, and workers that share the work before others: each says that it is there
by a lease of its own, and while there is one, those behind it do not collect.
"""

import time
from typing import Final, Literal

from factbook.clock import SECOND, Clock
from factbook.scheduling import lease
from factbook.storage import Database, Transaction

Role = Literal["server", "worker", "sharing"]

HELD: Final = 30 * SECOND
RENEWED_EVERY: Final = 10 * SECOND
_NAME: Final = "collector"
_SIGN: Final[dict[Role, str]] = {"worker": "worker {}", "sharing": "worker sharing {}"}
# Those that a process leaves the collecting to.
_BEFORE: Final[dict[Role, str]] = {
    "server": "worker %",
    "worker": "worker sharing %",
    "sharing": "",
}


class Leadership:
    """The lease on collecting, as far as this process has it."""

    def __init__(self, database: Database, holder: str, role: Role, clock: Clock) -> None:
        self._database = database
        self._holder = holder
        self._role = role
        self._clock = clock
        self._ahead = 0  # the database's clock, of this process's own
        self._renewed_at: float | None = None
        self._leads = False

    async def held(self) -> bool:
        """Return true if this is the process that collects; renews the lease now and then."""
        begun_at = time.monotonic() * SECOND
        if self._renewed_at is None or begun_at - self._renewed_at >= RENEWED_EVERY:
            now = await lease.time(self._database, self._clock)
            self._ahead = now - self._clock()
            self._leads = await self._database.write(self._claim)
            self._renewed_at = begun_at
        return self._leads

    def clock(self) -> int:
        """The time by the clock of the database, as it was when the lease was last renewed."""
        return self._clock() + self._ahead

    @property
    def lapsed(self) -> bool:
        """True once others may have taken over from this process."""
        renewed_at = self._renewed_at
        return renewed_at is None or time.monotonic() * SECOND - renewed_at >= HELD

    async def workers(self) -> set[str]:
        """The holders that share the work and are alive."""
        rows = await self._database.all(_SHARING, (_BEFORE["worker"],))
        return {holder for (holder,) in rows}

    async def release(self) -> None:
        """Leave the collecting to others at once."""
        if self._renewed_at is not None:
            self._leads, self._renewed_at = False, None
            await self._database.write(lambda tx: tx.run(_RELEASE, (self._holder, *self._names)))

    @property
    def _names(self) -> tuple[str, str]:
        return _NAME, _SIGN.get(self._role, "").format(self._holder)

    def _claim(self, transaction: Transaction) -> bool:
        [now] = transaction.one(lease.TIME) or (0,)
        transaction.run(_FORGET, (now - HELD,))
        if self._names[1]:
            lease.take(transaction, self._names[1], self._holder, now, HELD)
        if transaction.one(_IS_THERE, (_BEFORE[self._role], now)) is None:
            return lease.take(transaction, _NAME, self._holder, now, HELD)
        transaction.run(_RELEASE, (self._holder, _NAME, ""))
        return False


_FORGET = "DELETE FROM leases WHERE name LIKE 'worker %' AND held_until < ?"

_IS_THERE = "SELECT 1 FROM leases WHERE name LIKE ? AND held_until > ? LIMIT 1"

_SHARING = "SELECT holder FROM leases WHERE name LIKE ? AND held_until > DATABASE_TIME()"

_RELEASE = "DELETE FROM leases WHERE holder = ? AND (name = ? OR name = ?)"
