"""A PostgreSQL of a test's own, which it may stop, start again, starve and copy."""

import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import psycopg

from tests.postgresql_programs import Mode, configure, machine_programs, temporary_folder
from tests.processes import free_port
from tests.waiting import until


class Cluster:
    """A server on a port of loopback with a database `factbook` in it."""

    def __init__(self, home: Path, port: int) -> None:
        self.home = home
        self.port = port
        self._programs = machine_programs()

    @classmethod
    @contextmanager
    def running(cls, **settings: str) -> "Iterator[Cluster]":
        """A new server with these settings, removed at the end of the block."""
        with _folder() as home:
            cluster = cls(home, free_port())
            cluster._programs.create(home)
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
            self._programs.run("pg_basebackup", "-D", home, "-d", self.url(), *how)
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
        place = {
            "dynamic_shared_memory_type": "mmap",  # below the folder too
            "listen_addresses": "'127.0.0.1'",
            "port": str(self.port),
            "unix_socket_directories": "''",
            # After a crash PostgreSQL may remove the segment that a replica has yet to finish.
            "wal_keep_size": "512MB",
            # A replica that lost its primary looks again soon, not after five seconds.
            "wal_retrieve_retry_interval": "100ms",
        }
        configure(self.home, **place | settings)

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
        self._programs.run("pg_ctl", "-w", "-D", self.home, *arguments)


def _folder() -> AbstractContextManager[Path]:
    return temporary_folder(Path(tempfile.gettempdir()), machine_programs())


def _children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
