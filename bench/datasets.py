"""Catalogs of several sizes on one PostgreSQL, filled once and kept for another run where told.

An organisation grows by whole units, each with 50 teams, 200 systems and one set of 10,000
entities that name them, so that what belongs together is as much in a large catalog as in a small
one. Ten data sources say five facts about every entity. What one of them says is pushed; the
others are copies of its rows, made by the database, because ten million items pushed would take
hours.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import psycopg

from bench import catalog
from bench.catalog import Entity
from bench.databases import Database
from bench.service import PUSH, Factbook

SOURCES = 10
UNIT = 10_000  # entities of a set
BATCH = 1_000  # items of one push of facts
_SOURCES = "/api/tech-insights/v1/data-sources"
_FACTS = "/api/tech-insights/v1/facts"
_FIRST_PUSH = "2026-01-01T00:00:00+00:00"


def source(number: int) -> str:
    """The id of a data source."""
    return f"deliveries-{number}"


def units(entities: int) -> range:
    """The units of an organisation with so many entities."""
    return range(-(-entities // UNIT))


def set_name(unit: int) -> str:
    """The set of a unit's entities."""
    return f"unit-{unit:03}"


def items(unit: int, entities: int) -> list[Entity]:
    """The entities of a unit, in an organisation with so many."""
    made = catalog.entities(_count(unit, entities), seed=unit + 1, prefix=f"u{unit:03}-")
    return [_of_unit(entity, unit) for entity in made]


def keys_of(unit: int, entities: int) -> list[catalog.Key]:
    """The keys of these entities."""
    return catalog.keys(_count(unit, entities), f"u{unit:03}-")


def _count(unit: int, entities: int) -> int:
    return min(UNIT, entities - unit * UNIT)


def fill(service: Factbook, entities: int) -> None:
    """Push what is not there yet; a catalog of which only a part was pushed is completed."""
    if _is_there(service.database, _COPIED, source(SOURCES - 1)):
        return
    there = {one["id"] for one in service.client.get(f"{PUSH}/sets")["sets"]}
    for unit in units(entities):
        if set_name(unit) not in there:
            service.push(f"{set_name(unit)}-organisation", catalog.body(_organisation(unit)))
            service.push(set_name(unit), catalog.body(items(unit, entities)))
    if not _is_there(service.database, _DEFINED, source(SOURCES - 1)):
        _define(service)
    for unit in units(entities):
        _push_facts(service, unit, entities)
    _copy_facts(service.database)


def warm(database: Database) -> None:
    """Read what reads need once, by indexes, so that little of it has to come from the disk."""
    with psycopg.connect(database.url, autocommit=True) as connection:
        connection.execute("SET enable_seqscan TO off")
        for statement in _READ:
            connection.execute(statement)


def facts_of(keys: Sequence[catalog.Key], turn: int, timestamp: str) -> bytes:
    """The body of a push of facts about these entities; other turns have other values."""
    pushed = [
        {
            "entity": f"{key.kind}:default/{key.name}",
            "timestamp": timestamp,
            "facts": _facts(place, turn),
        }
        for place, key in enumerate(keys)
    ]
    return msgspec.json.encode({"items": pushed})


def batches(keys: Sequence[catalog.Key]) -> Iterator[Sequence[catalog.Key]]:
    """The keys in portions of what one push of facts may hold."""
    return (keys[start : start + BATCH] for start in range(0, len(keys), BATCH))


def _facts(place: int, turn: int) -> dict[str, Any]:
    number = place * 7 + turn
    return {
        "deployments": number % 50,
        "failures": number % 7,
        "leadTime": round(number % 1_000 / 7, 2),
        "isOnCall": number % 3 == 0,
        "tier": ("gold", "silver", "bronze")[number % 3],
    }


def _of_unit(entity: Entity, unit: int) -> Entity:
    spec = entity["spec"]
    own = {name: f"u{unit:03}-{spec[name]}" for name in ("owner", "system") if name in spec}
    return entity | {"spec": spec | own}


def _organisation(unit: int) -> list[Entity]:
    return [
        _of_unit(one | {"metadata": one["metadata"] | {"name": name}}, unit)
        for one in catalog.organisation()
        for name in [f"u{unit:03}-{one['metadata']['name']}"]
    ]


def _define(service: Factbook) -> None:
    types = dict.fromkeys(("deployments", "failures"), "integer")
    types |= {"leadTime": "float", "isOnCall": "boolean", "tier": "string"}
    for number in range(SOURCES):
        id_ = source(number)
        document = {
            "id": id_,
            "title": f"Deliveries {number}",
            "description": "How often a component is delivered, and how often that fails.",
            "handlerDefinition": {"type": "push", "config": {"id": id_}},
            "lifecycle": {"timeToLive": {"days": 3650}},
            "schema": {name: {"type": type_} for name, type_ in types.items()},
        }
        service.client.call("PUT", f"{_SOURCES}/{id_}", msgspec.json.encode(document))
        service.client.call("POST", f"{_SOURCES}/{id_}/publish", b"{}")


def _push_facts(service: Factbook, unit: int, entities: int) -> None:
    keys = keys_of(unit, entities)
    last = f"{keys[-1].kind}:default/{keys[-1].name}"
    if _is_there(service.database, _STORED, source(0), last):
        return
    for batch in batches(keys):
        service.client.post(f"{_FACTS}/{source(0)}", facts_of(batch, unit, _FIRST_PUSH))


def _is_there(database: Database, sql: str, *values: str) -> bool:
    with psycopg.connect(database.url) as connection:
        return connection.execute(sql, values).fetchone() is not None


def _copy_facts(database: Database) -> None:
    """The rows of the first source once more for each of the others, a second later each."""
    with psycopg.connect(database.url, autocommit=True) as connection:
        connection.execute("SET synchronous_commit TO off")
        for table in ("facts_latest", "facts_history"):
            for number in range(1, SOURCES):
                values = {"source": source(number), "first": source(0), "later": 1000 * number}
                connection.execute(_COPY.format(table=table), values)


_DEFINED = "SELECT 1 FROM data_sources WHERE id = %s AND published IS NOT NULL"

_READ = (
    "SELECT SUM(LENGTH(etag)) FROM entities WHERE id > 0",
    "SELECT COUNT(*) FROM entities WHERE ref > ''",
    "SELECT COUNT(*) FROM entities WHERE uid > ''",
    "SELECT COUNT(*) FROM search WHERE key_id > 0",
    "SELECT SUM(written_at) FROM facts_latest WHERE source_id > ''",
    "SELECT COUNT(*) FROM facts_latest WHERE entity_id > 0",
)

# The last that is made.
_COPIED = "SELECT 1 FROM facts_history WHERE source_id = %s LIMIT 1"

_STORED = """
SELECT 1 FROM facts_latest l JOIN entities e ON e.id = l.entity_id
WHERE l.source_id = %s AND e.ref = %s
"""

_COPY = """
INSERT INTO {table} (source_id, entity_id, written_at, facts, reasons, version)
SELECT %(source)s, entity_id, written_at + %(later)s, facts, reasons, version FROM {table}
WHERE source_id = %(first)s
    AND NOT EXISTS (SELECT 1 FROM {table} WHERE source_id = %(source)s LIMIT 1)
ORDER BY entity_id
"""
