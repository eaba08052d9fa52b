"""Entities that contain a text, on SQLite: up to a number of them, in no order.

A search for a frequent text ends early so. One for a rare text reads everything, and its matches
stand for the text in what is asked next. PostgreSQL has indexes for rare texts (`trigrams`), and
reads everything for frequent ones.
"""

from collections.abc import Sequence

from factbook.catalog import search
from factbook.catalog.store.conditions import SQL, AllOf, Condition, Contains, escaped
from factbook.catalog.store.trigrams import KEYS
from factbook.storage import Database

_NAME = "metadata.name"


async def of_lone_text(database: Database, condition: Condition, most: int) -> list[int] | None:
    """The ids of up to `most` entities with a text, in no order.

    None on PostgreSQL, and for any condition but a text in names, titles, descriptions or tags.
    """
    if database.dialect != "sqlite":
        return None
    match condition:
        case AllOf(parts=[Contains(keys, text)]) if keys and set(keys) <= set(KEYS):
            rows = await database.search(*_matching(keys, f"%{escaped(text)}%", most))
            return [id_ for (id_,) in rows]
    return None


def _matching(keys: Sequence[str], pattern: str, most: int) -> SQL:
    """The statement, of which SQLite reads no more than `most` need."""
    halves, parameters = list[str](), list[object]()
    for key in keys:
        if key == _NAME:
            halves.append("SELECT id FROM entities WHERE ref LIKE ? ESCAPE '\\'")
            parameters.append(f"%/{pattern}")
        else:
            halves.append(_BY_VALUE)
            parameters += [key, pattern, search.EXISTS]
    union = " UNION ALL ".join(halves)
    return f"SELECT DISTINCT id FROM ({union}) matching LIMIT {most}", parameters


_BY_VALUE = """
SELECT entity_id AS id FROM search WHERE key_id = (SELECT id FROM search_keys WHERE key = ?)
    AND value LIKE ? ESCAPE '\\' AND value <> ?
"""
