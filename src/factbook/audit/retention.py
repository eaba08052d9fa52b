"""Retention of the audit: rows that are too old are deleted, in portions or by the month."""

from functools import partial
from typing import Final

from factbook.clock import DAY, Throttle
from factbook.storage import Database, Transaction
from factbook.storage.partitions import MonthlyTable, Partition, replace_gone_partitions

MONTHLY: Final = MonthlyTable("audit", "at")
_SWEPT_AT_ONCE: Final = 2_000


async def sweep(database: Database, before: int, pace: Throttle) -> int:
    """Delete rows from before a time in portions, so that no write waits long; returns a count.

    Rows less than a day older than the newest stay: the database enforces it for every caller.
    Partitions of months go as a whole, and are not counted.
    """
    [newest] = await database.one(_NEWEST) or (None,)
    before = min(before, (newest or 0) - DAY + 1)
    await replace_gone_partitions(database, MONTHLY, before, _is_old, lambda _, __: True)
    gone, rest = 0, True
    while rest:
        place = await database.one(_PORTION, (before, _SWEPT_AT_ONCE))
        rest = place is not None
        gone += await database.write(partial(_sweep, before=place or (before, "")))
        await pace.rest()
    return gone


async def _is_old(_: Partition) -> bool:
    return True


def _sweep(transaction: Transaction, *, before: tuple[int, str]) -> int:
    return transaction.run("DELETE FROM audit WHERE (at, id) < (?, ?)", before)


_NEWEST = "SELECT max(at) FROM audit"

_PORTION = "SELECT at, id FROM audit WHERE at < ? ORDER BY at, id LIMIT 1 OFFSET ?"
