"""Monthly partitions of large tables on PostgreSQL: listing, maintaining and converting.

The partitions of a table cover all time. The first has no lower bound and the last, `later`, has no
upper bound, so every row fits, even if a clock was wrong. There is no default partition: PostgreSQL
would scan it for each new month, and could not read partitions in order.

A table is converted while in use. The existing table becomes the first partition. First, a
constraint rules out rows in future months, and is validated while others write; the last step then
needn't scan any rows. Each step is one transaction, and an interrupted conversion resumes.

A statement that waits to change a table blocks all later statements on the table. So each attempt
to lock a table waits briefly, lets others through, and is repeated. The wait is also shorter than
PostgreSQL's deadlock_timeout (1 s), so no other write is chosen as the deadlock victim.
"""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from typing import Final, NamedTuple, TypeVar

import structlog

from factbook.clock import DAY, iso
from factbook.errors import ConflictError, UnavailableError
from factbook.storage.database import Database, Transaction, render_drop_index

# No clock shows later times, and Python's dates end a century after.
_LAST_TIME: Final = 250_246_627_200_000


def begin_month_after(time: int, count: int = 1) -> int:
    """The beginning of the month `count` months after that of `time`; 0 means the same month."""
    moment = datetime.fromtimestamp(min(time, _LAST_TIME) / 1000, UTC)
    years, month = divmod(moment.month - 1 + count, 12)
    return int(datetime(moment.year + years, month + 1, 1, tzinfo=UTC).timestamp()) * 1000


def list_month_starts(begin: int, end: int) -> list[int]:
    """The beginnings of the months from `begin`, itself one, up to but excluding `end`."""
    found = []
    while begin < end:
        found.append(begin)
        begin = begin_month_after(begin)
    return found


def name_month(time: int) -> str:
    """Year and month, as in names of tables."""
    return f"{datetime.fromtimestamp(time / 1000, UTC):%Y_%m}"


log = structlog.get_logger("factbook.storage")

T = TypeVar("T")

# For a connection or a transaction (`SET LOCAL`).
LOCK_TIMEOUT: Final = "lock_timeout = '500ms'"
# Taken to change tables; migrations take it, too.
LAYOUT_LOCK: Final = "migrations"
PAUSE_SECONDS: Final = 1.0
_MOST_SECONDS: Final = 600.0
# Until another process, or the server on behalf of this one, has released the lock.
_APART_PAUSE_SECONDS: Final = 0.1
_LOCK_NOT_AVAILABLE: Final = "55P03"


async def retry_locked(
    change: Callable[[], Awaitable[T]], what: str, seconds: float = _MOST_SECONDS
) -> T:
    """Retry a change with a short lock timeout until it gets its locks.

    Raises UnavailableError after `seconds`.
    """
    end = time.monotonic() + seconds
    while True:
        try:
            return await change()
        except UnavailableError as error:
            if not is_lock_error(error):
                raise
            if time.monotonic() > end:
                raise UnavailableError(_TABLE_IN_USE.format(what, seconds / 60)) from error
        log.info("layout.waiting", table=what)
        await asyncio.sleep(PAUSE_SECONDS)


async def run_locked_apart(database: Database, what: str, statement: str, *, done: str) -> None:
    """Run a statement outside a transaction unless `done` finds a row.

    Waits while another process migrates the database or runs such a statement.
    """

    async def ran() -> bool:
        return await database.apart(LAYOUT_LOCK, (f"SET {LOCK_TIMEOUT}", statement), unless=done)

    while not await retry_locked(ran, what) and await database.one(done) is None:
        log.info("layout.waiting", table=what, waits_for="another process")
        await asyncio.sleep(_APART_PAUSE_SECONDS)


def is_lock_error(error: UnavailableError) -> bool:
    """Return true if the cause is a lock held by another transaction."""
    return getattr(error.__cause__, "sqlstate", None) == _LOCK_NOT_AVAILABLE


