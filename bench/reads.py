"""Reads of the catalog: what one costs, and whether it sees what another process has written."""

from bench import catalog, driver
from bench.databases import DIALECTS
from bench.driver import BareRead
from bench.findings import Findings
from bench.load import Call
from bench.run import Run, by_name
from bench.service import CATALOG, Client, Factbook

_WRITES = 25


def lists(run: Run) -> Findings:
    """CPU of a list of a hundred components."""
    call = Call("GET", f"{CATALOG}?filter=kind=component&limit=100")
    return _costs(run, "list", [call], driver.first_components(101))


def names(run: Run) -> Findings:
    """CPU of a random entity by its name."""
    calls = [Call("GET", by_name(key)) for key in run.keys]
    return _costs(run, "by-name", calls, driver.entities_by_ref(run.keys))


def _costs(run: Run, title: str, calls: list[Call], bare: BareRead) -> Findings:
    findings = Findings()
    for number in run.rounds:
        for dialect in DIALECTS:
            cost = run.filled(dialect).cost(calls, run.options.seconds, seed=number)
            run.say(f"round {number + 1}: {title}, {dialect}: {cost}")
            findings.add(dialect, cost.cpu, per_second=cost.per_second, load_busy=cost.busy)
        # After PostgreSQL, which is the last of them.
        database, core = run.filled("postgresql").database, run.cores.server
        floor = bare.cost(database, run.options.seconds, core, seed=number)
        findings.add("driver", cost.cpu / floor, ours_ms=cost.cpu, driver_ms=floor)
    return findings


def visibility(run: Run) -> Findings:
    """How many reads did not see what a second process on the same database had just answered."""
    findings = Findings()
    for dialect in DIALECTS:
        first = run.filled(dialect)
        with run.serving(first.database, first.token) as second:
            stale = sum(_is_stale(first, second, number) for number in range(_WRITES))
        findings.add(dialect, stale, writes=_WRITES)
        run.say(f"visibility, {dialect}: {stale} of {_WRITES} writes not seen at once")
    return findings


def _is_stale(first: Factbook, second: Factbook, number: int) -> bool:
    """Whether by-name or a tool call of the first misses a write of the second."""
    [entity] = catalog.entities(1, prefix="shared-")
    key = catalog.key(entity)
    title = f"Version {number}" if number % 2 else None
    if title:
        entity["metadata"]["title"] = title
    second.push("shared", catalog.body([entity]), **{"added" if not number else "updated": 1})
    shown = first.client.get(by_name(key))["metadata"].get("title")
    return bool(shown != title or _has_title(first.client, key.name) != bool(title))


def _has_title(client: Client, name: str) -> bool:
    answer = client.ask("get-entity-facts", dataSourceId="entity-metadata", name=name)
    return b'"hasTitle":true' in answer
