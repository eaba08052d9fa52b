"""Partitions by month of large tables on PostgreSQL: what is there, and how a table gets them.

The partitions of a table cover all time. The first begins before every time and the last, `later`,
never ends, so a row always has a place, whatever its clock said. No partition is the default one:
PostgreSQL would search it for each new month, and could not read partitions in their order.

A table changes to partitions while it is read and written. What is there becomes the first
partition as it is. A constraint says first that none of its rows is of a month that is still to
come, and is validated while others write; thanks to it the last step looks at no row. Each step is
one transaction, and a change that was interrupted resumes.

Whoever comes to a table in use later waits behind a statement that waits to change it. So each try
to lock a table waits for a moment, lets others through, and is repeated. The moment is shorter than
PostgreSQL's deadlock_timeout (1 s), too, so that no write of others is the victim.
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

# Later times are no clock's, and Python's dates end a century after.
_LAST_TIME: Final = 250_246_627_200_000


def begin_month_after(time: int, count: int = 1) -> int:
    """The beginning of the month that is `count` after that of a time; of that one for 0."""
    moment = datetime.fromtimestamp(min(time, _LAST_TIME) / 1000, UTC)
    years, month = divmod(moment.month - 1 + count, 12)
    return int(datetime(moment.year + years, month + 1, 1, tzinfo=UTC).timestamp()) * 1000


def list_month_starts(begin: int, end: int) -> list[int]:
    """The beginnings of the months from `begin`, which is one, until before `end`."""
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

# Of a connection or of a transaction (`SET LOCAL`).
LOCK_TIMEOUT: Final = "lock_timeout = '500ms'"
# Of whoever changes tables; migrations take it, too.
LAYOUT_LOCK: Final = "migrations"
PAUSE_SECONDS: Final = 1.0
_MOST_SECONDS: Final = 600.0
# Until another process, or the server for one of this process, has let go of the lock.
_APART_PAUSE_SECONDS: Final = 0.1
_LOCK_NOT_AVAILABLE: Final = "55P03"


async def retry_locked(
    change: Callable[[], Awaitable[T]], what: str, seconds: float = _MOST_SECONDS
) -> T:
    """Run a change that gives up on locks soon, again and again until it had them.

    Raises UnavailableError when that took `seconds`.
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
    """Run a statement outside a transaction unless `done` finds a row by then.

    While another process migrates the database or does the same, it waits.
    """

    async def ran() -> bool:
        return await database.apart(LAYOUT_LOCK, (f"SET {LOCK_TIMEOUT}", statement), unless=done)

    while not await retry_locked(ran, what) and await database.one(done) is None:
        log.info("layout.waiting", table=what, waits_for="another process")
        await asyncio.sleep(_APART_PAUSE_SECONDS)


def is_lock_error(error: UnavailableError) -> bool:
    """Return true if others held the locks."""
    return getattr(error.__cause__, "sqlstate", None) == _LOCK_NOT_AVAILABLE


_TABLE_IN_USE: Final = (
    "{} was in use for {:.0f} minutes by transactions that do not end. Nothing was changed in this "
    "step. Find them in pg_stat_activity, end them, and start again."
)


# Months that are there ahead of the present one.
_AHEAD: Final = 3
# A clock further ahead than that makes no months: its rows are in `later`.
_MOST_MONTHS_AHEAD: Final = 24
# An abandoned check is gone so long before it would refuse a row.
SPARE: Final = 7 * DAY


class MonthlyTable(NamedTuple):
    """A table that can be partitioned by the month of a column, and what both are called."""

    name: str
    column: str

    @property
    def check(self) -> str:
        """Name of the constraint that bounds the table's times while it is partitioned."""
        return f"{self.name}_before_months"


class Partition(NamedTuple):
    """A partition with times from `start` to before `end`; None is without a bound."""

    name: str
    start: int | None
    end: int | None


class Bound(NamedTuple):
    """The end of the times of a table that is being partitioned, and true if no row is later."""

    end: int
    is_validated: bool


Gone = Callable[[Partition], Awaitable[bool]]


async def list_partitions(database: Database, table: MonthlyTable) -> list[Partition]:
    """The partitions in their order; none if the table has no partitions."""
    if database.dialect == "sqlite":
        return []
    return _parse_partitions(await database.all(_PARTITIONS, (table.name,)))


async def fetch_bound(database: Database, table: MonthlyTable) -> Bound | None:
    """The bound of an unfinished change to partitions; None if there is none."""
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
    """Create the coming months of a table that has partitions.

    Of one that has none, an abandoned change is undone before its bound could refuse a row.
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
    """Drop the partitions before a time of which nothing is kept, and cover their times by one.

    `check` looks again while nobody writes; an empty partition on its own stays.
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
    """Create the months from `begin` to `end`, and what is later."""
    for each in list_month_starts(begin, end):
        name = f"{table.name}_{name_month(each)}"
        _create_partition(transaction, table, Partition(name, each, begin_month_after(each)))
    _create_partition(transaction, table, Partition(f"{table.name}_later", end, None))


def end_coming_months(now: int) -> int:
    """The time up to which months are there."""
    return begin_month_after(now, _AHEAD + 1)


async def list_index_statements(database: Database, statement: str) -> list[str]:
    """The statements that create an index concurrently, on each partition of a table that has them.

    PostgreSQL creates none concurrently on all of them at once.
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
    """Drop the constraint of a change to partitions."""
    transaction.run(f"ALTER TABLE {table.name} DROP CONSTRAINT IF EXISTS {table.check}")


async def _attempt_change(
    database: Database, table: MonthlyTable, work: Callable[[Transaction], None]
) -> None:
    """Do work in a transaction that gives up on locks soon; the next round tries again."""

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
    """The beginning of the first month that is to be created."""
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
    # Hardly ever any: their clock was months ahead.
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
    # Triggers of a table see no statement that names a partition.
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


# From the start of a change to the first month: until then no clock that is right meets the bound.
_RESERVE: Final = 31 * DAY
# Beyond that, rows of a clock that was ahead would leave the months without any.
_MOST_AHEAD: Final = 400 * DAY


class PartitionStep(NamedTuple):
    """A step of the change of a table."""

    table: str
    what: str
    do: Callable[[Database], Coroutine[None, None, None]]

    def __str__(self) -> str:
        return f"{self.table}: {self.what}"


Show = Callable[[PartitionStep], None]


async def partition_table(database: Database, table: MonthlyTable, now: int, show: Show) -> int:
    """Do the steps that are left, telling each before it begins; returns their number.

    Raises ConflictError where the table has rows far ahead of now, UnavailableError where it stays
    in use.
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
    """The steps that are left to do; raises ConflictError where Citus distributes the table."""
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
    # One that the present has nearly met since is replaced.
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
        # Another process may have been quicker.
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

# To others than the owner, who has every right on the new table as well.
_GRANTS: Final = """
SELECT format('GRANT %s ON %I TO %s', a.privilege_type, c.relname,
    CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END)
FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = to_regclass(?) AND a.grantee <> c.relowner
"""
