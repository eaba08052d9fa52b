"""Locks that sessions of a test's own PostgreSQL database wait for; others may share its server."""

from typing import Final

from factbook.storage import Database

# By session: what waits for a row waits for its transaction, which is in no database.
WAITING: Final = """
SELECT 1 FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE NOT granted AND datname = current_database()
"""


async def is_lock_awaited(database: Database) -> bool:
    return await database.one(WAITING) is not None
