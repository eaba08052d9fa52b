"""Conditions on entities, their SQL on `entities e`, and the filters that state them."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from msgspec import Struct

from factbook.catalog.kinds import REVERSE_RELATIONS, STATED_RELATIONS
from factbook.errors import InputError, meant

SearchRow = tuple[str, str, str]  # key, value, and the value as written if that is different

MAX_VALUE_LENGTH = 200
# A value that is null or too long to index: the key exists, and no value equals it.
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
# Sorts behind every text that begins with what stands before it.
_LAST = chr(0x10FFFF)

# More would exceed what SQLite nests in one expression.
_MOST_FILTER_CONDITIONS = 500

# What SQLite nests in one expression, and what anyone writes by hand.
_MOST_PREDICATE_CONDITIONS = 500
_DEEPEST = 30
_OPERATORS = "$exists, $in, $hasPrefix or $contains"


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
            # Most values are in lower case already; an empty text takes no room. PostgreSQL's text
            # cannot hold NUL.
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
        # PostgreSQL's planner tries every order of joins, but leaves alone what is wrapped so.
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
    """The column of which it requires one value; "" if it requires nothing, else None."""
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
        # The name is what stands behind the reference's only slash, and every index of entities
        # holds the reference: the entities themselves need not be read.
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
    """Entities with a relation of one of the types, stated by themselves or by the other side.

    `target` is the condition on the other side's reference, which is written in it as `{0}`.
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
    # A kind, and a namespace of it, is a range of references, which one index covers.
    prefix = f"{kind}:" if namespace is None else f"{kind}:{namespace}/"
    return "ref >= ? AND ref < ?", [prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1)]


class EntityRange(NamedTuple):
    """Entities of a kind and a namespace, None for any: up to `limit` after a reference."""

    kind: str | None = None
    namespace: str | None = None
    after: str = ""
    limit: int | None = None


def parse_filters(filters: Iterable[str]) -> Condition:
    """Parse all `filter` parameters into one condition; without any, it matches every entity.

    Raises InputError for a condition without a key, and for too many conditions.
    """
    sets = [found for text in filters if (found := _parse_filter(text))]
    if sum(map(len, sets)) > _MOST_FILTER_CONDITIONS:
        raise InputError(f"A filter can have {_MOST_FILTER_CONDITIONS} conditions at most.")
    if not sets:
        return EVERYTHING
    alternatives = [AllOf([Has(key, values) for key, values in one.items()]) for one in sets]
    return alternatives[0] if len(alternatives) == 1 else AnyOf(alternatives)


def _parse_filter(text: str) -> dict[str, list[str] | None]:
    """The values of each key; None means that the key exists."""
    found: dict[str, list[str] | None] = {}
    for part in text.replace("\0", "").split(","):  # as the index leaves it out
        if not part.strip():
            continue
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not key:
            raise InputError(f'The filter "{text}" has a condition without a key.')
        key = key.lower()
        values = found.setdefault(key, None)
        if equals and values is None:
            found[key] = [value.lower()]
        elif equals and values is not None:
            values.append(value.lower())
    return found


def parse_predicate(query: Any) -> Condition:
    """Parse a predicate into a condition. Raises InputError naming the invalid part."""
    return _PredicateParser().predicate(query, 0)


def list_predicate_fields(query: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The paths of a valid predicate in lower case, with their values; not those below `$not`."""
    waiting = [query]
    while waiting:
        for key, value in waiting.pop().items():
            if key in ("$all", "$any"):
                waiting += value
            elif not key.startswith("$") and value != {"$exists": False}:
                yield key.lower(), value


class _PredicateParser:
    def __init__(self) -> None:
        self._count = 0

    def predicate(self, query: Any, depth: int) -> Condition:
        if not isinstance(query, dict):
            raise InputError(
                'A predicate is an object such as {"kind": "component"}, '
                f"not {_quote_value(query)}."
            )
        if depth > _DEEPEST:
            raise InputError(f"A predicate can be nested {_DEEPEST} deep at most.")
        self._add(max(1, len(query)))
        for operator, combine in (("$all", AllOf), ("$any", AnyOf)):
            if operator in query:
                parts = _sole_operand(query, operator)
                if not isinstance(parts, list):
                    raise InputError(f"{operator} takes a list of predicates.")
                return combine([self.predicate(part, depth + 1) for part in parts])
        if "$not" in query:
            return Not(self.predicate(_sole_operand(query, "$not"), depth + 1))
        fields = [self._field(key, value) for key, value in query.items()]
        return AllOf(fields) if fields else EVERYTHING

    def _add(self, count: int) -> None:
        self._count += count
        if self._count > _MOST_PREDICATE_CONDITIONS:
            raise InputError(
                f"A predicate can have {_MOST_PREDICATE_CONDITIONS} conditions at most."
            )

    def _field(self, key: str, value: Any) -> Condition:
        if key.startswith("$"):
            near = meant(key, ("$all", "$any", "$not"))
            raise InputError(f'"{key}" is no operator here{near}: use $all, $any, $not or a path.')
        path = key.lower().replace("\0", "")
        if _is_primitive(value):
            return Has(path, [make_search_text(value)])
        match value:
            case {"$exists": bool(wanted), **others} if not others:
                return Has(path) if wanted else Not(Has(path))
            case {"$in": list(values), **others} if not others and all(map(_is_primitive, values)):
                self._add(len(values))
                return Has(path, [make_search_text(one) for one in values])
            case {"$hasPrefix": str(prefix), **others} if not others:
                return HasPrefix(path, make_search_text(prefix))
            case {"$contains": dict(wanted), **others} if not others and path == "relations":
                return self._relation(wanted)
            case {"$contains": wanted, **others} if not others and _is_primitive(wanted):
                return Has(path, [make_search_text(wanted)])
        raise InputError(
            f'The value of "{key}" has to be a string, number or boolean, or one of {_OPERATORS}; '
            f"not {_quote_value(value)}{_near_operator(value)}."
        )

    def _relation(self, wanted: dict[str, Any]) -> Condition:
        """Match a relation by type, target or both; each is a string or `$in` of strings."""
        if not wanted or wanted.keys() - {"type", "targetRef"}:
            raise InputError("$contains of relations takes an object with type, targetRef or both.")
        types, targets = (
            _relation_values(wanted[name]) if name in wanted else None
            for name in ("type", "targetRef")
        )
        self._add(len(types or ()) + len(targets or ()))
        return Related(types, targets)


def _relation_values(value: Any) -> list[str]:
    match value:
        case str():
            return [make_search_text(value)]
        case {"$in": list(values), **others} if not others and all(
            isinstance(one, str) for one in values
        ):
            return [make_search_text(one) for one in values]
    raise InputError(
        f'type and targetRef are a string or {{"$in": [...]}}, not {_quote_value(value)}.'
    )


def _near_operator(value: Any) -> str:
    """The operators that are like the first one of a value."""
    key = next(iter(value), None) if isinstance(value, dict) else None
    return meant(key, ("$exists", "$in", "$hasPrefix", "$contains"))


def _sole_operand(query: dict[str, Any], operator: str) -> Any:
    if len(query) > 1:
        raise InputError(f"{operator} has to be the only key of its object.")
    return query[operator]


def _is_primitive(value: Any) -> bool:
    return isinstance(value, str | int | float)


def _quote_value(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"


_IDS = "SELECT entity_id FROM search WHERE key_id = (SELECT id FROM search_keys WHERE key = ?)"
