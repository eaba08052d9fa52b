"""Collecting from GitHub: the requests, time and CPU of runs, and what a second worker brings."""

import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from bench import catalog, github
from bench.catalog import Entity
from bench.databases import DIALECTS, Database
from bench.findings import Findings
from bench.github import CREDENTIALS, LATENCY, OWNER, Counts
from bench.processes import Server, free_port, serving
from bench.run import Run
from bench.service import environment, settings
from bench.workers import Figures, Runs, worker

_ROOT = Path(__file__).parent.parent
_READY = b"GET /counts HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n"
# One repository in so many has a new commit before the third run.
_MOVED_EVERY = 20
_EACH = 180
# Two cores carry two workers, the database and GitHub only when answers take longer than LATENCY.
_LONGER = 0.2


def collection(run: Run) -> Findings:
    """What runs of one worker cost, and how much sooner two end."""
    findings = Findings()
    _alone(run, findings)
    _shared(run, findings)
    return findings


def _alone(run: Run, findings: Findings) -> None:
    """Three runs of one worker: of what it never saw, of the same again, and after some commits."""
    count = run.options.repositories
    with fake_github(run, count) as host:
        for number in range(run.options.large_rounds):
            for dialect in DIALECTS:
                with _filled(run, dialect, 1, count) as database:
                    _three_runs(run, findings, host, database, number)


