"""A PostgreSQL server: its version, its configuration, and blocked queries."""

from collections.abc import AsyncIterator
from typing import Final

from factbook.errors import UnavailableError
from factbook.operations.doctor.findings import Finding, ok, problem, warning
from factbook.settings import Settings
from factbook.storage import Database
from factbook.telemetry.logs import redact_text

TOPIC: Final = "database"
# The oldest release that PostgreSQL still maintains and that is tested.
_OLDEST: Final = 14
_LONG_SECONDS: Final = 300
_CONNECT_SECONDS: Final = 5
_MOST_DEAD: Final = 0.3
_LEAST_DEAD: Final = 10_000


async def reachable(url: str) -> Finding | None:
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
        return problem(TOPIC, f"PostgreSQL cannot be reached: {said}.", advice)
    async with connection:
        encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        what = f"The database has the encoding {encoding}, which cannot hold every text."
        advice = "Make a database with ENCODING 'UTF8' and move the data there."
        return problem(TOPIC, what, advice)
    return None


async def check(database: Database, settings: Settings) -> AsyncIterator[Finding]:
    """Findings on the server, this database and its replica."""
    async for finding in _server(database):
        yield finding
    if settings.replica_url is not None:
        yield await _replica(database, settings.replica_url)
    yield await _connections(database, settings)
    async for finding in _waiting(database):
        yield finding
    async for finding in _bloat(database):
        yield finding


async def _server(database: Database) -> AsyncIterator[Finding]:
    [number, name, collation, replica, read_only] = await database.one(_SERVER) or []
    if int(number) // 10_000 < _OLDEST:
        what = f"PostgreSQL is {name}; {_OLDEST} is the oldest that is supported."
        yield problem(TOPIC, what, "Update PostgreSQL.")
    else:
        yield ok(TOPIC, f"PostgreSQL {name}, collation {collation}.")
    if replica or read_only == "on":
        what = "The server is a replica, or read-only."
        yield problem(TOPIC, what, "Name the primary in database_url.")


async def _replica(database: Database, url: str) -> Finding:
    # Heavy to import, and of no use on SQLite.
    import psycopg  # noqa: PLC0415

    try:
        connection = await psycopg.AsyncConnection.connect(url, connect_timeout=_CONNECT_SECONDS)
        async with connection:
            row = await (await connection.execute(_STANDBY)).fetchone()
    except psycopg.Error as error:
        said = redact_text(str(error).strip().partition("\n")[0])
        advice = "The primary serves all reads meanwhile. Look whether it runs at replica_url."
        return warning(TOPIC, f"The replica cannot be reached: {said}.", advice)
    standby, feedback = row or (False, "on")
    if not standby:
        what = "The server in replica_url is no standby; nothing is read from it."
        return problem(TOPIC, what, "Name a standby of the primary in replica_url.")
    what = await _lag(database)
    if feedback != "on":
        return warning(TOPIC, what, "Set hot_standby_feedback = on: it ends long reads otherwise.")
    return ok(TOPIC, what)


async def _lag(database: Database) -> str:
    use = database.replica()
    try:
        lag = 0.0 if use is None else await use.lag()
    except UnavailableError as error:
        return f"By how much the replica is behind is not known: {error.message}."
    return f"The replica is at most {lag:.1f} s behind." if lag else "The replica is up to date."


async def _connections(database: Database, settings: Settings) -> Finding:
    [most, reserved, used] = await database.one(_CONNECTIONS) or []
    free = int(most) - int(reserved)
    wanted = settings.workers * (max(settings.postgres_connections, 6))
    what = (
        f"A machine with {settings.workers} processes holds up to {wanted} connections; the server "
        f"has {free}, of which {used} are in use."
    )
    if wanted > free:
        return problem(TOPIC, what, "Raise max_connections, or lower postgres_connections.")
    if wanted > 0.8 * free:
        return warning(TOPIC, what, "Raise max_connections: another machine would not find any.")
    return ok(TOPIC, what)


async def _waiting(database: Database) -> AsyncIterator[Finding]:
    long = await database.all(_LONG, (_LONG_SECONDS,))
    for pid, seconds, state, name in long[:3]:
        yield warning(
            TOPIC,
            f"Process {pid} ({name or 'no name'}, {state}) has had a transaction open for "
            f"{int(seconds)} s.",
            "Find out what it does: rows that are gone cannot be cleaned up meanwhile.",
        )
    [waiting] = await database.one(_WAITING) or (0,)
    if waiting:
        yield warning(
            TOPIC,
            f"{waiting} processes wait for the lock of another.",
            "If that lasts, pg_blocking_pids() says for whose.",
        )


async def _bloat(database: Database) -> AsyncIterator[Finding]:
    for table, live, dead in await database.all(_DEAD, (_LEAST_DEAD,)):
        if dead > _MOST_DEAD * (live + dead):
            yield warning(
                TOPIC,
                f"{dead:,} rows of {table} are gone and not cleaned up ({live:,} are there).",
                "Look whether autovacuum is on and keeps up; VACUUM cleans up now.",
            )
    [on] = await database.one("SELECT current_setting('autovacuum')") or ("on",)
    if on != "on":
        yield warning(TOPIC, "autovacuum is off.", "Turn it on: tables grow without it.")


async def clock(database: Database, now: int) -> int:
    """Offset of the server's clock from `now` in milliseconds; positive when ahead."""
    [at] = await database.one("SELECT EXTRACT(EPOCH FROM clock_timestamp()) * 1000") or (now,)
    return int(at) - now


_SERVER = """
SELECT current_setting('server_version_num'), current_setting('server_version'),
    (SELECT datcollate FROM pg_database WHERE datname = current_database()),
    pg_is_in_recovery(), current_setting('transaction_read_only')
"""

_CONNECTIONS = """
SELECT current_setting('max_connections'), current_setting('superuser_reserved_connections'),
    (SELECT COUNT(*) FROM pg_stat_activity WHERE backend_type = 'client backend')
"""

_LONG = """
SELECT pid, EXTRACT(EPOCH FROM clock_timestamp() - xact_start), state, application_name
FROM pg_stat_activity
WHERE datname = current_database() AND xact_start < clock_timestamp() - ? * INTERVAL '1 second'
ORDER BY xact_start
"""

_WAITING = """
SELECT COUNT(*) FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock'
"""

_DEAD = """
SELECT relname, n_live_tup, n_dead_tup FROM pg_stat_user_tables WHERE n_dead_tup > ?
ORDER BY n_dead_tup DESC LIMIT 5
"""

_STANDBY = """
SELECT pg_is_in_recovery(), current_setting('hot_standby_feedback')
"""
