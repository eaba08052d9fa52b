"""Tool calls: what one costs beside two peers, and what the facts of all entities cost."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

import msgspec

from bench import driver, peer_process
from bench.databases import DIALECTS
from bench.findings import Findings
from bench.load import Call
from bench.processes import MIB, Server, on_core
from bench.run import Run
from bench.service import TOOLS, Client, Cost, Factbook, cost, tool_call

_SOURCE = "entity-metadata"
_CALLS = 20  # of get-all-entities-facts in a round: enough for the ticks of CPU time


class _Contender(NamedTuple):
    server: Server
    headers: dict[str, str]

    def cost(self, calls: list[Call], seconds: float, seed: int) -> Cost:
        """Of random calls, each answered with a result that is no error."""
        expect = '"isError":false'
        return cost(self.server, calls, seconds, self.headers, seed=seed, expect=expect)


def tool_calls(run: Run) -> Findings:
    """CPU of get-entity-facts for random entities, ours and the peers' in turns."""
    calls = [
        Call("POST", TOOLS, tool_call("get-entity-facts", _arguments(key.kind, key.name)))
        for key in run.keys
    ]
    findings = Findings()
    with ExitStack() as stack:
        contenders = {name: _ours(run.filled(name)) for name in DIALECTS}
        answer = _answer(run.filled("sqlite"), run)
        for name in ("sdk", "asgi"):
            contenders[name] = _Contender(
                stack.enter_context(_peer(run, name, answer, calls[0])),
                contenders["sqlite"].headers,
            )
        for number in run.rounds:
            costs = {}
            for name, contender in contenders.items():
                costs[name] = contender.cost(calls, run.options.seconds, number)
                run.say(f"round {number + 1}: get-entity-facts, {name}: {costs[name]}")
            _compare(findings, costs)
            bare, database = driver.facts_by_ref(run.keys), run.filled("postgresql").database
            floor = bare.cost(database, run.options.seconds, run.cores.server, seed=number)
            mine = costs["postgresql"].cpu
            findings.add("driver", mine / floor, ours_ms=mine, driver_ms=floor)
    return findings


def _compare(findings: Findings, costs: dict[str, Cost]) -> None:
    for ours, peer in (("sqlite", "sdk"), ("sqlite", "asgi"), ("postgresql", "sdk")):
        mine, theirs = costs[ours], costs[peer]
        findings.add(
            f"{ours}/{peer}",
            mine.cpu / theirs.cpu,
            ours_ms=mine.cpu,
            peer_ms=theirs.cpu,
            ours_per_second=mine.per_second,
            peer_per_second=theirs.per_second,
            load_busy=max(mine.busy, theirs.busy),
        )


def _ours(service: Factbook) -> _Contender:
    return _Contender(service.server, service.client.headers)


def _answer(service: Factbook, run: Run) -> bytes:
    """One of our answers, of middling length."""
    key = sorted(run.keys, key=lambda key: len(key.kind + key.name))[len(run.keys) // 2]
    return service.client.ask("get-entity-facts", **_arguments(key.kind, key.name))


def _arguments(kind: str, name: str) -> dict[str, str]:
    return {"dataSourceId": _SOURCE, "kind": kind, "name": name}


@contextmanager
def _peer(run: Run, name: str, answer: bytes, call: Call) -> Iterator[Server]:
    """A peer that answers this."""
    with peer_process.peer(run, name, answer, _request(call)) as server:
        found = Client(server.port, "").ask("get-entity-facts", dataSourceId=_SOURCE)
        run.say(f"{name} answers {len(found):,} bytes, we {len(answer):,}")
        yield server


def _request(call: Call) -> bytes:
    head = (
        f"POST {call.path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n"
        "accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n"
        f"content-length: {len(call.body)}\r\n\r\n"
    )
    return (head + call.body).encode()


def all_facts(run: Run) -> Findings:
    """CPU and memory of get-all-entities-facts, beside encoding the same bytes on the same core."""
    findings = Findings()
    for number in run.rounds:
        for dialect in DIALECTS:
            filled = run.filled(dialect)
            # A process of its own: what an earlier answer left allocated would hide a peak.
            with run.serving(filled.database, filled.token) as service:
                service.client.get("/readyz")
                mapped, before = service.server.mapped(), service.server.forget_peak()
                answer = _everything(service)
                extra = service.server.peak() - before
                mapped = service.server.mapped() - mapped
                spent = _cpu_of_calls(service)
            encoding = _cpu_of_encoding(answer, run.cores.server)
            findings.add(
                f"{dialect}-cpu", spent / encoding, ours_ms=1000 * spent, encode_ms=1000 * encoding
            )
            findings.add(
                f"{dialect}-memory",
                extra / len(answer),
                extra_MB=extra / MIB,
                mapped_MB=mapped / MIB,
                answer_MB=len(answer) / MIB,
            )
            run.say(f"round {number + 1}: get-all-entities-facts, {dialect}: {1000 * spent:.1f} ms")
    return findings


def _everything(service: Factbook) -> bytes:
    return service.client.ask("get-all-entities-facts", dataSourceId=_SOURCE, kind="*")


def _cpu_of_calls(service: Factbook) -> float:
    before = service.server.cpu_seconds()
    for _ in range(_CALLS):
        _everything(service)
    return (service.server.cpu_seconds() - before) / _CALLS


def _cpu_of_encoding(answer: bytes, core: int) -> float:
    """CPU seconds of encoding the decoded answer, its text a string already."""
    value = msgspec.json.decode(answer)
    with on_core(core):
        began = time.process_time()
        for _ in range(_CALLS):
            encoded = msgspec.json.encode(value)
        spent = (time.process_time() - began) / _CALLS
    assert encoded == answer, "not the same bytes"
    return spent
