"""Store of check states, their changes, and their counts.

The states of an entity are one row, with a byte per check slot.

A change records when a check of an entity went from one state to another. Changes are also
announced as events, with two exceptions: a publication has a single event for its version, and
flapping results are silent until they calm down.

Counts are of entities by slot, owner and state, and are updated with the states. Trends store the
counts of a day if they differ from the previous ones.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec

from factbook.catalog.store import stored_entities
from factbook.checks import state
from factbook.checks.definitions import publications
from factbook.checks.definitions.definition_versions import check_store
from factbook.checks.state import NONE
from factbook.clock import DAY, Throttle
from factbook.events.store import append_events, make_check_row
from factbook.storage import Database, Row, Transaction
from factbook.storage.database import RestartError

_COLUMNS = ("entity_id", "owner", "states", "due_at")
# Change times read per entity, more than pages and responses need.
_MOST_TIMES: Final = 10_000
_DELETED: Final = 1_000  # rows per transaction: other writes don't wait long
_BEYOND: Final = 2**63 - 1
_CHANGE_COLUMNS: Final = ("check_id", "entity_id", "at", "before", "after", "why")
FLAP_WINDOW: Final = 7 * DAY
LEAST_FLIPS: Final = 3
QUIET_TIME: Final = DAY
# Results in one event row.
_CHANGES_IN_A_ROW: Final = 1_000


class EntityStates(NamedTuple):
    """The states of an entity by slot; `due_at` is when time may first change one of them.

    Slots beyond the end have no state. `owner` is '' without one.
    """

    entity_id: int
    owner: str
    states: bytes
    due_at: int | None

    def padded(self, width: int) -> bytearray:
        """The states, padded to `width` slots; position 0 is unused."""
        return bytearray(b"\0" + self.states).ljust(width + 1, b"\0")


def lock_states(transaction: Transaction, entity_ids: Iterable[int]) -> None:
    """Lock the states of these entities, in order.

    Entities without states get empty rows if a concurrent transaction could add them.
    """
    if not transaction.is_alone:
        transaction.run(_CLAIM, (sorted(entity_ids),))


def lock_stored_states(transaction: Transaction, entity_ids: Iterable[int]) -> bool:
    """Lock states without writing if all these entities have states; false if some have none.

    Raises RestartError if some lost their states meanwhile.
    """
    ids = sorted(entity_ids)
    if transaction.one(_COUNT_STORED, (ids,)) != (len(ids),):
        return False
    if not transaction.is_alone and transaction.one(_LOCK_STORED, (ids,)) != (len(ids),):
        # Some rows are locked already: locking the others now would break the order.
        raise RestartError
    return True


def read_states(transaction: Transaction, entity_ids: Sequence[int]) -> dict[int, EntityStates]:
    """The states of these entities."""
    rows = transaction.all(_READ, (list(entity_ids),))
    return {row[0]: EntityStates(*row) for row in rows}


def put_state(transaction: Transaction, slot: int, state: int, entity_ids: Sequence[int]) -> None:
    """Set a state in a slot of entities with states; other slots stay unchanged."""
    zeros, own = b"\0" * slot, bytes([state])
    transaction.run(_PUT, (zeros, slot - 1, own, slot + 1, list(entity_ids)))


def write_states(
    transaction: Transaction, rows: Iterable[EntityStates], stored: Iterable[int]
) -> None:
    """Write the states of entities; `stored` are the entities that already have a row."""
    known, new, changed = frozenset(stored), list[EntityStates](), list[EntityStates]()
    for row in rows:
        (changed if row.entity_id in known else new).append(row)
    if new:
        transaction.insert("check_states", _COLUMNS, new)
    if changed:
        transaction.update("check_states", _COLUMNS, changed)


async def read_states_between(database: Database, first: int, last: int) -> dict[int, bytes]:
    """The states of the entities in a range of ids."""
    return dict(await database.search(_PORTION, (first, last)))


async def read_states_of(database: Database, entity_ids: Sequence[int]) -> dict[int, EntityStates]:
    """The states of these entities, outside of transactions."""
    rows = await database.search(_READ, (list(entity_ids),))
    return {row[0]: EntityStates(*row) for row in rows}


async def read_slot_states(
    database: Database, slot: int, first: int, last: int
) -> dict[int, bytes]:
    """The state in a slot for the entities in a range of ids; empty beyond the end."""
    return dict(await database.search(_OF_SLOT, (slot, first, last)))


def remove_states(transaction: Transaction, entity_ids: Sequence[int]) -> None:
    """Remove the states of entities."""
    if entity_ids:
        transaction.run("DELETE FROM check_states WHERE entity_id IN LIST(?)", (list(entity_ids),))


def remove_empty_states(transaction: Transaction, entity_ids: Sequence[int]) -> None:
    """Delete the empty rows that `lock_states` added."""
    if not transaction.is_alone:
        transaction.run(_REMOVE_EMPTY, (list(entity_ids),))


def list_due_states(transaction: Transaction, now: int, limit: int) -> list[int]:
    """The entities with a state that may have changed by now, earliest due first."""
    return [entity_id for (entity_id,) in transaction.all(_DUE, (now, limit))]


async def find_oldest_due(database: Database, now: int) -> int | None:
    """The earliest due time that has passed without evaluation; None without one."""
    row = await database.one(_OLDEST_DUE, (now,))
    return row[0] if row else None


def list_state_ids_after(transaction: Transaction, after: int, limit: int) -> list[int]:
    """Up to `limit` ids of entities with states above `after`, in order."""
    return [entity_id for (entity_id,) in transaction.all(_IDS, (after, limit))]


def list_state_ids_among(transaction: Transaction, wanted: range, limit: int) -> list[int]:
    """Up to `limit` ids of entities with states within a range, in order."""
    bounds = wanted.start, wanted.stop - 1, wanted.step, wanted.start % wanted.step
    return [entity_id for (entity_id,) in transaction.all(_IDS_AMONG, (*bounds, limit))]


def clear_slots(transaction: Transaction, entity_ids: Sequence[int], slots: Iterable[int]) -> None:
    """Clear the bytes of slots for entities with locked states."""
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
    # For entities without states by now, or deleted before their states were locked.
    empty = [one for one in (*stored.values(), *cleared) if not one.states]
    remove_states(transaction, [one.entity_id for one in empty])


def read_states_by_owner(
    transaction: Transaction, after: tuple[str, int], limit: int, slots: Sequence[int]
) -> list[EntityStates]:
    """Up to `limit` entities sorted by owner and id, after `after`, with the states in some slots.

    `slots` is a range from the first slot on, or a few slots.
    """
    if isinstance(slots, range):
        rows = transaction.all(
            _BY_OWNER.format("substr(states, 1, ?)"), (len(slots), *after, limit)
        )
    else:
        few = ", ".join(["substr(states, ?, 1)"] * len(slots))
        rows = transaction.all(_BY_OWNER.format(few), (*slots, *after, limit))
    # Slots beyond the end are empty.
    return [
        EntityStates(
            id_,
            owner,
            states[0].ljust(len(slots), b"\0")
            if len(states) == 1
            else b"".join([one or b"\0" for one in states]),
            None,
        )
        for id_, owner, *states in rows
    ]


# Check, entity, state before, state after, reason as JSON.
ChangeRow = tuple[str, int, int, int, str]


class Change(NamedTuple):
    """A change of state; `why` is the cause as JSON, `id` grows with time."""

    id: int
    check_id: str
    entity_id: int
    at: int
    before: int
    after: int
    why: dict[str, Any]


class ChangeRange(NamedTuple):
    """Changes from a time on, before a position; None means any check or entity."""

    since: int
    before: tuple[int, int] | None = None
    check_ids: Sequence[str] | None = None
    entity_id: int | None = None


def append_changes(transaction: Transaction, changes: Iterable[ChangeRow], now: int) -> None:
    """Append changes to the history."""
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
    """The changes of a check for an entity before a position, newest first."""
    return _read_changes(await database.all(_OF_ENTITY, (entity_id, check_id, *before, limit)))


async def list_latest_changes(database: Database, check_id: str, limit: int) -> list[Change]:
    """The latest changes of a check for any entity, newest first."""
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
    """The time of a check's last change, for each of these entities that has one."""
    return dict(await database.all(_LAST_OF_ENTITIES, (check_id, list(entity_ids))))


