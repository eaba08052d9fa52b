"""Pushes: the time until all entities are readable, and what a very large one does to others."""

import json
import threading
import time
from http.client import HTTPException
from typing import NamedTuple, Self

from bench import catalog
from bench.catalog import Entity
from bench.databases import DIALECTS
from bench.findings import Findings
from bench.load import Call, Load, Plan
from bench.processes import MIB, on_core
from bench.run import Run, by_name
from bench.service import PUSH, Client, Factbook

_CHANGED = 0.01
_READINGS = 5
_PACE = 100.0  # reads a second during a large push
_WRITE_EVERY = 0.2  # seconds between two small pushes meanwhile
_LONGEST = 600.0


def pushes(run: Run) -> Findings:
    """Seconds of a new set, of the same again and of a hundredth changed, on fresh databases."""
    items = run.entities
    other = catalog.changed(items, _CHANGED)
    other_body = catalog.body(other)
    different = sum(a is not b for a, b in zip(items, other, strict=True))
    findings = Findings()
    for number in run.rounds:
        unit = _json_seconds(run)
        for dialect in DIALECTS:
            with run.fresh(dialect) as service:
                pushes = (
                    ("new", run.body, items[-1], {"added": len(items)}),
                    ("same", run.body, items[-1], {"unchanged": len(items)}),
                    ("changed", other_body, other[0], {"updated": different}),
                )
                for what, body, shown, changes in pushes:
                    before = service.server.cpu_seconds()
                    seconds = _until_readable(service, body, len(items), shown, changes)
                    spent = service.server.cpu_seconds() - before
                    findings.add(f"{dialect}-{what}", seconds, cpu_s=spent, body_MB=len(body) / MIB)
                    findings.add(f"{dialect}-{what}-json", seconds / unit, json_s=unit)
                    run.say(f"round {number + 1}: push {what}, {dialect}: {seconds:.2f} s")
    return findings


def _json_seconds(run: Run) -> float:
    """Seconds in which the standard library reads the body, on the core of the servers."""
    with on_core(run.cores.server):
        began = time.perf_counter()
        for _ in range(_READINGS):
            json.loads(run.body)
        return (time.perf_counter() - began) / _READINGS


def _until_readable(
    service: Factbook, body: bytes, count: int, shown: Entity, changes: dict[str, int]
) -> float:
    """Seconds until the push is answered to its end, the count is right and an entity is shown."""
    began = time.perf_counter()
    service.push("bench", body, **changes)
    [found] = [s for s in service.client.get(f"{PUSH}/sets")["sets"] if s["id"] == "bench"]
    entity = service.client.get(by_name(catalog.key(shown)))
    seconds = time.perf_counter() - began
    assert found["itemCount"] == count, found
    assert entity["metadata"]["description"] == shown["metadata"]["description"], entity
    return seconds


def large_push(run: Run) -> Findings:
    """A set ten times as large on SQLite, while others read at a steady pace and write."""
    count = run.options.large
    items = list(catalog.entities(count, seed=2, prefix="large-"))
    push = _Push(catalog.body(items), count, items[-1])
    del items
    findings = Findings()
    for number in range(run.options.large_rounds):
        with run.fresh("sqlite") as service:
            service.push("standing", run.body, added=len(run.entities))
            _push_amid_others(run, service, push, findings)
        run.say(f"round {number + 1}: push of {count:,}: {findings['time'].values[-1]:.1f} s")
    return findings


class _Push(NamedTuple):
    body: bytes
    size: int
    last: Entity


def _push_amid_others(run: Run, service: Factbook, push: _Push, findings: Findings) -> None:
    plan = Plan(
        port=service.server.port,
        calls=[Call("GET", by_name(key)) for key in run.keys],
        seconds=_LONGEST,
        headers=service.client.headers,
        rate=_PACE,
    )
    writer = _Writer(service.another_client())
    with Load(plan) as load, writer:
        mapped, before = service.server.mapped(), service.server.forget_peak()
        load.go()
        added = {"added": push.size}
        seconds = _until_readable(service, push.body, push.size, push.last, added)
        extra = service.server.peak() - before
        mapped = service.server.mapped() - mapped
        load.stop()
        read = load.result()
    findings.add("time", seconds, body_MB=len(push.body) / MIB)
    findings.add("memory", extra / MIB, mapped_MB=mapped / MIB, before_MB=before / MIB)
    findings.add("p99", read.p99, reads=read.requests, p50_ms=read.p50, most_ms=read.most)
    findings.add(
        "failed",
        writer.failures + read.failures,
        writes=len(writer.seconds),
        slowest_s=max(writer.seconds, default=0.0),
    )


class _Writer(threading.Thread):
    """Pushes a small set over and over, until the end of the block."""

    def __init__(self, client: Client) -> None:
        super().__init__(name="writer", daemon=True)
        self.seconds: list[float] = []
        self.failures = 0
        self._client = client
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.wait(_WRITE_EVERY):
            prefix = f"version-{len(self.seconds)}-"
            body = catalog.body(list(catalog.entities(1, prefix=prefix)))
            try:
                answer = self._client.put("small", body)
            except (OSError, HTTPException):
                self.failures += 1
                self._client.close()
            else:
                self.failures += answer.status != 200
                self.seconds.append(answer.seconds)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self.join()
        self._client.close()
