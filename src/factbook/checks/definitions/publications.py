"""Publication of definitions: the lock and revision, check slots, and batch places.

A slot is the position of a check in an entity's states. A retired slot is not reused until its
bytes are cleared.

Batches cover all entities in a fixed order. PostgreSQL keeps the old version of an updated row
until the transaction ends. If a batch updates every row of a page, most new versions move to other
pages and need new entries in every index. If it updates every fourth row, the page has room (its
`fillfactor`), and the next batch reuses the room of the batch before. So once entities have states,
which are stored in id order, each batch takes every fourth id of a block: the interleaved order.

A place is an integer that grows with each batch: the last id in id order, a negative number in
interleaved order. Releases without the interleaved order restart at the first entity when they find
a negative place.
"""

from collections.abc import Callable, Iterable
from itertools import count
from typing import Final, NamedTuple

from factbook.storage import Transaction

# Held shared by evaluations and gradings, exclusively by changes of the evaluated definitions.
DEFINITIONS_LOCK: Final = "check definitions"
DEFINITIONS_REVISION: Final = "checks"
# The end, in both orders.
LAST_PLACE: Final = 2**63 - 1
FIRST_PLACE: Final = 0
FIRST_INTERLEAVED_PLACE: Final = -(2**62)
# A page has room for new versions of one in this many rows.
_PARTS: Final = 4
# Ids, as many as the largest batch.
_PART_IDS: Final = 5_000
_BLOCK_IDS: Final = _PARTS * _PART_IDS


def lock_definitions(transaction: Transaction) -> None:
    """Lock definitions exclusively; call this before the transaction takes other locks.

    Otherwise this could deadlock with an evaluation, which holds the lock shared. The transaction
    may already hold locks of catalog writes: holders of this lock never wait for those.
    """
    transaction.lock_patiently(DEFINITIONS_LOCK)


def share_definitions(transaction: Transaction) -> None:
    """Keep published definitions unchanged; transactions that evaluate call this first, too.

    Saving a draft calls this too: it keeps the draft's references valid, and locks of single
    definitions come after this one.
    """
    transaction.lock(DEFINITIONS_LOCK, shared=True)


class IdReads(NamedTuple):
    """Reads of entity ids, in order.

    `after` takes an exclusive lower bound and a limit, `among` a range of ids and a limit.
    """

    after: Callable[[Transaction, int, int], list[int]]
    among: Callable[[Transaction, range, int], list[int]]


class Portion(NamedTuple):
    """The next entities, and the place after them."""

    ids: list[int]
    place: int

    @property
    def is_last(self) -> bool:
        """True if no entity is left."""
        return self.place == LAST_PLACE


def find_first_place(transaction: Transaction, others: Iterable[int] = ()) -> int:
    """The place before all entities.

    It uses id order, too, if one of the `others` under way does: in interleaved order this
    evaluation could overtake that one and read states that it has not written yet.
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
        # Many blocks may have no ids.
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
    """The approximate id up to which entities are done at a place."""
    return place if place >= FIRST_PLACE else place - FIRST_INTERLEAVED_PLACE


def find_free_slot(transaction: Transaction) -> int:
    """An unused slot; the transaction holds the definitions lock exclusively."""
    used = {slot for (slot,) in transaction.all(_USED_SLOTS)}
    return next(slot for slot in count(1) if slot not in used)


def retire_slot(transaction: Transaction, slot: int) -> None:
    """Take a slot from its check; its bytes are cleared later."""
    transaction.run("DELETE FROM check_counts WHERE slot = ?", (slot,))
    place = find_first_place(transaction)
    transaction.run("INSERT INTO retired_slots (slot, cleared_up_to) VALUES (?, ?)", (slot, place))


def list_retired_slots(transaction: Transaction) -> dict[int, int]:
    """The slots to clear, each with the place up to which it is cleared."""
    return dict(transaction.all("SELECT slot, cleared_up_to FROM retired_slots ORDER BY slot"))


def note_cleared_slots(transaction: Transaction, slots: list[int], cleared_up_to: int) -> None:
    """Record the place up to which the slots are cleared."""
    transaction.run(
        "UPDATE retired_slots SET cleared_up_to = ? WHERE slot IN LIST(?)", (cleared_up_to, slots)
    )


def release_slots(transaction: Transaction, slots: list[int]) -> None:
    """Make slots that are cleared for every entity available again."""
    transaction.run("DELETE FROM retired_slots WHERE slot IN LIST(?)", (slots,))


_ANY_STATE: Final = "SELECT 1 FROM check_states LIMIT 1"

_USED_SLOTS = """
SELECT slot FROM checks WHERE slot IS NOT NULL
UNION ALL SELECT pending_slot FROM checks WHERE pending_slot IS NOT NULL
UNION ALL SELECT slot FROM retired_slots
"""
