"""Validation of the write-ahead log's header beside a SQLite file.

SQLite treats a log with an invalid header as empty, which would silently discard every commit that
is not yet in the database file. Source: SQLite's file format, "4.1. WAL File Format" and "4.2.
Checksum Algorithm".
"""

import struct
from pathlib import Path
from typing import Final

_HEAD: Final = 32
_SUMMED: Final = 24
# The number that a log begins with tells in which order of bytes its checksums were made.
_ORDERS: Final = {0x377F0682: "<", 0x377F0683: ">"}


def path_of(database: Path) -> Path:
    """Path of a database's log; `database` must be resolved, as the log is beside the real file."""
    return database.with_name(f"{database.name}-wal")


def index_of(database: Path) -> Path:
    """Path of the index of the log, which all processes share along with its locks.

    If it is deleted, the next process that opens the database creates another one: processes with
    different indexes do not see each other and overwrite each other's commits.
    """
    return database.with_name(f"{database.name}-shm")


def is_damaged(database: Path) -> bool:
    """Return true if there is a log whose header was not written by SQLite.

    An empty log, or one of zeros as after a power failure, holds no commits.
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
