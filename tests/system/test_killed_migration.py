"""`factbook migrate` that is killed half-way leaves one of the schemas whole, and can go on."""

import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from factbook.storage.database_url import open_database
from factbook.storage.migrations import list_migrations
from tests.processes import FACTBOOK, TOKEN_KEY, ServerProcess, clean_environment
from tests.storage import first_schema

pytestmark = [pytest.mark.system, pytest.mark.timeout(1800)]

ENTITIES = 20_000
# Each time it is given longer, until it is done before it is killed.
GROWTH = 1.02 if os.environ.get("FACTBOOK_SOAK") else 1.2


def begun(database_url: str) -> subprocess.Popen[bytes]:
    """An upgrade that is under way."""
    environment = {"FACTBOOK_DATABASE_URL": database_url, "FACTBOOK_TOKEN_KEY": TOKEN_KEY}
    return subprocess.Popen(
        [FACTBOOK, "migrate"],
        env=clean_environment() | environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


async def applied(database_url: str) -> list[str]:
    """The migrations that the database has."""
    database = await open_database(database_url, connections=3)
    try:
        rows = await database.all("SELECT name FROM schema_migrations ORDER BY name")
    finally:
        await database.close()
    return [row[0] for row in rows]


async def test_an_upgrade_that_is_killed_can_be_done_again_and_loses_nothing(
    empty_database_url: str, tmp_path: Path
) -> None:
    database_url = empty_database_url
    await first_schema.make(database_url, entities=ENTITIES)
    killed, seconds = 0, 0.2
    while await applied(database_url) != list_migrations():
        process = begun(database_url)
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        process.kill()
        killed += process.wait(60) == -signal.SIGKILL
        seconds *= GROWTH
    assert killed > 1
    server = ServerProcess(database_url, tmp_path).start()
    try:
        with server.client(server.token()) as client:
            query = {"filter": "spec.type=service", "limit": "1"}
            found = client.get("/api/catalog/entities/by-query", params=query).json()
            assert found["totalItems"] == ENTITIES
            one = client.get("/api/catalog/entities/by-name/component/default/old-19999")
            assert one.json()["metadata"]["name"] == "Old19999"
    finally:
        server.stop()
