"""What can befall a PostgreSQL database: connections that are cut, and a server that is away."""

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit, urlunsplit

import psycopg


def cut_connections(url: str) -> int:
    """End every connection to this database, as a restart of the server does; how many."""
    with _elsewhere(url) as connection:
        rows = connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s",
            (_name(url),),
        ).fetchall()
    return len(rows)


@contextmanager
def unreachable(url: str) -> Iterator[None]:
    """Within the block nobody gets to this database."""
    with _elsewhere(url) as connection:
        connection.execute(f"ALTER DATABASE {_name(url)} WITH ALLOW_CONNECTIONS false")
        cut_connections(url)
        try:
            yield
        finally:
            connection.execute(f"ALTER DATABASE {_name(url)} WITH ALLOW_CONNECTIONS true")


def _name(url: str) -> str:
    return urlsplit(url).path.removeprefix("/")


def _elsewhere(url: str) -> "psycopg.Connection[tuple[object, ...]]":
    other = urlunsplit(urlsplit(url)._replace(path="/postgres"))
    return psycopg.connect(other, autocommit=True)
