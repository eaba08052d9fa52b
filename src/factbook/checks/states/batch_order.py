"""Orders in which batches reach all entities, and places in them.

An update of a row on PostgreSQL leaves the former one where it is until the transaction has ended.
If all rows of a page are updated at once, most go to other pages, with new entries in every index;
of every fourth, the page has room (its `fillfactor`), and the next batch takes the room of those
before. So once the entities have states, which stand in the order of ids, a batch takes every
fourth of a block of ids: the order is interleaved.

A place is an integer that grows as batches go on: in the order of ids the last id that was reached,
negative in the interleaved order. A release that knows no such order begins with the first entity
where it finds a negative place.
"""

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from factbook.storage import Transaction

# The place of the end, in both orders.
ALL: Final = 2**63 - 1
FIRST: Final = 0
FIRST_INTERLEAVED: Final = -(2**62)
# Pages have room for as many rows more as one of so many of theirs.
_PARTS: Final = 4
# Ids, as many as the largest batch.
_PART: Final = 5_000
_BLOCK: Final = _PARTS * _PART


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
        return self.place == ALL


def first_place(transaction: Transaction, others: Iterable[int] = ()) -> int:
    """The place at which to begin, before all entities.

    It is in the order of ids, too, where one of the `others`, which are under way, is. To go before
    that one would be to read of it what it has not written yet.
    """
    if transaction.is_alone or transaction.one(_ANY) is None:
        return FIRST
    if any(FIRST <= place < ALL for place in others):
        return FIRST
    return FIRST_INTERLEAVED


def portion(transaction: Transaction, reads: IdReads, place: int, size: int, end: int) -> Portion:
    """Up to `size` entities after a place, none beyond the place `end`."""
    if place >= FIRST:
        return _in_order(transaction, reads, place, size, end)
    block, steps = divmod(place - FIRST_INTERLEAVED, _BLOCK)
    if steps == 0:
        # There may be no ids for many blocks.
        found = reads.after(transaction, block * _BLOCK - 1, 1)
        if not found:
            return Portion([], ALL)
        block = found[0] // _BLOCK
    begin = FIRST_INTERLEAVED + block * _BLOCK
    part, done = divmod(steps, _PART)
    last = min(_PART, end - begin - part * _PART)
    ids = reads.among(transaction, _ids(block, part, range(done, last)), size)
    if len(ids) == size:
        last = (ids[-1] - block * _BLOCK) // _PARTS + 1
    return Portion(ids, min(begin + part * _PART + last, end))


def _ids(block: int, part: int, steps: range) -> range:
    """The ids of some steps through a part of a block."""
    first = block * _BLOCK + part
    return range(first + _PARTS * steps.start, first + _PARTS * steps.stop, _PARTS)


def _in_order(transaction: Transaction, reads: IdReads, after: int, size: int, end: int) -> Portion:
    found = reads.after(transaction, after, size)
    ids = [id_ for id_ in found if id_ <= end]
    is_end = len(ids) < len(found) or len(found) < size
    return Portion(ids, end if is_end else ids[-1])


def last_id(place: int) -> int:
    """An id up to which about as many entities are as are reached at a place."""
    return place if place >= FIRST else place - FIRST_INTERLEAVED


_ANY: Final = "SELECT 1 FROM check_states LIMIT 1"
