"""Leases: work done by one process for all, taken over when its holder falls silent.

A lease by name is a row of its own. Rows of other tables are claimed by the same rule, in their
columns `holder` and `held_until`. Times and durations are in milliseconds.
"""

from typing import Final, NamedTuple

from factbook import clock as machine
from factbook.clock import Clock
from factbook.storage import Database, Transaction


class Claim(NamedTuple):
    """A claim on a row, in the order of the values of `MINE`; a later claim is another one."""

    holder: str
    held_until: int


# SQL for the rows under a claim.
MINE: Final = "holder = ? AND held_until = ?"


def free(table: str) -> str:
    """SQL for the rows of a table that anybody may claim; its values are those of `lapsed`."""
    return f"({table}.held_until <= ? OR {table}.held_until > ?)"


def lapsed(now: int, duration: int) -> tuple[int, int]:
    """The bounds of times until which no claim of this duration can be held."""
    # One that lasts so long was claimed before the clock was set back.
    return now, now + 2 * duration


async def claim(database: Database, name: str, holder: str, now: int, duration: int) -> bool:
    """Return true if `holder` now has the lease: it was free, expired, or already its own.

    The lease then lasts until `now + duration`.
    """
    return await database.write(lambda tx: take(tx, name, holder, now, duration))


def take(transaction: Transaction, name: str, holder: str, now: int, duration: int) -> bool:
    """The same in a transaction."""
    values = (name, *Claim(holder, now + duration), *lapsed(now, duration))
    return transaction.run(_CLAIM, values) == 1


async def time(database: Database, clock: Clock = machine.now) -> int:
    """The time by the clock that all processes share: the database's, where they may be on several
    machines, of which one may be wrong.

    A clock that was given in place of the machine's is not doubted.
    """
    if database.dialect == "sqlite" or clock is not machine.now:
        return clock()
    row = await database.one(TIME)
    assert row is not None
    return int(row[0])


async def release(database: Database, name: str, holder: str) -> None:
    """Release the lease, if `holder` still has it."""
    await database.write(lambda transaction: transaction.run(_RELEASE, (name, holder)))


async def holders(
    database: Database, names: tuple[str, str], like: str, limit: int = 100
) -> list[tuple[str, str, int]]:
    """Name, holder and end of the leases with one of two names, or a name of the pattern."""
    rows = await database.all(_HOLDERS, (*names, like, limit))
    return [(name, holder, until) for name, holder, until in rows]


async def held_until(database: Database, name: str) -> int | None:
    """The time until which somebody has or had the lease; None if it is free or new."""
    row = await database.one("SELECT held_until FROM leases WHERE name = ?", (name,))
    return row[0] if row else None


TIME: Final = "SELECT DATABASE_TIME()"

_CLAIM = """
INSERT INTO leases (name, holder, held_until) VALUES (?, ?, ?)
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, held_until = excluded.held_until
WHERE leases.holder = excluded.holder OR {free}
""".replace("{free}", free("leases"))

_HOLDERS = """
SELECT name, holder, held_until FROM leases WHERE name = ? OR name = ? OR name LIKE ?
ORDER BY name LIMIT ?
"""

_RELEASE = "DELETE FROM leases WHERE name = ? AND holder = ?"
