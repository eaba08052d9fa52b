"""Histories of two sizes, made by the database itself: what custom sources brought in 90 days.

Ten sources are about the same hundredth of the entities, the next ten about the next hundredth, so
that of an entity there is as much in a large database as in a small one.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, NamedTuple

import msgspec
import psycopg

from bench import catalog
from bench.databases import Database
from bench.run import Run
from bench.service import Factbook
from factbook.clock import DAY, now
from factbook.storage.database_url import sqlite_path

TOGETHER = 10  # sources about the same entities
PUSHED = "pushed"
_LIFETIME = 90 * DAY
_RUNS = 50
_EVERY_KEY = (
    "SELECT COUNT(*) FROM facts_history WHERE entity_id > 0",
    "SELECT COUNT(*) FROM facts_history WHERE source_id > ''",
)
_INDEXES = {
    "sqlite": "SELECT name, sql FROM sqlite_master WHERE tbl_name = 'facts_history' "
    "AND type = 'index' AND sql IS NOT NULL",
    "postgresql": "SELECT indexname, indexdef FROM pg_indexes "
    "WHERE tablename = 'facts_history' AND indexdef NOT LIKE '%UNIQUE%'",
}


class Size(NamedTuple):
    """How many sources, how many entities each is about, and rows of each entity and source."""

    sources: int
    each: int
    depth: int

    @property
    def rows(self) -> int:
        return self.sources * self.each * self.depth


def sizes(run: Run, dialect: str) -> dict[str, Size]:
    """The large size, which is smaller on SQLite, and a hundredth of it."""
    options = run.options
    rows = options.history // (10 if dialect == "sqlite" else 1)
    each = options.entities * TOGETHER // options.sources
    depth = max(1, rows // (options.sources * each))
    large = Size(options.sources, each, depth)
    return {"large": large, "small": large._replace(sources=max(TOGETHER, options.sources // 100))}


@contextmanager
def filled(run: Run, dialect: str, size: Size) -> Iterator[Factbook]:
    """A service on a database with a catalog and this history."""
    with run.databases.fresh(dialect) as database:
        with run.serving(database) as service:
            token = service.token
            service.push("organisation", catalog.body(catalog.organisation()))
            service.push("bench", run.body, added=len(run.entities))
        _fill(database, size)
        database.settle()
        with run.serving(database, token) as service:
            yield service


def source(number: int) -> str:
    """The id of a source."""
    return f"custom-{number:04d}"


def document(id_: str, *, pushed: bool = False) -> dict[str, Any]:
    """A source that is pushed, or collected on Sundays from the entities themselves."""
    names = ("deployments", "failures", "leadTime", "onCall")
    extract = {} if pushed else {"extract": {"jmespath": "metadata.name | length(@)"}}
    facts = {name: {"type": "integer", "description": f"Of {id_}.", **extract} for name in names}
    return {
        "id": id_,
        "title": f"Deliveries {id_}",
        "description": "How often a component is delivered, and how often that fails.",
        "lifecycle": {"timeToLive": {"days": 90}},
        "handlerDefinition": {"type": "push" if pushed else "entity", "config": {"id": id_}},
        "schema": facts,
        **({} if pushed else {"cadence": "30 4 * * sun"}),
    }


def execute(database: Database, *statements: str, rows: list[tuple[Any, ...]] | None = None) -> Any:
    """Run statements, or one for each of the rows; what the last one finds."""
    with closing(_connection(database)) as connection:
        cursor = connection.cursor()
        for sql in statements:
            if rows is None:
                cursor.execute(sql)
            else:
                cursor.executemany(_text(database, sql), rows)
        found = cursor.fetchall() if cursor.description else []
        connection.commit()
        return found


def warm(database: Database) -> None:
    """Read all history once, so that none of it has to come from the disk."""
    execute(database, "SELECT SUM(LENGTH(facts)) FROM facts_history")
    if database.dialect == "postgresql":
        execute(database, "SET enable_seqscan TO off", *_EVERY_KEY)


def _fill(database: Database, size: Size) -> None:
    moment = now()
    _define(database, size.sources, moment)
    indexes = execute(database, _INDEXES[database.dialect])
    execute(database, *(f"DROP INDEX {name}" for name, _ in indexes))
    step = _LIFETIME // size.depth
    apart = step // size.sources
    for group in range(size.sources // TOGETHER):
        first = group * TOGETHER
        given = {
            "first": source(first),
            "last": source(first + TOGETHER - 1),
            "lowest": group * size.each,
            "highest": (group + 1) * size.each - 1,
            "newest": moment - apart * first,
            "apart": apart,
            "step": step,
            "depth": size.depth,
        }
        execute(database, _HISTORY.format(**given))
    execute(database, _LATEST.format(oldest=moment - step))
    execute(database, *(sql for _, sql in indexes))
    found = execute(database, "SELECT COUNT(*) FROM facts_history WHERE source_id LIKE 'custom-%'")
    assert found == [(size.rows,)], found


def _define(database: Database, count: int, moment: int) -> None:
    documents = [document(source(number)) for number in range(count)]
    documents.append(document(PUSHED, pushed=True))
    rows = [
        (one["id"], msgspec.json.encode(one).decode(), moment, moment, moment) for one in documents
    ]
    execute(database, _DEFINE, rows=rows)
    ended = [
        (-(place * count + number + 1), source(number), *(moment - place * 7 * DAY,) * 3)
        for place in range(_RUNS)
        for number in range(count)
    ]
    execute(database, _RUN, rows=ended)
    execute(
        database,
        "UPDATE counters SET value = value + 1 WHERE name = 'data_source'",
        # No entity is new, so that none is collected at once.
        "UPDATE counters SET value = 1000000000 WHERE name = 'collected_event'",
    )


def _connection(database: Database) -> Any:
    if database.dialect == "sqlite":
        return sqlite3.connect(sqlite_path(database.url), timeout=30)
    connection = psycopg.connect(database.url)
    connection.execute("SET synchronous_commit TO off")
    return connection


def _text(database: Database, sql: str) -> str:
    return sql if database.dialect == "sqlite" else sql.replace("?", "%s")


_DEFINE = """
INSERT INTO data_sources (id, published, version, created_at, created_by, updated_at, updated_by,
    published_at, published_by)
