"""Rollups and trends of a scorecard over a large catalog: a thousand groups, and a year of days.

Figures are CPU of a question, of this process and of the database together.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from functools import partial
from statistics import median

import msgspec

from bench.databases import DIALECTS, Database
from bench.findings import Findings
from bench.processes import cpu_seconds
from bench.run import Run
from factbook.checks import scorecard_figures
from factbook.checks.definitions import definition_versions, publications
from factbook.checks.definitions.definition_versions import scorecard_store as scorecards
from factbook.checks.results import level_store
from factbook.checks.results.level_store import LevelDeltas, LevelRow
from factbook.clock import DAY
from factbook.process import settle_memory
from factbook.storage import Transaction
from factbook.storage.database_url import open_database
from factbook.storage.migrations import migrate

NOW = 1_795_262_400_000
ENTITIES = 100_000
_GROUPS = 1_000
_SYSTEMS = 2_000
_DOMAINS = 20
_DAYS = 365
_TIMES = 20
_TODAY = NOW // DAY
_ACTOR = "user:default/bench"
_TOP = "group:default/g0"
_ROLLUPS = {"owner": "owner", "system": "system", "domain": "domain", "label": "label:tier"}
_CARD = {
    "id": "readiness",
    "title": "Readiness",
    "levels": ["bronze", "silver", "gold"],
    "entries": ["one"],
}
_ENTITY_COLUMNS = (
    *("id", "uid", "ref", "kind", "namespace", "name", "etag", "updated_by", "updated_at"),
    *("compliance", "head", "body", "relations"),
)
_REST = ("", "", 0, 0, "{", "", "[]")
_DAY_COLUMNS = ("scorecard_id", "owner", "day", "levels", "scored", "score")


def scorecards_of_all(run: Run) -> Findings:
    """The time of each question in this process, on both databases."""
    findings = Findings()
    for dialect in DIALECTS:
        with run.databases.fresh(dialect) as database:
            asyncio.run(_measure(run, database, findings))
    return findings


async def _measure(run: Run, address: Database, findings: Findings) -> None:
    database = await open_database(address.url, connections=4)
    await migrate(database, NOW)
    for work in (_define, _fill, _keep_days):
        await database.write(work)
    address.settle()
    given = await scorecard_figures.get_scorecard_in_effect(database, "readiness")
    first = _TODAY - _DAYS
    asked: dict[str, Callable[[], Awaitable[object]]] = {
        name: partial(scorecard_figures.roll_up_scorecard, database, given, by)
        for name, by in _ROLLUPS.items()
    }
    asked["trend"] = partial(scorecard_figures.read_trend, database, given, _TOP, first, NOW)
    settle_memory()
    for number in run.rounds:
        for name, ask in asked.items():
            times, before = [], _cpu(address)
            for _ in range(_TIMES):
                began = time.perf_counter()
                await ask()
                times.append(time.perf_counter() - began)
            spent, took = 1000 * (_cpu(address) - before) / _TIMES, 1000 * median(times)
            told = f"{took:.1f} ms, CPU {spent:.1f} ms"
            run.say(f"round {number + 1}: {name}, {address.dialect}: {told}")
            findings.add(f"{address.dialect}-{name}", spent, time_ms=took)
    await database.close()


def _cpu(address: Database) -> float:
    return time.process_time() + cpu_seconds(address.processes)


def _define(transaction: Transaction) -> None:
    """A scorecard in effect, groups in a tree of ten below each, and systems of domains."""
    columns = ("id", "draft", "version", "created_at", "created_by", "updated_at", "updated_by")
    transaction.insert("checks", columns, [("one", "{}", "0.0.0", 0, _ACTOR, 0, _ACTOR)])
    transaction.lock(publications.DEFINITIONS_LOCK)
    scorecards.put(transaction, _CARD, _ACTOR, NOW)
    scorecards.publish(transaction, "readiness", _ACTOR, NOW)
    definition_versions.put_grades_into_effect(transaction)
    names = [("group", f"g{n}") for n in range(_GROUPS)]
    names += [("system", f"s{n}") for n in range(_SYSTEMS)]
    rows = [
        (
            id_,
            f"u{id_}",
            f"{kind}:default/{name}",
            kind,
            "default",
            name,
            "",
            "",
            0,
            0,
            "{",
            "",
            "[]",
        )
        for id_, (kind, name) in enumerate(names, ENTITIES + 1)
    ]
    transaction.insert("entities", _ENTITY_COLUMNS, rows)
    groups = [
        (ENTITIES + 1 + n, "childOf", f"group:default/g{(n - 1) // 10}") for n in range(1, _GROUPS)
    ]
    systems = [
        (ENTITIES + 1 + _GROUPS + n, "partOf", f"domain:default/d{n % _DOMAINS}")
        for n in range(_SYSTEMS)
    ]
    transaction.insert("relations", ("source_id", "type", "target_ref"), groups + systems)


def _fill(transaction: Transaction) -> None:
    """Levels of every entity, counted, with a label of few values and one of its own."""
    chance, deltas, rows = random.Random(1), LevelDeltas(), list[LevelRow]()
    for id_ in range(1, ENTITIES + 1):
        system = chance.randrange(_SYSTEMS)
        owner = f"group:default/g{system % _GROUPS}"
        place = owner, f"system:default/s{system}", chance.choice(["component", "api"])
        labels = f'{{"app":"app{id_}","tier":"tier{id_ % 5}"}}'
        own = bytes((chance.randint(1, 4), 4, chance.randrange(101), 100))
        deltas.add(1, (*place, labels), own, 1, id_)
        # Beside those of nine other scorecards.
        rows.append(LevelRow(id_, *place, own * 10, labels))
    level_store.write_levels(transaction, rows, ())
    deltas.write(transaction)


def _keep_days(transaction: Transaction) -> None:
    """Figures of every group for each day of a year."""
    levels = msgspec.json.encode({"": 10, "bronze": 40, "silver": 30, "gold": 20}).decode()
    owners = ["*", *sorted(f"group:default/g{n}" for n in range(_GROUPS))]
    rows = [
        ("readiness", owner, day, levels, 100, 7_000 + day)
        for owner in owners
        for day in range(_TODAY - _DAYS, _TODAY)
    ]
    transaction.insert("scorecard_days", _DAY_COLUMNS, rows)
