"""Conditions on entities, their SQL on `entities e`, and the filters that state them."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from msgspec import Struct

from factbook.catalog.kinds import REVERSE_RELATIONS, STATED_RELATIONS

SearchRow = tuple[str, str, str]  # key, value, and the value as written if different

MAX_VALUE_LENGTH = 200
# Stands for a value that is null or too long to index: the key exists, but equals no value.
EXISTS_VALUE = "\x01"

_COLUMN_KEYS = frozenset({"metadata.namespace", "metadata.uid"})
_LEFT_OUT = frozenset({"metadata.etag", "status", "attachments", "relations"})
_SKIPPED = _COLUMN_KEYS | _LEFT_OUT

SQL = tuple[str, list[object]]

KEY_COLUMNS = {
    "kind": "e.kind",
    "metadata.namespace": "e.namespace",
    "metadata.name": "e.name",
    "metadata.uid": "e.uid",
}
_RELATIONS = "relations."
_JOINED = 4
# Appended to a prefix, sorts after every text with that prefix.
_LAST = chr(0x10FFFF)


def flatten_document(document: dict[str, Any]) -> set[SearchRow]:
    """Every (key, value, value as written) under which the entity is indexed."""
    rows: set[SearchRow] = set()
    for key, value in document.items():
        _walk_value(key.lower().replace("\0", ""), value, rows)
    return rows


def _walk_value(path: str, value: Any, rows: set[SearchRow]) -> None:
    if path in _SKIPPED:
        return
    if type(value) is str:
        if len(path) <= MAX_VALUE_LENGTH:
            found = make_search_text(value)
            # Most values are in lower case already; an empty text takes no space. PostgreSQL's text
            # cannot contain NUL.
            written = "" if found in (value, EXISTS_VALUE) else value.replace("\0", "")
            rows.add((path, found, written))
    elif type(value) is dict:
        for key, child in value.items():
            _walk_value(_join_key(path, key), child, rows)
    elif type(value) is list:
        for child in value:
            _walk_value(path, child, rows)
            if type(child) is str and len(path) + len(child) < MAX_VALUE_LENGTH:
                rows.add((_join_key(path, child), "true", ""))
    elif len(path) <= MAX_VALUE_LENGTH:
        rows.add((path, make_search_text(value), ""))


def _join_key(path: str, part: str) -> str:
    return f"{path}.{part}".lower().replace("\0", "")


def make_search_text(value: Any) -> str:
    """A scalar as indexed: in lower case, with numbers and booleans formatted as in JSON."""
    if type(value) is str:
        return value.lower().replace("\0", "") if len(value) <= MAX_VALUE_LENGTH else EXISTS_VALUE
    if value is None:
        return EXISTS_VALUE
    if value is True or value is False:
        return "true" if value else "false"
    if type(value) is float and value.is_integer():
        value = int(value)
    number = str(value)
    return number if len(number) <= MAX_VALUE_LENGTH else EXISTS_VALUE


class AllOf(Struct, frozen=True):
    """Conjunction: every part holds; empty, it is always true."""

    parts: Sequence["Condition"] = ()

    def sql(self) -> SQL:
        parts = [part.sql() for part in self.parts]
        # PostgreSQL's planner tries every join order, except for conditions wrapped like this.
        wrapped = [f"({sql}) IS TRUE" for sql, _ in parts[_JOINED:]]
        plain = [f"({sql})" for sql, _ in parts[:_JOINED]]
        return " AND ".join([*plain, *wrapped]) or "1 = 1", _join_parameters(parts)


class AnyOf(Struct, frozen=True):
    """Disjunction: at least one part holds; empty, it is never true."""

    parts: Sequence["Condition"]

    def sql(self) -> SQL:
        parts = [part.sql() for part in self.parts]
        return " OR ".join(f"({sql})" for sql, _ in parts) or "1 = 0", _join_parameters(parts)


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
        if column := KEY_COLUMNS.get(self.key):
            return ("1 = 1", []) if self.values is None else _in_sql(column, self.values)
        if self.key.startswith(_RELATIONS):
            return Related([self.key.removeprefix(_RELATIONS)], self.values).sql()
        if self.values is None:
            return f"e.id IN ({_IDS})", [self.key]
        sql, parameters = _in_sql("value", [one for one in self.values if one != EXISTS_VALUE])
        return f"e.id IN ({_IDS} AND {sql})", [self.key, *parameters]


class HasPrefix(Struct, frozen=True):
    """A value of the key begins with the prefix."""

    key: str
    prefix: str

    def sql(self) -> SQL:
        bounds: list[object] = [self.prefix, self.prefix + _LAST]
        if column := KEY_COLUMNS.get(self.key):
            return f"{column} >= ? AND {column} < ?", bounds
        if self.key.startswith(_RELATIONS):
            return _pointing_sql(
                [self.key.removeprefix(_RELATIONS)], "{0} >= ? AND {0} < ?", bounds
            )
        sql = f"e.id IN ({_IDS} AND value >= ? AND value < ? AND value <> ?)"
        return sql, [self.key, *bounds, EXISTS_VALUE]


class Related(Struct, frozen=True):
    """A relation exists: of one of the types, if given, and to one of the targets, if given."""

    types: Sequence[str] | None = None
    targets: Sequence[str] | None = None

    def sql(self) -> SQL:
        target, parameters = ("1 = 1", []) if self.targets is None else _in_sql("{0}", self.targets)
        return _pointing_sql(self.types, target, parameters)


class Contains(Struct, frozen=True):
    """A value of one of the keys contains the text."""

    keys: Sequence[str]
    text: str

    def sql(self) -> SQL:
        parts = [_like_sql(key, f"%{escape_like(self.text)}%") for key in self.keys]
        return " OR ".join(sql for sql, _ in parts) or "1 = 0", _join_parameters(parts)


class CustomCondition(Protocol):
    """A condition defined by another module."""

    def sql(self) -> SQL:
        """The condition on `entities e`."""


def single_key(condition: "Condition") -> str | None:
    """The only column the condition restricts, to one value; "" for no restriction, else None."""
    match condition:
        case AllOf(parts=parts) if not parts:
            return ""
        case AllOf(parts=[Has(key, [_])]) | Has(key, [_]) if key in KEY_COLUMNS:
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


def escape_like(text: str) -> str:
    """The text escaped for a LIKE pattern, with backslash as the escape character."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _join_parameters(parts: Iterable[SQL]) -> list[object]:
    return [parameter for _, parameters in parts for parameter in parameters]