VALUES (?, ?, '1.0.0', ?, 'user:default/bench', ?, 'user:default/bench', ?, 'user:default/bench')
"""

_RUN = """
INSERT INTO runs (id, source_id, whole, reason, started_at, deadline, finished_at, batches,
    entities, covered, failed, skipped, calls)
VALUES (?, ?, 1, 'cadence', ?, ?, ?, 0, 0, 0, 0, 0, 0)
"""

# Sources are collected one after another, and of one the entities.
_HISTORY = """
INSERT INTO facts_history (source_id, entity_id, written_at, facts, reasons, version)
WITH RECURSIVE times (n) AS (
    SELECT CAST(0 AS BIGINT) UNION ALL SELECT n + 1 FROM times WHERE n + 1 < {depth}
), numbered AS (
    SELECT id, ROW_NUMBER() OVER (ORDER BY substr(name, length(name) - 5)) - 1 AS n FROM entities
    WHERE kind NOT IN ('group', 'system')
), defined AS (
    SELECT id, ROW_NUMBER() OVER (ORDER BY id) AS n FROM data_sources
    WHERE id BETWEEN '{first}' AND '{last}'
)
SELECT s.id, e.id, {newest} - {step} * t.n - {apart} * s.n + 37 * (e.n - {lowest}),
    '{{"deployments":' || ((s.n * 7 + e.id * 3 + t.n) % 50) || ',"failures":' || ((e.id + t.n) % 7)
    || ',"leadTime":' || ((s.n * e.id + t.n) % 1000) || ',"onCall":' || (t.n % 2) || '}}',
    '{{}}', '1.0.0'
FROM defined s CROSS JOIN numbered e CROSS JOIN times t
WHERE e.n BETWEEN {lowest} AND {highest}
ORDER BY t.n DESC, s.id, e.id
"""

_LATEST = """
INSERT INTO facts_latest (source_id, entity_id, written_at, facts, reasons, version)
SELECT source_id, entity_id, written_at, facts, reasons, version FROM facts_history
WHERE written_at >= {oldest}
"""
