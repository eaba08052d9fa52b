"""Changes of the layout of large tables, each on a database that is opened for it."""

from factbook import backend, clock
from factbook.errors import InputError
from factbook.operations import distribution
from factbook.operations.opening import on_database
from factbook.settings import Settings
from factbook.storage import Database
from factbook.telemetry import logs


def distribution_plan(settings: Settings) -> list[distribution.Step]:
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
    with logs.configured(settings):
        return on_database(settings, work)


def _refuse_sqlite(settings: Settings) -> None:
    if settings.database_url.startswith("sqlite"):
        raise InputError("SQLite is one file on one machine. Name a PostgreSQL in database_url.")
