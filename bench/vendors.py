"""Collecting from vendors that list everything: what 10,000 entities cost, and what 10 do.

The account is the same, with something for every one of the 10,000. It is the fake of the tests, in
a process of its own whose answers take LATENCY; a real worker asks it, on SQLite.

`python -m bench.vendors PORT VENDOR SIZE` is that process. `GET /counts` says what it was asked
since `POST /reset`, by kind.
"""

import sys
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import uvicorn
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from bench import catalog
from bench.databases import Database
from bench.findings import Findings
from bench.processes import Server, free_port, serving
from bench.run import Run
from bench.service import environment, settings
from bench.workers import Figures, Runs, worker
from factbook.clock import DAY, HOUR, MINUTE, now
from tests.fakes.datadog import FakeDatadog, Keys, Monitor, Objective
from tests.fakes.fake import Fake
from tests.fakes.pagerduty import FakePagerDuty, Incident, Key, Service

LATENCY: Final = 0.05
FEW: Final = 10

_ROOT = Path(__file__).parent.parent
_READY = b"GET /counts HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n"
_SECRET = "a_key_of_benchmarks"  # noqa: S105 - of a fake


class Vendor(NamedTuple):
    """A vendor's fake of a size, the annotations of an entity, and its table of the settings.

    The address goes into `base_url`.
    """

    fake: Callable[[int], Fake]
    annotations: Callable[[int], Mapping[str, str]]
    table: Mapping[str, str]


def _pagerduty(size: int) -> Fake:
    """Services, half of them with incidents."""
    moment = now()
    incidents = [
        Incident(_service(number), created, created + HOUR, created + MINUTE)
        for number in range(0, size, 2)
        for created in (moment - DAY, moment - 50 * DAY, moment - 200 * DAY)
    ]
    services = [
        Service(_service(number), "A service.", teams=("PTEAM01",), named=f"{number:05d}")
        for number in range(size)
    ]
    return FakePagerDuty(services, incidents, Key(_SECRET, limit=960), clock=now)


def _datadog(size: int) -> Fake:
    """A monitor and an objective for each of so many services."""
    tags = [(f"service:{_service(number)}", "env:prod") for number in range(size)]
    monitors = [Monitor(number, tag) for number, tag in enumerate(tags)]
    objectives = [Objective(f"o{number}", tag) for number, tag in enumerate(tags)]
    return FakeDatadog(monitors, objectives, Keys(_SECRET, _SECRET), clock=now)


def _service(number: int) -> str:
    return f"P{number:06d}"


VENDORS: Final = {
    "pagerduty": Vendor(
        _pagerduty,
        lambda number: {"pagerduty.com/service-id": _service(number)},
        {"API_KEY": _SECRET},
    ),
    "datadog": Vendor(
        _datadog,
        lambda number: {"datadoghq.com/service-name": _service(number)},
        {"API_KEY": _SECRET, "APPLICATION_KEY": _SECRET},
    ),
}


def vendors(run: Run) -> Findings:
    """For each vendor the requests, seconds and CPU of a run about all entities and about few."""
    findings = Findings()
    for name in VENDORS:
        with _host(run, name) as host:
            for number in range(run.options.large_rounds):
                few, many = (_measured(run, name, host, n) for n in (FEW, run.options.entities))
                for key, value in many.items():
                    findings.add(f"{name}-{key}", value, few=few[key])
                ratio = many["requests"] / few["requests"]
                findings.add(f"{name}-ratio", ratio, few=few["requests"], many=many["requests"])
                run.say(f"round {number + 1}: {name}: {FEW} {few}, all {many}")
    return findings


def _measured(run: Run, name: str, host: "_Host", count: int) -> dict[str, float]:
    """One run of a worker that waits with so many entities."""
    with _filled(run, name, count) as database:
        due = Runs(database, [name])
        due.defer()
        with worker(run.folder, _settings(database, name, host), run.cores.server) as process:
            host.reset()
            figures, cpu = _run(due, process, count)
    requests = sum(host.counts().values())
    if figures.calls != requests:
        raise RuntimeError(f"{figures.calls} calls were counted, {requests} came")
    return {"requests": requests, "seconds": figures.duration / 1000, "cpu": cpu}


def _run(due: Runs, process: Server, count: int) -> tuple[Figures, float]:
    before = process.cpu_seconds()
    due.begin()
    figures = due.figures()
    if (figures.covered, figures.failed) != (count, 0):
        raise RuntimeError(f"Not all of {count} entities are covered: {figures}")
    return figures, process.cpu_seconds() - before


@contextmanager
def _filled(run: Run, name: str, count: int) -> Iterator[Database]:
    """A database with so many entities, each with annotations of its own, and nobody at work."""
    entities = list(catalog.entities(count))
    for number, entity in enumerate(entities):
        entity["metadata"]["annotations"] = dict(VENDORS[name].annotations(number))
    with run.databases.fresh("sqlite") as database:
        with run.serving(database) as service:
            service.push("vendors", catalog.body(entities), added=count)
        yield database


def _settings(database: Database, name: str, host: "_Host") -> dict[str, str]:
    """The environment of a worker with this one vendor."""
    prefix = f"FACTBOOK_INTEGRATIONS__{name.upper()}__DEFAULT__"
    table = {**VENDORS[name].table, "BASE_URL": host.url}
    return (
        settings(database)
        | {"FACTBOOK_OUTGOING_NETWORKS": "127.0.0.0/8"}
        | {f"{prefix}{option}": value for option, value in table.items()}
    )


class _Host:
    """The process of a fake."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"

    def reset(self) -> None:
        """Count from nothing, with limits that are whole again."""
        request = urllib.request.Request(f"{self.url}/reset", method="POST")  # noqa: S310 - ours
        urllib.request.urlopen(request).close()  # noqa: S310

    def counts(self) -> dict[str, int]:
        """The requests since then, by kind."""
        with urllib.request.urlopen(f"{self.url}/counts") as answer:  # noqa: S310
            return msgspec.json.decode(answer.read(), type=dict[str, int])


@contextmanager
def _host(run: Run, name: str) -> Iterator[_Host]:
    """A fake with something for every entity, on the core of the load."""
    port = free_port()
    with serving(
        [sys.executable, "-m", "bench.vendors", str(port), name, str(run.options.entities)],
        port,
        core=run.cores.load,
        ready=_READY,
        folder=run.folder,
        environment=environment() | {"PYTHONPATH": str(_ROOT)},
    ):
        yield _Host(port)


def application(name: str, size: int) -> ASGIApp:
    """A fake that a reset makes anew."""
    fakes = [_slow(name, size)]

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        path = Request(scope, receive).url.path
        if path not in {"/counts", "/reset"}:
            await fakes[0](scope, receive, send)
            return
        if path == "/reset":
            fakes[0] = _slow(name, size)
        content = msgspec.json.encode(dict(fakes[0].requests))
        await Response(content)(scope, receive, send)

    return answer


def _slow(name: str, size: int) -> Fake:
    fake = VENDORS[name].fake(size)
    fake.seconds = LATENCY
    return fake


def main(port: str, name: str, size: str) -> None:
    app = application(name, int(size))
    uvicorn.run(app, port=int(port), lifespan="off", log_level="warning", access_log=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
