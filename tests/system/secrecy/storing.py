"""What lies in a database, and breaking one."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg


def break_the_database(url: str) -> None:
    """Take a table away, so that there are faults with traces."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            connection.execute("DROP TABLE search")
    else:
        with psycopg.connect(url) as connection:
            connection.execute("DROP TABLE search CASCADE")


def stored(url: str) -> Iterator[tuple[str, bytes]]:
    """What lies on the disk: the files of SQLite, every row of PostgreSQL."""
    if url.startswith("sqlite"):
        file = Path(url.removeprefix("sqlite:///"))
        for one in file.parent.glob(f"{file.name}*"):
            yield "the file of the database", one.read_bytes()
        return
    with psycopg.connect(url) as connection:
        named = connection.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
        ).fetchall()
        for (table,) in named:
            for (row,) in connection.execute(f"SELECT t::text FROM {table} t").fetchall():  # noqa: S608 - own words
                yield f"the table {table}", row.encode()
