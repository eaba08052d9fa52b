"""The migrations: numbered SQL files, applied in order, each once, under a lock.

To change the schema add the next file; a file that was released is never edited. Every change has
to leave the previous release working (add first, remove a release later).
"""

from collections.abc import Callable, Mapping
from importlib.resources import files

from factbook.storage import dialects
from factbook.storage.database import Database, Transaction


def names() -> list[str]:
    """The names of all migrations, in the order in which they apply."""
    folder = files(__name__)
    return sorted(item.name for item in folder.iterdir() if item.name.endswith(".sql"))


Step = Callable[[Transaction], None]


async def migrate(
    database: Database, now: int, steps: Mapping[str, Step] | None = None
) -> list[str]:
    """Bring the schema up to date; the names of the migrations that were applied.

    `steps` holds, for some of the names, what has to be done in the same transaction after the SQL.
    """

    def apply(transaction: Transaction) -> list[str]:
        transaction.lock("migrations")
        for statement in dialects.schema(_RECORD, database.dialect):
            transaction.run(statement)
        done = {row[0] for row in transaction.all("SELECT name FROM schema_migrations")}
        pending = [name for name in names() if name not in done]
        for name in pending:
            text = (files(__name__) / name).read_text("utf-8")
            for statement in dialects.schema(text, database.dialect):
                transaction.run(statement)
            if steps and name in steps:
                steps[name](transaction)
            transaction.run("INSERT INTO schema_migrations VALUES (?, ?)", (name, now))
        return pending

    return await database.write(apply)


_RECORD = """
CREATE TABLE IF NOT EXISTS schema_migrations (name TEXT PRIMARY KEY, applied_at INTEGER NOT NULL)
"""
