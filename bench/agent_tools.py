"""Tools about entities: a search of a large catalog by two conditions, and one entity whole."""

from collections.abc import Mapping
from typing import Any

from bench import catalog, facts_across
from bench.databases import DIALECTS
from bench.findings import Findings
from bench.load import Call
from bench.run import Run
from bench.service import TOOLS, Cost, Factbook, cost, tool_call

_TIMES = 40  # calls in a round: enough for the ticks of CPU time
_PROTECTED = {"fact": "protected", "operator": "equal", "value": False}
_OPEN = {"fact": "open", "operator": "greaterThan", "value": 200}
_SOURCE = {"source": "across"}

# By the key of the figure: arguments of find-entities.
ASKED: Mapping[str, dict[str, Any]] = {
    "catalog": {"owner": catalog.team(3), "lifecycle": "production"},
    "fact": {"kind": "component", "where": _SOURCE | _PROTECTED},
    "facts": {"where": {"all": [_SOURCE | _PROTECTED, _SOURCE | _OPEN]}},
    "owner-fact": {"owner": catalog.team(3), "where": _SOURCE | _PROTECTED},
}
_COUNTED = {"count": {"where": {"all": [_SOURCE | _PROTECTED, _SOURCE | _OPEN]}, "limit": 0}}


def agent_tools(run: Run) -> Findings:
    """CPU of the server for each question, and of get-entity beside get-entity-facts."""
    findings = Findings()
    for dialect in DIALECTS:
        service = run.large(dialect)
        facts_across.fill(run, service)
        service.database.settle()
        for number in run.rounds:
            for name, arguments in {**ASKED, **_COUNTED}.items():
                times = 2 if name in _COUNTED else _TIMES
                milliseconds = _cpu(service, arguments, times)
                run.say(f"round {number + 1}: find-entities, {name}, {dialect}: {milliseconds:.1f}")
                findings.add(f"{dialect}-{name}", milliseconds)
    for number in run.rounds:
        for dialect in DIALECTS:
            service = run.filled(dialect)
            whole = _cost(run, service, "get-entity", {}, number)
            facts = _cost(run, service, "get-entity-facts", _FACTS, number)
            run.say(f"round {number + 1}: get-entity, {dialect}: {whole}; facts: {facts}")
            findings.add(
                f"{dialect}-entity", whole.cpu / facts.cpu, entity_ms=whole.cpu, facts_ms=facts.cpu
            )
    return findings


_FACTS = {"dataSourceId": "entity-metadata"}


def _cpu(service: Factbook, arguments: dict[str, Any], times: int) -> float:
    """Milliseconds of CPU of the server for one call."""
    service.client.ask("find-entities", **arguments)
    before = service.server.cpu_seconds()
    for _ in range(times):
        service.client.ask("find-entities", **arguments)
    return 1000 * (service.server.cpu_seconds() - before) / times


def _cost(run: Run, service: Factbook, tool: str, more: dict[str, str], seed: int) -> Cost:
    calls = [
        Call("POST", TOOLS, tool_call(tool, {"kind": key.kind, "name": key.name} | more))
        for key in run.keys
    ]
    headers, expect = service.client.headers, '"isError":false'
    return cost(service.server, calls, run.options.seconds, headers, seed=seed, expect=expect)
