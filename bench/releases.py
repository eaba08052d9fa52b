"""Two releases in turns on one machine: CPU of starts, reads and pushes, and memory at rest.

A line has the ratio of this release to the other one, as the median of all pairs of measurements.
"""

import argparse
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Final

from bench import catalog
from bench.catalog import Entity, Key
from bench.databases import DIALECTS
from bench.load import Call
from bench.processes import MIB, Cores
from bench.run import Options, Run, by_name
from bench.service import CATALOG, COMMAND, TOOLS, tool_call

PAIRS: Final = 7
_SECONDS: Final = 1.5
_ENTITIES: Final = 5_000
_BEFORE, _NOW = "before", "now"
_LIST: Final = f"{CATALOG}?filter=kind=component&limit=100"
_PAGE: Final = f"{CATALOG}/by-query?filter=kind=component&limit=20"

# A run of each release, by its name.
Releases = Mapping[str, Run]
# The figures of each release, by what was measured.
Figures = defaultdict[str, defaultdict[str, list[float]]]


def measure_reads(releases: Releases, dialect: str, pairs: int) -> Figures:
    """Milliseconds of CPU of a read, of services that run at once."""
    found = _figures()
    services = {name: run.filled(dialect) for name, run in releases.items()}
    for path, calls in _reads(releases[_NOW].keys).items():
        for service in services.values():  # fills their caches
            service.cost(calls, _SECONDS, seed=0)
        for number in range(pairs):
            for name, service in services.items():
                found[path][name].append(service.cost(calls, _SECONDS, seed=number).cpu)
    return found


def measure_pushes(releases: Releases, dialect: str, pairs: int) -> Figures:
    """Seconds of CPU of a push, and megabytes of a service that was asked for nothing."""
    found = _figures()
    pushes = list(_pushes(releases[_NOW].entities))
    for _ in range(pairs):
        for name, run in releases.items():
            with run.fresh(dialect) as service:
                found["memory at rest, MB"][name].append(service.server.memory() / MIB)
                for push, body in pushes:
                    before = service.server.cpu_seconds()
                    service.push("bench", body)
                    found[push][name].append(service.server.cpu_seconds() - before)
    return found


def measure_starts(releases: Releases, dialect: str, pairs: int) -> Figures:
    """Seconds of its own CPU until a service on an empty, migrated database is ready."""
    found = _figures()
    with ExitStack() as stack:
        started = []
        for name, run in releases.items():
            database = stack.enter_context(run.databases.fresh(dialect))
            with run.serving(database) as service:  # migrates, and compiles what it imports
                started.append((name, run, database, service.token))
        for _ in range(pairs):
            for name, run, database, token in started:
                with run.serving(database, token) as service:
                    found["start, s"][name].append(service.server.own_cpu_seconds())
    return found


def _figures() -> Figures:
    return defaultdict(lambda: defaultdict(list))


def _reads(keys: Sequence[Key]) -> dict[str, list[Call]]:
    """The calls of each path that is read."""
    about = [
        {"dataSourceId": "entity-metadata", "kind": key.kind, "name": key.name} for key in keys
    ]
    facts = [tool_call("get-entity-facts", arguments) for arguments in about]
    return {
        "get-entity-facts, ms": [Call("POST", TOOLS, message) for message in facts],
        "by-name, ms": [Call("GET", by_name(key)) for key in keys],
        "list of 100, ms": [Call("GET", _LIST)],
        "by-query, 20 with their total, ms": [Call("GET", _PAGE)],
    }


def _pushes(entities: Sequence[Entity]) -> Iterator[tuple[str, bytes]]:
    body = catalog.body(entities)
    yield "push of new entities, s", body
    yield "push of what is stored, s", body
    yield "the same again, s", body
    changed = [
        entity | {"metadata": entity["metadata"] | {"title": "Changed"}} if n % 100 == 0 else entity
        for n, entity in enumerate(entities)
    ]
    yield "1 % changed, s", catalog.body(changed)


def _print(figures: Figures, dialect: str) -> None:
    for what, values in figures.items():
        before, now = values[_BEFORE], values[_NOW]
        ratio = median(b / a for a, b in zip(before, now, strict=True))
        print(
            f"{ratio:.2f}  {dialect}: {what}: {median(before):.3f}, now {median(now):.3f}",
            flush=True,
        )


def main() -> None:
    """Measure everything on both databases; a ratio is the median of those of the pairs."""
    parser = argparse.ArgumentParser(prog="python -m bench.releases", description=__doc__)
    parser.add_argument("folder", type=Path, help="checkout of the other release")
    parser.add_argument("pairs", type=int, nargs="?", default=PAIRS, help="%(default)s by default")
    options = parser.parse_args()
    other = options.folder.resolve() / ".venv" / "bin" / "factbook"
    if not other.exists():
        parser.error(f"{other} is missing: run `make setup` in {options.folder}")
    cores = Cores.available()
    os.sched_setaffinity(0, {cores.load})
    with ExitStack() as stack:
        releases = {
            name: stack.enter_context(Run.start(Options(entities=_ENTITIES), cores, command))
            for name, command in ((_BEFORE, other), (_NOW, COMMAND))
        }
        for dialect in DIALECTS:
            for measure in (measure_starts, measure_reads, measure_pushes):
                _print(measure(releases, dialect, options.pairs), dialect)


if __name__ == "__main__":
    main()
