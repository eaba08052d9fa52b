"""What a backup costs: its time, and what small pushes wait meanwhile. `python -m bench.backups`.

Two ways are compared on one service: how `factbook backup` copies, and SQLite's VACUUM INTO.
"""

import argparse
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench import catalog
from bench.processes import MIB, Cores
from bench.run import Options, Run
from bench.service import Client, Factbook
from factbook.storage.database_url import sqlite_path

_EVERY = 0.05  # seconds between two small pushes
_QUIET = 10.0  # seconds of pushes alone

# What `factbook backup` does after its start.
_COPY = """
import sys
from pathlib import Path
from factbook.operations import backups
backups.copy_database(Path(sys.argv[1]), Path(sys.argv[2]), lambda done, all: None)
backups.check_structure(Path(sys.argv[2]))
backups.to_disk(Path(sys.argv[2]))
"""

_VACUUM = """
import sqlite3, sys
with sqlite3.connect(sys.argv[1]) as database:
    database.execute("VACUUM INTO ?", (sys.argv[2],))
with sqlite3.connect(sys.argv[2]) as copied:
    assert copied.execute("PRAGMA quick_check(1)").fetchone() == ("ok",)
"""


class _Pushes(threading.Thread):
    """Replaces a small set again and again; how long each push took, in seconds."""

    def __init__(self, client: Client) -> None:
        super().__init__(daemon=True)
        self.seconds: list[float] = []
        self._client = client
        self._ended = threading.Event()

    def run(self) -> None:
        entities = list(catalog.entities(20, seed=9, prefix="small-"))
        bodies = [catalog.body(entities), catalog.body(entities[:10])]
        while not self._ended.wait(_EVERY):
            self.seconds.append(self._client.put("small", bodies[len(self.seconds) % 2]).seconds)

    def stop(self) -> list[float]:
        """Every time, the shortest first."""
        self._ended.set()
        self.join()
        return sorted(self.seconds)


def main() -> None:
    """Print a line for pushes alone, and one for each way and round."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entities", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    options = Options(entities=given.entities // 10)
    with Run.start(options, Cores.available()) as run:
        service = run.large("sqlite")
        database = sqlite_path(service.database.url)
        _report("pushes alone", _while(service, lambda: time.sleep(_QUIET)))
        for number in range(given.rounds):
            for name, way in (("backup", _backup), ("VACUUM INTO", _vacuum)):
                target = run.folder / f"{number}-{way.__name__}.db"
                _report(name, _while(service, partial(way, database, target)))
                size = target.stat().st_size / MIB
                print(f"    {size:,.0f} MiB of {database.stat().st_size / MIB:,.0f}")
                target.unlink()


def _while(service: Factbook, work: Callable[[], object]) -> tuple[float, float, list[float]]:
    pushes = _Pushes(service.another_client())
    pushes.start()
    began, spent = time.perf_counter(), _children()
    work()
    seconds, spent = time.perf_counter() - began, _children() - spent
    return seconds, spent, pushes.stop()


def _children() -> float:
    """CPU seconds of the processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _report(name: str, measured: tuple[float, float, list[float]]) -> None:
    seconds, spent, pushes = measured
    p50, p99 = (1000 * pushes[int(len(pushes) * part)] for part in (0.5, 0.99))
    print(
        f"{name}: {seconds:.1f} s, CPU {spent:.2f} s; {len(pushes)} pushes, "
        f"p50 {p50:.1f} ms, p99 {p99:.1f} ms, longest {1000 * pushes[-1]:.1f} ms",
        flush=True,
    )


def _backup(database: Path, to: Path) -> None:
    subprocess.run([sys.executable, "-c", _COPY, str(database), str(to)], check=True)


def _vacuum(database: Path, to: Path) -> None:
    subprocess.run([sys.executable, "-c", _VACUUM, str(database), str(to)], check=True)


if __name__ == "__main__":
    main()
