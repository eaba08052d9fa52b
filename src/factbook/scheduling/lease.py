"""Leases: work that one process does for all, such as collecting, done by the leader."""

import time
from typing import Final, Literal, NamedTuple

from factbook import clock as machine
from factbook.clock import SECOND, Clock
from factbook.storage import Database, Transaction

Role = Literal["server", "worker", "sharing"]
LEADERSHIP_HELD: Final = 30 * SECOND
LEADERSHIP_RENEWED_EVERY: Final = 10 * SECOND
_LEADER_LEASE: Final = "collector"
_SIGNS: Final[dict[Role, str]] = {"worker": "worker {}", "sharing": "worker sharing {}"}
# Lease names of workers that a process with this role leaves the collecting to.
_PRECEDING_SIGNS: Final[dict[Role, str]] = {
    "server": "worker %",
    "worker": "worker sharing %",
    "sharing": "",
}


class Claim(NamedTuple):
    """A claim on a row, in the order of the values of `CLAIMED`; each claim is distinct."""

    holder: str
    held_until: int


# SQL for the rows under a claim.
CLAIMED: Final = "holder = ? AND held_until = ?"


def free_lease_condition(table: str) -> str:
    """SQL for rows of a table that are free to claim; its values are those of `lapse_bounds`."""
    return f"({table}.held_until <= ? OR {table}.held_until > ?)"


def lapse_bounds(now: int, duration: int) -> tuple[int, int]:
    """The bounds outside of which a claim of this duration has lapsed."""
    # A claim that ends later was made before the clock was set back.
    return now, now + 2 * duration


async def claim_lease(database: Database, name: str, holder: str, now: int, duration: int) -> bool:
    """Return true if `holder` now has the lease: it was free, expired, or already its own.

    The lease then lasts until `now + duration`.
    """
    return await database.write(lambda tx: take_lease(tx, name, holder, now, duration))


def take_lease(transaction: Transaction, name: str, holder: str, now: int, duration: int) -> bool:
    """Take the lease in a transaction; true if `holder` now has it, as in `claim_lease`."""
    values = (name, *Claim(holder, now + duration), *lapse_bounds(now, duration))
    return transaction.run(_CLAIM_LEASE, values) == 1


async def fetch_shared_time(database: Database, clock: Clock = machine.now) -> int:
    """The time of the clock that all processes share.

    That is the database's clock if processes may run on several machines, whose clocks may differ.
    A `clock` other than the machine's is trusted.
    """
    if database.dialect == "sqlite" or clock is not machine.now:
        return clock()
    row = await database.one(DATABASE_TIME)
    assert row is not None
    return int(row[0])


async def release_lease(database: Database, name: str, holder: str) -> None:
    """Release the lease, if `holder` still has it."""
    await database.write(lambda transaction: transaction.run(_RELEASE_LEASE, (name, holder)))


async def list_lease_holders(
    database: Database, names: tuple[str, str], like: str, limit: int = 100
) -> list[tuple[str, str, int]]:
    """Name, holder and end of the leases with one of two names, or a name of the pattern."""
    rows = await database.all(_LEASE_HOLDERS, (*names, like, limit))
    return [(name, holder, until) for name, holder, until in rows]


async def fetch_lease_end(database: Database, name: str) -> int | None:
    """The time at which the lease ends or ended; None if free or new."""
    row = await database.one("SELECT held_until FROM leases WHERE name = ?", (name,))
    return row[0] if row else None


class Leadership:
    """This process's part in the lease on collecting."""

    def __init__(self, database: Database, holder: str, role: Role, clock: Clock) -> None:
        self._database = database
        self._holder = holder
        self._role = role
        self._clock = clock
        self._ahead = 0  # database clock minus own clock
        self._renewed_at: float | None = None
        self._leads = False

    async def held(self) -> bool:
        """Return true if this is the process that collects; renews the lease now and then."""
        begun_at = time.monotonic() * SECOND
        if self._renewed_at is None or begun_at - self._renewed_at >= LEADERSHIP_RENEWED_EVERY:
            now = await fetch_shared_time(self._database, self._clock)
            self._ahead = now - self._clock()
            self._leads = await self._database.write(self._claim)
            self._renewed_at = begun_at
        return self._leads

    def clock(self) -> int:
        """The time by the database clock, as of the lease's last renewal."""
        return self._clock() + self._ahead

    @property
    def lapsed(self) -> bool:
        """True once another process may have the lease."""
        renewed_at = self._renewed_at
        return renewed_at is None or time.monotonic() * SECOND - renewed_at >= LEADERSHIP_HELD

    async def workers(self) -> set[str]:
        """The live holders that share the work."""
        rows = await self._database.all(_SHARING, (_PRECEDING_SIGNS["worker"],))
        return {holder for (holder,) in rows}

    async def release(self) -> None:
        """Leave the collecting to others at once."""
        if self._renewed_at is not None:
            self._leads, self._renewed_at = False, None
            await self._database.write(
                lambda tx: tx.run(_RELEASE_LEADERSHIP, (self._holder, *self._names))
            )

    @property
    def _names(self) -> tuple[str, str]:
        return _LEADER_LEASE, _SIGNS.get(self._role, "").format(self._holder)

    def _claim(self, transaction: Transaction) -> bool:
        [now] = transaction.one(DATABASE_TIME) or (0,)
        transaction.run(_DELETE_OLD_SIGNS, (now - LEADERSHIP_HELD,))
        if self._names[1]:
            take_lease(transaction, self._names[1], self._holder, now, LEADERSHIP_HELD)
        if transaction.one(_HAS_PRECEDING, (_PRECEDING_SIGNS[self._role], now)) is None:
            return take_lease(transaction, _LEADER_LEASE, self._holder, now, LEADERSHIP_HELD)
        transaction.run(_RELEASE_LEADERSHIP, (self._holder, _LEADER_LEASE, ""))
        return False


DATABASE_TIME: Final = "SELECT DATABASE_TIME()"

_CLAIM_LEASE = """
INSERT INTO leases (name, holder, held_until) VALUES (?, ?, ?)
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, held_until = excluded.held_until
WHERE leases.holder = excluded.holder OR {free}
""".replace("{free}", free_lease_condition("leases"))

_LEASE_HOLDERS = """
SELECT name, holder, held_until FROM leases WHERE name = ? OR name = ? OR name LIKE ?
ORDER BY name LIMIT ?
"""

_RELEASE_LEASE = "DELETE FROM leases WHERE name = ? AND holder = ?"


_DELETE_OLD_SIGNS = "DELETE FROM leases WHERE name LIKE 'worker %' AND held_until < ?"

_HAS_PRECEDING = "SELECT 1 FROM leases WHERE name LIKE ? AND held_until > ? LIMIT 1"

_SHARING = "SELECT holder FROM leases WHERE name LIKE ? AND held_until > DATABASE_TIME()"

_RELEASE_LEADERSHIP = "DELETE FROM leases WHERE holder = ? AND (name = ? OR name = ?)"
