"""Fresh databases: files of SQLite, and databases of a PostgreSQL that is pinned like a server."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit, urlunsplit

import psycopg

from bench.processes import on_core
from tests.postgresql_programs import configure, packaged_programs, temporary_folder

DIALECTS = ("sqlite", "postgresql")
# Of a PostgreSQL that is kept; a quarter of the memory is what its handbook advises.
# The settings of what is durable stay.
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


@contextmanager
def _postgresql(core: int, kept: Path | None) -> Iterator[Database]:
    # Figures are of one version, whichever the machine has.
    programs = packaged_programs()
    with ExitStack() as stack:
        if kept is None:
            parent = Path(tempfile.gettempdir())
            data = stack.enter_context(temporary_folder(parent, programs)) / "data"
        else:
            data = kept.resolve()
        if not (data / "PG_VERSION").exists():
            data.mkdir(parents=True, exist_ok=True)
            programs.give(data)
            programs.create(data)
        if kept is not None:
            configure(data, shared_buffers=_SHARED_BUFFERS)
        with on_core(core):
            server = stack.enter_context(programs.serving(data, mode="fast"))
        yield Database("postgresql", server.url, (server.pid,))
