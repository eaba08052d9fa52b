"""The largest input of everything whose work grows with it: what it costs, and who waits for it.

`ROUTES`, `IMPORTERS` and `COMMANDS` name all of them with their limits; tests compare the tables
with the product. The measure takes the worst inputs that were found: the memory beyond that of the
idle server, and how long a small write of somebody else waits meanwhile.
"""

import random
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec

from bench import catalog
from bench.databases import DIALECTS
from bench.findings import Findings
from bench.load import Call, Load, Plan
from bench.processes import MIB
from bench.run import Run
from bench.service import PUSH, Factbook

KIB: Final = 1024
PUSHED: Final = 128_000_000
_SOURCES: Final = "/api/tech-insights/v1"
_SETS: Final = "/api/catalog/factbook-entities"
_SCIM: Final = 16 * MIB

# The most bytes of a body by route; 0: it reads none, and its path and query are of 64 KiB.
ROUTES: Final[Mapping[str, int]] = {
    "POST /api/mcp/v1/tech-insights-facts": MIB,
    "POST /api/mcp/v1/tech-insights-checks": MIB,
    "POST /mcp": MIB,
    "POST /api/catalog/entities/by-query": MIB,
    "POST /api/catalog/entities/by-refs": 16 * MIB,
    "POST /api/catalog/entities/by-refs/": 16 * MIB,
    "DELETE /api/catalog/entities/by-uid/{uid}": 0,
    "POST /api/catalog/entity-facets": MIB,
    "POST /api/catalog/validate-entity": MIB,
    "POST /api/catalog/refresh": MIB,
    "POST /api/catalog/locations/by-query": MIB,
    "POST /api/catalog/locations": 0,
    "PUT /api/catalog/locations/{id}": 0,
    "DELETE /api/catalog/locations/{id}": 0,
    "POST /api/catalog/analyze-location": 0,
    f"POST {_SOURCES}/data-sources": 256 * KIB,
    f"PUT {_SOURCES}/data-sources/{{id}}": 256 * KIB,
    f"DELETE {_SOURCES}/data-sources/{{id}}": 0,
    f"POST {_SOURCES}/data-sources/{{id}}/publish": 16 * KIB,
    f"POST {_SOURCES}/data-sources/{{id}}/test": 512 * KIB,
    f"POST {_SOURCES}/data-sources/{{id}}/run": 16 * KIB,
    f"PUT {_SOURCES}/connections/{{name}}": 256 * KIB,
    f"DELETE {_SOURCES}/connections/{{name}}": 0,
    f"POST {_SOURCES}/facts/{{id}}": 8 * MIB,
    f"POST {_SOURCES}/checks/preview": 512 * KIB,
    f"POST {_SOURCES}/checks": 256 * KIB,
    f"PUT {_SOURCES}/checks/{{id}}": 256 * KIB,
    f"DELETE {_SOURCES}/checks/{{id}}": 0,
    f"POST {_SOURCES}/checks/{{id}}/publish": 0,
    f"POST {_SOURCES}/scorecards": 256 * KIB,
    f"PUT {_SOURCES}/scorecards/{{id}}": 256 * KIB,
    f"DELETE {_SOURCES}/scorecards/{{id}}": 0,
    f"POST {_SOURCES}/scorecards/{{id}}/publish": 0,
    f"POST {_SOURCES}/starter-scorecard": 0,
    f"POST {_SOURCES}/exemptions": 16 * KIB,
    f"POST {_SOURCES}/exemptions/{{id}}/approve": 16 * KIB,
    f"POST {_SOURCES}/exemptions/{{id}}/deny": 16 * KIB,
    f"POST {_SOURCES}/exemptions/{{id}}/revoke": 16 * KIB,
    f"POST {_SOURCES}/check-results/preview": 4 * MIB,
    f"POST {_SOURCES}/digests": 16 * KIB,
    f"PUT {_SOURCES}/digests/{{id}}": 16 * KIB,
    f"DELETE {_SOURCES}/digests/{{id}}": 0,
    f"POST {_SOURCES}/digests/{{id}}/test": 0,
    "POST /api/tech-insights/checks/run": 256 * KIB,
    "POST /api/tech-insights/checks/run/{namespace}/{kind}/{name}": 256 * KIB,
    "POST /api/access/v1/tokens": MIB,
    "DELETE /api/access/v1/tokens/{id}": 0,
    "POST /api/events/webhooks": 16 * KIB,
    "DELETE /api/events/webhooks/{id}": 0,
    "POST /api/events/webhooks/{id}/enable": 0,
    "POST /api/events/webhooks/{id}/test": 0,
    "POST /api/importers/v1/importers/{importer}/run": 0,
    "POST /api/importers/v1/importers/{importer}/events": 25_000_000,
    "POST /api/importers/v1/parts/{importer}/{part}/apply": 0,
    "POST /api/importers/v1/parts/{importer}/{part}/discard": 0,
    "POST /scim/v2/Users": _SCIM,
    "PUT /scim/v2/Users/{id}": _SCIM,
    "PATCH /scim/v2/Users/{id}": _SCIM,
    "DELETE /scim/v2/Users/{id}": 0,
    "POST /scim/v2/Groups": _SCIM,
    "PUT /scim/v2/Groups/{id}": _SCIM,
    "PATCH /scim/v2/Groups/{id}": _SCIM,
    "DELETE /scim/v2/Groups/{id}": 0,
    "POST /scim/v2/{rest:path}": 0,
    "PUT /scim/v2/{rest:path}": 0,
    "PATCH /scim/v2/{rest:path}": 0,
    "DELETE /scim/v2/{rest:path}": 0,
    "POST /oauth/token": 16 * KIB,
    "POST /oauth/revoke": 16 * KIB,
    "POST /oauth/register": 16 * KIB,
    f"PUT {_SETS}/sets/{{set_id}}": PUSHED,
    f"POST {_SETS}/sets/{{set_id}}": PUSHED,
    f"DELETE {_SETS}/sets/{{set_id}}": 0,
    f"POST {_SETS}/sets/{{set_id}}/revisions/{{number}}/restore": 0,
    f"PUT {_SETS}/sets/{{set_id:path}}": 0,
    f"POST {_SETS}/sets/{{set_id:path}}": 0,
    f"DELETE {_SETS}/sets/{{set_id:path}}": 0,
    f"POST {_SETS}/entities": PUSHED,
    f"DELETE {_SETS}/entities/{{uid}}": 0,
}
FORMS: Final = 512 * KIB

