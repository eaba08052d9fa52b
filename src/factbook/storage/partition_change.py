"""The change of a table to partitions by month, while it is read and written.

What is there becomes the first partition as it is. A constraint says first that none of its rows is
of a month that is still to come, and is validated while others write; thanks to it the last step
looks at no row. Each step is one transaction, and a change that was ended goes on where it was.
"""

from collections.abc import Callable, Coroutine
from typing import Final, NamedTuple

from factbook.clock import DAY, iso
from factbook.errors import ConflictError
from factbook.storage import months, partitions
from factbook.storage.database import Database, Transaction
from factbook.storage.partitions import MonthlyTable
from factbook.storage.short_locks import LOCK, TIMEOUT, patiently, run_apart

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


async def partition(database: Database, table: MonthlyTable, now: int, show: Show) -> int:
    """Do the steps that are left, telling each before it begins; returns their number.

    Raises ConflictError where the table has rows far ahead of now, UnavailableError where it stays
    in use.
    """
    count = 0
    while steps := await plan(database, table, now):
        show(steps[0])
        await steps[0].do(database)
        count += 1
    return count


async def plan(database: Database, table: MonthlyTable, now: int) -> list[PartitionStep]:
    """The steps that are left to do; raises ConflictError where Citus distributes the table."""
    if await database.one(_IS_PLAIN, (table.name,)) is None:
        return []
    if await database.one(_HAS_CITUS) and await database.one(_IS_DISTRIBUTED, (table.name,)):
        raise ConflictError(f"{table.name} is distributed, and is not partitioned as well.")

    async def bound(database: Database) -> None:
        await _changed(database, table, lambda tx: _bound(tx, table, now))

    async def validate(database: Database) -> None:
        statement = f"ALTER TABLE {table.name} VALIDATE CONSTRAINT {table.check}"
        await run_apart(database, table.name, statement, done=_VALIDATED.format(table))

    async def attach(database: Database) -> None:
        await _changed(database, table, lambda tx: _attach(tx, table, now))

    steps = [
        PartitionStep(table.name, "bound the times of its rows", bound),
        PartitionStep(table.name, "look whether every row is within the bound", validate),
        PartitionStep(
            table.name, "make it the first partition, and create the coming months", attach
        ),
    ]
    found = await partitions.bound(database, table)
    # One that the present has nearly met since is replaced.
    if found is None or found.end < now + partitions.SPARE:
        return steps
    return steps[2:] if found.is_validated else steps[1:]


async def _changed(
    database: Database, table: MonthlyTable, work: Callable[[Transaction], None]
) -> None:
    def change(transaction: Transaction) -> None:
        transaction.run(f"SET LOCAL {TIMEOUT}")
        transaction.lock(LOCK)
        transaction.run(f"LOCK TABLE {table.name} IN ACCESS EXCLUSIVE MODE")
        # Another process may have been quicker.
        if transaction.one(_IS_PLAIN, (table.name,)):
            work(transaction)

    await patiently(lambda: database.write(change), table.name)


def _bound(transaction: Transaction, table: MonthlyTable, now: int) -> None:
    [newest] = transaction.one(_NEWEST.format(table)) or (None,)
    latest = max(now + _RESERVE, newest or 0)
    if latest > now + _MOST_AHEAD:
        raise ConflictError(
            f"{table.name} has rows of times up to {iso(latest)}: a clock was ahead. The months "
            "would begin only then. Delete these rows, or have them deleted, and start again."
        )
    partitions.drop_check(transaction, table)
    transaction.run(
        f"ALTER TABLE {table.name} ADD CONSTRAINT {table.check} "
        f"CHECK ({table.column} < {months.after(latest)}) NOT VALID"
    )


def _attach(transaction: Transaction, table: MonthlyTable, now: int) -> None:
    found = partitions.bound_of(transaction, table)
    if found is None or not found.is_validated:
        return
    name, first = table.name, f"{table.name}_before"
    indexes = transaction.all(_INDEXES, (name,))
    triggers = transaction.all(partitions.TRIGGERS, (name,))
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
    partitions.create(transaction, table, found.end, max(found.end, partitions.coming(now)))


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
