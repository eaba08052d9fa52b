"""Partitions by month of large tables on PostgreSQL: what is there, and how it is kept.

The partitions of a table cover all time. The first begins before every time and the last, `later`,
never ends, so a row always has a place, whatever its clock said. No partition is the default one:
PostgreSQL would search it for each new month, and could not read partitions in their order.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import groupby
from typing import Final, NamedTuple

import structlog

from factbook.clock import DAY
from factbook.errors import UnavailableError
from factbook.storage import dialects, months
from factbook.storage.database import Database, Transaction
from factbook.storage.short_locks import TIMEOUT, is_locked

log = structlog.get_logger("factbook.storage")

# Months that are there ahead of the present one.
_AHEAD: Final = 3
# A clock further ahead than that makes no months: its rows are in `later`.
_MOST_AHEAD: Final = 24
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


async def partitions(database: Database, table: MonthlyTable) -> list[Partition]:
    """The partitions in their order; none if the table has no partitions."""
    if database.dialect == "sqlite":
        return []
    return _parsed(await database.all(_PARTITIONS, (table.name,)))


async def bound(database: Database, table: MonthlyTable) -> Bound | None:
    """The bound of an unfinished change to partitions; None if there is none."""
    row = await database.one(_CHECK, (table.name, table.check))
    return None if row is None else _read_bound(*row)


def bound_of(transaction: Transaction, table: MonthlyTable) -> Bound | None:
    """The same within a transaction."""
    row = transaction.one(_CHECK, (table.name, table.check))
    return None if row is None else _read_bound(*row)


def _read_bound(text: str, is_validated: bool) -> Bound:
    [end] = re.findall(r"< '?(\d+)", text)
    return Bound(int(end), is_validated)


async def extend(database: Database, table: MonthlyTable, now: int) -> None:
    """Create the coming months of a table that has partitions.

    Of one that has none, an abandoned change is undone before its bound could refuse a row.
    """
    if database.dialect == "sqlite":
        return
    found = await partitions(database, table)
    if not found:
        unfinished = await bound(database, table)
        if unfinished is not None and unfinished.end < now + SPARE:
            await _attempt(database, table, lambda tx: drop_check(tx, table))
    elif _missing(found, now):
        await _attempt(database, table, lambda tx: _extend(tx, table, now))


async def replace_gone(
    database: Database, table: MonthlyTable, before: int, is_gone: Gone, check: "Check"
) -> None:
    """Drop the partitions before a time of which nothing is kept, and cover their times by one.

    `check` looks again while nobody writes; an empty partition on its own stays.
    """
    found = [one for one in await partitions(database, table) if one.end and one.end <= before]
    marked = [(await is_gone(one), one) for one in found]
    for gone, several in groupby(marked, key=lambda each: each[0]):
        run = [one for _, one in several]
        if gone and (len(run) > 1 or await database.one(_ANY.format(run[0].name))):
            await _attempt(database, table, partial(_replace, table=table, run=run, check=check))


Check = Callable[[Transaction, Partition], bool]


def create(transaction: Transaction, table: MonthlyTable, begin: int, end: int) -> None:
    """Create the months from `begin` to `end`, and what is later."""
    for each in months.starts(begin, end):
        name = f"{table.name}_{months.name(each)}"
        _create(transaction, table, Partition(name, each, months.after(each)))
    _create(transaction, table, Partition(f"{table.name}_later", end, None))


def coming(now: int) -> int:
    """The time up to which months are there."""
    return months.after(now, _AHEAD + 1)


async def index_statements(database: Database, statement: str) -> list[str]:
    """The statements that create an index concurrently, on each partition of a table that has them.

    PostgreSQL creates none concurrently on all of them at once.
    """
    found = re.match(r"(CREATE (?:UNIQUE )?INDEX )CONCURRENTLY (\w+)\s+ON (\w+)", statement)
    assert found, statement
    head, index, table = found.groups()
    parts = await partitions(database, MonthlyTable(table, ""))
    if not parts:
        return [dialects.drop_index(statement), statement]
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


def drop_check(transaction: Transaction, table: MonthlyTable) -> None:
    """Drop the constraint of a change to partitions."""
    transaction.run(f"ALTER TABLE {table.name} DROP CONSTRAINT IF EXISTS {table.check}")


async def _attempt(
    database: Database, table: MonthlyTable, work: Callable[[Transaction], None]
) -> None:
    """Do work in a transaction that gives up on locks soon; the next round tries again."""

    def change(transaction: Transaction) -> None:
        transaction.run(f"SET LOCAL {TIMEOUT}")
        transaction.run(f"LOCK TABLE {table.name} IN ACCESS EXCLUSIVE MODE")
        work(transaction)

    try:
        await database.write(change)
    except UnavailableError as error:
        if not is_locked(error):
            raise
        log.info("partitions.waiting", table=table.name)


def _missing(found: Sequence[Partition], now: int) -> int | None:
    """The beginning of the first month that is to be created."""
    begin, end = found[-1].start, coming(now)
    if begin is None or not begin < end <= months.after(begin, _MOST_AHEAD):
        return None
    return begin


def _extend(transaction: Transaction, table: MonthlyTable, now: int) -> None:
    found = _parsed(transaction.all(_PARTITIONS, (table.name,)))
    begin = _missing(found, now)
    if begin is None:
        return
    later, aside = found[-1].name, f"{table.name}_was_later"
    transaction.run(f"ALTER TABLE {table.name} DETACH PARTITION {later}")
    transaction.run(f"ALTER TABLE {later} RENAME TO {aside}")
    create(transaction, table, begin, coming(now))
    # Hardly ever any: their clock was months ahead.
    transaction.run(_MOVE.format(table.name, aside))
    transaction.run(f"DROP TABLE {aside}")


def _replace(
    transaction: Transaction, *, table: MonthlyTable, run: list[Partition], check: Check
) -> None:
    if not all(check(transaction, one) for one in run):
        return
    for one in run:
        transaction.run(f"ALTER TABLE {table.name} DETACH PARTITION {one.name}")
        transaction.run(f"DROP TABLE {one.name}")
    _create(transaction, table, Partition(run[-1].name, run[0].start, run[-1].end))
    log.info("partitions.dropped", table=table.name, partitions=[one.name for one in run])


def _create(transaction: Transaction, table: MonthlyTable, one: Partition) -> None:
    begin = "MINVALUE" if one.start is None else one.start
    end = "MAXVALUE" if one.end is None else one.end
    transaction.run(
        f"CREATE TABLE {one.name} PARTITION OF {table.name} FOR VALUES FROM ({begin}) TO ({end})"
    )
    # Triggers of a table see no statement that names a partition.
    for (text,) in transaction.all(TRIGGERS, (table.name,)):
        transaction.run(re.sub(rf" ON (\w+\.)?{table.name} ", f" ON {one.name} ", text, count=1))


def _parsed(rows: Sequence[tuple[str, str]]) -> list[Partition]:
    found = []
    for name, text in rows:
        begin, end = re.findall(r"\((MINVALUE|MAXVALUE|'-?\d+')\)", text)
        found.append(Partition(name, _bound(begin), _bound(end)))
    return sorted(found, key=lambda one: (one.start is not None, one.start))


def _bound(text: str) -> int | None:
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
