"""Work on many items in pieces, so that no single call blocks other threads for long.

A C call such as `sorted` holds the interpreter lock until it returns: sorting a hundred thousand
pairs of relations blocks all requests for half a second.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from heapq import merge
from itertools import islice
from typing import Any, Final, TypeVar

T = TypeVar("T")

# Rows sorted, or passed to the database, in one call.
PIECE: Final = 20_000
# Processing this many takes less time than using a thread.
_FEW: Final = 200


async def aside(count: int, function: Callable[..., T], *arguments: Any) -> T:
    """Run a function over `count` items, on a thread if there are many, to free the event loop."""
    if count <= _FEW:
        return function(*arguments)
    return await asyncio.to_thread(function, *arguments)


def slices(items: Iterable[T], size: int | None = None) -> Iterator[list[T]]:
    """The items in lists of at most `size`, or `PIECE`."""
    rest = iter(items)
    while piece := list(islice(rest, size or PIECE)):
        yield piece


def ordered(items: Iterable[Any]) -> Iterator[Any]:
    """The items in ascending order."""
    if isinstance(items, Sized) and len(items) <= PIECE:
        return iter(sorted(items))
    return merge(*(sorted(piece) for piece in slices(items)))


def weighed(
    items: Iterable[T], weight: Callable[[T], int], *, most: int, heaviest: int
) -> Iterator[Sequence[T]]:
    """Lists of at most `most` items and a total weight of `heaviest`, unless one item exceeds it.

    Each list holds at least one item.
    """
    piece: list[T] = []
    total = 0
    for item in items:
        heavy = weight(item)
        if piece and (len(piece) == most or total + heavy > heaviest):
            yield piece
            piece, total = [], 0
        piece.append(item)
        total += heavy
    if piece:
        yield piece
