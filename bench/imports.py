"""Import of a code host from the command line: `python -m bench.imports [REPOSITORIES] [KIND]`.

KIND is `github`, `gitlab` or `gitea`; `bench.import_hosts` says what they hold. Each import is a
process of its own: first into an empty database, then with nothing changed, then after one commit.
Of `github` also the time from the event of a push until a running service shows it.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from bench.import_events import pushed
from bench.import_hosts import HOSTS, ImportedHost
from tests.fakes.serving import served


class Figures(NamedTuple):
    """What one import took."""

    what: str
    seconds: float
    cpu_seconds: float
    requests: int
    points: int


def measured(
    what: str, host: ImportedHost, folder: Path, environment: Mapping[str, str]
) -> Figures:
    """Run one import in a process of its own."""
    points, before = host.points(), host.fake.requests.total()
    program = str(Path(sys.executable).with_name("factbook"))
    command = [program, "import", host.kind, *host.arguments]
    began = time.perf_counter()
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(
            command, cwd=folder, env={**os.environ, **environment}, stdout=output, stderr=output
        )
        _, status, used = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError((folder / "output").read_text())
    seconds, requests = time.perf_counter() - began, host.fake.requests.total() - before
    spent = used.ru_utime + used.ru_stime
    return Figures(what, seconds, spent, requests, host.points() - points)


def main(count: int = 1_000, kind: str = "github") -> None:
    """Print what the imports took."""
    host = HOSTS[kind](count)
    with tempfile.TemporaryDirectory() as name, served(host.fake) as url:
        folder = Path(name)
        account = {**host.table, "API_URL": f"{url}{host.api}"}
        table = f"FACTBOOK_INTEGRATIONS__{kind.upper()}__DEFAULT"
        environment = {
            "FACTBOOK_DATABASE_URL": f"sqlite:///{folder}/factbook.db",
            "FACTBOOK_OUTGOING_NETWORKS": "127.0.0.0/8",
            **{f"{table}__{key}": value for key, value in account.items()},
        }
        for what in ("first", "unchanged", "one commit"):
            if what == "one commit":
                host.commit()
            found = measured(what, host, folder, environment)
            print(
                f"{found.what}: {found.seconds:.1f} s, {found.cpu_seconds:.2f} s of CPU "
                f"({found.cpu_seconds / count * 1000:.2f} ms a repository), "
                f"{found.requests} requests, {found.points} points"
            )
        print((folder / "output").read_text())
        if kind == "github":
            database_url = environment["FACTBOOK_DATABASE_URL"]
            event = pushed(host, url, database_url, folder, 100, collecting=True)
            print(f"push event while everything is collected: after {event.seconds:.1f} s")
            event = pushed(host, url, database_url, folder, 0, collecting=False)
            print(f"push event: seen after {event.seconds:.1f} s, {event.requests} requests")


if __name__ == "__main__":
    main(int((sys.argv[1:] or ["1000"])[0]), (sys.argv[2:] or ["github"])[0])