# The largest input of each kind of importer, beside `max_set_items` of a set. An answer of its host
# has 20 MiB and 2,000,000 values.
IMPORTERS: Final[Mapping[str, str]] = {
    "aws": "100,000 entities of a set",
    "catalog": "500,000 entities and 256 MiB",
    "gitea": "for each repository 1,000 files, 32 MiB, 500,000 values, 10,000,000 steps",
    "github": "for each repository 1,000 files, 32 MiB, 500,000 values, 10,000,000 steps",
    "gitlab": "for each repository 1,000 files, 32 MiB, 500,000 values, 10,000,000 steps",
    "kubernetes": "100,000 entities of a set",
    "ldif": "a file of 64 MiB and 500,000 lines",
}

# The largest input of each command that reads files or a database; the others take arguments.
COMMANDS: Final[Mapping[str, str]] = {
    "backup": "the database",
    "restore": "the backup",
    "migrate": "the database",
    "push": "files of this machine; a YAML document has 1,000,000 parts, the push what it may",
    "validate": "files of this machine; a YAML document has 1,000,000 parts",
    "push-facts": "values of this machine; the push has 8 MiB",
    "sources plan": "files of 256 KiB",
    "sources apply": "files of 256 KiB",
    "sources test": "a file of 256 KiB, and a recording of this machine",
    "checks plan": "files of 256 KiB",
    "checks apply": "files of 256 KiB",
    "checks test": "files of 256 KiB",
    "checks preview": "5,000 catalog files, each with the budget of a repository",
    "checks comment": "a report of this machine",
    "checks import": "a file of this machine",
    "import ldif": "a file of 64 MiB and 500,000 lines",
}


class Worst(NamedTuple):
    """An input that costs most: `many` entities of a push, or 0 for anything else."""

    key: str
    text: str
    many: bool = False


# Trials and previews are measured with the largest body that they take.
WORST: Final = (
    Worst("push", "push of a set of n entities", many=True),
    Worst("restore", "restore of its revision", many=True),
    Worst("numbers", "push of 128 MB of numbers, which is refused"),
    Worst("lists", "push of an entity of 16 MiB of empty lists, which is refused"),
    Worst("facts", "push of 8 MiB of facts"),
    Worst("by-refs", "10,000 long references"),
    Worst("validate", "validation of an entity of 1 MiB of lists"),
    Worst("scim", "a group of SCIM with 480,000 members, which is refused"),
    Worst("preview", "preview of a check with 100 patterns"),
    Worst("entity-preview", "preview of 500 entities"),
    Worst("tool", "a tool call of 1 MiB"),
    Worst("query", "a query of 1 MiB"),
    Worst("random", "bodies of random sizes and shapes at every route"),
)
FILES: Final = {
    "placeholders": "a catalog file with 30,000 placeholders",
    "patterns": "a catalog file with 2,000 patterns",
    "values": "catalog files of 500,000 values",
}

