"""Catalog statistics: entities by kind, compliance, and the largest changes.

The numbers of entities by kind are cached, and checked against the state of the database on every
read, so they are never older than the last commit, whichever process made it.
"""

from typing import NamedTuple

from factbook.catalog.store import counting
from factbook.catalog.store.by_ref import narrowed
from factbook.storage import Database


class RevisionTotals(NamedTuple):
    """A revision among the largest: the number of entities it added, updated and removed."""

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
    """The number of entities of a kind by their exact bits of `catalog.compliance`."""
    where, parameters = narrowed(kind, None)
    rows = await database.search(
        f"SELECT compliance, count(*) FROM entities WHERE {where} GROUP BY compliance", parameters
    )
    return dict(rows)


async def largest_changes(database: Database, since: int, limit: int) -> list[RevisionTotals]:
    """The revisions since a time that changed the most entities, largest first."""
    rows = await database.search(
        "SELECT s.name, r.number, r.created_by, r.created_at, r.added, r.updated, r.removed "
        "FROM revisions r JOIN sets s ON s.id = r.set_id WHERE r.created_at >= ? "
        "ORDER BY r.added + r.updated + r.removed DESC, r.created_at DESC LIMIT ?",
        (since, limit),
    )
    return [RevisionTotals(*row) for row in rows]