_TABLE_IN_USE: Final = (
    "{} was in use for {:.0f} minutes by transactions that do not end. Nothing was changed in this "
    "step. Find them in pg_stat_activity, end them, and start again."
)


# Months created ahead of the current one.
_AHEAD: Final = 3
# A clock further ahead creates no months: its rows go to `later`.
_MOST_MONTHS_AHEAD: Final = 24
# An abandoned constraint is dropped this long before it would reject a row.
SPARE: Final = 7 * DAY


class MonthlyTable(NamedTuple):
    """The names of a table and of the column whose month partitions it."""

    name: str
    column: str

    @property
    def check(self) -> str:
        """Name of the constraint that bounds the table's times while it is partitioned."""
        return f"{self.name}_before_months"


class Partition(NamedTuple):
    """A partition with times from `start` up to but excluding `end`; None means unbounded."""

    name: str
    start: int | None
    end: int | None


class Bound(NamedTuple):
    """The upper bound of a table being partitioned, and true if no row exceeds it."""

    end: int
    is_validated: bool


Gone = Callable[[Partition], Awaitable[bool]]


async def list_partitions(database: Database, table: MonthlyTable) -> list[Partition]:
    """The partitions in order of time; empty if the table is not partitioned."""
    if database.dialect == "sqlite":
        return []
    return _parse_partitions(await database.all(_PARTITIONS, (table.name,)))


async def fetch_bound(database: Database, table: MonthlyTable) -> Bound | None:
    """The bound of an unfinished conversion to partitions; None if there is none."""
    row = await database.one(_CHECK, (table.name, table.check))
    return None if row is None else _parse_bound(*row)


def select_bound(transaction: Transaction, table: MonthlyTable) -> Bound | None:
    """The same within a transaction."""
    row = transaction.one(_CHECK, (table.name, table.check))
    return None if row is None else _parse_bound(*row)


def _parse_bound(text: str, is_validated: bool) -> Bound:
    [end] = re.findall(r"< '?(\d+)", text)
    return Bound(int(end), is_validated)


async def extend_partitions(database: Database, table: MonthlyTable, now: int) -> None:
    """Create the coming months of a partitioned table.

    For any other table, undo an abandoned conversion before its bound could reject a row.
    """
    if database.dialect == "sqlite":
        return
    found = await list_partitions(database, table)
    if not found:
        unfinished = await fetch_bound(database, table)
        if unfinished is not None and unfinished.end < now + SPARE:
            await _attempt_change(database, table, lambda tx: drop_bound_check(tx, table))
    elif _find_missing_months(found, now):
        await _attempt_change(database, table, lambda tx: _extend_months(tx, table, now))


async def replace_gone_partitions(
    database: Database, table: MonthlyTable, before: int, is_gone: Gone, check: "Check"
) -> None:
    """Replace partitions before a time that hold nothing to keep by a single empty one.

    `check` is repeated under the lock; an empty partition with no neighbor to merge stays.
    """
    found = [one for one in await list_partitions(database, table) if one.end and one.end <= before]
    marked = [(await is_gone(one), one) for one in found]
    for gone, several in groupby(marked, key=lambda each: each[0]):
        run = [one for _, one in several]
        if gone and (len(run) > 1 or await database.one(_ANY.format(run[0].name))):
            await _attempt_change(
                database, table, partial(_replace_partitions, table=table, run=run, check=check)
            )


Check = Callable[[Transaction, Partition], bool]


def create_partitions(transaction: Transaction, table: MonthlyTable, begin: int, end: int) -> None:
    """Create the months from `begin` to `end`, and the `later` partition."""
    for each in list_month_starts(begin, end):
        name = f"{table.name}_{name_month(each)}"
        _create_partition(transaction, table, Partition(name, each, begin_month_after(each)))
    _create_partition(transaction, table, Partition(f"{table.name}_later", end, None))