def _like_sql(key: str, pattern: str) -> SQL:
    like = "LIKE ? ESCAPE '\\'"
    if key == "metadata.name":
        # The name follows the reference's only slash, and every index of entities includes the
        # reference, so the entities themselves need not be read.
        return f"e.ref {like}", [f"%/{pattern}"]
    if column := KEY_COLUMNS.get(key):
        return f"{column} {like}", [pattern]
    if key.startswith(_RELATIONS):
        return _pointing_sql([key.removeprefix(_RELATIONS)], f"{{0}} {like}", [pattern])
    return f"e.id IN ({_IDS} AND value {like} AND value <> ?)", [key, pattern, EXISTS_VALUE]


def _in_sql(column: str, values: Sequence[str]) -> SQL:
    if not values:
        return "1 = 0", []
    if len(values) == 1:
        return f"{column} = ?", list(values)
    return f"{column} IN ({', '.join('?' * len(values))})", list(values)


def _pointing_sql(types: Sequence[str] | None, target: str, parameters: list[object]) -> SQL:
    """Entities with a relation of one of the types, stated by either side.

    `target` is the condition on the other side's reference, with `{0}` as its placeholder.
    """
    forward = [name for name in REVERSE_RELATIONS if types is None or name.lower() in types]
    parts = list[SQL]()
    if stated := [name for name in forward if name in STATED_RELATIONS]:
        type_, names = _in_sql("type", stated)
        sql = f"SELECT source_id FROM relations WHERE {type_} AND {target.format('target_ref')}"
        parts.append((f"e.id IN ({sql})", [*names, *parameters]))
    if stated := [
        REVERSE_RELATIONS[name] for name in forward if REVERSE_RELATIONS[name] in STATED_RELATIONS
    ]:
        type_, names = _in_sql("r.type", stated)
        sql = (
            "SELECT r.target_ref FROM relations r JOIN entities s ON s.id = r.source_id "
            f"WHERE {type_} AND {target.format('s.ref')}"
        )
        parts.append((f"e.ref IN ({sql})", [*names, *parameters]))
    return f"({' OR '.join(sql for sql, _ in parts) or '1 = 0'})", _join_parameters(parts)


def narrow_condition(kind: str | None, namespace: str | None) -> tuple[str, list[object]]:
    """The condition on `entities` for a kind and a namespace; None matches any."""
    if kind is None:
        return ("1 = 1", []) if namespace is None else ("namespace = ?", [namespace])
    # A kind, or a namespace within a kind, is a range of references that one index covers.
    prefix = f"{kind}:" if namespace is None else f"{kind}:{namespace}/"
    return "ref >= ? AND ref < ?", [prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1)]


class EntityRange(NamedTuple):
    """Entities of a kind and a namespace, None for any: up to `limit` after a reference."""

    kind: str | None = None
    namespace: str | None = None
    after: str = ""
    limit: int | None = None


_IDS = "SELECT entity_id FROM search WHERE key_id = (SELECT id FROM search_keys WHERE key = ?)"
