"""The database: a SQLite file or a PostgreSQL server, and its schema."""

import os
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final
from urllib.parse import quote

from factbook import __version__
from factbook.catalog.store import index_rows
from factbook.errors import FactbookError, UnavailableError
from factbook.operations.doctor.findings import Finding, ok, problem, warning
from factbook.settings import Settings
from factbook.storage import Database
from factbook.storage.migrations import (
    SCHEMA_ADVICE,
    describe_deviations,
    find_pending_migrations,
    has_migration_record,
    list_deviations,
    list_differing_migrations,
    list_migrations,
    list_unknown_migrations,
)
from factbook.storage.sqlite import DatabaseFile, advise_on_error
from factbook.telemetry.logs import redact_text

DATABASE: Final = "database"
DISK: Final = "disk"
# What UPDATE ... FROM, RETURNING and DROP COLUMN need.
_OLDEST_SQLITE: Final = (3, 35, 0)
# Two locks of SQLite do not work on these, or only sometimes.
_NETWORK: Final = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "fuse.sshfs"}
)
_WAIT_SECONDS: Final = 10.0
# Of the codes of failures, those of a file whose content is wrong.
_DAMAGE: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_MOST_SHOWN: Final = 5
_LEAST_INODES: Final = 100

# Told now and then that something goes on; None for going on.
Tick = Callable[[], None]

# The oldest release that PostgreSQL still maintains and that is tested.
_OLDEST_POSTGRESQL: Final = 14
_LONG_SECONDS: Final = 300
_CONNECT_SECONDS: Final = 5
_MOST_DEAD: Final = 0.3
_LEAST_DEAD: Final = 10_000

MIGRATIONS: Final = "migrations"
SEARCH: Final = "search"
_SAMPLE: Final = 50


def check_sqlite_version() -> Finding:
    """Check that SQLite itself is recent enough."""
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        oldest = ".".join(map(str, _OLDEST_SQLITE))
        what = f"SQLite is {sqlite3.sqlite_version}; {oldest} is needed."
        return problem(DATABASE, what, "Install a newer SQLite, or a Python that comes with one.")
    return ok(DATABASE, f"SQLite {sqlite3.sqlite_version}.")


def find_damaged_log(path: Path) -> Finding | None:
    """Finding on a damaged write-ahead log beside the file; None when nothing is wrong.

    SQLite removes such a log when it closes the file, so check this before anybody opens it.
    """
    try:
        DatabaseFile(path.resolve()).verify_log()
    except UnavailableError as error:
        return problem(DATABASE, f"{error.message}.", advise_on_error(error))
    except OSError as error:
        return _unread_file(path, error)
    return None


def check_soundness(path: Path, tick: Tick) -> Iterator[Finding]:
    """Check the structure of the file and the references between its rows.

    Takes about a second for a gigabyte and reads all of it; others write meanwhile.
    """
    if damaged := find_damaged_log(path):
        yield damaged
        return
    try:
        with closing(_open_file(path)) as database:
            database.set_progress_handler(tick, 100_000)
            found = [row[0] for row in database.execute("PRAGMA quick_check(20)")]
            loose = database.execute("PRAGMA foreign_key_check").fetchmany(1)
            lost = [] if found == ["ok"] else list(_find_unreadable(database))
    except sqlite3.Error as error:
        if not _is_damage(error):
            yield _failed_read(path, error)
            return
        found, loose, lost = [str(error)], [], ["none"]
    if found != ["ok"]:
        yield problem(
            DATABASE,
            f"The file is damaged: {'; '.join(found[:_MOST_SHOWN])}. {_room_left(lost)}",
            "Stop the service and restore a backup with `factbook restore`.",
        )
    elif loose:
        yield problem(
            DATABASE,
            f"Rows of {loose[0][0]} refer to rows of {loose[0][2]} that are not there.",
            "Something else has written to the file. Restore a backup.",
        )
    else:
        yield ok(DATABASE, "The file is sound.")


def _find_unreadable(database: sqlite3.Connection) -> Iterator[str]:
    """Tables with unreadable rows."""
    tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    for (name,) in tables:
        try:
            for _ in database.execute(f'SELECT * FROM "{name}" NOT INDEXED'):
                pass
        except sqlite3.Error as error:
            if not _is_damage(error):
                raise
            yield name