def _three_runs(
    run: Run, findings: Findings, host: "Host", database: Database, number: int
) -> None:
    count = run.options.repositories
    due = Runs(database, ["github"])
    due.defer()
    given = _settings(database, host, 1)
    with worker(run.folder, given, run.cores.server) as process:
        for name in ("first", "warm", "moved"):
            if name == "moved":
                host.tell(f"commit?every={_MOVED_EVERY}")
            host.tell("reset")
            figures, cpu = _run(due, process, count)
            counts = host.counts()
            key = f"{database.dialect}-{name}"
            _note_costs(findings, key, figures, 1000 * cpu / count, counts)
            _note_calls(findings, key, counts, -(-count // _MOVED_EVERY))
            run.say(f"round {number + 1}: {key}: {figures}, {cpu:.2f} s, {counts}")


def _note_costs(findings: Findings, key: str, figures: Figures, cpu: float, counts: Counts) -> None:
    seconds, late = figures.duration / 1000, counts.late
    findings.add(f"{key}-cpu", cpu, seconds=seconds, late_answers=late, MB=counts.sent / 1e6)
    findings.add(f"{key}-time", seconds, calls=figures.calls)
    findings.add(f"{key}-graphql", counts.graphql)


def _note_calls(findings: Findings, key: str, counts: Counts, moved: int) -> None:
    if key.endswith("first"):
        findings.add(f"{key}-trees", counts.most_trees, trees=counts.tree)
        findings.add(f"{key}-probes", counts.most_probes, probes=counts.probes)
    elif key.endswith("warm"):
        findings.add(f"{key}-rest", counts.tree + counts.probes)
    else:
        rest = counts.tree + counts.probes
        findings.add(f"{key}-trees", rest / moved, trees=counts.tree, commits=moved)


def _run(due: Runs, process: Server, count: int) -> tuple[Figures, float]:
    before = process.cpu_seconds()
    due.begin()
    figures = due.figures()
    if (figures.covered, figures.failed) != (count, 0):
        raise RuntimeError(f"Not all of {count} repositories are covered: {figures}")
    return figures, process.cpu_seconds() - before


def _shared(run: Run, findings: Findings) -> None:
    """One worker and two, in turns, after a commit to every repository of twenty credentials."""
    sources = [f"github-c{number}" for number in range(CREDENTIALS)]
    with (
        fake_github(run, _EACH) as host,
        _filled(run, "postgresql", CREDENTIALS, _EACH) as database,
    ):
        due = Runs(database, sources)
        due.defer()
        _seconds(run, host, due, 2, LATENCY)
        for number in range(run.options.large_rounds):
            _compare(run, findings, host, due, "two-workers", _LONGER)
            if number == 0:
                _compare(run, findings, host, due, "two-workers-fast", LATENCY)


def _compare(
    run: Run, findings: Findings, host: "Host", due: Runs, key: str, latency: float
) -> None:
    one, two = (_seconds(run, host, due, workers, latency) for workers in (1, 2))
    findings.add(key, two / one, one_worker_s=one, two_workers_s=two)


def _seconds(run: Run, host: "Host", due: Runs, workers: int, latency: float) -> float:
    """How long so many workers take for all sources."""
    cores = run.cores.server, run.cores.load
    given = _settings(due.database, host, CREDENTIALS)
    host.tell("commit?every=1")
    due.database.settle()
    with ExitStack() as stack:
        processes = [stack.enter_context(worker(run.folder, given, *cores)) for _ in range(workers)]
        host.tell(f"reset?latency={latency}")
        before = [process.cpu_seconds() for process in processes]
        due.begin()
        figures = due.figures()
        spent = [p.cpu_seconds() - b for p, b in zip(processes, before, strict=True)]
    run.say(f"{workers} of {latency} s: {figures}, CPU {spent}, {host.counts()}")
    if (figures.covered, figures.failed) != (CREDENTIALS * _EACH, 0):
        raise RuntimeError(f"Not all repositories are covered: {figures}")
    return figures.duration / 1000


class Host:
    """The fake GitHub's process."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"

    def tell(self, what: str) -> None:
        """Post to it."""
        request = urllib.request.Request(f"{self.url}/{what}", method="POST")  # noqa: S310 - ours
        urllib.request.urlopen(request).close()  # noqa: S310

    def counts(self) -> Counts:
        """What it was asked since it was told to reset."""
        with urllib.request.urlopen(f"{self.url}/counts") as answer:  # noqa: S310
            return msgspec.json.decode(answer.read(), type=Counts)


@contextmanager
def fake_github(run: Run, count: int) -> Iterator[Host]:
    """A fake with so many repositories, on the core of the load."""
    port = free_port()
    run.say(f"a fake GitHub with {count:,} repositories")
    with serving(
        [sys.executable, "-m", "bench.github", str(port), str(count)],
        port,
        core=run.cores.load,
        ready=_READY,
        folder=run.folder,
        environment=environment() | {"PYTHONPATH": str(_ROOT)},
    ):
        yield Host(port)


@contextmanager
def _filled(run: Run, dialect: str, credentials: int, each: int) -> Iterator[Database]:
    """A database with an entity for every repository, and nobody who collects."""
    with run.databases.fresh(dialect) as database:
        with run.serving(database) as service:
            for number in range(credentials):
                items = repositories(_host_of(number, credentials), each, f"c{number}-")
                service.push(f"repositories-{number}", catalog.body(items), added=each)
        yield database


def repositories(host: str, count: int, prefix: str) -> list[Entity]:
    found = list(catalog.entities(count, prefix=prefix))
    for number, entity in enumerate(found):
        location = f"url:https://{host}/{OWNER}/{github.name_of(number)}/"
        entity["metadata"]["annotations"] = {"backstage.io/source-location": location}
    return found


def _host_of(number: int, credentials: int) -> str:
    return "github.com" if credentials == 1 else f"c{number}.github.test"


def _settings(database: Database, host: Host, credentials: int) -> dict[str, str]:
    """The environment of a worker with one GitHub for each credential."""
    tables: dict[str, Any] = {}
    for number in range(credentials):
        prefix = "INTEGRATIONS__GITHUB__" + ("DEFAULT" if credentials == 1 else f"C{number}")
        tables[f"FACTBOOK_{prefix}__HOST"] = _host_of(number, credentials)
        tables[f"FACTBOOK_{prefix}__API_URL"] = host.url
        tables[f"FACTBOOK_{prefix}__TOKEN"] = github.token_of(number)
    return settings(database) | {"FACTBOOK_OUTGOING_NETWORKS": "127.0.0.0/8"} | tables
