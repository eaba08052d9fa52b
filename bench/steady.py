"""Long load: whether half an hour at 70 % of the most changes anything, and what too much does."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from bench import catalog, github, mixture
from bench.collection import Host, fake_github, repositories
from bench.databases import DIALECTS
from bench.findings import Findings
from bench.line_charts import Axis, lines
from bench.load import Call, Load, Plan, Result
from bench.processes import MIB
from bench.run import Run
from bench.service import Client, Factbook, factbook

_SHARE = 0.7
# Seconds. With a run in each, GitHub would be asked half of what it allows in an hour.
_WINDOW = 60.0
_MOST_SECONDS = 10.0
_CONNECTIONS = 64
_REPOSITORIES = 500
# Not github.com, where the rest of the catalog is said to have its code.
_HOST = "github.test"
_GITHUB = "/api/tech-insights/v1/data-sources/github"
_TIMES_MOST = 5
_OVERLOADED = 20.0  # seconds
_MANY_CONNECTIONS = 16_000
_AFTER = 3.0


class Window(msgspec.Struct, frozen=True):
    """One stretch of the load: how the requests fared, and the server's memory at its end."""

    seconds: float  # since the beginning
    p50: float
    p99: float
    failures: int
    requests: int
    megabytes: float


def steady(run: Run) -> Findings:
    """Windows of open load at 70 % of what the closed one reached, while facts are collected."""
    findings = Findings()
    for dialect in DIALECTS:
        with _service(run, dialect) as (service, calls):
            most = _most(run, service, calls)
            collecting = _Collecting(service.another_client())
            windows = _windows(run, service, calls, _SHARE * most, collecting)
            _note(findings, dialect, windows, most, collecting)
            if run.options.pictures:
                _draw(windows, run.options.pictures, dialect)
    return findings


def overload(run: Run) -> Findings:
    """Five times what the closed load reached, on very many connections, and right after it."""
    findings = Findings()
    for dialect in DIALECTS:
        with _service(run, dialect) as (service, calls):
            for _ in range(run.options.large_rounds):
                most = _most(run, service, calls)
                before = _load(service, calls, _AFTER, 0.3 * most)
                over = _load(service, calls, _OVERLOADED, _TIMES_MOST * most, _MANY_CONNECTIONS)
                after = _load(service, calls, _AFTER, 0.3 * most)
                run.say(f"{dialect}: most {most:,.0f}/s; {over}; after it {after}")
                _note_overload(findings, dialect, most, (before, over, after))
    return findings


def _note_overload(
    findings: Findings, dialect: str, most: float, results: tuple[Result, Result, Result]
) -> None:
    before, over, after = results
    good = over.statuses.get(200, 0)
    shed = sum(over.statuses.get(status, 0) for status in (429, 503))
    findings.add(f"{dialect}-other", over.requests - good - shed, answered=good, shed=shed)
    findings.add(
        f"{dialect}-lost", 1 - good / over.seconds / most, good_s=good / over.seconds, most_s=most
    )
    findings.add(f"{dialect}-p99", over.good_p99 / 1000, offered=_TIMES_MOST * most)
    findings.add(f"{dialect}-after", after.failures)
    findings.add(f"{dialect}-recovered", after.p99, before_ms=before.p99)


