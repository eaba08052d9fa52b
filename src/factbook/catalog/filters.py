"""The filter language of the catalog API, as SQL conditions on `entities e`.

Source: the catalog API reference. Sets of conditions are OR'ed; within a set they are AND'ed; the
same key with several values means any of them. Keys and values compare in lower case.
"""

from collections.abc import Iterable

from factbook.catalog import search
from factbook.catalog.relations import REVERSE
from factbook.errors import InputError

Condition = dict[str, list[str] | None]  # key → its values; None: the key exists
SQL = tuple[str, list[object]]

COLUMNS = {
    "kind": "e.kind",
    "metadata.namespace": "e.namespace",
    "metadata.name": "e.name",
    "metadata.uid": "e.uid",
}
_RELATIONS = "relations."
# More would exceed what SQLite nests in one expression.
_MOST = 500
_JOINED = 4


def parse(filters: Iterable[str]) -> list[Condition]:
    """The sets of conditions of all `filter` parameters; an empty list means everything.

    Raises InputError for a condition without a key, and for too many.
    """
    sets = [condition for text in filters if (condition := _parse_one(text))]
    if sum(map(len, sets)) > _MOST:
        raise InputError(f"A filter can have {_MOST} conditions at most.")
    return sets


def _parse_one(text: str) -> Condition:
    condition: Condition = {}
    for part in text.replace("\0", "").split(","):  # as the index leaves it out
        if not part.strip():
            continue
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not key:
            raise InputError(f'The filter "{text}" has a condition without a key.')
        key = key.lower()
        values = condition.setdefault(key, None)
        if equals and values is None:
            condition[key] = [value.lower()]
        elif equals and values is not None:
            values.append(value.lower())
    return condition


def where(filters: list[Condition]) -> SQL:
    """The condition that an entity has to meet; `1 = 1` for no filter."""
    sets = [_all_of(condition) for condition in filters]
    if not sets:
        return "1 = 1", []
    return (
        " OR ".join(f"({sql})" for sql, _ in sets),
        [parameter for _, parameters in sets for parameter in parameters],
    )


def _all_of(condition: Condition) -> SQL:
    parts = [_one(key, values) for key, values in condition.items()]
    # PostgreSQL's planner tries every order of joins, but leaves alone what is wrapped like this.
    wrapped = [f"({sql}) IS TRUE" for sql, _ in parts[_JOINED:]]
    return (
        " AND ".join([*(sql for sql, _ in parts[:_JOINED]), *wrapped]),
        [parameter for _, parameters in parts for parameter in parameters],
    )


def _one(key: str, values: list[str] | None) -> SQL:
    if column := COLUMNS.get(key):
        return _in(column, values) if values is not None else ("1 = 1", [])
    if key.startswith(_RELATIONS):
        return _related(key.removeprefix(_RELATIONS), values)
    found = "SELECT entity_id FROM search WHERE key_id = (SELECT id FROM search_keys WHERE key = ?)"
    if values is None:
        return f"e.id IN ({found})", [key]
    values = [value for value in values if value != search.EXISTS]
    if not values:
        return "1 = 0", []
    sql, parameters = _in("value", values)
    return f"e.id IN ({found} AND {sql})", [key, *parameters]


def _in(column: str, values: list[str]) -> SQL:
    if len(values) == 1:
        return f"{column} = ?", list(values)
    return f"{column} IN ({', '.join('?' * len(values))})", list(values)


def _related(type_: str, values: list[str] | None) -> SQL:
    """Entities that have a relation of this type, stated by themselves or by the other side."""
    forward = next((name for name in REVERSE if name.lower() == type_), None)
    if forward is None:
        return "1 = 0", []
    stated = "SELECT source_id FROM relations WHERE type = ?"
    pointed = (
        "SELECT r.target_ref FROM relations r JOIN entities s ON s.id = r.source_id "
        "WHERE r.type = ?"
    )
    if values is None:
        sql = f"(e.id IN ({stated}) OR e.ref IN ({pointed}))"
        return sql, [forward, REVERSE[forward]]
    targets, parameters = _in("target_ref", values)
    sources, _ = _in("s.ref", values)
    sql = f"(e.id IN ({stated} AND {targets}) OR e.ref IN ({pointed} AND {sources}))"
    return sql, [forward, *parameters, REVERSE[forward], *parameters]