_WRITES: Final = 10.0  # small writes of somebody else, in a second
_LONGEST: Final = 3_600.0
_RESTED: Final = 200  # MB that a push, a restore or an import may take beside its entities
_TRIES: Final = 6  # random bodies of a route
# What a random body begins with, repeats and ends with.
_SHAPES: Final = (
    (b"[", b"0,", b"0]"),
    (b"[", b"[],", b"0]"),
    (b"[", b'"",', b"0]"),
    (b"[", b'{"a":[{}]},', b"{}]"),
    (b"[", b'"component:default/a",', b'""]'),
    (b'"', b"a", b'"'),
    (b'"', b"\\u0000", b'"'),
    (b'"', b"\xc3\xa9", b'"'),
    (b"", b'{"a":', b""),
    (b"", b"[", b""),
    (b"{", b'"a":0,', b'"b":0}'),
    (b"1", b"0", b""),
)
_MEMBERS: Final = (
    *(b"items", b"entities", b"entity", b"entityRefs", b"metadata", b"spec", b"name", b"facts"),
    *(b"query", b"filter", b"definition", b"rule", b"checks", b"params", b"arguments", b"schema"),
    *(b"members", b"Operations", b"schemas", b"emails", b"userName", b"permissions", b"url"),
)
_encode = msgspec.json.encode


def limits(run: Run) -> Findings:
    """Memory and the longest wait of another write for each of the worst inputs."""
    findings = Findings()
    for dialect in DIALECTS:
        with run.fresh(dialect) as service:
            for worst, work in _works(run, service):
                _measure(run, service, dialect, worst, work, findings)
    for name in FILES:
        megabytes, seconds = _reading(name)
        run.say(f"{name}: {megabytes:.0f} MB, CPU {seconds:.1f} s")
        findings.add(f"files-{name}", megabytes, cpu_s=seconds)
    return findings


def _measure(
    run: Run,
    service: Factbook,
    dialect: str,
    worst: Worst,
    work: Callable[[], int],
    findings: Findings,
) -> None:
    plan = Plan(
        port=service.server.port,
        calls=[Call("POST", f"{PUSH}/entities", _encode(_entity("small")).decode())],
        seconds=_LONGEST,
        headers=service.client.headers,
        # The service hangs up on those that are idle for long.
        connections=2,
        rate=_WRITES,
    )
    idle, before = service.server.forget_peak(), service.server.cpu_seconds()
    with Load(plan) as load:
        load.go()
        began = time.perf_counter()
        status = work()
        seconds = time.perf_counter() - began
        load.stop()
        waited = load.result().most
    spent = service.server.cpu_seconds() - before
    megabytes = max(service.server.peak() - idle, 0) / 1e6
    about = {"status": float(status), "cpu_s": spent, "seconds": seconds}
    run.say(f"{dialect}: {worst.text}: {status}, {megabytes:.0f} MB, waited {waited:.0f} ms")
    key, count = f"{dialect}-{worst.key}", run.options.large
    if worst.many:
        findings.add(f"{key}-lock", waited / count, ms=waited, **about)
        kilobytes = max(megabytes - _RESTED, 0) * 1e3 / count
        findings.add(f"{key}-memory", kilobytes, MB=megabytes, **about)
    else:
        findings.add(f"{key}-lock", waited / 1e3, **about)
        findings.add(f"{key}-memory", megabytes, **about)


def _works(run: Run, service: Factbook) -> Iterator[tuple[Worst, Callable[[], int]]]:
    """Each of the worst inputs with what sends it, and returns its status."""
    by_key = {worst.key: worst for worst in WORST}
    count = run.options.large
    items = list(catalog.entities(count, seed=2, prefix="large-"))
    yield (
        by_key["push"],
        partial(_status, service, "PUT", f"{_SETS}/sets/limits", catalog.body(items)),
    )
    service.client.put("limits", catalog.body(catalog.changed(items, 1.0)))
    restored = f"{_SETS}/sets/limits/revisions/1/restore"
    yield by_key["restore"], partial(_status, service, "POST", restored, b"")
    noted = [_entity(f"noted-{n}", note="a" * 900) for n in range(1_000)]
    service.client.put("noted", catalog.body(noted))
    source = {
        "id": "limits",
        "title": "Limits",
        "handlerDefinition": {"type": "push", "config": {"id": "limits"}},
        "schema": {"x": {"type": "string"}},
    }
    service.client.call("PUT", f"{_SOURCES}/data-sources/limits", _encode(source))
    service.client.call("POST", f"{_SOURCES}/data-sources/limits/publish", b"")
    for key, (method, path, made) in _BODIES.items():
        yield by_key[key], partial(_status, service, method, path, made())
    yield by_key["random"], partial(_attack, service)


def _attack(service: Factbook) -> int:
    """Send some random bodies to every route that takes one; returns the highest status."""
    chance = random.Random(34)
    highest = 0
    for route, most in ROUTES.items():
        method, _, path = route.partition(" ")
        for _ in range(_TRIES if most else 0):
            size = int(most ** chance.uniform(0.5, 1.0))
            body = _random_body(chance, size)
            highest = max(highest, _status(service, method, re.sub(r"{.*?}", "x", path), body))
    return highest


