"""The migrations: numbered SQL files, applied in order, each once, under a lock.

To change the schema, add the next file; a released file is never edited. A file only expands the
schema, so the previous release keeps working during a rolling update. A file that removes something
states on a line of its own since which migration the removed part is unused:

    -- Works from: 0012

From then on, a process that does not know that migration refuses the database: it does not start;
if it is already serving, `/readyz` reports the problem and its worker ends; `factbook worker` ends.
Both happen within seconds; requests are served as long as they are routed to the process.

Indexes on existing tables are created by `CREATE INDEX CONCURRENTLY`, in a file that holds nothing
else, so PostgreSQL doesn't block writes.

The actual schema of a database is a text for each column, index, trigger and function; equal
schemas have equal texts on both databases, except for triggers and functions. It is compared with
the one that this release expects: the result of the migrations on an empty SQLite database in
memory.
"""

import asyncio
import hashlib
import json
import re
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

import structlog

from factbook import __version__
from factbook.errors import OutdatedError, UnavailableError
from factbook.storage.database import (
    Database,
    Dialect,
    Row,
    Transaction,
    builds_concurrently,
    render_drop_index,
    translate_for_transaction,
    translate_schema,
)
from factbook.storage.partitions import (
    LAYOUT_LOCK,
    LOCK_TIMEOUT,
    is_lock_error,
    list_index_statements,
)

# Keyed by kind and name, such as `column entities.ref`: `SORTED_TEXT NOT NULL`.
Schema = Mapping[str, str]

# Has a row for each migration; created by the code that applies them.
_RECORD_TABLE: Final = "schema_migrations"
_TYPES: Final = {"bigint": "INTEGER", "bytea": "BLOB", "text": "TEXT"}


async def introspect_schema(database: Database) -> Schema:
    """All schema objects of the database that migrations create."""
    columns, unique, indexes, triggers, functions = [
        await database.all(sql) if sql else [] for sql in _CATALOG_QUERIES[database.dialect]
    ]
    return describe_schema(columns, unique, indexes, triggers, functions)


def describe_schema(
    columns: Iterable[Row],
    unique: Iterable[Row],
    indexes: Iterable[Row],
    triggers: Iterable[Row],
    functions: Iterable[Row],
) -> Schema:
    """The texts for rows returned by the catalog queries."""
    found = {f"column {table}.{name}": _describe_column(*row) for table, name, *row in columns}
    found |= {f"unique {table} ({names})": "" for table, names in unique}
    found |= {f"index {name}": normalize_index(text) for name, text in indexes}
    found |= {f"trigger {name}": collapse_spaces(text) for name, text in triggers}
    found |= {f"function {name}": collapse_spaces(text) for name, text in functions}
    return {name: text for name, text in found.items() if f" {_RECORD_TABLE}" not in name}


def _describe_column(
    type_: str, collation: str | None, required: int, default: str | None, key: int
) -> str:
    word = _TYPES.get(type_, type_)
    text = "SORTED_TEXT" if collation == "C" else word
    if required or key:
        text += " NOT NULL"
    if default is not None:
        text += f" DEFAULT {re.sub(r'::[a-z ]+$', '', default)}"
    return text + (f" KEY {key}" if key else "")


def normalize_index(statement: str) -> str:
    """A CREATE INDEX statement without the optional words that may differ in equal indexes."""
    text = re.sub(r"CONCURRENTLY |USING btree |\"", "", collapse_spaces(statement))
    text = re.sub(r" ON (?:ONLY )?(?:\w+\.)?(\w+)", r" ON \1", text)
    head, where, condition = text.partition(" WHERE ")
    # PostgreSQL adds the type of a number that is compared with a column.
    return head + where + re.sub(r"[()]|(?<=\d\))::bigint", "", condition)


def collapse_spaces(text: str) -> str:
    """The text with each run of whitespace replaced by one space."""
    return " ".join(text.split())


