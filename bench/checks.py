"""Checks of a whole catalog: published all at once and one alone, previewed, and kept by writes.

Everything runs in this process: CPU time is that of it and of the database beside it. Five hundred
checks read ten sources, fifty checks each, with facts about every entity.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from bench import catalog
from bench.databases import DIALECTS, Database
from bench.findings import Findings
from bench.processes import cpu_seconds
from bench.run import Run
from factbook.catalog.sets import Annotator, PushRules, prepare_items
from factbook.catalog.store import stored_sets
from factbook.catalog.store.diff import Guards
from factbook.catalog.store.stored_sets import Actor
from factbook.checks.definitions.definition_versions import check_store
from factbook.checks.results import evaluator, incremental
from factbook.checks.rules.check_definition import parse_check
from factbook.checks.trials import preview_check
from factbook.facts import store
from factbook.facts.datasource import DataSource
from factbook.facts.freshness import Observation
from factbook.facts.schema import Fact
from factbook.storage import Transaction
from factbook.storage.database import ChecksPort
from factbook.storage.database_url import open_database
from factbook.storage.migrations import migrate

NOW = 1_795_262_400_000
CHECKS = 500
SOURCES = 10
_FACTS = 8
_SET = 10_000
_WHOLE = 100_000  # entities that the goals are about
_TURNS = 300  # writes with and without evaluation in one round
_BLOCK = 20  # writes in a turn of each
_ACTOR = "user:default/bench"
_RULES = PushRules(Annotator("factbook", "factbook"))
_NAMES = tuple(f"f{number}" for number in range(_FACTS))
_COLUMNS = ("source_id", "entity_id", "written_at", "facts", "reasons", "version", "kept")


def checks(run: Run) -> Findings:
    """Evaluation of a large catalog on both databases."""
    findings = Findings()
    for dialect in DIALECTS:
        with run.databases.fresh(dialect) as database:
            asyncio.run(_Checks(run, database, findings).measure())
    return findings


class _Checks:
    def __init__(self, run: Run, database: Database, findings: Findings) -> None:
        self._run = run
        self._address = database
        self._findings = findings
        self._chance = random.Random(1)
        self._sources = [_source(number) for number in range(SOURCES)]

    async def measure(self) -> None:
        """Fill a catalog, and measure in the order in which a catalog gets its checks."""
        self._database = await open_database(self._address.url, connections=4)
        await migrate(self._database, NOW)
        incremental.attach_evaluation(self._database, _clock)
        await self._fill()
        ids = [id_ for (id_,) in await self._database.all("SELECT id FROM entities ORDER BY id")]
        self._scale = _WHOLE / len(ids)
        for number in self._run.rounds:
            await self._without(ids, number)
        before = await self._bytes()
        await self._define(*(_check(number) for number in range(CHECKS)))
        _forget_peak()
        await self._scaled(
            "full", evaluator.finish_publications(self._database, _clock), peak=_peak
        )
        self._address.settle()
        grown = (await self._bytes() - before) / len(ids)
        self._note("store", grown / 1000)
        for number in self._run.rounds:
            await self._define(_check(number, least=30 + number))
            await self._scaled("published", self._in_effect())
            await evaluator.finish_publications(self._database, _clock)
            changed = parse_check(_check(CHECKS - 1, least=number))
            await self._scaled("preview", preview_check(self._database, changed, NOW, 20, "bench"))
            await self._facts(ids, number)
        await self._database.close()

    async def _without(self, ids: Sequence[int], number: int) -> None:
        """Writes with and without evaluation while there are no checks."""
        new = [_raw(one) for one in catalog.entities(_BLOCK, number, f"n{number}-")]
        items = prepare_items(new, "n", _RULES).items
        pushes = [
            partial(self._push, f"n{turn % _BLOCK}", items[turn % _BLOCK]) for turn in range(_TURNS)
        ]
        with_it, without = await self._blocks(pushes)
        self._note("push", 100 * (with_it / without - 1))
        rows = [partial(self._record, ids[turn : turn + 20], turn) for turn in range(_TURNS)]
        with_it, without = await self._blocks(rows)
        self._note("record", 100 * (with_it / without - 1))

    async def _facts(self, ids: Sequence[int], number: int) -> None:
        """Writes of facts on which fifty checks depend, one row at a time, and many."""
        await self._record(ids[:2_000], number)
        for name, size, turns in (("fact", 50, 40), ("fact-alone", 1, _TURNS)):
            writes = [
                partial(self._record, ids[turn * size : (turn + 1) * size], number)
                for turn in range(turns)
            ]
            with_it, without = await self._blocks(writes)
            self._note(name, 1000 * (with_it - without) / (size * len(writes)))

    async def _blocks(self, writes: Sequence[Callable[[], Awaitable[None]]]) -> tuple[float, float]:
        """The CPU of writes with evaluation, and of as many without, in turns."""
        port = self._database.remembered.of(ChecksPort)
        evaluation = port.evaluation
        spent = [0.0, 0.0]
        for start in range(0, len(writes), _BLOCK):
            for place in (0, 1) if start // _BLOCK % 2 else (1, 0):
                port.evaluation = None if place else evaluation
                began = self._cpu()
                for write in writes[start : start + _BLOCK]:
                    await write()
                spent[place] += self._cpu() - began
        port.evaluation = evaluation
        return spent[0], spent[1]

    async def _push(self, name: str, item: Any) -> None:
        actor = Actor(_ACTOR, NOW)
        changed = msgspec.structs.replace(item, etag=f"{self._chance.random()}")
        take = Guards(take=True)
        await stored_sets.replace_set(self._database, name, [changed], actor, take, kept=1)

    async def _record(self, ids: Sequence[int], turn: int) -> None:
        """Collect facts about entities, of which one differs from those before."""
        changed = _NAMES[self._chance.randrange(_FACTS)]
        values = {**dict.fromkeys(_NAMES, 60), "on": True, changed: self._chance.randrange(100)}
        seen = [Observation(id_, values) for id_ in ids]
        source = self._sources[0]

        def work(transaction: Transaction) -> None:
            store.record_facts(transaction, source, seen, NOW + turn)
            transaction.evaluate_checks()

        await self._database.write(work)

    async def _in_effect(self) -> None:
        pending = "SELECT 1 FROM checks WHERE pending_slot IS NOT NULL"
        while await self._database.one(pending):
            await evaluator.evaluate_pending(self._database, _clock)

    async def _define(self, *documents: dict[str, Any]) -> None:
        def work(transaction: Transaction) -> None:
            for one in documents:
                check_store.put(transaction, one, _ACTOR, NOW)
                check_store.publish(transaction, one["id"], _ACTOR, NOW)

        await self._database.write(work)

    async def _scaled(
        self, name: str, work: Awaitable[object], peak: Callable[[], float] | None = None
    ) -> None:
        """Note the CPU of some work, as for the number of entities that the goals are about."""
        began, start = self._cpu(), time.monotonic()
        await work
        spent = (self._cpu() - began) * self._scale
        self._note(name, spent, elapsed=time.monotonic() - start)
        if peak is not None:
            self._note(f"{name}-memory", peak())

    async def _fill(self) -> None:
        count = self._run.options.large
        everything = catalog.entities(count)
        for start in range(0, count, _SET):
            some = [_raw(one) for one, _ in zip(everything, range(_SET), strict=False)]
            push = prepare_items(some, f"set-{start}", _RULES)
            actor = Actor(_ACTOR, NOW)
            await stored_sets.replace_set(
                self._database, f"set-{start}", push.items, actor, Guards(), kept=1
            )
        ids = [id_ for (id_,) in await self._database.all("SELECT id FROM entities ORDER BY id")]
        for source in self._sources:
            rows = [
                (source.id, id_, NOW, _json(_values(self._chance)), "{}", "1.0.0", "{}")
                for id_ in ids
            ]
            await self._database.write(partial(_insert, rows=rows))
        self._address.settle()
        self._run.say(f"{self._address.dialect}: {len(ids):,} entities with {SOURCES} sources")

    async def _bytes(self) -> float:
        """The bytes of the database."""
        if self._address.dialect == "sqlite":
            pages = (
                "SELECT page_count - freelist_count FROM pragma_page_count, pragma_freelist_count"
            )
            [size] = await self._one(pages)
            [page] = await self._one("SELECT page_size FROM pragma_page_size")
            return float(size * page)
        tables = ("check_states", "check_counts", "check_changes", "checks", "check_versions")
        sizes = " + ".join(f"pg_total_relation_size('{name}')" for name in tables)
        [size] = await self._one(f"SELECT {sizes}")
        return float(size)

    async def _one(self, sql: str) -> Any:
        return await self._database.one(sql)

    def _cpu(self) -> float:
        return time.process_time() + cpu_seconds(self._address.processes)

    def _note(self, name: str, value: float, **context: float) -> None:
        self._findings.add(f"{self._address.dialect}-{name}", value, **context)
        self._run.say(f"{self._address.dialect}: {name}: {value:.3f}")


def _insert(transaction: Transaction, rows: list[tuple[Any, ...]]) -> None:
    transaction.insert("facts_latest", _COLUMNS, rows)


def _clock() -> int:
    return NOW


def _source(number: int) -> DataSource:
    facts = (*(Fact(name, "integer") for name in _NAMES), Fact("on", "boolean"))
    return DataSource(
        id=f"s{number}", title="Made up", version="1.0.0", cadence="0 * * * *", schema=facts
    )


def _check(number: int, least: int = 50) -> dict[str, Any]:
    source = f"s{number % SOURCES}"
    wanted = {"operator": "lessThan", "value": least + number % 40}
    return {
        "id": f"c{number:03}",
        "title": f"Check {number}",
        "appliesTo": {"kind": "component" if number % 5 else ["component", "api"]},
        "rule": {
            "all": [
                {"source": source, "fact": _NAMES[number // SOURCES % _FACTS], **wanted},
                {"source": source, "fact": "on", "operator": "equal", "value": True},
            ]
        },
    }


def _values(chance: random.Random) -> dict[str, object]:
    return {**{name: chance.randrange(100) for name in _NAMES}, "on": chance.random() < 0.7}


def _raw(entity: dict[str, Any]) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(entity))


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _forget_peak() -> None:
    """Have Linux forget the most memory that this process has had."""
    Path("/proc/self/clear_refs").write_text("5")


def _peak() -> float:
    """The most memory since then, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    [peak] = [line.split()[1] for line in lines if line.startswith("VmHWM")]
    return int(peak) / 1000
