"""`python -m tests.system.next_release --port PORT`: `factbook serve`, one migration further on."""

import asyncio
import sys

import uvicorn

from factbook import clock
from factbook.app import Application
from factbook.settings import Settings
from factbook.settings.table import load_settings
from factbook.storage.database_url import open_database
from factbook.storage.migrations import get_migration_texts, migrate
from factbook.telemetry import logs

MORE = """
ALTER TABLE entities ADD COLUMN more TEXT;
ALTER TABLE tokens ADD COLUMN more INTEGER NOT NULL DEFAULT 0;
ALTER TABLE facts_latest ADD COLUMN more TEXT;
CREATE TABLE more (id INTEGER PRIMARY KEY);
"""
INDEX = "CREATE INDEX CONCURRENTLY entities_by_more ON entities (more);"
NEXT = {**get_migration_texts(), "9000_more.sql": MORE, "9001_index.sql": INDEX}


async def upgrade(settings: Settings) -> list[str]:
    """What the next release does to the database before it serves."""
    database = await open_database(settings.database_url, connections=3)
    try:
        return await migrate(database, clock.now(), known=NEXT)
    finally:
        await database.close()


def main(port: str) -> None:
    settings = load_settings()
    logs.configure_logs(settings)
    asyncio.run(upgrade(settings))
    uvicorn.run(
        Application(settings), port=int(port), loop="uvloop", lifespan="on", log_config=None
    )


if __name__ == "__main__":
    main(sys.argv[sys.argv.index("--port") + 1])
