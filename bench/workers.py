"""Processes of `factbook worker` that wait with a full catalog until a run is made due."""

import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from bench.databases import Database
from bench.processes import Server, on_core
from factbook.clock import DAY, now
from factbook.storage.database_url import sqlite_path

_COMMAND = [str(Path(sys.executable).with_name("factbook")), "worker"]
_START_SECONDS = 30
_RUN_SECONDS = 300


class Figures(NamedTuple):
    """What runs came to: milliseconds from the first start to the last end, and their entities."""

    duration: int
    covered: int
    failed: int
    calls: int


class Runs:
    """The runs of these sources, as their tables show them."""

    def __init__(self, database: Database, sources: Sequence[str]) -> None:
        self.database = database
        self._sources = sources

    def defer(self) -> None:
        """Let every source have just run, so that workers wait."""
        moment = now()
        rows = [(-i, id_, moment, moment, moment) for i, id_ in enumerate(self._sources, 1)]
        self._write(_DEFER, rows)

    def begin(self) -> None:
        """Make every source due, as if it had run a day ago."""
        self._write("UPDATE runs SET started_at = started_at - ?", [(DAY,)])

    def figures(self) -> Figures:
        """Wait for the end of a run of every source; what they came to."""
        began = time.monotonic()
        since = now() - DAY // 2
        while time.monotonic() - began < _RUN_SECONDS:
            ended, *found = self._one(_FIGURES, since)
            if ended == len(self._sources):
                return Figures(*map(int, found))
            time.sleep(0.05)
        raise TimeoutError(f"The runs have not ended within {_RUN_SECONDS} s.")

    def _one(self, sql: str, *values: Any) -> Any:
        with closing(self._connection()) as connection:
            return connection.execute(self._text(sql), values).fetchone()

    def _write(self, sql: str, rows: Sequence[tuple[Any, ...]]) -> None:
        with closing(self._connection()) as connection:
            connection.cursor().executemany(self._text(sql), rows)
            connection.commit()

    def _text(self, sql: str) -> str:
        return sql if self.database.dialect == "sqlite" else sql.replace("?", "%s")

    def _connection(self) -> Any:
        if self.database.dialect == "sqlite":
            return sqlite3.connect(sqlite_path(self.database.url), timeout=30)
        return psycopg.connect(self.database.url)


@contextmanager
def worker(folder: Path, environment: Mapping[str, str], *cores: int) -> Iterator[Server]:
    """A worker until the end of the block, on this core or one of these."""
    log = folder / f"worker-{time.monotonic_ns()}.log"
    with log.open("wb") as output, on_core(*cores):
        process = subprocess.Popen(
            _COMMAND, cwd=folder, env=environment, stdout=output, stderr=output
        )
    server = Server(process, 0, ())
    try:
        _await_start(process, log)
        yield server
    finally:
        server.stop()


def _await_start(process: "subprocess.Popen[bytes]", log: Path) -> None:
    began = time.monotonic()
    while b"worker.started" not in log.read_bytes():
        if process.poll() is not None or time.monotonic() - began > _START_SECONDS:
            raise RuntimeError(f"The worker does not start: {log.read_text()[-2000:]}")
        time.sleep(0.02)
    # Its first round of everything is over then.
    time.sleep(2)


_DEFER = """
INSERT INTO runs (id, source_id, whole, reason, started_at, deadline, finished_at, batches,
    entities, covered, failed, skipped, calls)
VALUES (?, ?, 1, 'cadence', ?, ?, ?, 0, 0, 0, 0, 0, 0)
"""

_FIGURES = """
SELECT COUNT(finished_at), MAX(finished_at) - MIN(started_at), SUM(covered), SUM(failed), SUM(calls)
FROM runs WHERE started_at > ?
"""
