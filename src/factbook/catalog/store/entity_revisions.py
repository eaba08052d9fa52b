"""Revisions of the set of an entity that changed the entity itself."""

from itertools import pairwise
from typing import Final, NamedTuple

from factbook.catalog.store.documents import DOCUMENT
from factbook.storage import Database

# Revisions of the set that are looked at.
_LOOKED_AT: Final = 500


class EntityRevision(NamedTuple):
    """A revision with the documents of the entity before and after it; None where it was not there.

    `restored` is the number of the revision that it restored.
    """

    number: int
    created_at: int
    created_by: str
    restored: int | None
    before: str | None
    after: str | None


async def of_entity(
    database: Database, set_name: str, ref: str, limit: int
) -> list[EntityRevision]:
    """Up to `limit` of the kept revisions that changed an entity of a set, newest first."""
    rows = await database.all(_CHANGED, (set_name, _LOOKED_AT, ref, limit))
    if not rows:
        return []
    now = await database.one(f"SELECT {DOCUMENT} FROM entities e WHERE e.ref = ?", (ref,))
    chain = [now[0] if now else None, *(row[-1] for row in rows)]
    return [
        EntityRevision(number, created_at, created_by, restored, before, after)
        for (number, created_at, created_by, restored, _), (after, before) in zip(
            rows, pairwise(chain), strict=True
        )
    ]


_CHANGED: Final = """
SELECT r.number, r.created_at, r.created_by, r.restored, c.document FROM (
    SELECT v.set_id, v.number, v.created_at, v.created_by, v.restored
    FROM sets s JOIN revisions v ON v.set_id = s.id WHERE s.name = ?
    ORDER BY v.number DESC LIMIT ?
) r CROSS JOIN revision_changes c
WHERE c.set_id = r.set_id AND c.number = r.number AND c.ref = ? ORDER BY r.number DESC LIMIT ?
"""