def end_coming_months(now: int) -> int:
    """The time up to which months should exist."""
    return begin_month_after(now, _AHEAD + 1)


async def list_index_statements(database: Database, statement: str) -> list[str]:
    """The statements that create an index concurrently, one for each partition if there are any.

    PostgreSQL cannot create an index concurrently on a partitioned table as a whole.
    """
    found = re.match(r"(CREATE (?:UNIQUE )?INDEX )CONCURRENTLY (\w+)\s+ON (\w+)", statement)
    assert found, statement
    head, index, table = found.groups()
    parts = await list_partitions(database, MonthlyTable(table, ""))
    if not parts:
        return [render_drop_index(statement), statement]
    rest = statement[found.end() :]
    statements = [f"DROP INDEX IF EXISTS {index}", f"{head}{index} ON ONLY {table}{rest}"]
    for name, *_ in parts:
        part = f"{name}_{index.removeprefix(f'{table}_')}"
        statements += [
            f"DROP INDEX CONCURRENTLY IF EXISTS {part}",
            f"{head}CONCURRENTLY {part} ON {name}{rest}",
            f"ALTER INDEX {index} ATTACH PARTITION {part}",
        ]
    return statements


def drop_bound_check(transaction: Transaction, table: MonthlyTable) -> None:
    """Drop the constraint of a conversion to partitions."""
    transaction.run(f"ALTER TABLE {table.name} DROP CONSTRAINT IF EXISTS {table.check}")


async def _attempt_change(
    database: Database, table: MonthlyTable, work: Callable[[Transaction], None]
) -> None:
    """Work in a transaction with a short lock timeout; the next round tries again."""

    def change(transaction: Transaction) -> None:
        transaction.run(f"SET LOCAL {LOCK_TIMEOUT}")
        transaction.run(f"LOCK TABLE {table.name} IN ACCESS EXCLUSIVE MODE")
        work(transaction)

    try:
        await database.write(change)
    except UnavailableError as error:
        if not is_lock_error(error):
            raise
        log.info("partitions.waiting", table=table.name)


def _find_missing_months(found: Sequence[Partition], now: int) -> int | None:
    begin, end = found[-1].start, end_coming_months(now)
    if begin is None or not begin < end <= begin_month_after(begin, _MOST_MONTHS_AHEAD):
        return None
    return begin


def _extend_months(transaction: Transaction, table: MonthlyTable, now: int) -> None:
    found = _parse_partitions(transaction.all(_PARTITIONS, (table.name,)))
    begin = _find_missing_months(found, now)
    if begin is None:
        return
    later, aside = found[-1].name, f"{table.name}_was_later"
    transaction.run(f"ALTER TABLE {table.name} DETACH PARTITION {later}")
    transaction.run(f"ALTER TABLE {later} RENAME TO {aside}")
    create_partitions(transaction, table, begin, end_coming_months(now))
    # Rarely any: their clock was months ahead.
    transaction.run(_MOVE.format(table.name, aside))
    transaction.run(f"DROP TABLE {aside}")


def _replace_partitions(
    transaction: Transaction, *, table: MonthlyTable, run: list[Partition], check: Check
) -> None:
    if not all(check(transaction, one) for one in run):
        return
    for one in run:
        transaction.run(f"ALTER TABLE {table.name} DETACH PARTITION {one.name}")
        transaction.run(f"DROP TABLE {one.name}")
    _create_partition(transaction, table, Partition(run[-1].name, run[0].start, run[-1].end))
    log.info("partitions.dropped", table=table.name, partitions=[one.name for one in run])


def _create_partition(transaction: Transaction, table: MonthlyTable, one: Partition) -> None:
    begin = "MINVALUE" if one.start is None else one.start
    end = "MAXVALUE" if one.end is None else one.end
    transaction.run(
        f"CREATE TABLE {one.name} PARTITION OF {table.name} FOR VALUES FROM ({begin}) TO ({end})"
    )
    # Triggers of a table do not fire for statements that name a partition.
    for (text,) in transaction.all(TRIGGERS, (table.name,)):
        transaction.run(re.sub(rf" ON (\w+\.)?{table.name} ", f" ON {one.name} ", text, count=1))


