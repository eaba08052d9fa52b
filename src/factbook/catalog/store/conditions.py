"""Composable conditions on entities, and their SQL on `entities e`.

Filters, predicates, full-text search and the entity filters of data sources all compile to these.
Keys are dotted paths of the index (catalog/search.py); keys and values are in lower case.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from msgspec import Struct

from factbook.catalog import search
from factbook.catalog.relations import REVERSE, STATED

SQL = tuple[str, list[object]]

COLUMNS = {
    "kind": "e.kind",
    "metadata.namespace": "e.namespace",
    "metadata.name": "e.name",
    "metadata.uid": "e.uid",
}
_RELATIONS = "relations."
_JOINED = 4
_IDS = "SELECT entity_id FROM search WHERE key_id = (SELECT id FROM search_keys WHERE key = ?)"
# Sorts behind every text that begins with what stands before it.
_LAST = chr(0x10FFFF)


class AllOf(Struct, frozen=True):
    """Conjunction: every part holds; empty, it is always true."""

    parts: Sequence["Condition"] = ()

    def sql(self) -> SQL:
        parts = [part.sql() for part in self.parts]
        # PostgreSQL's planner tries every order of joins, but leaves alone what is wrapped so.
        wrapped = [f"({sql}) IS TRUE" for sql, _ in parts[_JOINED:]]
        plain = [f"({sql})" for sql, _ in parts[:_JOINED]]
        return " AND ".join([*plain, *wrapped]) or "1 = 1", _parameters(parts)


class AnyOf(Struct, frozen=True):
    """Disjunction: at least one part holds; empty, it is never true."""

    parts: Sequence["Condition"]

    def sql(self) -> SQL:
        parts = [part.sql() for part in self.parts]
        return " OR ".join(f"({sql})" for sql, _ in parts) or "1 = 0", _parameters(parts)


class Not(Struct, frozen=True):
    """Negation: the part does not hold."""

    part: "Condition"

    def sql(self) -> SQL:
        sql, parameters = self.part.sql()
        return f"NOT ({sql})", parameters


class Apart(Struct, frozen=True):
    """A condition evaluated on its own, once, instead of being joined with other tables."""

    part: "Condition"

    def sql(self) -> SQL:
        sql, parameters = self.part.sql()
        return f"({sql}) IS TRUE", parameters


class Has(Struct, frozen=True):
    """The key exists; with `values`, it has one of them."""

    key: str
    values: Sequence[str] | None = None

    def sql(self) -> SQL:
        if column := COLUMNS.get(self.key):
            return ("1 = 1", []) if self.values is None else _in(column, self.values)
        if self.key.startswith(_RELATIONS):
            return Related([self.key.removeprefix(_RELATIONS)], self.values).sql()
        if self.values is None:
            return f"e.id IN ({_IDS})", [self.key]
        sql, parameters = _in("value", [one for one in self.values if one != search.EXISTS])
        return f"e.id IN ({_IDS} AND {sql})", [self.key, *parameters]


class HasPrefix(Struct, frozen=True):
    """A value of the key begins with the prefix."""

    key: str
    prefix: str

    def sql(self) -> SQL:
        bounds: list[object] = [self.prefix, self.prefix + _LAST]
        if column := COLUMNS.get(self.key):
            return f"{column} >= ? AND {column} < ?", bounds
        if self.key.startswith(_RELATIONS):
            return _pointing([self.key.removeprefix(_RELATIONS)], "{0} >= ? AND {0} < ?", bounds)
        sql = f"e.id IN ({_IDS} AND value >= ? AND value < ? AND value <> ?)"
        return sql, [self.key, *bounds, search.EXISTS]


class Related(Struct, frozen=True):
    """A relation exists: of one of the types, if given, and to one of the targets, if given."""

    types: Sequence[str] | None = None
    targets: Sequence[str] | None = None

    def sql(self) -> SQL:
        target, parameters = ("1 = 1", []) if self.targets is None else _in("{0}", self.targets)
        return _pointing(self.types, target, parameters)


class Contains(Struct, frozen=True):
    """A value of one of the keys contains the text."""

    keys: Sequence[str]
    text: str

    def sql(self) -> SQL:
        parts = [_like(key, f"%{escaped(self.text)}%") for key in self.keys]
        return " OR ".join(sql for sql, _ in parts) or "1 = 0", _parameters(parts)


class CustomCondition(Protocol):
    """A condition defined by another module."""

    def sql(self) -> SQL:
        """The condition on `entities e`."""


def only_key(condition: "Condition") -> str | None:
    """The column of which it requires one value; "" if it requires nothing, else None."""
    match condition:
        case AllOf(parts=parts) if not parts:
            return ""
        case AllOf(parts=[Has(key, [_])]) | Has(key, [_]) if key in COLUMNS:
            return key
    return None


def required_kind(condition: "Condition") -> str | None:
    """The kind required by a condition, if there is one."""
    match condition:
        case AllOf(parts=parts):
            return next((kind for part in parts if (kind := required_kind(part))), None)
        case Has("kind", [kind]):
            return kind
    return None


Condition: TypeAlias = (
    AllOf | AnyOf | Not | Apart | Has | HasPrefix | Related | Contains | CustomCondition
)

EVERYTHING = AllOf()


def escaped(text: str) -> str:
    """The text escaped for a LIKE pattern, with backslash as the escape character."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _parameters(parts: Iterable[SQL]) -> list[object]:
    return [parameter for _, parameters in parts for parameter in parameters]


