"""The store of changes: each time at which a check of an entity went from one state to another.

Changes are told as events too. What a publication changes is told by the one event of its version,
and results that flap, so often that they say nothing new, are silent until they are quiet again.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from factbook.catalog.store import collectable
from factbook.checks import state
from factbook.clock import DAY, Throttle
from factbook.events import event
from factbook.events import store as events
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


def append_changes(transaction: Transaction, changes: Iterable[ChangeRow], now: int) -> None:
    """Append changes."""
    rows = [(check, entity, now, *rest) for check, entity, *rest in changes]
    if rows:
        transaction.insert("check_changes", _COLUMNS, rows)


async def list_entity_changes(
    database: Database,
    entity_id: int,
    check_id: str,
    limit: int,
    before: tuple[int, int] = (_BEYOND, _BEYOND),
) -> list[Change]:
    """The changes of one check for an entity before a place, newest first."""
    return _read_changes(await database.all(_OF_ENTITY, (entity_id, check_id, *before, limit)))


async def list_latest_changes(database: Database, check_id: str, limit: int) -> list[Change]:
    """The last changes of a check for any entity, newest first."""
    return _read_changes(await database.all(_OF_CHECK, (check_id, limit)))


async def list_changes_between(database: Database, wanted: ChangeRange, limit: int) -> list[Change]:
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
    return _read_changes(await database.search(sql, (*values, limit)))


async def find_last_changes_of(
    database: Database, check_id: str, entity_ids: Sequence[int]
) -> dict[int, int]:
    """The time of the last change of a check for each of these entities that has one."""
    return dict(await database.all(_LAST_OF_ENTITIES, (check_id, list(entity_ids))))


async def find_last_change(database: Database, check_id: str) -> int | None:
    """The time of the last change of a check for any entity."""
    row = await database.one("SELECT MAX(at) FROM check_changes WHERE check_id = ?", (check_id,))
    return row[0] if row else None


async def list_change_times(database: Database, entity_id: int) -> dict[str, list[int]]:
    """The times of the last changes of each check for an entity."""
    found: dict[str, list[int]] = {}
    for check_id, at in await database.all(_TIMES, (entity_id, _MOST_TIMES)):
        found.setdefault(check_id, []).append(at)
    return found


def list_change_times_within(
    transaction: Transaction, entity_ids: Sequence[int], since: int
) -> dict[tuple[int, str], list[int]]:
    """The times of changes from a time on, by entity and check, within a transaction."""
    found: dict[tuple[int, str], list[int]] = {}
    for entity_id, check_id, at in transaction.all(_RECENT, (list(entity_ids), since)):
        found.setdefault((entity_id, check_id), []).append(at)
    return found


async def sweep_changes(database: Database, before: int, pace: Throttle) -> int:
    """Delete the changes from before a time; returns their number."""
    gone = 0
    while True:
        deleted = await database.write(lambda tx: _forget_changes(tx, before))
        gone += deleted
        await pace.rest()
        if deleted < _DELETED:
            return gone


def forget_entity_changes(transaction: Transaction, entity_ids: Sequence[int]) -> int:
    """Delete the changes of these entities; returns their number."""
    sql = "DELETE FROM check_changes WHERE entity_id IN LIST(?)"
    return transaction.run(sql, (list(entity_ids),))


def _forget_changes(transaction: Transaction, before: int) -> int:
    transaction.relax()
    return transaction.run(_FORGET, (before, _DELETED))


def _read_changes(rows: Sequence[Row]) -> list[Change]:
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


FLAP_WINDOW: Final = 7 * DAY
LEAST_FLIPS: Final = 3
QUIET_TIME: Final = DAY


def is_flapping(flips: Sequence[int], now: int) -> bool:
    """Return true for a result that flipped three times in seven days, until it is quiet for one.

    `flips` are the times at which its state became another one, in any order.
    """
    if len(flips) < LEAST_FLIPS:
        return False
    past = sorted(at for at in flips if at <= now)
    if not past or now - past[-1] >= QUIET_TIME:
        return False
    return len(past) >= LEAST_FLIPS and past[-1] - past[-LEAST_FLIPS] <= FLAP_WINDOW


def find_flap_start(now: int) -> int:
    """The earliest time of a flip that matters by now."""
    return now - FLAP_WINDOW - QUIET_TIME


# Results that a row of events tells of.
_CHANGES_IN_A_ROW: Final = 1_000


def append_change_events(transaction: Transaction, changes: Sequence[ChangeRow], now: int) -> None:
    """Tell of results that changed now, which are stored already."""
    # Without the flag of an exemption a state may be another one and look the same.
    shown = [one for one in changes if state.name_state(one[2]) != state.name_state(one[3])]
    if not shown:
        return
    ids = {one[1] for one in shown}
    refs = collectable.refs_of(transaction, ids)
    times = list_change_times_within(transaction, sorted(ids), find_flap_start(now))
    told: dict[str, list[tuple[str, str, str, msgspec.Raw]]] = {}
    for check_id, entity_id, before, after, why in shown:
        if entity_id in refs and not is_flapping(times.get((entity_id, check_id), []), now):
            words = state.name_state(before), state.name_state(after)
            told.setdefault(check_id, []).append((refs[entity_id], *words, msgspec.Raw(why)))
    rows = [
        event.of_check(check_id, found[start : start + _CHANGES_IN_A_ROW])
        for check_id, found in sorted(told.items())
        for start in range(0, len(found), _CHANGES_IN_A_ROW)
    ]
    events.append(transaction, rows, now)