async def find_last_change(database: Database, check_id: str) -> int | None:
    """The time of a check's last change for any entity."""
    row = await database.one("SELECT MAX(at) FROM check_changes WHERE check_id = ?", (check_id,))
    return row[0] if row else None


async def list_change_times(database: Database, entity_id: int) -> dict[str, list[int]]:
    """The times of recent changes of each check for an entity."""
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
    """Delete changes older than `before`; returns their number."""

    def forget(transaction: Transaction) -> int:
        transaction.relax()
        return transaction.run(_FORGET, (before, _DELETED))

    gone = 0
    while True:
        deleted = await database.write(forget)
        gone += deleted
        await pace.rest()
        if deleted < _DELETED:
            return gone


def forget_entity_changes(transaction: Transaction, entity_ids: Sequence[int]) -> int:
    """Delete the changes of these entities; returns their number."""
    sql = "DELETE FROM check_changes WHERE entity_id IN LIST(?)"
    return transaction.run(sql, (list(entity_ids),))


def _read_changes(rows: Sequence[Row]) -> list[Change]:
    return [Change._make((*row[:-1], msgspec.json.decode(row[-1]))) for row in rows]


def is_flapping(flips: Sequence[int], now: int) -> bool:
    """Return true for a result that flipped three times in seven days, until one quiet day.

    `flips` are the times of state changes, in any order.
    """
    if len(flips) < LEAST_FLIPS:
        return False
    past = sorted(at for at in flips if at <= now)
    if not past or now - past[-1] >= QUIET_TIME:
        return False
    return len(past) >= LEAST_FLIPS and past[-1] - past[-LEAST_FLIPS] <= FLAP_WINDOW


