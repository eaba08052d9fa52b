"""Entities by the beginning of a name, from indexes alone: for a search that answers as one types.

Names are those of the entity, its title, and the display name of a person or group.
"""

from typing import Final

from factbook.catalog.search import EXISTS
from factbook.catalog.store.browse import COLUMNS, EntityRow
from factbook.storage import Database

_KEYS: Final = ("metadata.title", "spec.profile.displayname")
# Sorts behind every text that begins with what stands before it.
_LAST: Final = chr(0x10FFFF)


async def beginning(database: Database, text: str, most: int) -> list[EntityRow]:
    """Entities with a name that begins with a text in lower case, in no order.

    Up to `most` by each sort of name, of which those that are shorter come first.
    """
    bounds = (text, text + _LAST)
    parameters: list[object] = [*bounds, most]
    for key in _KEYS:
        parameters += [key, *bounds, EXISTS, most]
    rows = await database.all(_BEGINNING, parameters)
    return [EntityRow(*row) for row in rows]


_BY_NAME: Final = """
SELECT id FROM (SELECT id FROM entities WHERE name >= ? AND name < ? ORDER BY name LIMIT ?) named
"""

_BY_TEXT: Final = """
SELECT id FROM (
    SELECT entity_id AS id FROM search
    WHERE key_id = (SELECT id FROM search_keys WHERE key = ?)
        AND value >= ? AND value < ? AND value <> ?
    ORDER BY value LIMIT ?
) texts
"""

_BEGINNING: Final = f"""
SELECT {", ".join(COLUMNS)} FROM entities e
WHERE e.id IN ({" UNION ".join([_BY_NAME, *(_BY_TEXT for _ in _KEYS)])})
"""
