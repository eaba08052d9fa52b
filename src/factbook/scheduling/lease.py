"""Leases: work done by one process for all, taken over when its holder falls silent."""

from factbook.storage import Database


async def claim(database: Database, name: str, holder: str, now: int, duration: int) -> bool:
    """Return true if `holder` now has the lease: it was free, expired, or already its own.

    `now` and `duration` are in milliseconds; the lease then lasts until `now + duration`.
    """
    # One that lasts so long was claimed before the clock was set back.
    claimed = (name, holder, now + duration, now, now + 2 * duration)
    return await database.write(lambda transaction: transaction.run(_CLAIM, claimed) == 1)


async def release(database: Database, name: str, holder: str) -> None:
    """Release the lease, if `holder` still has it."""
    await database.write(lambda transaction: transaction.run(_RELEASE, (name, holder)))


async def held_until(database: Database, name: str) -> int | None:
    """The time until which somebody has or had the lease; None if it is free or new."""
    row = await database.one("SELECT held_until FROM leases WHERE name = ?", (name,))
    return row[0] if row else None


_CLAIM = """
INSERT INTO leases (name, holder, held_until) VALUES (?, ?, ?)
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, held_until = excluded.held_until
WHERE leases.holder = excluded.holder OR leases.held_until <= ? OR leases.held_until > ?
"""

_RELEASE = "DELETE FROM leases WHERE name = ? AND holder = ?"
