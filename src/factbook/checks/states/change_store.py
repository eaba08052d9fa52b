"""The store of changes: each time at which a check of an entity went from one state to another.

The time of a change is that of its evaluation, before the commit: of two transactions the earlier
may be seen later. So nobody reads on from a time; the feed of events is what tells every change
once, in an order that stays.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from factbook.clock import Throttle
from factbook.storage import Database, Row, Transaction

# Of one entity, more than its pages and answers need.
_MOST_TIMES: Final = 10_000
_DELETED: Final = 1_000  # rows at once, so that no other write waits long
_BEYOND: Final = 2**63 - 1
_COLUMNS: Final = ("check_id", "entity_id", "at", "before", "after", "why")


# Check, entity, state before and after, JSON of the reason.
ChangeRow = tuple[str, int, int, int, str]


class Change(NamedTuple):
    """A change of state; `why` is JSON and says what was written, `id` grows with time."""

    id: int
    check_id: str
    entity_id: int
    at: int
    before: int
    after: int
    why: dict[str, Any]


class ChangeRange(NamedTuple):
    """Changes from a time on, before a place; of some checks and one entity, any for None."""

    since: int
    before: tuple[int, int] | None = None
    check_ids: Sequence[str] | None = None
    entity_id: int | None = None


def append(transaction: Transaction, changes: Iterable[ChangeRow], now: int) -> None:
    """Append changes."""
    rows = [(check, entity, now, *rest) for check, entity, *rest in changes]
    if rows:
        transaction.insert("check_changes", _COLUMNS, rows)


async def of_entity(
    database: Database,
    entity_id: int,
    check_id: str,
    limit: int,
    before: tuple[int, int] = (_BEYOND, _BEYOND),
) -> list[Change]:
    """The changes of one check for an entity before a place, newest first."""
    return _read(await database.all(_OF_ENTITY, (entity_id, check_id, *before, limit)))


async def latest_of_check(database: Database, check_id: str, limit: int) -> list[Change]:
    """The last changes of a check for any entity, newest first."""
    return _read(await database.all(_OF_CHECK, (check_id, limit)))


async def between(database: Database, wanted: ChangeRange, limit: int) -> list[Change]:
    """Up to `limit` changes of a range, newest first."""
    conditions = ["at >= ?", "(at, id) < (?, ?)"]
    values: list[object] = [wanted.since, *(wanted.before or (_BEYOND, _BEYOND))]
    if wanted.check_ids is not None:
        conditions.append("check_id IN LIST(?)")
        values.append(list(wanted.check_ids))
    if wanted.entity_id is not None:
        conditions.append("entity_id = ?")
        values.append(wanted.entity_id)
    sql = _BETWEEN.replace("{}", " AND ".join(conditions))
    return _read(await database.search(sql, (*values, limit)))


async def last_of_entities(
    database: Database, check_id: str, entity_ids: Sequence[int]
) -> dict[int, int]:
    """The time of the last change of a check for each of these entities that has one."""
    return dict(await database.all(_LAST_OF_ENTITIES, (check_id, list(entity_ids))))


async def last_of(database: Database, check_id: str) -> int | None:
    """The time of the last change of a check for any entity."""
    row = await database.one("SELECT MAX(at) FROM check_changes WHERE check_id = ?", (check_id,))
    return row[0] if row else None


async def times(database: Database, entity_id: int) -> dict[str, list[int]]:
    """The times of the last changes of each check for an entity."""
    found: dict[str, list[int]] = {}
    for check_id, at in await database.all(_TIMES, (entity_id, _MOST_TIMES)):
        found.setdefault(check_id, []).append(at)
    return found


def times_within(
    transaction: Transaction, entity_ids: Sequence[int], since: int
) -> dict[tuple[int, str], list[int]]:
    """The times of changes from a time on, by entity and check, within a transaction."""
    found: dict[tuple[int, str], list[int]] = {}
    for entity_id, check_id, at in transaction.all(_RECENT, (list(entity_ids), since)):
        found.setdefault((entity_id, check_id), []).append(at)
    return found


async def sweep(database: Database, before: int, pace: Throttle) -> int:
    """Delete the changes from before a time; returns their number."""
    gone = 0
    while True:
        deleted = await database.write(lambda tx: _forget(tx, before))
        gone += deleted
        await pace.rest()
        if deleted < _DELETED:
            return gone


def forget_entities(transaction: Transaction, entity_ids: Sequence[int]) -> int:
    """Delete the changes of these entities; returns their number."""
    sql = "DELETE FROM check_changes WHERE entity_id IN LIST(?)"
    return transaction.run(sql, (list(entity_ids),))


def _forget(transaction: Transaction, before: int) -> int:
    transaction.relax()
    return transaction.run(_FORGET, (before, _DELETED))


def _read(rows: Sequence[Row]) -> list[Change]:
    return [Change._make((*row[:-1], msgspec.json.decode(row[-1]))) for row in rows]


_OF_ENTITY = """
SELECT id, check_id, entity_id, at, before, after, why FROM check_changes
WHERE entity_id = ? AND check_id = ? AND (at, id) < (?, ?) ORDER BY at DESC, id DESC LIMIT ?
"""

_OF_CHECK = """
SELECT id, check_id, entity_id, at, before, after, why FROM check_changes
WHERE check_id = ? ORDER BY at DESC, id DESC LIMIT ?
"""

_BETWEEN = """
SELECT id, check_id, entity_id, at, before, after, why FROM check_changes
WHERE {} ORDER BY at DESC, id DESC LIMIT ?
"""

_LAST_OF_ENTITIES = """
SELECT entity_id, MAX(at) FROM check_changes WHERE check_id = ? AND entity_id IN LIST(?)
GROUP BY entity_id
"""

_TIMES = """
SELECT check_id, at FROM check_changes WHERE entity_id = ? ORDER BY at DESC LIMIT ?
"""

_FORGET = """
DELETE FROM check_changes WHERE id IN (
    SELECT id FROM check_changes WHERE at < ? ORDER BY at LIMIT ?
)
"""

_RECENT = """
SELECT entity_id, check_id, at FROM check_changes WHERE entity_id IN LIST(?) AND at >= ?
"""