def _is_damage(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE


def _failed_read(path: Path, error: sqlite3.Error) -> Finding:
    """Finding on an error that kept SQLite from reading the file, whatever its content."""
    try:
        DatabaseFile(path).tell(error)
    except UnavailableError as told:
        what = f"{told.message.rstrip('.')} ({error}), so it is not known whether it is sound."
        return problem(DATABASE, what, advise_on_error(told))
    except sqlite3.Error:
        advice = "Run the doctor again; if it stays, report it: that is a bug."
        return problem(DATABASE, f"{path} could not be looked at: {error}.", advice)


def _unread_file(path: Path, error: OSError) -> Finding:
    what = f"{error.filename or path} cannot be read: {error.strerror}."
    return problem(DATABASE, what, "Run the doctor as the user of the service.")


def _room_left(lost: list[str]) -> str:
    if lost == ["none"]:
        return "Nothing of it can be read."
    return f"Not whole: {', '.join(lost)}." if lost else "Every row of every table can be read."


def check_disk(path: Path) -> Iterator[Finding]:
    """Check for free space at the file, and that it can be written to."""
    folder = path.resolve().parent
    yield from _is_writable(path, folder)
    size = sum(part.stat().st_size for part in _database_files(path) if part.exists())
    free = shutil.disk_usage(folder).free
    what = f"{_in_mib(free)} are free; the database has {_in_mib(size)}."
    if free < size // 10 + 64 * 2**20:
        yield problem(DISK, what, "Free some room: without it nothing can be written.")
    elif free < size:
        advice = "Free some room: a migration or a backup may need as much as there is now."
        yield warning(DISK, what, advice)
    else:
        yield ok(DISK, what)
    inodes = os.statvfs(folder)
    if inodes.f_files and inodes.f_favail < _LEAST_INODES:
        yield warning(
            DISK,
            f"Only {inodes.f_favail} more files can be made on the file system.",
            "Remove files that are not needed.",
        )
    kind = find_file_system(folder)
    if kind in _NETWORK:
        yield warning(
            DISK,
            f"The file is on a network share ({kind}), whose locks SQLite cannot rely on.",
            "Move it to a disk of the machine, or use PostgreSQL.",
        )


def find_file_system(folder: Path, mounts: Path = Path("/proc/mounts")) -> str:
    """File system type of a folder; empty if the system does not report it."""
    if not mounts.exists():
        return ""
    longest, found = -1, ""
    for line in mounts.read_text("utf-8").splitlines():
        _, place, kind, *_ = line.split(" ")
        point = Path(place.replace("\\040", " "))
        if folder.is_relative_to(point) and len(point.parts) >= longest:
            longest, found = len(point.parts), kind
    return found


def _is_writable(path: Path, folder: Path) -> Iterator[Finding]:
    for one in (folder, *(part for part in _database_files(path) if part.exists())):
        if not os.access(one, os.W_OK):
            yield problem(
                DISK,
                f"This user cannot write to {one}.",
                "Give it to the user of the service: SQLite writes to the file and its folder.",
            )


def _database_files(path: Path) -> list[Path]:
    return [path, *(path.with_name(f"{path.name}{end}") for end in ("-wal", "-shm"))]


def _open_file(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(
        f"file:{quote(str(path.resolve()))}?mode=rw", uri=True, timeout=_WAIT_SECONDS
    )


def _in_mib(count: int) -> str:
    return f"{count / 2**20:,.0f} MiB"


async def check_reachable(url: str) -> Finding | None:
    """Check that the server accepts this user and can be used; None when all is well."""
    # Heavy to import, and of no use on SQLite.
    import psycopg  # noqa: PLC0415

    try:
        connection = await psycopg.AsyncConnection.connect(url, connect_timeout=_CONNECT_SECONDS)
    except psycopg.Error as error:
        said = redact_text(str(error).strip().partition("\n")[0])
        advice = (
            "Look whether the server runs at the address in database_url and lets this user in."
        )
        return problem(DATABASE, f"PostgreSQL cannot be reached: {said}.", advice)
    async with connection:
        encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        what = f"The database has the encoding {encoding}, which cannot hold every text."
        advice = "Make a database with ENCODING 'UTF8' and move the data there."
        return problem(DATABASE, what, advice)
    return None


async def check_postgresql(database: Database, settings: Settings) -> AsyncIterator[Finding]:
    """Findings on the server, this database and its replica."""
    async for finding in _check_server(database):
        yield finding
    if settings.replica_url is not None:
        yield await _check_replica(database, settings.replica_url)
    yield await _check_connections(database, settings)
    async for finding in _check_waiting(database):
        yield finding
    async for finding in _check_bloat(database):
        yield finding


async def _check_server(database: Database) -> AsyncIterator[Finding]:
    [number, name, collation, replica, read_only] = await database.one(_SERVER_SQL) or []
    if int(number) // 10_000 < _OLDEST_POSTGRESQL:
        what = f"PostgreSQL is {name}; {_OLDEST_POSTGRESQL} is the oldest that is supported."
        yield problem(DATABASE, what, "Update PostgreSQL.")
    else:
        yield ok(DATABASE, f"PostgreSQL {name}, collation {collation}.")
    if replica or read_only == "on":
        what = "The server is a replica, or read-only."
        yield problem(DATABASE, what, "Name the primary in database_url.")


async def _check_replica(database: Database, url: str) -> Finding:
    # Heavy to import, and of no use on SQLite.
    import psycopg  # noqa: PLC0415

    try:
        connection = await psycopg.AsyncConnection.connect(url, connect_timeout=_CONNECT_SECONDS)
        async with connection:
            row = await (await connection.execute(_STANDBY_SQL)).fetchone()
    except psycopg.Error as error:
        said = redact_text(str(error).strip().partition("\n")[0])
        advice = "The primary serves all reads meanwhile. Look whether it runs at replica_url."
        return warning(DATABASE, f"The replica cannot be reached: {said}.", advice)
    standby, feedback = row or (False, "on")
    if not standby:
        what = "The server in replica_url is no standby; nothing is read from it."
        return problem(DATABASE, what, "Name a standby of the primary in replica_url.")
    what = await _replica_lag(database)
    if feedback != "on":
        return warning(
            DATABASE, what, "Set hot_standby_feedback = on: it ends long reads otherwise."
        )
    return ok(DATABASE, what)


async def _replica_lag(database: Database) -> str:
    use = database.replica()
    try:
        lag = 0.0 if use is None else await use.lag()
    except UnavailableError as error:
        return f"By how much the replica is behind is not known: {error.message}."
    return f"The replica is at most {lag:.1f} s behind." if lag else "The replica is up to date."


async def _check_connections(database: Database, settings: Settings) -> Finding:
    [most, reserved, used] = await database.one(_CONNECTIONS_SQL) or []
    free = int(most) - int(reserved)
    wanted = settings.workers * (max(settings.postgres_connections, 6))
    what = (
        f"A machine with {settings.workers} processes holds up to {wanted} connections; the server "
        f"has {free}, of which {used} are in use."
    )
    if wanted > free:
        return problem(DATABASE, what, "Raise max_connections, or lower postgres_connections.")
    if wanted > 0.8 * free:
        return warning(DATABASE, what, "Raise max_connections: another machine would not find any.")
    return ok(DATABASE, what)


async def _check_waiting(database: Database) -> AsyncIterator[Finding]:
    long = await database.all(_LONG_QUERIES_SQL, (_LONG_SECONDS,))
    for pid, seconds, state, name in long[:3]:
        yield warning(
            DATABASE,
            f"Process {pid} ({name or 'no name'}, {state}) has had a transaction open for "
            f"{int(seconds)} s.",
            "Find out what it does: rows that are gone cannot be cleaned up meanwhile.",
        )
    [waiting] = await database.one(_WAITING_SQL) or (0,)
    if waiting:
        yield warning(
            DATABASE,
            f"{waiting} processes wait for the lock of another.",
            "If that lasts, pg_blocking_pids() says for whose.",
        )


async def _check_bloat(database: Database) -> AsyncIterator[Finding]:
    for table, live, dead in await database.all(_DEAD_ROWS_SQL, (_LEAST_DEAD,)):
        if dead > _MOST_DEAD * (live + dead):
            yield warning(
                DATABASE,
                f"{dead:,} rows of {table} are gone and not cleaned up ({live:,} are there).",
                "Look whether autovacuum is on and keeps up; VACUUM cleans up now.",
            )
    [on] = await database.one("SELECT current_setting('autovacuum')") or ("on",)
    if on != "on":
        yield warning(DATABASE, "autovacuum is off.", "Turn it on: tables grow without it.")


async def check_server_clock(database: Database, now: int) -> int:
    """Offset of the server's clock from `now` in milliseconds; positive when ahead."""
    [at] = await database.one("SELECT EXTRACT(EPOCH FROM clock_timestamp()) * 1000") or (now,)
    return int(at) - now


_SERVER_SQL = """
SELECT current_setting('server_version_num'), current_setting('server_version'),
    (SELECT datcollate FROM pg_database WHERE datname = current_database()),
    pg_is_in_recovery(), current_setting('transaction_read_only')
"""

_CONNECTIONS_SQL = """
SELECT current_setting('max_connections'), current_setting('superuser_reserved_connections'),
    (SELECT COUNT(*) FROM pg_stat_activity WHERE backend_type = 'client backend')
"""

_LONG_QUERIES_SQL = """
SELECT pid, EXTRACT(EPOCH FROM clock_timestamp() - xact_start), state, application_name
FROM pg_stat_activity
WHERE datname = current_database() AND xact_start < clock_timestamp() - ? * INTERVAL '1 second'
ORDER BY xact_start
"""

_WAITING_SQL = """
SELECT COUNT(*) FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock'
"""

_DEAD_ROWS_SQL = """
SELECT relname, n_live_tup, n_dead_tup FROM pg_stat_user_tables WHERE n_dead_tup > ?
ORDER BY n_dead_tup DESC LIMIT 5
"""

_STANDBY_SQL = """
SELECT pg_is_in_recovery(), current_setting('hot_standby_feedback')
"""


async def check_migrations(database: Database) -> tuple[bool, list[Finding]]:
    """Findings on the schema, and true if it can be examined further."""
    if not await has_migration_record(database):
        return False, [warning(MIGRATIONS, "The database is empty.", "`factbook serve` fills it.")]
    try:
        missing = await find_pending_migrations(database)
    except FactbookError as error:
        return False, [
            problem(MIGRATIONS, error.message, "Install that version, or restore a backup.")
        ]
    if missing:
        advice = "Back up, then start `factbook serve` or run `factbook migrate`."
        what = f"{len(missing)} migrations are not applied: {', '.join(missing)}."
        return False, [warning(MIGRATIONS, what, advice)]
    return True, [finding async for finding in _differing_schema(database)]


async def is_schema_older(database: Database) -> bool:
    """True for a schema that only lacks migrations of this release."""
    try:
        return await has_migration_record(database) and bool(
            await find_pending_migrations(database)
        )
    except FactbookError:
        return False


async def _differing_schema(database: Database) -> AsyncIterator[Finding]:
    """Findings on a schema that has no pending migrations."""
    if newer := await list_unknown_migrations(database):
        what = f"A newer version has applied {', '.join(newer)}; this is {__version__}."
        yield warning(MIGRATIONS, what, "It goes on working; update this machine, too.")
        return
    fine = True
    if differing := await list_differing_migrations(database):
        what = f"Applied in another form than this release has: {', '.join(differing)}."
        yield problem(MIGRATIONS, what, SCHEMA_ADVICE)
        fine = False
    if found := await list_deviations(database):
        yield problem(MIGRATIONS, describe_deviations(found), SCHEMA_ADVICE)
        fine = False
    if fine:
        yield ok(MIGRATIONS, f"All {len(list_migrations())} are applied, and the schema is theirs.")


async def check_search_rows(database: Database) -> Finding:
    """Derive the search rows of some entities again, and look for them."""
    count, wrong = await index_rows.find_unindexed(database, _SAMPLE)
    if wrong:
        what = f"Filters do not find {len(wrong)} of {count} entities as they are: {wrong[0]}."
        advice = "Push their sets again with another content, or report it: that is a bug."
        return problem(SEARCH, what, advice)
    if not count:
        return ok(SEARCH, "There are no entities yet.")
    return ok(SEARCH, f"Filters agree with the documents of {count} entities.")
