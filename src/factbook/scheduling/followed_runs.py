"""Runs that somebody may be following: those under way, and the last that were begun."""

from typing import Final

from factbook.scheduling.runs import READ, RunRecord
from factbook.storage import Database


async def latest(database: Database, limit: int) -> dict[int, RunRecord]:
    """Runs of all entities that are under way, and the last `limit` that were begun, by id."""
    found = [RunRecord(*row) for row in await database.all(_LATEST, (limit,))]
    return {run.id: run._replace(whole=bool(run.whole)) for run in found}


_LATEST: Final = """
SELECT {read} FROM runs WHERE whole = 1 AND finished_at IS NULL
UNION SELECT {fields} FROM (SELECT {read} FROM runs ORDER BY id DESC LIMIT ?) newest
""".replace("{read}", READ).replace("{fields}", ", ".join(RunRecord._fields))
