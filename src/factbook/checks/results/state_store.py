"""The store of states and their changes.

The states of an entity are a row, with a byte for each slot of a check.

A change is a time at which a check of an entity went from one state to another. Changes are told as
events too. What a publication changes is told by the one event of its version, and results that
flap, so often that they say nothing new, are silent until they are quiet again.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from factbook.catalog.store import stored_entities
from factbook.checks import state
from factbook.checks.state import NONE
from factbook.clock import DAY, Throttle
from factbook.events import event
from factbook.events import store as events
from factbook.storage import Database, Row, Transaction
from factbook.storage.database import RestartError

_COLUMNS = ("entity_id", "owner", "states", "due_at")
# Of one entity, more than its pages and answers need.
_MOST_TIMES: Final = 10_000
_DELETED: Final = 1_000  # rows at once, so that no other write waits long
_BEYOND: Final = 2**63 - 1
_CHANGE_COLUMNS: Final = ("check_id", "entity_id", "at", "before", "after", "why")
FLAP_WINDOW: Final = 7 * DAY
LEAST_FLIPS: Final = 3
QUIET_TIME: Final = DAY
# Results that a row of events tells of.
_CHANGES_IN_A_ROW: Final = 1_000


class EntityStates(NamedTuple):
    """The states of one entity by slot; `due_at` is when one of them may change without a write.

    Slots beyond the end have no state. `owner` is '' without one.
    """

    entity_id: int
    owner: str
    states: bytes
    due_at: int | None

    def padded(self, width: int) -> bytearray:
        """The states, with room for so many slots; the place 0 is none."""
        return bytearray(b"\0" + self.states).ljust(width + 1, b"\0")


def lock_states(transaction: Transaction, entity_ids: Iterable[int]) -> None:
    """Keep other transactions from the states of these entities, which are locked in order.

    Entities without states get empty ones where somebody else could add them meanwhile.
    """
    if not transaction.is_alone:
        transaction.run(_CLAIM, (sorted(entity_ids),))


def lock_stored_states(transaction: Transaction, entity_ids: Iterable[int]) -> bool:
    """Lock the same without a write if all of these entities have states; false if some have none.

    Raises RestartError if they lost them meanwhile.
    """
    ids = sorted(entity_ids)
    if transaction.one(_COUNT_STORED, (ids,)) != (len(ids),):
        return False
    if not transaction.is_alone and transaction.one(_LOCK_STORED, (ids,)) != (len(ids),):
        # Some are locked: to lock the others now would not be in order.
        raise RestartError
    return True


def read_states(transaction: Transaction, entity_ids: Sequence[int]) -> dict[int, EntityStates]:
    """The states of these entities."""
    rows = transaction.all(_READ, (list(entity_ids),))
    return {row[0]: EntityStates(*row) for row in rows}


def put_state(transaction: Transaction, slot: int, state: int, entity_ids: Sequence[int]) -> None:
    """Put a state in a slot of entities that have states, and leave the others as they are."""
    zeros, own = b"\0" * slot, bytes([state])
    transaction.run(_PUT, (zeros, slot - 1, own, slot + 1, list(entity_ids)))


def write_states(
    transaction: Transaction, rows: Iterable[EntityStates], stored: Iterable[int]
) -> None:
    """Write the states of entities; `stored` are those that have some already."""
    known, new, changed = frozenset(stored), list[EntityStates](), list[EntityStates]()
    for row in rows:
        (changed if row.entity_id in known else new).append(row)
    if new:
        transaction.insert("check_states", _COLUMNS, new)
    if changed:
        transaction.update("check_states", _COLUMNS, changed)


async def read_states_between(database: Database, first: int, last: int) -> dict[int, bytes]:
    """The states of entities from one id to another."""
    return dict(await database.search(_PORTION, (first, last)))


async def read_states_of(database: Database, entity_ids: Sequence[int]) -> dict[int, EntityStates]:
    """The states of these entities, for those who read."""
    rows = await database.search(_READ, (list(entity_ids),))
    return {row[0]: EntityStates(*row) for row in rows}


async def read_slot_states(
    database: Database, slot: int, first: int, last: int
) -> dict[int, bytes]:
    """The state in a slot of entities from one id to another; it is empty beyond the end."""
    return dict(await database.search(_OF_SLOT, (slot, first, last)))


def remove_states(transaction: Transaction, entity_ids: Sequence[int]) -> None:
    """Remove the states of entities."""
    if entity_ids:
        transaction.run("DELETE FROM check_states WHERE entity_id IN LIST(?)", (list(entity_ids),))


def remove_empty_states(transaction: Transaction, entity_ids: Sequence[int]) -> None:
    """Remove what `lock` left of entities that have no states."""
    if not transaction.is_alone:
        transaction.run(_REMOVE_EMPTY, (list(entity_ids),))


def list_due_states(transaction: Transaction, now: int, limit: int) -> list[int]:
    """The entities with a state that may have changed by now, those due first."""
    return [entity_id for (entity_id,) in transaction.all(_DUE, (now, limit))]


async def find_oldest_due(database: Database, now: int) -> int | None:
    """The time since which a state is due that was not evaluated yet; None without one."""
    row = await database.one(_OLDEST_DUE, (now,))
    return row[0] if row else None


def list_state_ids_after(transaction: Transaction, after: int, limit: int) -> list[int]:
    """Up to `limit` entities with ids above `after`, in order."""
    return [entity_id for (entity_id,) in transaction.all(_IDS, (after, limit))]


def list_state_ids_among(transaction: Transaction, wanted: range, limit: int) -> list[int]:
    """Up to `limit` entities with states among the ids of a range, in order."""
    bounds = wanted.start, wanted.stop - 1, wanted.step, wanted.start % wanted.step
    return [entity_id for (entity_id,) in transaction.all(_IDS_AMONG, (*bounds, limit))]


def clear_slots(transaction: Transaction, entity_ids: Sequence[int], slots: Iterable[int]) -> None:
    """Clear the bytes of slots for entities, whose states are locked."""
    stored = read_states(transaction, entity_ids)
    chosen = list(slots)
    cleared: list[EntityStates] = []
    for one in stored.values():
        states = one.padded(max(chosen))
        for slot in chosen:
            states[slot] = NONE
        left = bytes(states[1:]).rstrip(b"\0")
        if left != one.states:
            cleared.append(one._replace(states=left))
    write_states(transaction, (one for one in cleared if one.states), stored)
    # Of entities that were removed until their states were locked, or have no states any more.
    empty = [one for one in (*stored.values(), *cleared) if not one.states]
    remove_states(transaction, [one.entity_id for one in empty])


def read_states_by_owner(
    transaction: Transaction, after: tuple[str, int], limit: int, slots: Sequence[int]
) -> list[EntityStates]:
    """Up to `limit` entities by owner, after an owner and entity, with the states in some slots.

    The slots are a range from the first one on, or a few.
    """
    if isinstance(slots, range):
        rows = transaction.all(
            _BY_OWNER.format("substr(states, 1, ?)"), (len(slots), *after, limit)
        )
    else:
        few = ", ".join(["substr(states, ?, 1)"] * len(slots))
        rows = transaction.all(_BY_OWNER.format(few), (*slots, *after, limit))
    return [
        EntityStates(id_, owner, _join_states(states, slots), None) for id_, owner, *states in rows
    ]


def _join_states(states: Sequence[bytes], slots: Sequence[int]) -> bytes:
    # Those beyond the end are empty.
    if len(states) == 1:
        return states[0].ljust(len(slots), b"\0")
    return b"".join([one or b"\0" for one in states])


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
        transaction.insert("check_changes", _CHANGE_COLUMNS, rows)


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


def append_change_events(transaction: Transaction, changes: Sequence[ChangeRow], now: int) -> None:
    """Tell of results that changed now, which are stored already."""
    # Without the flag of an exemption a state may be another one and look the same.
    shown = [one for one in changes if state.name_state(one[2]) != state.name_state(one[3])]
    if not shown:
        return
    ids = {one[1] for one in shown}
    refs = stored_entities.read_refs_of_ids_within(transaction, ids)
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


# Locks each row in turn, whether it is there or not: what comes later in the same transaction reads
# what is committed by then.
_CLAIM = """
INSERT INTO check_states (entity_id, owner, states)
SELECT id, '', ''::bytea FROM unnest(?::bigint[]) AS wanted (id) ORDER BY id
ON CONFLICT (entity_id) DO UPDATE SET owner = check_states.owner WHERE FALSE
"""

_COUNT_STORED = """
SELECT COUNT(*) FROM check_states WHERE entity_id IN LIST(?) AND length(states) > 0
"""

_LOCK_STORED = """
SELECT COUNT(*) FROM (
    SELECT entity_id FROM check_states WHERE entity_id IN LIST(?) AND length(states) > 0
    ORDER BY entity_id FOR UPDATE
) locked
"""

_REMOVE_EMPTY = "DELETE FROM check_states WHERE entity_id IN LIST(?) AND length(states) = 0"

_READ = """
SELECT entity_id, owner, states, due_at FROM check_states WHERE entity_id IN LIST(?)
"""

# States that end before the slot are filled up with zeros.
_PUT = """
UPDATE check_states SET states = CAST(
    substr(CAST(states || substr(?, length(states) + 1) AS BLOB), 1, ?) || ? || substr(states, ?)
    AS BLOB)
WHERE entity_id IN LIST(?)
"""

_PORTION = "SELECT entity_id, states FROM check_states WHERE entity_id BETWEEN ? AND ?"

_OF_SLOT = _PORTION.replace("states FROM", "substr(states, ?, 1) FROM")

_DUE = "SELECT entity_id FROM check_states WHERE due_at <= ? ORDER BY due_at LIMIT ?"

_OLDEST_DUE = "SELECT MIN(due_at) FROM check_states WHERE due_at <= ?"

_IDS = "SELECT entity_id FROM check_states WHERE entity_id > ? ORDER BY entity_id LIMIT ?"

_IDS_AMONG = """
SELECT entity_id FROM check_states WHERE entity_id BETWEEN ? AND ? AND entity_id % ? = ?
ORDER BY entity_id LIMIT ?
"""

_BY_OWNER = """
SELECT entity_id, owner, {} FROM check_states WHERE (owner, entity_id) > (?, ?)
ORDER BY owner, entity_id LIMIT ?
"""

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