def _parse_partitions(rows: Sequence[tuple[str, str]]) -> list[Partition]:
    found = []
    for name, text in rows:
        begin, end = re.findall(r"\((MINVALUE|MAXVALUE|'-?\d+')\)", text)
        found.append(Partition(name, _parse_partition_bound(begin), _parse_partition_bound(end)))
    return sorted(found, key=lambda one: (one.start is not None, one.start))


def _parse_partition_bound(text: str) -> int | None:
    return None if text.endswith("VALUE") else int(text.strip("'"))


_PARTITIONS: Final = """
SELECT c.relname, pg_get_expr(c.relpartbound, c.oid) FROM pg_inherits i
JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = to_regclass(?)
"""

_CHECK: Final = """
SELECT pg_get_constraintdef(oid), convalidated FROM pg_constraint
WHERE conrelid = to_regclass(?) AND conname = ?
"""

TRIGGERS: Final = """
SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = to_regclass(?) AND NOT tgisinternal
"""

_MOVE: Final = "INSERT INTO {} SELECT * FROM {}"

_ANY: Final = "SELECT 1 FROM {} LIMIT 1"


# From the start of a conversion to the first month: no correct clock reaches the bound before.
_RESERVE: Final = 31 * DAY
# Beyond that, rows written by a clock that was ahead would leave the months empty.
_MOST_AHEAD: Final = 400 * DAY


class PartitionStep(NamedTuple):
    """A step of the conversion of a table."""

    table: str
    what: str
    do: Callable[[Database], Coroutine[None, None, None]]

    def __str__(self) -> str:
        return f"{self.table}: {self.what}"


Show = Callable[[PartitionStep], None]


async def partition_table(database: Database, table: MonthlyTable, now: int, show: Show) -> int:
    """Run the remaining steps, showing each before it begins; returns their number.

    Raises ConflictError if the table has rows far in the future, UnavailableError if it stays
    locked.
    """
    count = 0
    while steps := await plan_partitioning(database, table, now):
        show(steps[0])
        await steps[0].do(database)
        count += 1
    return count


async def plan_partitioning(
    database: Database, table: MonthlyTable, now: int
) -> list[PartitionStep]:
    """The remaining steps; raises ConflictError if Citus distributes the table."""
    if await database.one(_IS_PLAIN, (table.name,)) is None:
        return []
    if await database.one(_HAS_CITUS) and await database.one(_IS_DISTRIBUTED, (table.name,)):
        raise ConflictError(f"{table.name} is distributed, and is not partitioned as well.")

    async def bound(database: Database) -> None:
        await _change_table(database, table, lambda tx: _bound_times(tx, table, now))

    async def validate(database: Database) -> None:
        statement = f"ALTER TABLE {table.name} VALIDATE CONSTRAINT {table.check}"
        await run_locked_apart(database, table.name, statement, done=_VALIDATED.format(table))

    async def attach(database: Database) -> None:
        await _change_table(database, table, lambda tx: _attach_first_partition(tx, table, now))

    steps = [
        PartitionStep(table.name, "bound the times of its rows", bound),
        PartitionStep(table.name, "look whether every row is within the bound", validate),
        PartitionStep(
            table.name, "make it the first partition, and create the coming months", attach
        ),
    ]
    found = await fetch_bound(database, table)
    # A bound that is about to be reached is replaced.
    if found is None or found.end < now + SPARE:
        return steps
    return steps[2:] if found.is_validated else steps[1:]