def find_flap_start(now: int) -> int:
    """The earliest time of a flip that still counts."""
    return now - FLAP_WINDOW - QUIET_TIME


def append_change_events(transaction: Transaction, changes: Sequence[ChangeRow], now: int) -> None:
    """Append events for changes that are stored already."""
    # Exempt states can differ without the flag and still be shown the same.
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
        make_check_row(check_id, found[start : start + _CHANGES_IN_A_ROW])
        for check_id, found in sorted(told.items())
        for start in range(0, len(found), _CHANGES_IN_A_ROW)
    ]
    append_events(transaction, rows, now)


# Locks each row in turn, whether it exists or not: later statements of the transaction read
# everything committed by then.
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

# States shorter than the slot are padded with zeros.
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


# The index of each state in the counts.
_PLACES_OF_STATES: Final = {state.PASS: 0, state.FAIL: 1, state.UNKNOWN: 2, state.INAPPLICABLE: 4}
_EXEMPT_PLACE: Final = 3
NO_PLACE: Final = -1
PLACES: Final = tuple(
    _EXEMPT_PLACE if value & state.EXEMPT else _PLACES_OF_STATES.get(value, NO_PLACE)
    for value in range(256)
)
_DAYS_DELETED_AT_ONCE: Final = 1_000  # rows per transaction: other writes don't wait long


class StateCounts(NamedTuple):
    """Numbers of entities by state of a check, without entities it doesn't apply to."""

    passing: int = 0
    failing: int = 0
    undecided: int = 0
    exempt: int = 0
    inapplicable: int = 0

    def plus(self, other: "StateCounts") -> "StateCounts":
        """The sums."""
        return StateCounts(*(one + more for one, more in zip(self, other, strict=True)))


# Slot, owner and the counts of StateCounts.
CountRow = tuple[int, str, int, int, int, int, int]


_COUNT_COLUMNS: Final = ("slot", "owner", *StateCounts._fields)


class CountDeltas:
    """Changes of counts, collected during a transaction and written at its end."""

    def __init__(self) -> None:
        self._deltas: dict[tuple[int, str], list[int]] = {}

    def change(self, owner: str, slot: int, before: int, after: int) -> None:
        """Move an entity of the owner from one state of the slot to another."""
        self._add(owner, slot, PLACES[before], -1)
        self._add(owner, slot, PLACES[after], 1)

    def leave(self, owner: str, states: bytearray, slots: Iterable[int]) -> None:
        """Subtract an entity with these states."""
        for slot in slots:
            self._add(owner, slot, PLACES[states[slot]], -1)

    def come(self, owner: str, states: bytearray, slots: Iterable[int]) -> None:
        """Add an entity with these states."""
        for slot in slots:
            self._add(owner, slot, PLACES[states[slot]], 1)

    def count(self, owner: str, slot: int, state: int, number: int) -> None:
        """Add `number` entities in a state."""
        self._add(owner, slot, PLACES[state], number)

    def subtract(self, owner: str, slot: int, counts: Sequence[int]) -> None:
        """Subtract counts, in the order of `StateCounts`."""
        for place, number in enumerate(counts):
            self._add(owner, slot, place, -number)

    def __bool__(self) -> bool:
        return any(map(any, self._deltas.values()))

    def write(self, transaction: Transaction) -> None:
        """Write the changes, in the same order in every transaction."""
        rows = [
            (slot, owner, *numbers)
            for (slot, owner), numbers in sorted(self._deltas.items())
            if any(numbers)
        ]
        if rows:
            transaction.many(_ADD, rows)

    def _add(self, owner: str, slot: int, place: int, number: int) -> None:
        if place == NO_PLACE:
            return
        numbers = self._deltas.get((slot, owner))
        if numbers is None:
            numbers = self._deltas[slot, owner] = [0, 0, 0, 0, 0]
        numbers[place] += number


