"""Values that a filter of the catalog may have: namespaces, owners, tags and sets."""

from typing import NamedTuple

from factbook.storage import Database, counters


class FilterChoice(NamedTuple):
    """A value to filter by, and the number of entities that have it."""

    value: str
    entities: int


async def namespaces(database: Database, limit: int) -> list[FilterChoice]:
    """The most frequent namespaces."""
    return [FilterChoice(*row) for row in await database.search(_NAMESPACES, (limit,))]


async def owners(database: Database, limit: int) -> list[FilterChoice]:
    """The references that are the owner of the most entities, existing or not."""
    return [FilterChoice(*row) for row in await database.search(_OWNERS, (limit,))]


async def tags(database: Database, limit: int) -> list[FilterChoice]:
    """The most frequent tags."""
    return [FilterChoice(*row) for row in await database.search(_TAGS, (limit,))]


async def sets(database: Database, limit: int) -> list[FilterChoice]:
    """The largest sets."""
    return [FilterChoice(*row) for row in await database.all(_SETS, (limit,))]


async def revision(database: Database) -> tuple[int, int]:
    """A version that changes with the content of sets and with new entities."""
    row = await database.one(_REVISION)
    assert row is not None
    return row[0], row[1]


_REVISION = f"""
SELECT (SELECT COALESCE(SUM(revision), 0) FROM sets), {counters.expression("entity")}
"""

_NAMESPACES = """
SELECT namespace, count(*) FROM entities GROUP BY namespace
ORDER BY count(*) DESC, namespace LIMIT ?
"""

_OWNERS = """
SELECT target_ref, count(*) FROM relations WHERE type = 'ownedBy' GROUP BY target_ref
ORDER BY count(*) DESC, target_ref LIMIT ?
"""

_TAGS = """
SELECT value, count(*) FROM search
WHERE key_id = (SELECT id FROM search_keys WHERE key = 'metadata.tags') AND value <> '\x01'
GROUP BY value ORDER BY count(*) DESC, value LIMIT ?
"""

_SETS = (
    "SELECT name, item_count FROM sets WHERE item_count > 0 ORDER BY item_count DESC, name LIMIT ?"
)
