"""Many custom sources with a long history: reads, pushes while it is trimmed, an idle server."""

import math
import random
import time
from contextlib import ExitStack

import msgspec

from bench import catalog
from bench.databases import DIALECTS
from bench.findings import Findings
from bench.history_fixtures import PUSHED, TOGETHER, Size, execute, filled, sizes, source, warm
from bench.housekeeping import Sweeper, sweeper
from bench.load import Call, Load, Plan, Result
from bench.run import Run, by_name
from bench.service import TOOLS, Client, Factbook, tool_call

FACTS = "/api/tech-insights/v1/facts"
_CALLS = 2_000
_PAGE = 100
_PACE = 200.0  # reads a second while definitions are read
_BLOCKS = 2  # of pushes with and without trimming in one round
_MANY = 1_000
_SETTLED = 0.3  # seconds after trimming has begun


def history(run: Run) -> Findings:
    """Reads against those of a hundredth, pushes while history is trimmed, and the idle server."""
    findings = Findings()
    for dialect in DIALECTS:
        _on(run, dialect, findings)
    return findings


def _on(run: Run, dialect: str, findings: Findings) -> None:
    size = sizes(run, dialect)
    with ExitStack() as stack:
        large = stack.enter_context(filled(run, dialect, size["large"]))
        run.say(f"{dialect}: {size['large']}, {size['large'].rows:,} rows")
        _idle(run, dialect, large, findings)
        _reread(run, dialect, large, findings)
        small = stack.enter_context(filled(run, dialect, size["small"]))
        run.say(f"{dialect}: {size['small']}, {size['small'].rows:,} rows")
        warm(large.database)
        for number in run.rounds:
            for name in ("latest", "page", "source-page"):
                times = {
                    which: _time(run, service, _calls(run, size[which], name), number)
                    for which, service in (("small", small), ("large", large))
                }
                _note_reads(run, findings, f"{dialect}-{name}", times)
        core = run.cores.server
        trimming = stack.enter_context(sweeper(large.database, run.folder, core))
        for number in run.rounds:
            _pushes(run, dialect, _Pushes(run, large, number), trimming, findings)


def _idle(run: Run, dialect: str, service: Factbook, findings: Findings) -> None:
    """What a server costs that has nothing to do, with its database."""
    seconds = 2 * run.options.seconds
    time.sleep(min(seconds, 3.0))
    for _ in range(run.options.large_rounds):
        before = service.server.cpu_seconds()
        time.sleep(seconds)
        share = 100 * (service.server.cpu_seconds() - before) / seconds
        findings.add(f"{dialect}-idle", share, seconds=seconds)
        run.say(f"{dialect}: idle: {share:.2f} % of a core")


def _reread(run: Run, dialect: str, service: Factbook, findings: Findings) -> None:
    """The slowest read while a change of all definitions is taken in."""
    calls = [Call("GET", by_name(key)) for key in run.keys]
    for _ in range(run.options.large_rounds):
        plan = Plan(
            port=service.server.port,
            calls=calls,
            seconds=4.0,
            headers=service.client.headers,
            rate=_PACE,
        )
        with Load(plan) as load:
            load.go()
            time.sleep(1.0)
            execute(
                service.database,
                "UPDATE data_sources SET updated_at = updated_at + 1",
                "UPDATE counters SET value = value + 1 WHERE name = 'data_source'",
            )
            result = _good(load.result())
        findings.add(f"{dialect}-reread", result.most, reads=result.requests, p99_ms=result.p99)
        run.say(f"{dialect}: slowest read while all definitions are read: {result.most:.1f} ms")


