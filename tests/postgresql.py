"""A real PostgreSQL for tests: one for all workers of a run, or one that exists already.

Ours doesn't wait for the disk, because a test spends most of its time on the files of its database.
That is safe: no test ends the machine.
"""

import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg

from tests import memory
from tests.postgresql_programs import configure, machine_programs, temporary_folder

_CONNECTIONS = 100


class PostgreSQLServer:
    """A server in which tests make databases of their own, copied by a `strategy`."""

    def __init__(self, url: str, strategy: str = "WAL_LOG") -> None:
        self._url = url
        self._strategy = strategy
        self._kept: psycopg.Connection | None = None

    @classmethod
    def at_started(cls, url: str) -> "PostgreSQLServer":
        """The server that `started_server` gives, whose files are quick to copy."""
        return cls(url, "FILE_COPY")

    @classmethod
    @contextmanager
    def start(cls) -> "Iterator[PostgreSQLServer]":
        """A server that is started here and stopped at the end of the block."""
        with started_server() as url, closing(cls.at_started(url)) as server:
            yield server

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


@contextmanager
def started_server(folder: Path | None = None, *, workers: int = 1) -> Iterator[str]:
    """The address of a new server for this many workers, removed at the end of the block.

    Its files are in `folder`, or in memory if there is enough. Raises PostgreSQLError.
    """
    programs = machine_programs()
    parent = folder or memory.folder() or Path(tempfile.gettempdir())
    with temporary_folder(parent, programs) as home:
        data = home / "data"
        programs.create(data)
        configure(
            data,
            dynamic_shared_memory_type="mmap",  # in the same folder
            fsync="off",
            full_page_writes="off",
            max_connections=str(_CONNECTIONS * max(workers, 1)),
        )
        with programs.serving(data, remove=home) as server:
            yield server.url
