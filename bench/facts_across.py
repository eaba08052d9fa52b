"""One fact of all entities of a large catalog: its distribution, and pages by value.

Each question is counted anew, but for those that a server keeps for a minute.
"""

import random
import time
from collections.abc import Callable
from functools import partial
from statistics import median

import msgspec

from bench import catalog
from bench.databases import DIALECTS
from bench.findings import Findings
from bench.person import signed_in
from bench.run import Run
from bench.service import Factbook

SOURCE = "across"
_API = "/api/tech-insights/v1"
_FACTS = f"{_API}/facts/{SOURCE}"
_AT_ONCE = 1_000
_TIMES = 5
_SCHEMA = {
    "protected": {"type": "boolean"},
    "open": {"type": "integer"},
    "score": {"type": "float", "unit": "percent"},
    "language": {"type": "string"},
    **{f"codeReview.figure{number}": {"type": "integer"} for number in range(10)},
}
_LANGUAGES = ("python", "go", "java", "rust", "kotlin")
_ASKED = {
    "boolean": f"{_FACTS}/distribution?fact=protected&ends=0",
    "integer": f"{_FACTS}/distribution?fact=open&ends=0",
    "float": f"{_FACTS}/distribution?fact=score&ends=0",
    "owner": f"{_FACTS}/distribution?fact=protected&by=owner&ends=0",
    "page": f"{_FACTS}/values?fact=score&limit=100",
    "page-by-value": f"{_FACTS}/values?fact=score&sort=value&limit=100",
}


_KEPT = {
    "kept": f"{_FACTS}/distribution?fact=score&by=owner",
    "kept-page-by-value": f"{_FACTS}/values?fact=score&sort=value&limit=100",
}
_PAGE = f"/data-sources/{SOURCE}/facts/score?sort=value"


def facts_across(run: Run) -> Findings:
    """The time of each question, one after the other, with the CPU of the server's process."""
    findings = Findings()
    for dialect in DIALECTS:
        service = run.large(dialect)
        fill(run, service)
        service.database.settle()
        person, get = signed_in(run, service), service.client.get
        for number in run.rounds:
            asked: dict[str, Callable[[], object]] = {
                **{name: partial(get, path, fresh=True) for name, path in _ASKED.items()},
                **{name: partial(get, path) for name, path in _KEPT.items()},
                "web-page": partial(person.open, _PAGE),
            }
            for name, ask in asked.items():
                person.close()  # a server hangs up on who asks nothing for long
                if name not in _ASKED:
                    ask()
                milliseconds, cpu = _time(service, ask)
                told = f"{milliseconds:.0f} ms, CPU {cpu:.0f} ms"
                run.say(f"round {number + 1}: {name}, {dialect}: {told}")
                findings.add(f"{dialect}-{name}", milliseconds, cpu_ms=cpu)
    return findings


def _time(service: Factbook, ask: Callable[[], object]) -> tuple[float, float]:
    times = []
    before = service.server.cpu_seconds()
    for _ in range(_TIMES):
        began = time.perf_counter()
        ask()
        times.append(time.perf_counter() - began)
    spent = service.server.cpu_seconds() - before
    return 1000 * median(times), 1000 * spent / _TIMES


def fill(run: Run, service: Factbook) -> None:
    """Push facts about nine of ten entities."""
    document = {
        "id": SOURCE,
        "title": "Across",
        "handlerDefinition": {"type": "push", "config": {"id": SOURCE}},
        "entityFilter": [{"kind": ["component", "api", "resource"]}],
        "schema": _SCHEMA,
    }
    body = msgspec.json.encode(document)
    service.client.call("PUT", f"{_API}/data-sources/{SOURCE}", body)
    service.client.post(f"{_API}/data-sources/{SOURCE}/publish", b"{}")
    chance = random.Random(1)
    keys = [key for key in catalog.keys(run.options.large) if chance.random() < 0.9]
    for start in range(0, len(keys), _AT_ONCE):
        items = [
            {"entity": f"{key.kind}:default/{key.name}", "facts": _facts(chance)}
            for key in keys[start : start + _AT_ONCE]
        ]
        service.client.post(_FACTS, msgspec.json.encode({"items": items}))


def _facts(chance: random.Random) -> dict[str, object]:
    figures = {name: chance.randrange(400) for name in _SCHEMA}
    return figures | {
        "protected": chance.random() < 0.7,
        "score": round(100 * chance.random(), 6),
        "language": chance.choice(_LANGUAGES),
    }
