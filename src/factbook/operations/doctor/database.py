"""Findings about the database and its content: files, servers, checks, people and rights."""

import os
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import quote

from factbook import __version__, user_patterns
from factbook.auth import group_roles, users
from factbook.auth.permissions import SCORECARD_WRITE
from factbook.catalog import people_trust
from factbook.catalog.people_trust import PeopleTrust
from factbook.catalog.store import index_rows
from factbook.checks.definitions import definition_writes, scorecard
from factbook.checks.definitions.definition_versions import (
    StoredCheck,
    StoredScorecard,
    check_store,
    scorecard_store,
)
from factbook.checks.rules import check_definition, language
from factbook.checks.rules.check_definition import (
    find_refused_check_patterns,
    parse_stored_check,
)
from factbook.checks.rules.language import PATTERN_OPERATORS
from factbook.clock import ago
from factbook.datasources.stores import StoredSource, source_store
from factbook.errors import ConfigurationError, FactbookError, InputError, UnavailableError
from factbook.importers.registry import ImporterRegistry, ImporterStatus, list_importer_statuses
from factbook.scim import identity
from factbook.settings import Settings
from factbook.storage import Database
from factbook.storage.migrations import (
    SCHEMA_ADVICE,
    describe_deviations,
    fetch_schema_version,
    find_pending_migrations,
    has_migration_record,
    list_deviations,
    list_differing_migrations,
    list_migrations,
    list_unknown_migrations,
)
from factbook.storage.sqlite import DatabaseFile, advise_on_error
from factbook.telemetry.logs import redact_text

State = Literal["ok", "warning", "problem"]


class Finding(NamedTuple):
    """State of one item; `advice` says what to do, and is empty if nothing is wrong."""

    topic: str
    state: State
    what: str
    advice: str = ""


def ok(topic: str, what: str) -> Finding:
    """Make a finding that needs no action."""
    return Finding(topic, "ok", what)


def warning(topic: str, what: str, advice: str) -> Finding:
    """Make a finding about an item that may stop working, or is less safe than possible."""
    return Finding(topic, "warning", what, advice)


def problem(topic: str, what: str, advice: str) -> Finding:
    """Make a finding about an item that doesn't work, or causes unknown facts."""
    return Finding(topic, "problem", what, advice)


DATABASE: Final = "database"
DISK: Final = "disk"
# Required for UPDATE ... FROM, RETURNING and DROP COLUMN.
_OLDEST_SQLITE: Final = (3, 35, 0)
# Two of SQLite's locks don't work reliably on these.
_NETWORK: Final = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "fuse.sshfs"}
)
_WAIT_SECONDS: Final = 10.0
# Error codes for a file with damaged content.
_DAMAGE: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_MOST_SHOWN: Final = 5
_LEAST_INODES: Final = 100

# Called from time to time during long work.
Tick = Callable[[], None]

# The oldest release that PostgreSQL maintains and Factbook tests.
_OLDEST_POSTGRESQL: Final = 14
_LONG_SECONDS: Final = 300
_CONNECT_SECONDS: Final = 5
_MOST_DEAD: Final = 0.3
_LEAST_DEAD: Final = 10_000

MIGRATIONS: Final = "migrations"
SEARCH: Final = "search"
_SAMPLE: Final = 50


def check_sqlite_version() -> Finding:
    """Check that the SQLite library is recent enough."""
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        oldest = ".".join(map(str, _OLDEST_SQLITE))
        what = f"SQLite is {sqlite3.sqlite_version}; {oldest} is needed."
        return problem(DATABASE, what, "Install a newer SQLite, or a Python that comes with one.")
    return ok(DATABASE, f"SQLite {sqlite3.sqlite_version}.")


def find_damaged_log(path: Path) -> Finding | None:
    """Check the write-ahead log beside the file; None if it isn't damaged.

    SQLite removes a damaged log when it closes the file, so call this before opening the file.
    """
    try:
        DatabaseFile(path.resolve()).verify_log()
    except UnavailableError as error:
        return problem(DATABASE, f"{error.message}.", advise_on_error(error))
    except OSError as error:
        what = f"{error.filename or path} cannot be read: {error.strerror}."
        return problem(DATABASE, what, "Run the doctor as the user of the service.")
    return None


