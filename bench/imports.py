"""Import of a code host from the command line: `python -m bench.imports [REPOSITORIES] [KIND]`.

KIND is `github`, `gitlab` or `gitea`; `bench.import_hosts` says what they hold. Each import is a
process of its own: first into an empty database, then with nothing changed, then after one commit.
CPU for each repository is beyond that of an import of the same people with a single repository,
which is the start of the process and what the people cost.
Of `github` also the time from the event of a push until a running service shows it.
"""

import os
import statistics
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


def settings(host: ImportedHost, url: str, folder: Path) -> dict[str, str]:
    """The environment of an import of a host, into a database in the folder."""
    account = {**host.table, "API_URL": f"{url}{host.api}"}
    table = f"FACTBOOK_INTEGRATIONS__{host.kind.upper()}__DEFAULT"
    return {
        "FACTBOOK_DATABASE_URL": f"sqlite:///{folder}/factbook.db",
        "FACTBOOK_OUTGOING_NETWORKS": "127.0.0.0/8",
        **{f"{table}__{key}": value for key, value in account.items()},
    }


def with_one_repository(kind: str) -> float:
    """The median seconds of CPU of three first imports of people and a single repository."""
    host, found = HOSTS[kind](1), []
    with served(host.fake) as url:
        for _ in range(3):
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                people = measured("people", host, folder, settings(host, url, folder))
                found.append(people.cpu_seconds)
    return statistics.median(found)


def main(count: int = 1_000, kind: str = "github") -> None:
    """Print what the imports took."""
    # Where it is set, each process would compile every module again.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    host, alone = HOSTS[kind](count), with_one_repository(kind)
    print(f"a single repository: {alone:.2f} s of CPU")
    with tempfile.TemporaryDirectory() as name, served(host.fake) as url:
        folder = Path(name)
        environment = settings(host, url, folder)
        for what in ("first", "unchanged", "one commit"):
            if what == "one commit":
                host.commit()
            found = measured(what, host, folder, environment)
            print(
                f"{found.what}: {found.seconds:.1f} s, {found.cpu_seconds:.2f} s of CPU "
                f"({(found.cpu_seconds - alone) / (count - 1) * 1000:.2f} ms a repository), "
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