def _like(key: str, pattern: str) -> SQL:
    like = "LIKE ? ESCAPE '\\'"
    if key == "metadata.name":
        # The name is what stands behind the reference's only slash, and every index of entities
        # holds the reference: the entities themselves need not be read.
        return f"e.ref {like}", [f"%/{pattern}"]
    if column := COLUMNS.get(key):
        return f"{column} {like}", [pattern]
    if key.startswith(_RELATIONS):
        return _pointing([key.removeprefix(_RELATIONS)], f"{{0}} {like}", [pattern])
    return f"e.id IN ({_IDS} AND value {like} AND value <> ?)", [key, pattern, search.EXISTS]


def _in(column: str, values: Sequence[str]) -> SQL:
    if not values:
        return "1 = 0", []
    if len(values) == 1:
        return f"{column} = ?", list(values)
    return f"{column} IN ({', '.join('?' * len(values))})", list(values)


def _pointing(types: Sequence[str] | None, target: str, parameters: list[object]) -> SQL:
    """Entities with a relation of one of the types, stated by themselves or by the other side.

    `target` is the condition on the other side's reference, which is written in it as `{0}`.
    """
    forward = [name for name in REVERSE if types is None or name.lower() in types]
    parts = list[SQL]()
    if stated := [name for name in forward if name in STATED]:
        type_, names = _in("type", stated)
        sql = f"SELECT source_id FROM relations WHERE {type_} AND {target.format('target_ref')}"
        parts.append((f"e.id IN ({sql})", [*names, *parameters]))
    if stated := [REVERSE[name] for name in forward if REVERSE[name] in STATED]:
        type_, names = _in("r.type", stated)
        sql = (
            "SELECT r.target_ref FROM relations r JOIN entities s ON s.id = r.source_id "
            f"WHERE {type_} AND {target.format('s.ref')}"
        )
        parts.append((f"e.ref IN ({sql})", [*names, *parameters]))
    return f"({' OR '.join(sql for sql, _ in parts) or '1 = 0'})", _parameters(parts)


def narrowed(kind: str | None, namespace: str | None) -> tuple[str, list[object]]:
    """The condition on `entities` for a kind and a namespace; None matches any."""
    if kind is None:
        return ("1 = 1", []) if namespace is None else ("namespace = ?", [namespace])
    # A kind, and a namespace of it, is a range of references, which one index covers.
    prefix = f"{kind}:" if namespace is None else f"{kind}:{namespace}/"
    return "ref >= ? AND ref < ?", [prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1)]


class EntityRange(NamedTuple):
    """Entities of a kind and a namespace, None for any: up to `limit` after a reference."""

    kind: str | None = None
    namespace: str | None = None
    after: str = ""
    limit: int | None = None