def check_soundness(path: Path, tick: Tick) -> Iterator[Finding]:
    """Check the structure of the file and the references between its rows.

    Reads the whole file, about a gigabyte a second, while other processes may write.
    """
    if damaged := find_damaged_log(path):
        yield damaged
        return
    url = f"file:{quote(str(path.resolve()))}?mode=rw"
    readable = "Every row of every table can be read."
    try:
        with closing(sqlite3.connect(url, uri=True, timeout=_WAIT_SECONDS)) as database:
            database.set_progress_handler(tick, 100_000)
            results = [row[0] for row in database.execute("PRAGMA quick_check(20)")]
            loose = database.execute("PRAGMA foreign_key_check").fetchmany(1)
            if results != ["ok"] and (tables := list(_find_unreadable(database))):
                readable = f"Not whole: {', '.join(tables)}."
    except sqlite3.Error as error:
        if not _is_damage(error):
            yield _failed_read(path, error)
            return
        results, loose = [str(error)], []
        readable = "Nothing of it can be read."
    if results != ["ok"]:
        yield problem(
            DATABASE,
            f"The file is damaged: {'; '.join(results[:_MOST_SHOWN])}. {readable}",
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
    """Find tables with unreadable rows."""
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
    """Make the finding for an error that keeps SQLite from reading the file at all."""
    try:
        DatabaseFile(path).tell(error)
    except UnavailableError as told:
        what = f"{told.message.rstrip('.')} ({error}), so it is not known whether it is sound."
        return problem(DATABASE, what, advise_on_error(told))
    except sqlite3.Error:
        advice = "Run the doctor again; if it stays, report it: that is a bug."
        return problem(DATABASE, f"{path} could not be looked at: {error}.", advice)


def check_disk(path: Path) -> Iterator[Finding]:
    """Check the free space for the file, and that the file is writable."""
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
    """File system type of a folder; empty if the system doesn't report it."""
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


def _in_mib(count: int) -> str:
    return f"{count / 2**20:,.0f} MiB"


async def check_reachable(url: str) -> Finding | None:
    """Check that the server accepts this user and is usable; None if so."""
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
    """Findings on the schema, preceded by whether it can be examined further."""
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
    """Check that the search rows of some entities match the entities."""
    count, wrong = await index_rows.find_unindexed(database, _SAMPLE)
    if wrong:
        what = f"Filters do not find {len(wrong)} of {count} entities as they are: {wrong[0]}."
        advice = "Push their sets again with another content, or report it: that is a bug."
        return problem(SEARCH, what, advice)
    if not count:
        return ok(SEARCH, "There are no entities yet.")
    return ok(SEARCH, f"Filters agree with the documents of {count} entities.")


CHECKS: Final = "checks"
# First migration after which the tables of checks and data sources have the columns read here.
_OLDEST_WITH_PATTERNS: Final = 41
_MOST_PATTERNS_NAMED: Final = 10

PEOPLE: Final = "people"
_MOST_PEOPLE_NAMED: Final = 50
_CONFIRM: Final = "If the account is theirs, run `factbook people confirm {}`."

RIGHTS: Final = "rights of groups"
# First migration after which the schema has everything read here.
_OLDEST_WITH_RIGHTS: Final = 39

IMPORTERS: Final = "importers"
# An importer is late after more intervals than this without a complete reading.
_LATE_INTERVALS: Final = 3


async def examine_checks(database: Database) -> AsyncIterator[Finding]:
    """Findings on checks with unreliable results."""
    stored = await check_store.everything(database)
    published = {one.id: one.published for one in stored if one.published is not None}
    cards = await scorecard_store.everything(database)
    found = [
        *_unusable_checks(published),
        *_find_circles(published),
        *_old_patterns(stored),
        *_idle_rules(stored, cards),
    ]
    for finding in found:
        yield finding
    for finding in find_source_patterns(await source_store.everything(database)):
        yield finding
    if published and not any(one.state == "problem" for one in found):
        yield ok(CHECKS, f"All {len(published)} published checks can be evaluated.")


def _unusable_checks(published: Mapping[str, dict[str, Any]]) -> Iterator[Finding]:
    for id_, document in published.items():
        try:
            parse_stored_check(document)
        except FactbookError as error:
            what = f"This release cannot evaluate {id_}: {error.message}"
            yield problem(CHECKS, what, "Publish it anew, or start the release that it is of.")


async def examine_old_patterns(database: Database) -> AsyncIterator[Finding]:
    """Findings on patterns before an upgrade, unless the schema is too old to list them."""
    if await fetch_schema_version(database) < _OLDEST_WITH_PATTERNS:
        what = "This schema is too old to list the patterns that this release refuses."
        yield warning(CHECKS, what, "Run `factbook doctor` again after the upgrade.")
        return
    for finding in _old_patterns(await check_store.everything(database)):
        yield finding
    for finding in find_source_patterns(await source_store.everything(database)):
        yield finding


def _old_patterns(stored: Iterable[StoredCheck]) -> Iterator[Finding]:
    """Findings on patterns that this release refuses, or reads differently than earlier ones."""
    for stored_check in stored:
        try:
            check = parse_stored_check(stored_check.published or stored_check.draft)
        except FactbookError:
            continue
        name = stored_check.id
        if check.owner:
            name = f"{name}, which belongs to {check.owner},"
        for path, reason in find_refused_check_patterns(check):
            yield problem(
                CHECKS,
                f"The check {name} is unknown in this release: the pattern at {path} {reason}.",
                "Change the pattern and publish the check.",
            )
        leaves = [
            (place, leaf)
            for path, rule in check.rules()
            for place, leaf in language.walk_leaves(rule, path)
            if leaf.operator in PATTERN_OPERATORS and not any(language.find_refused_patterns(leaf))
        ]
        for place, leaf in leaves:
            for difference in user_patterns.explain_differences(leaf.value):
                yield warning(
                    CHECKS,
                    f"The check {name} reads text differently: in the pattern at {place}.value "
                    f"{difference}.",
                    "If its texts have other characters, change the pattern and publish the check.",
                )


def find_source_patterns(stored: Iterable[StoredSource]) -> Iterator[Finding]:
    """Findings on such patterns in data sources, which extract facts with them."""
    for one in stored:
        document = one.published or one.draft or {}
        schema = document.get("schema")
        for name, fact in schema.items() if isinstance(schema, dict) else ():
            extract = fact.get("extract") if isinstance(fact, dict) else None
            text = extract.get("regex") if isinstance(extract, dict) else None
            if not isinstance(text, str):
                continue
            where = f"schema.{name}.extract"
            try:
                user_patterns.compile_extraction(text)
            except InputError as error:
                yield problem(
                    "data sources",
                    f"{one.id} is not collected by this release: the pattern at {where} "
                    f"{error.message}.",
                    "Change the pattern and publish the data source.",
                )
                continue
            for difference in user_patterns.explain_differences(text):
                yield warning(
                    "data sources",
                    f"{one.id} reads text differently: in the pattern at {where} {difference}.",
                    "If its documents have other characters, change the pattern.",
                )


def _idle_rules(
    stored: Sequence[StoredCheck], cards: Sequence[StoredScorecard]
) -> Iterator[Finding]:
    """Warn of each scorecard whose exemption rules don't apply to some of its checks."""
    for card in cards:
        document = card.newest or {}
        named = scorecard.list_named_checks(document) if document.get("exemptions") else set()
        idle = [
            one.id
            for one in stored
            if one.id in named and not definition_writes.do_rules_count(card, one)
        ]
        if idle:
            shown = ", ".join(idle[:_MOST_PATTERNS_NAMED]) + (
                ", …" if len(idle) > _MOST_PATTERNS_NAMED else ""
            )
            what = f"The exemption rules of scorecard {card.id} have no effect on {shown}."
            yield warning(
                CHECKS,
                what,
                "Its owner does not own these checks. To make the rules count, publish the "
                f"scorecard again with the permission {SCORECARD_WRITE}.",
            )


def _find_circles(published: Mapping[str, dict[str, Any]]) -> Iterator[Finding]:
    """Report each cycle of checks; earlier releases allowed cycles."""
    reads = {
        id_: check_definition.list_referenced_checks(document)
        for id_, document in published.items()
    }
    told = set[frozenset[str]]()
    for id_, others in reads.items():
        for other in others:
            circle = check_definition.find_way_back(id_, other, lambda one: reads.get(one, ()))
            if not circle or frozenset(circle) in told:
                continue
            told.add(frozenset(circle))
            what = f"A check reads itself: {' → '.join(circle)}."
            advice = "The results mean nothing: publish one of them that does not read the next."
            yield problem(CHECKS, what, advice)


async def examine_people(database: Database, settings: Settings) -> AsyncIterator[Finding]:
    """Findings on accounts that lack a role or groups until an administrator confirms them."""
    try:
        rules = group_roles.make_group_rules(settings)
    except ConfigurationError as error:
        yield problem(PEOPLE, error.message, "Correct the table [group_roles].")
        return
    for one in (await identity.list_unproven_roles(database, rules))[:_MOST_PEOPLE_NAMED]:
        name = one.ref.removeprefix(users.PREFIX)
        yield warning(
            PEOPLE,
            f"{one.ref} does not get the role {one.role} of the group {one.group}: nothing proves "
            f"that the account belongs to the SCIM user {one.user_name}.",
            _CONFIRM.format(f"{name} --user-name {one.user_name}"),
        )
    unproven = await identity.list_unproven_people(database)
    without = [one.name for one in unproven if one.proof is not None]
    older = [one.name for one in unproven if one.proof is None]
    if without:
        yield warning(
            PEOPLE,
            "These accounts have the name of a user in the catalog, and not the user's groups: "
            f"{_list_names(without)}.",
            _CONFIRM.format("NAME"),
        )
    if older:
        yield warning(
            PEOPLE,
            "These accounts keep the groups of the user in the catalog whose name they have, "
            f"though nobody has confirmed them: {_list_names(older)}.",
            f"{_CONFIRM.format('NAME')} Otherwise disable it on the page People.",
        )


def _list_names(names: Iterable[str]) -> str:
    listed = list(names)
    more = (
        f" and {len(listed) - _MOST_PEOPLE_NAMED} more" if len(listed) > _MOST_PEOPLE_NAMED else ""
    )
    return ", ".join(listed[:_MOST_PEOPLE_NAMED]) + more


async def examine_rights(database: Database, settings: Settings) -> AsyncIterator[Finding]:
    """Findings on sets whose memberships give no rights, and on people who thus lack rights.

    These are warnings until `people_sets` is set; an empty list trusts no set.
    """
    trust = PeopleTrust.of(settings)
    sets = await people_trust.find_sets_without_rights(database, trust)
    lost = await people_trust.find_lost_rights(database, trust, settings.annotation_domain)
    for one in sets:
        what = f"Memberships in {one.place} that give no rights: {one.memberships:,}."
        yield _rights_finding(settings, what, one.setting)
    for right in lost:
        groups = ", ".join(right.groups)
        what = f"{right.person} doesn't have the rights of {groups}: only {right.place} says so."
        yield _rights_finding(settings, what, right.remedy)
    if not sets:
        yield ok(RIGHTS, "Trusted sets state every membership.")


async def examine_rights_after_upgrade(
    database: Database, settings: Settings
) -> AsyncIterator[Finding]:
    """Findings on rights before an upgrade, unless the schema is too old to list them."""
    if await fetch_schema_version(database) < _OLDEST_WITH_RIGHTS:
        what = "This schema is too old to list who will lack rights of groups."
        yield warning(RIGHTS, what, "Run `factbook doctor` again after the upgrade.")
        return
    async for finding in examine_rights(database, settings):
        yield finding


def _rights_finding(settings: Settings, what: str, setting: str) -> Finding:
    if settings.people_sets is not None:
        return ok(RIGHTS, f"{what} To change that: {setting}")
    advice = f"To trust it: {setting}. To trust none: people_sets = []."
    return warning(RIGHTS, what, advice)


async def examine_importers(
    database: Database, registry: ImporterRegistry, now: int
) -> AsyncIterator[Finding]:
    """Findings on importers that are unusable, failing or late, or that hold removals."""
    fine, known = 0, (await registry.current()).values()
    for id_, why in sorted(registry.problems.items()):
        yield problem(IMPORTERS, f"{id_} cannot be used: {why}", "Correct it on the page Imports.")
    for one in await list_importer_statuses(database, known, now):
        findings = _importer_findings(one, now)
        fine += not findings
        for finding in findings:
            yield finding
    if fine:
        yield ok(IMPORTERS, f"{fine} of {len(known)} importers are well.")


def _importer_findings(one: ImporterStatus, now: int) -> list[Finding]:
    id_, every, run = one.importer.id, one.importer.every, one.last
    findings = []
    if run is not None and run.state == "failed":
        what = f"{id_} read nothing: {run.error}."
        advice = "Imported entities stay. Fix the cause, then run: factbook import run"
        findings.append(problem(IMPORTERS, what, advice))
    elif run is not None and run.state == "partial":
        what = f"{id_} did not read everything: {run.error}."
        advice = f"`factbook import list` names the parts of {id_}."
        findings.append(warning(IMPORTERS, what, advice))
    elif (
        run is not None
        and every is not None
        and now - (one.complete_at or run.asked_at) > _LATE_INTERVALS * every
    ):
        what = f"{id_} has never read everything."
        if one.complete_at is not None:
            what = f"{id_} last read everything {ago(one.complete_at, now)}."
        advice = "Look whether `serve` or a worker runs and collects."
        findings.append(warning(IMPORTERS, what, advice))
    if one.held:
        what = f"{id_} holds {one.held:,} removals that wait for a decision."
        advice = "See the page Imports, or `factbook import list`."
        findings.append(warning(IMPORTERS, what, advice))
    return findings
