"""The catalog as a whole: how many entities of which kind, how they comply, what changed most."""

from typing import NamedTuple

from factbook.catalog.store import counting
from factbook.catalog.store.by_ref import narrowed
from factbook.storage import Database


class RevisionTotals(NamedTuple):
    """A revision among the largest: how many entities it added, updated and removed."""

    set: str
    revision: int
    created_by: str
    created_at: int
    added: int
    updated: int
    removed: int


async def kinds(database: Database) -> dict[str, int]:
    """How many entities of each kind there are, the most first."""
    rows = (await counting.by_kind(database)).items()
    return dict(sorted(rows, key=lambda row: (-row[1], row[0])))


async def compliance(database: Database, kind: str | None) -> dict[int, int]:
    """How many entities of a kind have just these bits of `catalog.compliance`, by the bits."""
    where, parameters = narrowed(kind, None)
    rows = await database.search(
        f"SELECT compliance, count(*) FROM entities WHERE {where} GROUP BY compliance", parameters
    )
    return dict(rows)


async def largest_changes(database: Database, since: int, limit: int) -> list[RevisionTotals]:
    """The revisions since a time that changed the most entities, the largest first."""
    rows = await database.search(
        "SELECT s.name, r.number, r.created_by, r.created_at, r.added, r.updated, r.removed "
        "FROM revisions r JOIN sets s ON s.id = r.set_id WHERE r.created_at >= ? "
        "ORDER BY r.added + r.updated + r.removed DESC, r.created_at DESC LIMIT ?",
        (since, limit),
    )
    return [RevisionTotals(*row) for row in rows]