# Columns (table, name, type, collation, required, default, place in the primary key), unique
# constraints (table, columns), indexes (name, statement), triggers and functions (name, text).
SQLITE_CATALOG: Final = (
    """
    SELECT m.name, c.name, c.type, NULL, c."notnull", c.dflt_value, c.pk
    FROM sqlite_master m JOIN pragma_table_info(m.name) c
    WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite%'
    """,
    """
    SELECT m.name, (SELECT group_concat(i.name, ', ') FROM pragma_index_info(l.name) i)
    FROM sqlite_master m JOIN pragma_index_list(m.name) l
    WHERE m.type = 'table' AND l.origin = 'u'
    """,
    "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL",
    "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'",
    "",
)
# Partitions are omitted: they have the same columns and indexes as their tables.
_POSTGRESQL_CATALOG: Final = (
    """
    SELECT t.relname, a.attname, format_type(a.atttypid, a.atttypmod), c.collname,
        a.attnotnull::int, pg_get_expr(d.adbin, d.adrelid),
        coalesce(array_position(k.conkey, a.attnum), 0)
    FROM pg_class t JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum > 0
    LEFT JOIN pg_attrdef d ON d.adrelid = t.oid AND d.adnum = a.attnum
    LEFT JOIN pg_collation c ON c.oid = a.attcollation
    LEFT JOIN pg_constraint k ON k.conrelid = t.oid AND k.contype = 'p'
    WHERE t.relkind IN ('r', 'p') AND NOT a.attisdropped AND NOT t.relispartition
        AND t.relnamespace = {schema}
    """,
    """
    SELECT t.relname, (
        SELECT string_agg(a.attname, ', ' ORDER BY p.place)
        FROM unnest(k.conkey) WITH ORDINALITY p (number, place)
        JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = p.number
    ) FROM pg_constraint k JOIN pg_class t ON t.oid = k.conrelid
    WHERE k.contype = 'u' AND NOT t.relispartition AND t.relnamespace = {schema}
    """,
    # PostgreSQL doesn't use an index that an interrupted build left invalid.
    """
    SELECT n.relname,
        CASE WHEN i.indisvalid THEN '' ELSE 'INVALID ' END || pg_get_indexdef(i.indexrelid)
    FROM pg_index i JOIN pg_class n ON n.oid = i.indexrelid
    WHERE NOT n.relispartition AND n.relnamespace = {schema}
        AND NOT EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conindid = i.indexrelid)
    """,
    """
    SELECT g.tgname, 'ON ' || t.relname || CASE g.tgenabled WHEN 'D' THEN ' DISABLED' ELSE '' END
    FROM pg_trigger g JOIN pg_class t ON t.oid = g.tgrelid
    WHERE NOT g.tgisinternal AND NOT t.relispartition AND t.relnamespace = {schema}
    """,
    """
    SELECT f.proname, f.prosrc FROM pg_proc f JOIN pg_language l ON l.oid = f.prolang
    WHERE l.lanname = 'plpgsql' AND f.pronamespace = {schema}
    """,
)
_NAMESPACE: Final = (
    "(SELECT relnamespace FROM pg_class WHERE oid = to_regclass('schema_migrations'))"
)
_CATALOG_QUERIES: Final[Mapping[Dialect, tuple[str, ...]]] = {
    "sqlite": SQLITE_CATALOG,
    "postgresql": tuple(sql.format(schema=_NAMESPACE) for sql in _POSTGRESQL_CATALOG),
}


Step = Callable[[Transaction], None]

log = structlog.get_logger("factbook.storage")

_PAUSE_SECONDS: Final = 1.0
_MOST_SECONDS: Final = 600.0
# The migration that added more than names to the record.
_RECORDED: Final = "0011_upgrades.sql"
# The migration that added checksums to the record.
_CHECKED: Final = "0013_housekeeping.sql"


def list_migrations() -> list[str]:
    """The names of all migrations, in the order in which they are applied."""
    return list(get_migration_texts())


@cache
def get_migration_texts() -> Mapping[str, str]:
    """The text of each migration of this release by name, in order of application."""
    found = sorted(Path(__file__).parent.glob("*.sql"))
    return MappingProxyType({file.name: file.read_text("utf-8") for file in found})


async def find_pending_migrations(
    database: Database, known: Mapping[str, str] | None = None
) -> list[str]:
    """The names of the pending migrations, in order.

    Raises OutdatedError if the schema has left these migrations behind.
    """
    known = get_migration_texts() if known is None else known
    done = await _list_applied(database)
    if _RECORDED in done:
        _refuse_contracted(await database.all(_CONTRACTED), known)
    return [name for name in known if name not in done]


def digest_migration(text: str) -> str:
    """SHA-256 of the text of a migration."""
    return hashlib.sha256(text.encode()).hexdigest()


