"""Counts of checks day by day: kept where they differ from the day before, for trends."""

from functools import partial
from typing import Final, NamedTuple

from factbook.checks.definitions import definition_lock
from factbook.checks.states import count_store
from factbook.checks.states.count_store import StateCounts
from factbook.checks.versions.check_store import check_store
from factbook.clock import DAY, Throttle
from factbook.storage import Database, Transaction

_NOTHING: Final = StateCounts()
_DELETED: Final = 1_000  # rows at once, so that no other write waits long


class DayCounts(NamedTuple):
    """Counts at the end of a day, which is counted from 1970-01-01."""

    day: int
    counts: StateCounts


async def record(database: Database, now: int, pace: Throttle) -> int:
    """Keep the counts of today for the owners whose last ones differ; returns how many."""
    kept = 0
    for one in await check_store.everything(database):
        if one.slot is not None:
            kept += await database.write(partial(_record, check_id=one.id, day=now // DAY))
            await pace.rest()
    return kept


async def totals(database: Database, check_id: str, first: int, last: int) -> list[DayCounts]:
    """The counts of all owners together for every day from `first` to `last`, in order."""
    current: dict[str, StateCounts] = {}
    changes: dict[int, dict[str, StateCounts]] = {}
    for owner, day, *numbers in await database.search(_TOTALS, (check_id, last)):
        changes.setdefault(max(day, first), {})[owner] = StateCounts(*numbers)
    found = []
    for day in range(first, last + 1):
        current |= changes.get(day, {})
        found.append(DayCounts(day, _sum(current)))
    return found


async def sweep(database: Database, before: int, pace: Throttle) -> int:
    """Delete what is older than a time, but for the last counts from before it."""
    gone, deleted = 0, _DELETED
    while deleted == _DELETED:
        deleted = await database.write(
            lambda transaction: transaction.run(_FORGET, (before // DAY, _DELETED))
        )
        gone += deleted
        await pace.rest()
    return gone


def _record(transaction: Transaction, check_id: str, day: int) -> int:
    # Its slot may be another one by now.
    definition_lock.share(transaction)
    row = transaction.one("SELECT slot FROM checks WHERE id = ?", (check_id,))
    if row is None or row[0] is None:
        return 0
    now = count_store.within(transaction, row[0])
    last = {
        owner: StateCounts(*numbers)
        for owner, *numbers in transaction.all(_LAST, (check_id, check_id))
    }
    rows = [
        (check_id, owner, day, *now.get(owner, _NOTHING))
        for owner in sorted(now.keys() | last.keys())
        if now.get(owner, _NOTHING) != last.get(owner, _NOTHING)
    ]
    transaction.many(_KEEP, rows)
    return len(rows)


def _sum(counts: dict[str, StateCounts]) -> StateCounts:
    return StateCounts(*map(sum, zip(*counts.values(), strict=True))) if counts else _NOTHING


_LAST = """
SELECT d.owner, d.passing, d.failing, d.undecided, d.exempt, d.inapplicable
FROM check_days d JOIN (
    SELECT owner, MAX(day) AS day FROM check_days WHERE check_id = ? GROUP BY owner
) last ON last.owner = d.owner AND last.day = d.day WHERE d.check_id = ?
"""

_KEEP = """
INSERT INTO check_days
    (check_id, owner, day, passing, failing, undecided, exempt, inapplicable)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (check_id, owner, day) DO UPDATE SET passing = excluded.passing,
    failing = excluded.failing, undecided = excluded.undecided, exempt = excluded.exempt,
    inapplicable = excluded.inapplicable
"""

_TOTALS = """
SELECT owner, day, passing, failing, undecided, exempt, inapplicable FROM check_days
WHERE check_id = ? AND day <= ? ORDER BY day
"""

# A day is as the last one that is kept: that one has to stay.
_FORGET = """
DELETE FROM check_days WHERE (check_id, owner, day) IN (
    SELECT d.check_id, d.owner, d.day FROM check_days d WHERE d.day < (
        SELECT MAX(n.day) FROM check_days n
        WHERE n.check_id = d.check_id AND n.owner = d.owner AND n.day <= ?
    ) LIMIT ?
)
"""
