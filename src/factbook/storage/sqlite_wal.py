"""The write-ahead log beside a SQLite file: whether its head can be what SQLite wrote.

SQLite takes a log whose head is wrong for an empty one, and with it everything that is in no other
file would be gone without a word.
Source: SQLite's file format, "4.1. WAL File Format" and "4.2. Checksum Algorithm".
"""

import struct
from pathlib import Path
from typing import Final

_HEAD: Final = 32
_SUMMED: Final = 24
# The number that a log begins with tells in which order of bytes its checksums were made.
_ORDERS: Final = {0x377F0682: "<", 0x377F0683: ">"}


def path_of(database: Path) -> Path:
    """Where the log of a database is; `database` is no link: it is beside what that leads to."""
    return database.with_name(f"{database.name}-wal")


def is_damaged(database: Path) -> bool:
    """Whether there is a log whose head SQLite did not write.

    One that is empty, or zeros as after a loss of power, holds nothing that was committed.
    """
    try:
        with path_of(database).open("rb") as file:
            head = file.read(_HEAD)
    except FileNotFoundError:
        return False
    if len(head) < _HEAD or not any(head):
        return False
    order = _ORDERS.get(struct.unpack_from(">I", head)[0])
    return order is None or _sums(head, order) != struct.unpack_from(">II", head, _SUMMED)


def _sums(head: bytes, order: str) -> tuple[int, int]:
    first = second = 0
    words = struct.unpack_from(f"{order}6I", head)
    for one, other in zip(words[::2], words[1::2], strict=True):
        first = (first + one + second) & 0xFFFFFFFF
        second = (second + other + first) & 0xFFFFFFFF
    return first, second
