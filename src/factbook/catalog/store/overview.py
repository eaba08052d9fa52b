"""Catalog statistics: entities by kind, compliance, and the largest changes.

The numbers of entities by kind are cached, and checked against the state of the database on every
read, so they are never older than the last commit, whichever process made it. Other counts that
take longer than what they are shown beside are kept for half a minute.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeVar

from factbook.catalog.store.conditions import narrowed
from factbook.clock import SECOND
from factbook.storage import Database, Row, counters

T = TypeVar("T")

_KEPT: Final = 30 * SECOND


class RevisionTotals(NamedTuple):
    """A revision among the largest: the number of entities it added, updated and removed."""

    set: str
    revision: int
    created_by: str
    created_at: int
    added: int
    updated: int
    removed: int


class CatalogSize(NamedTuple):
    """Number of non-empty sets, and of pushed entities inside and outside sets."""

    sets: int
    entities: int


async def size(database: Database) -> CatalogSize:
    """The size of the catalog, from counters maintained by each push."""
    row = await database.one("SELECT COUNT(*), SUM(item_count) FROM sets WHERE item_count > 0")
    outside = await database.one("SELECT COUNT(*) FROM entities WHERE set_id IS NULL")
    assert row is not None
    assert outside is not None
    return CatalogSize(row[0], int(row[1] or 0) + outside[0])


@dataclass
class _Counted:
    state: Row | None = None
    kinds: Mapping[str, int] = field(default_factory=dict)
    one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)


async def by_kind(database: Database) -> Mapping[str, int]:
    """The number of entities of each kind that has any."""
    known = database.remembered.of(_Counted)
    if known.state != await database.find(_STATE, _ENTITIES):
        async with known.one_at_a_time:
            # Looked at before the count: what is written meanwhile makes it be counted again.
            state = await database.find(_STATE, _ENTITIES)
            if known.state != state:
                known.kinds = dict(await database.search(_KINDS))
                known.state = state
    return known.kinds


class _KeptCount(NamedTuple):
    """A count at a revision of the catalog, and its time."""

    revision: Row | None
    at: int
    found: Any


@dataclass
class _KeptCounts:
    by_question: dict[str, _KeptCount] = field(default_factory=dict)


async def kept(database: Database, now: int, question: str, count: Callable[[], Awaitable[T]]) -> T:
    """The answer to one of few questions, counted at most twice a minute while nothing changes."""
    remembered = database.remembered.of(_KeptCounts).by_question
    revision, known = await database.one(_REVISION), remembered.get(question)
    if known is None or known.revision != revision or not 0 <= now - known.at < _KEPT:
        known = remembered[question] = _KeptCount(revision, now, await count())
    found: T = known.found
    return found


async def kinds(database: Database) -> dict[str, int]:
    """The number of entities of each kind, most frequent first."""
    rows = (await by_kind(database)).items()
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


# Entities come and go with a new revision of their set, or outside any set. The state has a name to
# be found by: on PostgreSQL, all who ask for it at the same moment share one query.
_ENTITIES = "entities"
_STATE = f"""
SELECT s.name, s.number, s.revisions, s.items,
    {counters.expression("entity")},
    (SELECT count(*) FROM entities WHERE set_id IS NULL),
    (SELECT max(removed_at) FROM removed_entities)
FROM (
    SELECT '{_ENTITIES}' AS name, count(*) AS number, SUM(revision) AS revisions,
        SUM(item_count) AS items FROM sets
) s
WHERE s.name IN LIST(?)
"""

_KINDS = "SELECT kind, count(*) FROM entities GROUP BY kind"

# Changes with the content of sets and with new entities.
_REVISION = f"""
SELECT (SELECT COALESCE(SUM(revision), 0) FROM sets), {counters.expression("entity")}
"""