def _calls(run: Run, size: Size, name: str) -> list[Call]:
    """Reads about random entities that have a history."""
    chance = random.Random(size.sources)
    calls = []
    for _ in range(_CALLS):
        number = chance.randrange(size.sources)
        key = run.keys[number // TOGETHER * size.each + chance.randrange(size.each)]
        id_, ref = source(number), f"{key.kind}:default/{key.name}"
        if name == "latest":
            given = {"dataSourceId": id_, "kind": key.kind, "name": key.name}
            calls.append(Call("POST", TOOLS, tool_call("get-entity-facts", given)))
        elif name == "page":
            calls.append(Call("GET", f"{FACTS}?entity={ref}&limit={_PAGE}"))
        else:
            calls.append(Call("GET", f"{FACTS}?entity={ref}&limit={_PAGE}&dataSourceIds={id_}"))
    return calls


def _time(run: Run, service: Factbook, calls: list[Call], number: int) -> Result:
    """What one connection waits for answers that hold facts."""
    plan = Plan(
        port=service.server.port,
        calls=calls,
        seconds=run.options.seconds / 2,
        headers=service.client.headers,
        expect='"deployments":',
        connections=1,
        seed=number,
    )
    with Load(plan) as load:
        load.go()
        return _good(load.result())


def _note_reads(run: Run, findings: Findings, key: str, times: dict[str, Result]) -> None:
    small, large = times["small"].p50, times["large"].p50
    findings.add(key, large / small, ms=large, small_ms=small, p99_ms=times["large"].p99)
    run.say(f"{key}: {large:.3f} ms, {small:.3f} ms of a hundredth")


def _good(result: Result) -> Result:
    if result.failures:
        raise RuntimeError(f"{result.failures} of {result.requests} requests failed.")
    return result


class _Pushes:
    """What is pushed in a round: each time something else."""

    def __init__(self, run: Run, service: Factbook, number: int) -> None:
        self._client: Client = service.client
        items = list(catalog.entities(min(_MANY, run.options.entities), prefix="pushed-"))
        self._sets = [catalog.body(catalog.changed(items, 0.1)), catalog.body(items)]
        self._refs = [f"{key.kind}:default/{key.name}" for key in run.keys[:_PAGE]]
        self._count = number * 1_000_000

    def small(self) -> float:
        """The seconds of one entity that changes."""
        self._count += 1
        [item] = catalog.entities(1, prefix="small-")
        item["metadata"]["title"] = f"Version {self._count}"
        return self._put("small", catalog.body([item]))

    def many(self) -> float:
        """The seconds of a thousand entities, of which a tenth change."""
        self._count += 1
        return self._put("many", self._sets[self._count % 2])

    def facts(self) -> float:
        """The seconds of facts about a hundred entities."""
        self._count += 1
        items = [{"entity": ref, "facts": {"deployments": self._count}} for ref in self._refs]
        return self._client.post(f"{FACTS}/{PUSHED}", msgspec.json.encode({"items": items}))

    def _put(self, set_id: str, body: bytes) -> float:
        answer = self._client.put(set_id, body)
        if answer.status != 200:
            raise RuntimeError(f"PUT: {answer.status}: {answer.head[:500]!r}")
        return answer.seconds


def _pushes(run: Run, dialect: str, pushes: _Pushes, trimming: Sweeper, findings: Findings) -> None:
    """Pushes with and without trimming, in turns."""
    pushes.many()
    kinds = {"small": (pushes.small, 60), "many": (pushes.many, 15), "facts": (pushes.facts, 40)}
    times: dict[tuple[str, bool], list[float]] = {}
    rounds = 0
    for block in range(_BLOCKS):
        for trimmed in (block % 2 == 0, block % 2 == 1):
            if trimmed:
                trimming.go()
                time.sleep(_SETTLED)
            for name, (push, count) in kinds.items():
                times.setdefault((name, trimmed), []).extend(push() for _ in range(count))
            if trimmed:
                rounds = trimming.rest()
    for name in kinds:
        with_, without = (1000 * _p95(times[name, trimmed]) for trimmed in (True, False))
        key = f"{dialect}-push-{name}"
        findings.add(key, with_ / without, with_ms=with_, without_ms=without, rounds=rounds)
        run.say(f"{key}: p95 {with_:.2f} ms, {without:.2f} ms without; {rounds} rounds of trimming")


def _p95(times: list[float]) -> float:
    return sorted(times)[math.ceil(0.95 * len(times)) - 1]