async def _change_table(
    database: Database, table: MonthlyTable, work: Callable[[Transaction], None]
) -> None:
    def change(transaction: Transaction) -> None:
        transaction.run(f"SET LOCAL {LOCK_TIMEOUT}")
        transaction.lock(LAYOUT_LOCK)
        transaction.run(f"LOCK TABLE {table.name} IN ACCESS EXCLUSIVE MODE")
        # Another process may have finished first.
        if transaction.one(_IS_PLAIN, (table.name,)):
            work(transaction)

    await retry_locked(lambda: database.write(change), table.name)


def _bound_times(transaction: Transaction, table: MonthlyTable, now: int) -> None:
    [newest] = transaction.one(_NEWEST.format(table)) or (None,)
    latest = max(now + _RESERVE, newest or 0)
    if latest > now + _MOST_AHEAD:
        raise ConflictError(
            f"{table.name} has rows of times up to {iso(latest)}: a clock was ahead. The months "
            "would begin only then. Delete these rows, or have them deleted, and start again."
        )
    drop_bound_check(transaction, table)
    transaction.run(
        f"ALTER TABLE {table.name} ADD CONSTRAINT {table.check} "
        f"CHECK ({table.column} < {begin_month_after(latest)}) NOT VALID"
    )


def _attach_first_partition(transaction: Transaction, table: MonthlyTable, now: int) -> None:
    found = select_bound(transaction, table)
    if found is None or not found.is_validated:
        return
    name, first = table.name, f"{table.name}_before"
    indexes = transaction.all(_INDEXES, (name,))
    triggers = transaction.all(TRIGGERS, (name,))
    grants = transaction.all(_GRANTS, (name,))
    [[key, key_text]] = transaction.all(_KEY, (name,))
    transaction.run(f"ALTER TABLE {name} RENAME TO {first}")
    for index in (key, *(index for index, _ in indexes)):
        transaction.run(f"ALTER INDEX {index} RENAME TO {index}_before")
    transaction.run(
        f"CREATE TABLE {name} (LIKE {first} INCLUDING DEFAULTS) PARTITION BY RANGE ({table.column})"
    )
    transaction.run(f"ALTER TABLE {name} ADD CONSTRAINT {key} {key_text}")
    for (text,) in (*((text,) for _, text in indexes), *triggers, *grants):
        transaction.run(text)
    transaction.run(
        f"ALTER TABLE {name} ATTACH PARTITION {first} FOR VALUES FROM (MINVALUE) TO ({found.end})"
    )
    transaction.run(f"ALTER TABLE {first} DROP CONSTRAINT {table.check}")
    create_partitions(transaction, table, found.end, max(found.end, end_coming_months(now)))


_NEWEST: Final = "SELECT MAX({0.column}) FROM {0.name}"

_IS_PLAIN: Final = "SELECT 1 FROM pg_class WHERE oid = to_regclass(?) AND relkind = 'r'"

_HAS_CITUS: Final = "SELECT 1 WHERE to_regclass('pg_dist_partition') IS NOT NULL"

_IS_DISTRIBUTED: Final = "SELECT 1 FROM pg_dist_partition WHERE logicalrelid = to_regclass(?)"

_VALIDATED: Final = """
SELECT 1 WHERE NOT EXISTS (
    SELECT 1 FROM pg_constraint
    WHERE conrelid = to_regclass('{0.name}') AND conname = '{0.check}' AND NOT convalidated
)
"""

_KEY: Final = """
SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint
WHERE conrelid = to_regclass(?) AND contype = 'p'
"""

_INDEXES: Final = """
SELECT n.relname, pg_get_indexdef(i.indexrelid)
FROM pg_index i JOIN pg_class n ON n.oid = i.indexrelid
WHERE i.indrelid = to_regclass(?) AND NOT i.indisprimary
"""

# For roles other than the owner, who has every right on the new table anyway.
_GRANTS: Final = """
SELECT format('GRANT %s ON %I TO %s', a.privilege_type, c.relname,
    CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END)
FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = to_regclass(?) AND a.grantee <> c.relowner
"""