async def list_unknown_migrations(database: Database) -> list[str]:
    """The names of migrations applied by a newer release."""
    return [name for name in await _list_applied(database) if name not in get_migration_texts()]


async def list_differing_migrations(database: Database) -> list[str]:
    """The names of applied migrations whose text differs from that in this release.

    The database must be up to date.
    """
    known = {name: digest_migration(text) for name, text in get_migration_texts().items()}
    rows = await database.all(_CHECKSUMS)
    return [name for name, checksum in rows if known.get(name, checksum) != checksum]


async def has_migration_record(database: Database) -> bool:
    """Return true if the database records its migrations, false if it is empty."""
    return await database.one(_IS_THERE[database.dialect]) is not None


async def check_migrations(database: Database) -> None:
    """Return if this release still works with a database that it has migrated.

    Raises OutdatedError if a newer migration no longer supports this release.
    """
    _refuse_contracted(await database.all(_CONTRACTED), get_migration_texts())


def _refuse_contracted(contracted: Sequence[Row], known: Mapping[str, str]) -> None:
    newest = max(map(_number_migration, known))
    for name, release, works_from in contracted:
        if works_from > newest:
            raise OutdatedError(
                f"Factbook {release} has changed the database by {name} so that releases work on "
                f"it that have migration {works_from:04}; this is {__version__}, which has "
                f"{newest:04} at most. Install {release} or newer here."
            )


async def fetch_schema_version(database: Database) -> int:
    """The number of the newest applied migration."""
    row = await database.one("SELECT MAX(name) FROM schema_migrations")
    return _number_migration(row[0]) if row and row[0] else 0


async def migrate(
    database: Database,
    now: int,
    steps: Mapping[str, Step] | None = None,
    known: Mapping[str, str] | None = None,
) -> list[str]:
    """Bring the schema up to date; returns the names of the migrations applied here.

    Each is one transaction, to keep locks short; on a new database all share one. `steps` holds,
    for some of the names, work to do in the same transaction after the SQL; `known` the texts, if
    they are not those of this release. Raises OutdatedError if the schema has left this release
    behind, UnavailableError if a table could not be locked.
    """
    known = get_migration_texts() if known is None else known
    applied: list[str] = []
    while to_do := await find_pending_migrations(database, known):
        try:
            if builds_concurrently(known[to_do[0]]) and len(to_do) < len(known):
                found = await _build_index(database, to_do[0], known[to_do[0]], now)
            else:
                found = await _Migration(database, known, steps or {}, now).applied()
        except OutdatedError:
            raise
        except UnavailableError as error:
            error.add_note(f"Nothing can be served before {to_do[0]} is applied.")
            raise
        applied += found
    return applied


class _Migration:
    """The next migration, or all of them on a new database."""

    def __init__(
        self, database: Database, known: Mapping[str, str], steps: Mapping[str, Step], now: int
    ) -> None:
        self._database = database
        self._known = known
        self._steps = steps
        self._now = now
        self._waits_for = ""  # migration waiting for table locks; empty: waiting for a process

    async def applied(self) -> list[str]:
        """Apply, retrying while others hold the required locks; returns the names."""
        end = time.monotonic() + _MOST_SECONDS
        while True:
            try:
                return await self._database.write(self._work)
            except UnavailableError as error:
                if not is_lock_error(error):
                    raise
                if self._waits_for and time.monotonic() > end:
                    raise UnavailableError(
                        f"{self._waits_for} was not applied: for {_MOST_SECONDS / 60:.0f} minutes "
                        "its tables were in use by transactions that do not end. Nothing was "
                        "changed. Find them in pg_stat_activity, end them, and start again."
                    ) from error
            log.info("migration.waiting", migration=self._waits_for or "of another process")
            await asyncio.sleep(_PAUSE_SECONDS)

    def _work(self, transaction: Transaction) -> list[str]:
        dialect, self._waits_for = self._database.dialect, ""
        if dialect == "postgresql":
            transaction.run(f"SET LOCAL {LOCK_TIMEOUT}")
            # A step may pause longer between two statements than a request.
            transaction.run("SET LOCAL idle_in_transaction_session_timeout = 0")
        transaction.lock(LAYOUT_LOCK)
        for statement in translate_schema(MIGRATION_RECORD, dialect):
            transaction.run(statement)
        done = [row[0] for row in transaction.all(_NAMES)]
        if _RECORDED in done:
            _refuse_contracted(transaction.all(_CONTRACTED), self._known)
        to_do = [name for name in self._known if name not in done]
        if done:
            to_do = [name for name in to_do[:1] if not builds_concurrently(self._known[name])]
        for name in to_do:
            self._waits_for = name
            # A new database has no concurrent writes.
            for statement in translate_for_transaction(self._known[name], dialect):
                transaction.run(statement)
            if name in self._steps:
                self._steps[name](transaction)
            transaction.run(_DONE, (name, self._now))
        if _RECORDED in (*done, *to_do):
            rows = [(__version__, find_first_working(self._known[name]), name) for name in to_do]
            transaction.many(_RECORD_MORE, rows)
        if _CHECKED in (*done, *to_do):
            sums = [(digest_migration(text), name) for name, text in self._known.items()]
            transaction.many(_RECORD_CHECKSUM, sums)
        return to_do


