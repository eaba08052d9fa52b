"""Layout of large tables: partitions by month, and distribution over a Citus cluster."""

from collections.abc import Callable
from typing import Final, NamedTuple

from factbook import backend, clock
from factbook.audit.trail import MONTHLY_AUDIT
from factbook.errors import ConflictError, InputError
from factbook.facts import retention as fact_retention
from factbook.operations.server import run_with_database
from factbook.settings import Settings
from factbook.storage import Database
from factbook.storage.partitions import (
    PartitionStep,
    Show,
    partition_table,
    plan_partitioning,
    run_locked_apart,
)
from factbook.telemetry import logs

# Each table comes after the tables it refers to.
REPLICATED: Final = (
    *("sets", "entities", "set_items", "search_keys", "search", "relations"),
    *("revisions", "revision_changes", "removed_entities"),
)
DISTRIBUTED: Final = ("facts_latest", "facts_history")

# Tables that grow with time. Events aren't here, as they are kept for days.
MONTHLY: Final = (fact_retention.MONTHLY_HISTORY, MONTHLY_AUDIT)


class DistributionStep(NamedTuple):
    """A step of the distribution; it is complete once the query `done` finds a row."""

    table: str
    what: str
    rows: int  # roughly
    statement: str
    done: str

    def __str__(self) -> str:
        return f"{self.table}: {self.what} (about {self.rows:,} rows)"


class _Table(NamedTuple):
    name: str
    kind: str
    rows: int
    size: int
    layout: str | None


ShowStep = Callable[[DistributionStep], None]


async def run_distribution(database: Database, show: ShowStep) -> int:
    """Run the remaining steps, passing each to `show` first; returns their number.

    Raises the errors of `plan_distribution`, and UnavailableError if a table stays in use.
    """
    count = 0
    while steps := await plan_distribution(database):
        step = steps[0]
        show(step)
        await run_locked_apart(database, step.table, step.statement, done=step.done)
        count += 1
    return count


async def plan_distribution(database: Database) -> list[DistributionStep]:
    """List the remaining steps.

    Raises InputError if the database isn't a Citus coordinator with workers, and ConflictError if a
    table has another layout.
    """
    await verify_cluster(database)
    rows = await database.all(_TABLES)
    tables = {row[0]: _Table(*row) for row in rows}
    wanted = dict.fromkeys(REPLICATED, "replicated") | dict.fromkeys(DISTRIBUTED, "distributed")
    for name, layout in wanted.items():
        _verify_table(name, tables.get(name), layout)
    new = [tables[name] for name in wanted if tables[name].layout is None]
    # Only once all are distributed: Citus can't empty a table that a local table refers to.
    left = [tables[name] for name in wanted if tables[name].size]
    return [*map(_is_laid_out, new), *map(_is_emptied, left)]


async def verify_cluster(database: Database) -> None:
    """Raise InputError unless the database is a Citus coordinator with workers."""
    if await database.one(_HAS_CITUS) is None:
        raise InputError(
            "This PostgreSQL has no Citus. Create its extension in this database, on the "
            "coordinator and on each worker, and name the coordinator here."
        )
    [workers] = await database.one(_WORKERS) or (0,)
    if not workers:
        raise InputError("The coordinator knows no worker. Add each with citus_add_node first.")


def _verify_table(name: str, found: _Table | None, wanted: str) -> None:
    if found is None:
        raise ConflictError(f"There is no table {name} yet. Run `factbook migrate` first.")
    if found.kind == "p":
        raise ConflictError(f"{name} is partitioned by month, and partitions are not distributed.")
    if found.layout not in {None, wanted}:
        raise ConflictError(
            f"{name} is {found.layout} and not {wanted}: somebody else laid it out."
        )


def _is_laid_out(table: _Table) -> DistributionStep:
    name, done = table.name, _DONE.format(table.name)
    if name in REPLICATED:
        statement = f"SELECT create_reference_table('{name}')"
        return DistributionStep(name, "copy to every machine", table.rows, statement, done)
    first = "" if name == DISTRIBUTED[0] else f", colocate_with => '{DISTRIBUTED[0]}'"
    statement = f"SELECT create_distributed_table('{name}', 'entity_id'{first})"
    return DistributionStep(name, "spread by entity", table.rows, statement, done)


def _is_emptied(table: _Table) -> DistributionStep:
    # Citus leaves the copied rows in the local table, where no query reads them.
    statement = f"SELECT truncate_local_data_after_distributing_table('{table.name}')"
    done = f"SELECT 1 WHERE pg_relation_size('{table.name}') = 0"
    return DistributionStep(
        table.name, "free the space of the copied rows", table.rows, statement, done
    )


_HAS_CITUS = "SELECT 1 WHERE to_regclass('pg_dist_partition') IS NOT NULL"

_WORKERS = "SELECT COUNT(*) FROM pg_dist_node WHERE isactive AND shouldhaveshards"

_TABLES = """
SELECT c.relname, c.relkind::text, greatest(c.reltuples, 0)::bigint, pg_relation_size(c.oid),
    CASE WHEN p.partmethod = 'h' THEN 'distributed' WHEN p.repmodel = 't' THEN 'replicated'
        WHEN p.partmethod <> 'n' THEN 'laid out otherwise' END
FROM pg_class c LEFT JOIN pg_dist_partition p ON p.logicalrelid = c.oid
WHERE c.relkind IN ('r', 'p') AND c.relnamespace = (
    SELECT relnamespace FROM pg_class WHERE oid = to_regclass('schema_migrations')
)
"""

_DONE = """
SELECT 1 FROM pg_dist_partition
WHERE logicalrelid = '{}'::regclass AND (partmethod = 'h' OR repmodel = 't')
"""


def list_distribution_steps(settings: Settings) -> list[DistributionStep]:
    """List the steps that `distribute_database` would run; changes nothing."""
    _refuse_sqlite(settings)
    return run_with_database(settings, plan_distribution)


def distribute_database(settings: Settings, show: ShowStep) -> int:
    """Migrate the database and distribute it over its cluster; returns the number of steps."""

    async def work(database: Database) -> int:
        await verify_cluster(database)
        await backend.migrate(database, clock.now())
        return await run_distribution(database, show)

    _refuse_sqlite(settings)
    with logs.configure_logs_within(settings):
        return run_with_database(settings, work)


def list_partition_steps(settings: Settings) -> list[PartitionStep]:
    """List the steps that `partition_database` would run; changes nothing."""

    async def work(database: Database) -> list[PartitionStep]:
        plans = [await plan_partitioning(database, table, clock.now()) for table in MONTHLY]
        return [step for steps in plans for step in steps]

    _refuse_sqlite(settings)
    return run_with_database(settings, work)


def partition_database(settings: Settings, show: Show) -> int:
    """Migrate the database and partition its large tables; returns the number of steps."""

    async def work(database: Database) -> int:
        await backend.migrate(database, clock.now())
        return sum([await partition_table(database, each, clock.now(), show) for each in MONTHLY])

    _refuse_sqlite(settings)
    with logs.configure_logs_within(settings):
        return run_with_database(settings, work)


def _refuse_sqlite(settings: Settings) -> None:
    if settings.database_url.startswith("sqlite"):
        raise InputError("SQLite is one file on one machine. Name a PostgreSQL in database_url.")