def add_counts(transaction: Transaction, rows: Iterable[CountRow]) -> None:
    """Insert counts of slots that have none for these owners yet."""
    transaction.insert("check_counts", _COUNT_COLUMNS, rows)


async def count_by_owner(database: Database, check_id: str) -> dict[str, StateCounts]:
    """The counts of a check by owner, '' for entities without an owner."""
    return dict(map(_make_counts, await database.all(_COUNTS_BY_OWNER, (check_id,))))


async def count_totals(
    database: Database, check_ids: Sequence[str] | None = None
) -> dict[str, StateCounts]:
    """The counts of each check in effect, or of those in `check_ids`, by id."""
    sql, values = (_TOTALS, []) if check_ids is None else (_TOTALS_OF, [list(check_ids)])
    return dict(map(_make_counts, await database.search(sql, values)))


async def count_of_owners(database: Database, owners: Sequence[str]) -> dict[str, StateCounts]:
    """The counts of each check over the entities of these owners, by check id."""
    return dict(map(_make_counts, await database.all(_OF_OWNERS, (list(owners),))))


def count_within(transaction: Transaction, slot: int) -> Mapping[str, StateCounts]:
    """The counts of a slot by owner, within a transaction."""
    return dict(map(_make_counts, transaction.all(_WITHIN, (slot,))))


def find_missing_counts(compared: Iterable[Row], slots: Sequence[int]) -> CountDeltas:
    """Corrections for the counts of these slots in effect, from rows of `COUNT_COMPARISON`."""
    deltas, wanted = CountDeltas(), frozenset(slots)
    for owner, slot, states, *numbers in compared:
        if slot is None:
            for one in slots:
                if one <= len(states):
                    deltas.count(owner, one, states[one - 1], numbers[0])
        elif slot in wanted:
            deltas.subtract(owner, slot, numbers)
    return deltas


def _make_counts(row: Row) -> tuple[str, StateCounts]:
    return row[0], StateCounts(*map(int, row[1:]))


_NO_COUNTS: Final = StateCounts()


class DayCounts(NamedTuple):
    """Counts at the end of a day; days are numbered from 1970-01-01."""

    day: int
    counts: StateCounts