async def _build_index(database: Database, name: str, text: str, now: int) -> list[str]:
    """Create indexes concurrently with writes; recreates those left incomplete or different."""
    statements: list[str] = []
    there = set((await introspect_schema(database)).values())
    for statement in translate_schema(text, database.dialect):
        if normalize_index(statement) not in there:
            statements += (
                [render_drop_index(statement), statement]
                if database.dialect == "sqlite"
                else await list_index_statements(database, statement)
            )
    values = {"name": name, "now": now, "release": __version__, "checksum": digest_migration(text)}
    statements.append(_BUILT.format_map(values))
    if await database.apart(LAYOUT_LOCK, statements, unless=_IS_BUILT.format(name=name)):
        return [name]
    log.info("migration.waiting", migration="of another process")
    await asyncio.sleep(_PAUSE_SECONDS)
    return []


def find_first_working(text: str) -> int | None:
    """The number of the oldest migration that a process must know once this one is applied.

    None if it only expands the schema: all processes that worked before keep working.
    """
    found = re.search(r"^-- Works from: (\d{4})$", text, re.MULTILINE)
    return int(found[1]) if found else None


def _number_migration(name: str) -> int:
    return int(name.partition("_")[0])


async def _list_applied(database: Database) -> list[str]:
    """The names of the applied migrations."""
    if not await has_migration_record(database):
        return []
    return [row[0] for row in await database.all(_NAMES)]


# Creates the table that records all migrations.
MIGRATION_RECORD: Final = """
CREATE TABLE IF NOT EXISTS schema_migrations (name TEXT PRIMARY KEY, applied_at INTEGER NOT NULL)
"""
_IS_THERE = {
    "sqlite": "SELECT 1 FROM sqlite_master WHERE name = 'schema_migrations'",
    "postgresql": "SELECT 1 WHERE to_regclass('schema_migrations') IS NOT NULL",
}
_NAMES = "SELECT name FROM schema_migrations ORDER BY name"
_CONTRACTED = """
SELECT name, release, works_from FROM schema_migrations WHERE works_from IS NOT NULL
ORDER BY works_from DESC
"""
_DONE = "INSERT INTO schema_migrations (name, applied_at) VALUES (?, ?)"
_RECORD_MORE = "UPDATE schema_migrations SET release = ?, works_from = ? WHERE name = ?"
_RECORD_CHECKSUM = "UPDATE schema_migrations SET sha256 = ? WHERE name = ? AND sha256 IS NULL"
_CHECKSUMS = "SELECT name, sha256 FROM schema_migrations ORDER BY name"
_IS_BUILT = "SELECT 1 FROM schema_migrations WHERE name = '{name}'"
_BUILT = """
INSERT INTO schema_migrations (name, applied_at, release, sha256)
VALUES ('{name}', {now}, '{release}', '{checksum}')
"""


# Text in byte order: SQLite's default, and a collation on PostgreSQL.
_SORTED: Final = "SORTED_TEXT"
_KEPT_WORD: Final = "TEXT_THAT_IS_SORTED"
_MOST_SHOWN: Final = 5


class Deviation(NamedTuple):
    """A missing or different schema object."""

    name: str  # as `index entities_by_name`
    missing: bool

    @property
    def is_fatal(self) -> bool:
        """True if the deviation makes statements fail."""
        return self.missing and self.name.startswith("column ")


