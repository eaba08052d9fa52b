"""Facets: the values of a key, each with the number of entities that have it."""

from typing import NamedTuple

from factbook.catalog import search
from factbook.catalog.piecewise import aside, ordered
from factbook.catalog.relations import REVERSE, STATED
from factbook.catalog.store.conditions import COLUMNS, EVERYTHING, Condition
from factbook.storage import Database, Row

_RELATIONS = "relations."
_OWN_COLUMNS = ("metadata.namespace", "metadata.uid")


class Facet(NamedTuple):
    """A value as it was written, and the number of entities that have it."""

    value: str
    entities: int


async def facet(database: Database, key: str, condition: Condition) -> list[Facet]:
    """The values of a key among the entities that meet the condition, in case-insensitive order."""
    key = key.lower()
    if key in _OWN_COLUMNS:
        sql, parameters = _of_column(COLUMNS[key], condition)
    elif key.startswith(_RELATIONS):
        sql, parameters = _of_relation(key.removeprefix(_RELATIONS), condition)
    else:
        return await _of_index(database, key, condition)
    rows = await database.search(sql, parameters)
    return await aside(len(rows), _facets, rows)


async def _of_index(database: Database, key: str, condition: Condition) -> list[Facet]:
    among, parameters = _among("entity_id", condition)
    # As little as possible for each of the many rows; what remains is done for each value.
    rows = await database.search(
        "SELECT value, original, count(*) FROM search "
        f"WHERE key_id = (SELECT id FROM search_keys WHERE key = ?){among} "
        "GROUP BY value, original",
        [key, *parameters],
    )
    return await aside(len(rows), _as_written, rows)


def _facets(rows: list[Row]) -> list[Facet]:
    return [Facet(*row) for row in rows]


def _as_written(rows: list[Row]) -> list[Facet]:
    found = (
        (value, written or value, entities)
        for value, written, entities in rows
        if value != search.EXISTS
    )
    return [Facet(written, entities) for _, written, entities in ordered(found)]


def _of_column(column: str, condition: Condition) -> tuple[str, list[object]]:
    where, parameters = condition.sql()
    sql = f"SELECT {column}, count(*) FROM entities e WHERE {where} GROUP BY {column} ORDER BY 1"
    return sql, parameters


def _of_relation(type_: str, condition: Condition) -> tuple[str, list[object]]:
    forward = next((name for name in REVERSE if name.lower() == type_), "")
    reverse = REVERSE.get(forward, "")
    own = "SELECT source_id AS id, target_ref AS target FROM relations WHERE type = ?"
    others = (
        "SELECT t.id, s.ref AS target FROM relations r JOIN entities s ON s.id = r.source_id "
        "JOIN entities t ON t.ref = r.target_ref WHERE r.type = ?"
    )
    halves = [(own, forward)] if forward in STATED or not forward else []
    halves += [(others, reverse)] if reverse in STATED else []
    among, parameters = _among("id", condition)
    sql = (
        f"SELECT target, count(*) FROM ({' UNION '.join(half for half, _ in halves)}) related "
        f"WHERE 1 = 1{among} GROUP BY target ORDER BY target"
    )
    return sql, [*(type_ for _, type_ in halves), *parameters]


def _among(column: str, condition: Condition) -> tuple[str, list[object]]:
    if condition == EVERYTHING:
        return "", []
    where, parameters = condition.sql()
    return f" AND {column} IN (SELECT e.id FROM entities e WHERE {where})", parameters