async def record_days(database: Database, now: int, pace: Throttle) -> int:
    """Store today's counts of owners whose latest stored counts differ; returns their number."""
    kept = 0
    for one in await check_store.everything(database):
        if one.slot is not None:
            kept += await database.write(partial(_record_day, check_id=one.id, day=now // DAY))
            await pace.rest()
    return kept


async def read_day_totals(
    database: Database, check_id: str, first: int, last: int
) -> list[DayCounts]:
    """The counts over all owners for each day from `first` to `last`, in order."""
    current: dict[str, StateCounts] = {}
    changes: dict[int, dict[str, StateCounts]] = {}
    for owner, day, *numbers in await database.search(_DAY_TOTALS, (check_id, last)):
        changes.setdefault(max(day, first), {})[owner] = StateCounts(*numbers)
    found = []
    for day in range(first, last + 1):
        current |= changes.get(day, {})
        found.append(
            DayCounts(
                day,
                StateCounts(*map(sum, zip(*current.values(), strict=True)))
                if current
                else _NO_COUNTS,
            )
        )
    return found


async def sweep_days(database: Database, before: int, pace: Throttle) -> int:
    """Delete counts older than `before`, except each owner's last ones."""
    gone, deleted = 0, _DAYS_DELETED_AT_ONCE
    while deleted == _DAYS_DELETED_AT_ONCE:
        deleted = await database.write(
            lambda transaction: transaction.run(
                _FORGET_DAYS, (before // DAY, _DAYS_DELETED_AT_ONCE)
            )
        )
        gone += deleted
        await pace.rest()
    return gone


def _record_day(transaction: Transaction, check_id: str, day: int) -> int:
    # The check may have another slot by now.
    publications.share_definitions(transaction)
    row = transaction.one("SELECT slot FROM checks WHERE id = ?", (check_id,))
    if row is None or row[0] is None:
        return 0
    now = count_within(transaction, row[0])
    last = {
        owner: StateCounts(*numbers)
        for owner, *numbers in transaction.all(_LAST_DAYS, (check_id, check_id))
    }
    rows = [
        (check_id, owner, day, *now.get(owner, _NO_COUNTS))
        for owner in sorted(now.keys() | last.keys())
        if now.get(owner, _NO_COUNTS) != last.get(owner, _NO_COUNTS)
    ]
    transaction.many(_KEEP_DAY, rows)
    return len(rows)


_ADD = """
INSERT INTO check_counts (slot, owner, passing, failing, undecided, exempt, inapplicable)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (slot, owner) DO UPDATE SET passing = check_counts.passing + excluded.passing,
    failing = check_counts.failing + excluded.failing,
    undecided = check_counts.undecided + excluded.undecided,
    exempt = check_counts.exempt + excluded.exempt,
    inapplicable = check_counts.inapplicable + excluded.inapplicable
"""

_WITHIN = """
SELECT owner, passing, failing, undecided, exempt, inapplicable FROM check_counts
WHERE slot = ? ORDER BY owner
"""

_COUNTS_BY_OWNER = """
SELECT n.owner, n.passing, n.failing, n.undecided, n.exempt, n.inapplicable
FROM checks c JOIN check_counts n ON n.slot = c.slot WHERE c.id = ? ORDER BY n.owner
"""

_TOTALS = """
SELECT c.id, COALESCE(SUM(n.passing), 0), COALESCE(SUM(n.failing), 0),
    COALESCE(SUM(n.undecided), 0), COALESCE(SUM(n.exempt), 0), COALESCE(SUM(n.inapplicable), 0)
FROM checks c LEFT JOIN check_counts n ON n.slot = c.slot WHERE c.slot IS NOT NULL
GROUP BY c.id ORDER BY c.id
"""

_TOTALS_OF = _TOTALS.replace("GROUP BY", "AND c.id IN LIST(?) GROUP BY")

_OF_OWNERS = _TOTALS.replace("n.slot = c.slot", "n.slot = c.slot AND n.owner IN LIST(?)")

# Actual entities by state beside the stored counts.
COUNT_COMPARISON: Final = """
SELECT owner, CAST(NULL AS INTEGER) AS slot, states, COUNT(*), 0, 0, 0, 0 FROM check_states
WHERE owner IN LIST(?) GROUP BY owner, states
UNION ALL
SELECT owner, slot, NULL, passing, failing, undecided, exempt, inapplicable FROM check_counts
WHERE owner IN LIST(?)
"""

_LAST_DAYS = """
SELECT d.owner, d.passing, d.failing, d.undecided, d.exempt, d.inapplicable
FROM check_days d JOIN (
    SELECT owner, MAX(day) AS day FROM check_days WHERE check_id = ? GROUP BY owner
) last ON last.owner = d.owner AND last.day = d.day WHERE d.check_id = ?
"""

_KEEP_DAY = """
INSERT INTO check_days
    (check_id, owner, day, passing, failing, undecided, exempt, inapplicable)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (check_id, owner, day) DO UPDATE SET passing = excluded.passing,
    failing = excluded.failing, undecided = excluded.undecided, exempt = excluded.exempt,
    inapplicable = excluded.inapplicable
"""

_DAY_TOTALS = """
SELECT owner, day, passing, failing, undecided, exempt, inapplicable FROM check_days
WHERE check_id = ? AND day <= ? ORDER BY day
"""

# A missing day equals the last stored one, which therefore has to stay.
_FORGET_DAYS = """
DELETE FROM check_days WHERE (check_id, owner, day) IN (
    SELECT d.check_id, d.owner, d.day FROM check_days d WHERE d.day < (
        SELECT MAX(n.day) FROM check_days n
        WHERE n.check_id = d.check_id AND n.owner = d.owner AND n.day <= ?
    ) LIMIT ?
)
"""