async def verify_schema(database: Database) -> None:
    """Log the deviations of the schema from the expected one.

    Raises UnavailableError if tables or columns are missing, since the service could not work.
    """
    if differing := await list_differing_migrations(database):
        log.warning("migrations.differ", migrations=differing)
    found = await list_deviations(database)
    if not found:
        return
    if any(one.is_fatal for one in found):
        raise UnavailableError(f"{describe_deviations(found)} {SCHEMA_ADVICE}", retry_after=None)
    log.warning("schema.differs", names=[one.name for one in found])


# The digests of a new database; each migration changes them.
SCHEMA_DIGESTS: Final[Mapping[Dialect, str]] = {
    "sqlite": "f8db140a687fa6fd526105094384e5d29c80655768a22163ca4de2ea90cd422e",
    "postgresql": "97e0dfcbd7f924c4dfa4efd5eeab52fbea5f252315079330a4b38ea4963c5a3c",
}
SCHEMA_ADVICE: Final = (
    "Something else than Factbook has changed the database, or it comes from a build that was not "
    "released. Restore a backup, or report it."
)


def describe_deviations(found: list[Deviation]) -> str:
    """The deviations as a sentence."""
    shown = [f"{one.name} ({'missing' if one.missing else 'different'})" for one in found]
    more = f" and {len(shown) - _MOST_SHOWN} more" if len(shown) > _MOST_SHOWN else ""
    listed = ", ".join(shown[:_MOST_SHOWN]) + more
    return f"The schema is not the one of {__version__}: {listed}."


async def list_deviations(database: Database) -> list[Deviation]:
    """The deviations of an up-to-date database's schema; additional objects are ignored.

    Empty if a newer release has migrated it: only that release knows the expected schema.
    """
    if await list_unknown_migrations(database):
        return []
    if await digest_schema(database) == SCHEMA_DIGESTS[database.dialect]:
        return []
    wanted, has = compute_expected_schema(database.dialect), await introspect_schema(database)
    return [
        Deviation(name, name not in has)
        for name, text in sorted(wanted.items())
        if has.get(name) != text
    ]


_SQLITE_STATEMENTS: Final = """
SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite%' ORDER BY type, name
"""


async def digest_schema(database: Database) -> str:
    """SHA-256 of the schema; on SQLite of its statements, which are read in a tenth of the time."""
    if database.dialect == "sqlite":
        rows = await database.all(_SQLITE_STATEMENTS)
    else:
        rows = sorted((await introspect_schema(database)).items())
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def _migrate_sqlite(texts: Iterable[str]) -> sqlite3.Connection:
    """An in-memory database with these migrations applied."""
    database = sqlite3.connect(":memory:")
    database.execute(MIGRATION_RECORD)
    for text in texts:
        for statement in translate_for_transaction(text, "sqlite"):
            database.execute(statement)
    return database


@cache
def compute_expected_schema(dialect: Dialect) -> Schema:
    """The schema that the migrations of this release produce."""
    texts = (text.replace(_SORTED, _KEPT_WORD) for text in get_migration_texts().values())
    with closing(_migrate_sqlite(texts)) as database:
        rows = [database.execute(sql).fetchall() if sql else [] for sql in SQLITE_CATALOG]
    found = dict(describe_schema(*rows))
    word = "TEXT" if dialect == "sqlite" else _SORTED
    found = {name: text.replace(_KEPT_WORD, word) for name, text in found.items()}
    if dialect == "postgresql":
        found = {name: text for name, text in found.items() if not name.startswith("trigger ")}
        found |= _list_programs()
    return found


def _list_programs() -> Schema:
    """The triggers and functions of PostgreSQL, from the SQL that creates them."""
    found: dict[str, str] = {}
    for text in get_migration_texts().values():
        for statement in translate_for_transaction(text, "postgresql"):
            if trigger := re.match(
                r"CREATE TRIGGER (\w+) .*? ON (\w+)", collapse_spaces(statement)
            ):
                found[f"trigger {trigger[1]}"] = f"ON {trigger[2]}"
            elif function := re.match(
                r"CREATE (?:OR REPLACE )?FUNCTION (\w+).*?\$\$(.*)\$\$", statement, re.DOTALL
            ):
                found[f"function {function[1]}"] = collapse_spaces(function[2])
            elif gone := re.match(r"DROP (TRIGGER|FUNCTION) (?:IF EXISTS )?(\w+)", statement):
                found.pop(f"{gone[1].lower()} {gone[2]}", None)
    return found
