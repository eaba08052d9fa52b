"""A coordinator of Citus for tests: each has a schema of its own there, with facts distributed.

Nothing but its address is known: FACTBOOK_TEST_CITUS_URL names a database with the extension and
with workers and without tables of Factbook. Its user may create schemas.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote, urlsplit, urlunsplit

import psycopg

from factbook.operations import layout
from factbook.storage.database_url import open_database
from factbook.storage.migrations import migrate
from tests.service import NOON

# Fewer than the 32 that Citus makes by itself, since each test makes them again.
_SHARDS = 4


class CitusCoordinator:
    """Takes the place of `PostgreSQLServer`; a database of tests is a schema here."""

    def __init__(self, url: str) -> None:
        self._url = url

    @contextmanager
    def database(self, name: str, *, like: str = "") -> Iterator[str]:
        """The address of a new schema, dropped at the end; like another: with its tables."""
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}")
            url = self._of_schema(name)
            try:
                if like:
                    asyncio.run(_distributed(url))
                yield url
            finally:
                connection.execute(f"DROP SCHEMA {name} CASCADE")

    def _of_schema(self, name: str) -> str:
        parts = urlsplit(self._url)
        options = quote(f"-c search_path={name},public -c citus.shard_count={_SHARDS}")
        query = "&".join(filter(None, (parts.query, f"options={options}")))
        return urlunsplit(parts._replace(query=query))


async def _distributed(url: str) -> None:
    database = await open_database(url, connections=3)
    try:
        await migrate(database, NOON)
        await layout.run_distribution(database, lambda _: None)
    finally:
        await database.close()
