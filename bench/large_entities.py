"""One entity with very many relations: what writes of it cost, and what others notice of them."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from bench.databases import DIALECTS
from bench.findings import Findings
from bench.load import Call, Load, Plan
from bench.run import Run
from bench.service import PUSH, Factbook

STEPS = {
    "post": "POST of an entity with n relations",
    "change": "change of one of them",
    "delete": "its end",
    "incoming": "PUT of n entities that point at one",
    "one-more": "POST of another that points at it",
}
_ENTITIES = f"{PUSH}/entities"
_LONGEST = 3_600.0
_PACE = 50.0  # looks at /healthz a second
_LIMITS = {"MAX_ENTITY_RELATIONS": "10000000", "MAX_ENTITY_VALUES": "10000000"}

_encode = msgspec.json.encode


def large_entities(run: Run) -> Findings:
    """CPU time for each relation at the largest number ÷ at a tenth of it, and the longest wait."""
    findings = Findings()
    counts = [run.options.entities // 10, run.options.entities, run.options.large]
    for dialect in DIALECTS:
        spent: dict[int, dict[str, float]] = {}
        waits: dict[int, float] = {}
        for count in counts:
            with (
                run.databases.fresh(dialect) as database,
                run.serving(database, further=_prefixed(_LIMITS)) as service,
            ):
                spent[count], waits[count] = _watched(run, service, dialect, count)
        named = {f"{count:,}_ms": wait for count, wait in waits.items()}
        findings.add(f"{dialect}-healthz", max(waits.values()), **named)
        for step in STEPS:
            _, tenth, most = (spent[count][step] for count in counts)
            ratio = most / tenth / (counts[2] / counts[1])
            context = {f"{count:,}_cpu_s": spent[count][step] for count in counts}
            findings.add(f"{dialect}-{step}", ratio, **context)
    return findings


def _prefixed(settings: dict[str, str]) -> dict[str, str]:
    return {f"FACTBOOK_{name}": text for name, text in settings.items()}


def _watched(
    run: Run, service: Factbook, dialect: str, count: int
) -> tuple[dict[str, float], float]:
    """The CPU seconds of each step, and the most milliseconds that /healthz waited meanwhile."""
    spent = {}
    plan = Plan(
        port=service.server.port, calls=[Call("GET", "/healthz")], seconds=_LONGEST, rate=_PACE
    )
    with Load(plan) as load:
        load.go()
        for name, work in _steps(service, count):
            before, began = service.server.cpu_seconds(), time.perf_counter()
            work()
            seconds = time.perf_counter() - began
            cpu = service.server.cpu_seconds() - before
            run.say(f"{dialect}, {count:,} relations: {name} {seconds:.2f} s, CPU {cpu:.2f} s")
            spent[name] = cpu
        load.stop()
        looked = load.result()
    run.say(f"{dialect}, {count:,} relations: /healthz waited {looked.most:.0f} ms at most")
    return spent, looked.most


def _steps(service: Factbook, count: int) -> Iterator[tuple[str, Callable[[], Any]]]:
    client = service.client
    targets = [f"component:default/target-{number:07d}" for number in range(count)]
    answer = b""

    def post() -> None:
        nonlocal answer
        answer = client.call("POST", _ENTITIES, _encode(_entity("large", dependsOn=targets)))

    yield "post", post
    targets[0] = "component:default/other"
    yield "change", post
    id_ = msgspec.json.decode(answer)["id"]
    yield "delete", lambda: client.call("DELETE", f"{_ENTITIES}/{id_}", b"")
    client.call("POST", _ENTITIES, _encode(_entity("library")))
    sources = [_pointing(f"source-{number}") for number in range(count)]
    yield "incoming", lambda: service.push("sources", _encode({"items": sources}), added=count)
    another = _encode(_pointing("another"))
    yield "one-more", lambda: client.call("POST", _ENTITIES, another)


def _pointing(name: str) -> dict[str, Any]:
    return _entity(name, dependsOn=["component:default/library"])


def _entity(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "backstage.io/v1alpha1",
        "kind": "Component",
        "metadata": {"name": name},
        "spec": {"type": "service", "lifecycle": "production", "owner": "team-a"} | spec,
    }