def _note(
    findings: Findings,
    dialect: str,
    windows: list[Window],
    most: float,
    collecting: "_Collecting",
) -> None:
    ended, missed = collecting.figures()
    third = max(len(windows) // 3, 1)
    first, last = windows[:third], windows[-third:]
    p99s = [median(window.p99 for window in part) for part in (first, last)]
    memory = [median(window.megabytes for window in part) for part in (first, last)]
    findings.add(
        f"{dialect}-failed",
        sum(window.failures for window in windows) + missed,
        requests=sum(window.requests for window in windows),
        runs=ended,
        most_s=most,
    )
    findings.add(f"{dialect}-p99", p99s[1] / p99s[0], first_ms=p99s[0], last_ms=p99s[1])
    findings.add(f"{dialect}-memory", memory[1] / memory[0], first_MB=memory[0], last_MB=memory[1])


def _draw(windows: list[Window], folder: Path, dialect: str) -> None:
    across = Axis("minutes")
    minutes = [window.seconds / 60 for window in windows]
    series = {
        "times": {"p50": [w.p50 for w in windows], "p99": [w.p99 for w in windows]},
        "memory": {"memory": [w.megabytes for w in windows]},
    }
    for name, up in (("times", Axis("ms")), ("memory", Axis("MB"))):
        drawn = {line: list(zip(minutes, ys, strict=True)) for line, ys in series[name].items()}
        text = lines(f"Steady load at 70 %, {dialect}", drawn, across, up)
        (folder / f"steady-{name}-{dialect}.svg").write_text(text, "utf-8")


def _windows(
    run: Run, service: Factbook, calls: list[Call], rate: float, collecting: "_Collecting"
) -> list[Window]:
    """What windows of load find, one after another, for as long as the options say."""
    windows: list[Window] = []
    began = time.monotonic()
    while time.monotonic() - began < 60 * run.options.minutes:
        collecting.begin()
        result = _load(service, calls, _WINDOW, rate, seed=len(windows))
        window = Window(
            time.monotonic() - began,
            result.p50,
            result.p99,
            result.failures,
            result.requests,
            service.server.memory() / MIB,
        )
        windows.append(window)
        run.say(f"{service.database.dialect}, {rate:,.0f}/s: {window}")
    return windows


def _most(run: Run, service: Factbook, calls: list[Call]) -> float:
    """The requests a second of the closed load."""
    seconds = min(_MOST_SECONDS, 4 * run.options.seconds)
    result = _load(service, calls, seconds, None)
    if result.failures:
        raise RuntimeError(f"{result.failures} of {result.requests} requests failed.")
    return result.per_second


def _load(
    service: Factbook,
    calls: list[Call],
    seconds: float,
    rate: float | None,
    connections: int = _CONNECTIONS,
    seed: int = 1,
) -> Result:
    plan = Plan(
        port=service.server.port,
        calls=calls,
        seconds=seconds,
        headers=service.client.headers,
        connections=connections,
        rate=rate,
        abandon=connections == _MANY_CONNECTIONS,
        seed=seed,
    )
    with Load(plan) as load:
        load.go()
        return load.result()


@contextmanager
def _service(run: Run, dialect: str) -> Iterator[tuple[Factbook, list[Call]]]:
    """A service with the catalog and a fake GitHub for some of it, and what it is asked."""
    with ExitStack() as stack:
        host = stack.enter_context(fake_github(run, _REPOSITORIES))
        database = stack.enter_context(run.databases.fresh(dialect))
        service = stack.enter_context(
            factbook(database, run.folder, run.cores.server, further=_collected(host))
        )
        service.push("organisation", catalog.body(catalog.organisation()))
        service.push("bench", run.body, added=len(run.entities))
        items = repositories(_HOST, _REPOSITORIES, "repo-")
        service.push("repositories", catalog.body(items), added=_REPOSITORIES)
        database.settle()
        yield service, mixture.calls(run.keys, run.entities)


def _collected(host: Host) -> dict[str, str]:
    prefix = "FACTBOOK_INTEGRATIONS__GITHUB__DEFAULT"
    return {
        "FACTBOOK_OUTGOING_NETWORKS": "127.0.0.0/8",
        f"{prefix}__HOST": _HOST,
        f"{prefix}__API_URL": host.url,
        f"{prefix}__TOKEN": github.token_of(0),
    }


class _Collecting:
    """Runs of everything: each begins with a window, once the one before has ended."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def begin(self) -> None:
        """Begin a run unless one is under way."""
        if all(run["state"] != "running" for run in self._runs()):
            self._client.post(f"{_GITHUB}/run", b"{}")

    def figures(self) -> tuple[int, int]:
        """How many of the last runs have ended, and how many entities they failed to cover."""
        runs = [run for run in self._runs() if run["state"] != "running" and run["entities"]]
        missed = sum(run["failed"] + max(0, _REPOSITORIES - run["covered"]) for run in runs)
        return len(runs), missed

    def _runs(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._client.get(f"{_GITHUB}/runs")["runs"]
        return found
