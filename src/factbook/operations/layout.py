"""Changes of the layout of large tables, each on a database that is opened for it."""

from typing import Final

from factbook import backend, clock
from factbook.audit import retention
from factbook.errors import InputError
from factbook.facts import retention as fact_retention
from factbook.operations import distribution
from factbook.operations.database_session import on_database
from factbook.settings import Settings
from factbook.storage import Database, partition_change
from factbook.telemetry import logs

# Those that grow with time; events are kept for days.
MONTHLY: Final = (fact_retention.MONTHLY_HISTORY, retention.MONTHLY)


def distribution_plan(settings: Settings) -> list[distribution.DistributionStep]:
    """The steps of `distribute` that are left; changes nothing."""
    _refuse_sqlite(settings)
    return on_database(settings, distribution.plan)


def distribute(settings: Settings, show: distribution.Show) -> int:
    """Migrate the database and distribute it over its cluster; returns the number of steps."""

    async def work(database: Database) -> int:
        await distribution.verify_cluster(database)
        await backend.migrate(database, clock.now())
        return await distribution.distribute(database, show)

    _refuse_sqlite(settings)
    with logs.configure_logs_within(settings):
        return on_database(settings, work)


def partition_plan(settings: Settings) -> list[partition_change.PartitionStep]:
    """The steps of `partition` that are left; changes nothing."""

    async def work(database: Database) -> list[partition_change.PartitionStep]:
        plans = [await partition_change.plan(database, table, clock.now()) for table in MONTHLY]
        return [step for steps in plans for step in steps]

    _refuse_sqlite(settings)
    return on_database(settings, work)


def partition(settings: Settings, show: partition_change.Show) -> int:
    """Migrate the database and partition its large tables; returns the number of steps."""

    async def work(database: Database) -> int:
        await backend.migrate(database, clock.now())
        return sum(
            [
                await partition_change.partition(database, each, clock.now(), show)
                for each in MONTHLY
            ]
        )

    _refuse_sqlite(settings)
    with logs.configure_logs_within(settings):
        return on_database(settings, work)


def _refuse_sqlite(settings: Settings) -> None:
    if settings.database_url.startswith("sqlite"):
        raise InputError("SQLite is one file on one machine. Name a PostgreSQL in database_url.")
