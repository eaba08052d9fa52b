"""Publications of definitions: their lock and revision, slots of checks, and places of batches.

A slot is the place of a check in the states of an entity. One that is not used any more keeps its
bytes until they are cleared, and is given to no other check before.

Batches reach all entities in an order. An update of a row on PostgreSQL leaves the former one where
it is until the transaction has ended. If all rows of a page are updated at once, most go to other
pages, with new entries in every index; of every fourth, the page has room (its `fillfactor`), and
the next batch takes the room of those before. So once the entities have states, which stand in the
order of ids, a batch takes every fourth of a block of ids: the order is interleaved.

A place is an integer that grows as batches go on: in the order of ids the last id that was reached,
negative in the interleaved order. A release that knows no such order begins with the first entity
where it finds a negative place.
"""

from collections.abc import Callable, Iterable
from itertools import count
from typing import Final, NamedTuple

from factbook.storage import Transaction

# Held shared by whoever evaluates or grades, and alone by whoever changes for which definitions.
DEFINITIONS_LOCK: Final = "check definitions"
DEFINITIONS_REVISION: Final = "checks"
# The place of the end, in both orders.
LAST_PLACE: Final = 2**63 - 1
FIRST_PLACE: Final = 0
FIRST_INTERLEAVED_PLACE: Final = -(2**62)
# Pages have room for as many rows more as one of so many of theirs.
_PARTS: Final = 4
# Ids, as many as the largest batch.
_PART_IDS: Final = 5_000
_BLOCK_IDS: Final = _PARTS * _PART_IDS


def lock_definitions(transaction: Transaction) -> None:
    """Take the lock alone; to be called before anything else of the transaction is locked.

    Otherwise it and an evaluation, which holds the lock shared, might wait for each other. Locks of
    the catalog's writes may be held: who has this one waits for none of those.
    """
    transaction.lock_patiently(DEFINITIONS_LOCK)


def share_definitions(transaction: Transaction) -> None:
    """Keep published definitions; to be called first, too, by what evaluates in the end.

    Drafts are saved so: what they refer to stays, and locks of definitions come after this one.
    """
    transaction.lock(DEFINITIONS_LOCK, shared=True)


class IdReads(NamedTuple):
    """Reads of ids of entities, in order.

    `after` takes an id that is left behind and a limit; `among` a range of ids, and a limit.
    """

    after: Callable[[Transaction, int, int], list[int]]
    among: Callable[[Transaction, range, int], list[int]]


class Portion(NamedTuple):
    """Entities to do next, and the place that is reached with them."""

    ids: list[int]
    place: int

    @property
    def is_last(self) -> bool:
        """True if no entity is left."""
        return self.place == LAST_PLACE


def find_first_place(transaction: Transaction, others: Iterable[int] = ()) -> int:
    """The place at which to begin, before all entities.

    It is in the order of ids, too, where one of the `others`, which are under way, is. To go before
    that one would be to read of it what it has not written yet.
    """
    if transaction.is_alone or transaction.one(_ANY_STATE) is None:
        return FIRST_PLACE
    if any(FIRST_PLACE <= place < LAST_PLACE for place in others):
        return FIRST_PLACE
    return FIRST_INTERLEAVED_PLACE


def take_portion(
    transaction: Transaction, reads: IdReads, place: int, size: int, end: int
) -> Portion:
    """Up to `size` entities after a place, none beyond the place `end`."""
    if place >= FIRST_PLACE:
        return _take_in_order(transaction, reads, place, size, end)
    block, steps = divmod(place - FIRST_INTERLEAVED_PLACE, _BLOCK_IDS)
    if steps == 0:
        # There may be no ids for many blocks.
        found = reads.after(transaction, block * _BLOCK_IDS - 1, 1)
        if not found:
            return Portion([], LAST_PLACE)
        block = found[0] // _BLOCK_IDS
    begin = FIRST_INTERLEAVED_PLACE + block * _BLOCK_IDS
    part, done = divmod(steps, _PART_IDS)
    last = min(_PART_IDS, end - begin - part * _PART_IDS)
    reached = range(done, last)
    first = block * _BLOCK_IDS + part
    ids = reads.among(
        transaction,
        range(first + _PARTS * reached.start, first + _PARTS * reached.stop, _PARTS),
        size,
    )
    if len(ids) == size:
        last = (ids[-1] - block * _BLOCK_IDS) // _PARTS + 1
    return Portion(ids, min(begin + part * _PART_IDS + last, end))


def _take_in_order(
    transaction: Transaction, reads: IdReads, after: int, size: int, end: int
) -> Portion:
    found = reads.after(transaction, after, size)
    ids = [id_ for id_ in found if id_ <= end]
    is_end = len(ids) < len(found) or len(found) < size
    return Portion(ids, end if is_end else ids[-1])


def find_last_id(place: int) -> int:
    """An id up to which about as many entities are as are reached at a place."""
    return place if place >= FIRST_PLACE else place - FIRST_INTERLEAVED_PLACE


def find_free_slot(transaction: Transaction) -> int:
    """A slot that nothing uses; the transaction holds the lock of the definitions alone."""
    used = {slot for (slot,) in transaction.all(_USED_SLOTS)}
    return next(slot for slot in count(1) if slot not in used)


def retire_slot(transaction: Transaction, slot: int) -> None:
    """Take a slot from its check; its bytes are cleared later."""
    transaction.run("DELETE FROM check_counts WHERE slot = ?", (slot,))
    place = find_first_place(transaction)
    transaction.run("INSERT INTO retired_slots (slot, cleared_up_to) VALUES (?, ?)", (slot, place))


def list_retired_slots(transaction: Transaction) -> dict[int, int]:
    """The slots to clear, each with the place up to which it was cleared."""
    return dict(transaction.all("SELECT slot, cleared_up_to FROM retired_slots ORDER BY slot"))


def note_cleared_slots(transaction: Transaction, slots: list[int], cleared_up_to: int) -> None:
    """Record the place up to which the slots were cleared."""
    transaction.run(
        "UPDATE retired_slots SET cleared_up_to = ? WHERE slot IN LIST(?)", (cleared_up_to, slots)
    )


def release_slots(transaction: Transaction, slots: list[int]) -> None:
    """Give back slots that are cleared for every entity."""
    transaction.run("DELETE FROM retired_slots WHERE slot IN LIST(?)", (slots,))


_ANY_STATE: Final = "SELECT 1 FROM check_states LIMIT 1"

_USED_SLOTS = """
SELECT slot FROM checks WHERE slot IS NOT NULL
UNION ALL SELECT pending_slot FROM checks WHERE pending_slot IS NOT NULL
UNION ALL SELECT slot FROM retired_slots
"""
