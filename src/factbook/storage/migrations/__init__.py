"""The migrations: numbered SQL files, applied in order, each once, under a lock.

To change the schema, add the next file; a released file is never edited. A file only expands the
schema, so the previous release keeps working during a rolling update. A file that removes something
states on a line of its own since which migration the removed part is unused:

    -- Works from: 0012

From then on, a process that does not know that migration refuses the database: it does not start;
if it is already serving, `/readyz` reports the problem and its worker ends; `factbook worker` ends.
Both happen within seconds; requests are served as long as they are routed to the process.

Indexes on existing tables are created by `CREATE INDEX CONCURRENTLY`, in a file that holds nothing
else: on PostgreSQL writes go on meanwhile.
"""

import asyncio
import hashlib
import re
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Final

import structlog

from factbook import __version__
from factbook.errors import OutdatedError, UnavailableError
from factbook.storage import dialects, introspection, partitions
from factbook.storage.database import Database, Row, Transaction
from factbook.storage.short_locks import LOCK, TIMEOUT, is_locked

Step = Callable[[Transaction], None]

log = structlog.get_logger("factbook.storage")

_PAUSE_SECONDS: Final = 1.0
_MOST_SECONDS: Final = 600.0
# Since this one the record says more than names.
_RECORDED: Final = "0011_upgrades.sql"
# Since this one it has checksums.
_CHECKED: Final = "0013_housekeeping.sql"


def names() -> list[str]:
    """The names of all migrations, in the order in which they are applied."""
    return list(shipped())


@cache
def shipped() -> Mapping[str, str]:
    """The text of each migration of this release by name, in order of application."""
    found = [item for item in files(__name__).iterdir() if item.name.endswith(".sql")]
    in_order = sorted(found, key=lambda item: item.name)
    return MappingProxyType({item.name: item.read_text("utf-8") for item in in_order})


async def pending(database: Database, known: Mapping[str, str] | None = None) -> list[str]:
    """The names of the pending migrations, in order.

    Raises OutdatedError if the schema has left these migrations behind.
    """
    known = shipped() if known is None else known
    done = await _applied(database)
    if _RECORDED in done:
        _refuse(await database.all(_CONTRACTED), known)
    return [name for name in known if name not in done]


def digest(text: str) -> str:
    """SHA-256 of the text of a migration."""
    return hashlib.sha256(text.encode()).hexdigest()


async def unknown(database: Database) -> list[str]:
    """The names of migrations applied by a newer release."""
    return [name for name in await _applied(database) if name not in shipped()]


async def differing(database: Database) -> list[str]:
    """The names of migrations that were applied with another text than in this release.

    The database must be up to date.
    """
    known = {name: digest(text) for name, text in shipped().items()}
    rows = await database.all(_CHECKSUMS)
    return [name for name, checksum in rows if known.get(name, checksum) != checksum]


async def has_record(database: Database) -> bool:
    """Return true if the database records its migrations, false if it is empty."""
    return await database.one(_IS_THERE[database.dialect]) is not None


async def check(database: Database) -> None:
    """Return if this release can go on working on a database that it has migrated.

    Raises OutdatedError if the schema has left this release behind since.
    """
    _refuse(await database.all(_CONTRACTED), shipped())


def _refuse(contracted: Sequence[Row], known: Mapping[str, str]) -> None:
    newest = max(map(_number, known))
    for name, release, works_from in contracted:
        if works_from > newest:
            raise OutdatedError(
                f"Factbook {release} has changed the database by {name} so that releases work on "
                f"it that have migration {works_from:04}; this is {__version__}, which has "
                f"{newest:04} at most. Install {release} or newer here."
            )


