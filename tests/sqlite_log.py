"""The write-ahead log of a SQLite file that a service has open."""

import sqlite3
from contextlib import closing
from pathlib import Path

from tests.waiting import until


def empty_log(file: Path) -> None:
    """Move the log into the file, as soon as the service is not in the middle of doing so.

    SQLite refuses a second checkpoint beside a first at once, whatever time is left to it.
    """
    with closing(sqlite3.connect(file)) as database:
        until(
            lambda: database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone() == (0, 0, 0),
            told=lambda: f"{file} was read or checkpointed all the time.",
        )
