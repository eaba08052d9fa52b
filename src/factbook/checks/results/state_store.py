"""The store of states: a row for each entity, with a byte for each slot of a check."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from factbook.checks.state import NONE
from factbook.storage import Database, Transaction
from factbook.storage.database import RestartError

_COLUMNS = ("entity_id", "owner", "states", "due_at")


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