async def version(database: Database) -> int:
    """The number of the newest applied migration."""
    row = await database.one("SELECT MAX(name) FROM schema_migrations")
    return _number(row[0]) if row and row[0] else 0


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
    known = shipped() if known is None else known
    applied: list[str] = []
    while to_do := await pending(database, known):
        try:
            if dialects.is_concurrent(known[to_do[0]]) and len(to_do) < len(known):
                found = await _build(database, to_do[0], known[to_do[0]], now)
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
        self._waits_for = ""  # the migration for whose tables it waits; none: for another process

    async def applied(self) -> list[str]:
        """Apply, retrying while others hold the required locks; returns the names."""
        end = time.monotonic() + _MOST_SECONDS
        while True:
            try:
                return await self._database.write(self._work)
            except UnavailableError as error:
                if not is_locked(error):
                    raise
                if self._waits_for and time.monotonic() > end:
                    raise UnavailableError(_in_use(self._waits_for)) from error
            log.info("migration.waiting", migration=self._waits_for or "of another process")
            await asyncio.sleep(_PAUSE_SECONDS)

    def _work(self, transaction: Transaction) -> list[str]:
        dialect, self._waits_for = self._database.dialect, ""
        if dialect == "postgresql":
            transaction.run(f"SET LOCAL {TIMEOUT}")
            # A step may work for longer between two statements than a request may.
            transaction.run("SET LOCAL idle_in_transaction_session_timeout = 0")
        transaction.lock(LOCK)
        for statement in dialects.schema(RECORD, dialect):
            transaction.run(statement)
        done = [row[0] for row in transaction.all(_NAMES)]
        if _RECORDED in done:
            _refuse(transaction.all(_CONTRACTED), self._known)
        to_do = [name for name in self._known if name not in done]
        if done:
            to_do = [name for name in to_do[:1] if not dialects.is_concurrent(self._known[name])]
        for name in to_do:
            self._waits_for = name
            # On a new database nobody writes meanwhile.
            for statement in dialects.at_once(self._known[name], dialect):
                transaction.run(statement)
            if name in self._steps:
                self._steps[name](transaction)
            transaction.run(_DONE, (name, self._now))
        if _RECORDED in (*done, *to_do):
            rows = [(__version__, works_from(self._known[name]), name) for name in to_do]
            transaction.many(_RECORD_MORE, rows)
        if _CHECKED in (*done, *to_do):
            sums = [(digest(text), name) for name, text in self._known.items()]
            transaction.many(_RECORD_CHECKSUM, sums)
        return to_do


async def _build(database: Database, name: str, text: str, now: int) -> list[str]:
    """Create indexes concurrently with writes; recreates those left incomplete or different."""
    statements: list[str] = []
    there = set((await introspection.schema(database)).values())
    for statement in dialects.schema(text, database.dialect):
        if introspection.index_text(statement) not in there:
            statements += await _index(database, statement)
    values = {"name": name, "now": now, "release": __version__, "checksum": digest(text)}
    statements.append(_BUILT.format_map(values))
    if await database.apart(LOCK, statements, unless=_IS_BUILT.format(name=name)):
        return [name]
    log.info("migration.waiting", migration="of another process")
    await asyncio.sleep(_PAUSE_SECONDS)
    return []


async def _index(database: Database, statement: str) -> list[str]:
    if database.dialect == "sqlite":
        return [dialects.drop_index(statement), statement]
    return await partitions.index_statements(database, statement)


def works_from(text: str) -> int | None:
    """The number of the oldest migration that a process must know once this one is applied.

    None if it only expands the schema: all processes that worked before keep working.
    """
    found = re.search(r"^-- Works from: (\d{4})$", text, re.MULTILINE)
    return int(found[1]) if found else None


def _number(name: str) -> int:
    return int(name.partition("_")[0])


def _in_use(name: str) -> str:
    return (
        f"{name} was not applied: for {_MOST_SECONDS / 60:.0f} minutes its tables were in use by "
        "transactions that do not end. Nothing was changed. Find them in pg_stat_activity, end "
        "them, and start again."
    )


async def _applied(database: Database) -> list[str]:
    """The names of the applied migrations."""
    if not await has_record(database):
        return []
    return [row[0] for row in await database.all(_NAMES)]


# Makes the table in which all others are recorded.
RECORD: Final = """
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