def _random_body(chance: random.Random, size: int) -> bytes:
    """A body of nearly this size: mostly valid JSON of one shape, in a member that routes read."""
    before, part, after = chance.choice(_SHAPES)
    if chance.random() < 0.2:
        part = _encode(_random_value(chance, 4)) + b","
        before, after = b"[", b"0]"
    if chance.random() < 0.8:
        member = chance.choice(_MEMBERS)
        before, after = b'{"%s":' % member + before, after + b"}"
    body = _filled(before, part, after, size)
    return body[: chance.randrange(size)] if chance.random() < 0.1 else body


def _random_value(chance: random.Random, depth: int) -> Any:
    if depth == 0 or chance.random() < 0.2:
        return chance.choice((None, True, -1, 1e300, "", "a" * 300, "\0\u202e", "x" * 9))
    values = [_random_value(chance, depth - 1) for _ in range(chance.randrange(5))]
    if chance.random() < 0.5:
        return values
    return {chance.choice(_MEMBERS).decode() + str(i): each for i, each in enumerate(values)}


def _status(service: Factbook, method: str, path: str, body: bytes) -> int:
    return service.client.status(method, path, body)


def _filled(before: bytes, part: bytes, after: bytes, size: int) -> bytes:
    """A body of nearly this size that repeats a part."""
    return before + part * ((size - len(before) - len(after)) // len(part)) + after


def _entity(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "backstage.io/v1alpha1",
        "kind": "Component",
        "metadata": {"name": name},
        "spec": {"type": "service", "lifecycle": "production", "owner": "team-a"} | spec,
    }


def _facts() -> list[dict[str, Any]]:
    """As many items as a call may have, with values of nearly 8 MiB together."""
    return [
        {"entity": f"component:default/noted-{number}", "facts": {"x": "x" * 8_000}}
        for number in range(1_000)
    ]


def _check() -> dict[str, Any]:
    """A check of a hundred patterns."""
    conditions = [
        {"source": "entity", "fact": "spec.note", "operator": "matches", "value": f"a.*b{number}"}
        for number in range(100)
    ]
    return {"id": "limits", "title": "Limits", "rule": {"all": conditions}}


_LISTS: Final = b'{"apiVersion":"v1","kind":"K","metadata":{"name":"lists"},"spec":{"x":['
_CALL: Final = (
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":'
    b'{"name":"get-entity-facts","arguments":{"x":['
)
_BODIES: Final[Mapping[str, tuple[str, str, Callable[[], bytes]]]] = {
    "numbers": (
        "PUT",
        f"{_SETS}/sets/hostile",
        lambda: _filled(b'{"items":[', b"1,", b"1]}", PUSHED),
    ),
    "lists": ("POST", f"{_SETS}/entities", lambda: _filled(_LISTS, b"[],", b"1]}}", 16 * MIB)),
    "facts": ("POST", f"{_SOURCES}/facts/limits", lambda: _encode({"items": _facts()})),
    "by-refs": (
        "POST",
        "/api/catalog/entities/by-refs",
        lambda: _encode({"entityRefs": [f"component:default/{n:0>200}" for n in range(10_000)]}),
    ),
    "validate": (
        "POST",
        "/api/catalog/validate-entity",
        lambda: _filled(b'{"location":"url:x","entity":' + _LISTS, b"[],", b"1]}}}", MIB),
    ),
    "scim": (
        "POST",
        "/scim/v2/Groups",
        lambda: _filled(
            b'{"displayName":"g","members":[',
            b'{"value":"aaaaaaaaaaaaaaaaaaaaaa"},',
            b"{}]}",
            _SCIM,
        ),
    ),
    # With the patterns and entities of a preview that took the longest.
    "preview": ("POST", f"{_SOURCES}/checks/preview", lambda: _encode({"definition": _check()})),
    "entity-preview": (
        "POST",
        f"{_SOURCES}/check-results/preview",
        lambda: _encode({"items": [_entity(f"e{n}", note="a" * 900) for n in range(500)]}),
    ),
    "tool": (
        "POST",
        "/api/mcp/v1/tech-insights-facts",
        lambda: _filled(_CALL, b"[],", b"1]}}}", MIB),
    ),
    "query": (
        "POST",
        "/api/catalog/entities/by-query",
        lambda: _filled(b'{"query":{"$any":[', b'{"kind":"a"},', b"{}]}}", MIB),
    ),
}


def _reading(name: str) -> tuple[float, float]:
    """The MB beyond those of the start, and the CPU seconds, of reading hostile catalog files."""
    command = [sys.executable, "-m", "bench.hostile_files", name]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(told[0]), float(told[1])
