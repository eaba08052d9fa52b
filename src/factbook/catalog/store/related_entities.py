"""Entities that belong to others by one type of relation: counted, and page by page."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from factbook.catalog.store import entity_query, totals
from factbook.catalog.store.conditions import AllOf, Condition, Related
from factbook.catalog.store.documents import DOCUMENT
from factbook.catalog.store.entity_query import Query
from factbook.storage import Database


class Belonging(NamedTuple):
    """The relation, as in `ownedBy`, and the entities of which one is its target."""

    type: str
    targets: Sequence[str]


class BelongingEntity(NamedTuple):
    """An entity with its document as pushed."""

    ref: str
    id: int
    document: str


class BelongingPage(NamedTuple):
    """Entities by reference; `total` counts those of all pages, up to `totals.MORE`."""

    entities: list[BelongingEntity]
    total: int
    has_more: bool


async def page(
    database: Database,
    about: Belonging,
    after: str | None,
    limit: int,
    also: Sequence[Condition] = (),
) -> BelongingPage:
    """Up to `limit` entities after a reference, of those that meet the other conditions."""
    condition = AllOf([Related([about.type.lower()], about.targets), *also])
    total = await (totals.bounded(database, condition) if also else _total(database, about))
    if also or total < totals.MORE:
        query = Query(condition=condition, limit=limit, after=[after] if after else None)
        columns = f"e.ref, e.id, {DOCUMENT}"
        found = await entity_query.page_of(database, query, columns, BelongingEntity)
        return BelongingPage(found.items, total, found.after)
    # Of so many, the next ones are found by looking at one entity after the other.
    values = after or "", about.type, list(about.targets)
    rows = await database.search(f"{_IN_ORDER} LIMIT {limit + 1}", values)
    entities = [BelongingEntity(*row) for row in rows[:limit]]
    return BelongingPage(entities, total, len(rows) > limit)


async def _total(database: Database, about: Belonging) -> int:
    """The number of entities, counted up to `totals.MORE`."""
    rows = await database.search(_COUNTED, (about.type, list(about.targets), totals.MORE))
    found, distinct = rows[0]
    return totals.MORE if found == totals.MORE else distinct


# An entity may be part of several of the targets.
_COUNTED: Final = """
SELECT COUNT(*), COUNT(DISTINCT source_id) FROM (
    SELECT r.source_id FROM relations r WHERE r.type = ? AND r.target_ref IN LIST(?) LIMIT ?
) found
"""

# The offset keeps PostgreSQL from listing all that have the targets, as its plan for any targets
# does, which it takes from the sixth time on. The limit is no parameter for the same reason.
_IN_ORDER: Final = f"""
SELECT e.ref, e.id, {DOCUMENT} FROM entities e WHERE e.ref > ? AND EXISTS (
    SELECT 1 FROM relations r
    WHERE r.source_id = e.id AND r.type = ? AND r.target_ref IN LIST(?) LIMIT 1 OFFSET 0
) ORDER BY e.ref
"""
