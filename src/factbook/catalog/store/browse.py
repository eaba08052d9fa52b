"""Catalog browsing: pages of entities, search, completion, facets, and filter choices.

Includes the figures of the overview.
"""

import re
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Set,
)
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, Self, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from factbook.catalog.kinds import (
    HAS_OWNER_RELATION,
    RELATIONS,
    REVERSE_RELATIONS,
    STATED_RELATIONS,
)
from factbook.catalog.piecewise import aside, ordered
from factbook.catalog.store import conditions, entity_query
from factbook.catalog.store.conditions import (
    EVERYTHING,
    EXISTS_VALUE,
    KEY_COLUMNS,
    SQL,
    AllOf,
    Apart,
    Condition,
    Contains,
    Has,
    escape_like,
    narrow_condition,
)
from factbook.catalog.store.entity_query import (
    MANY_ENTITIES,
    Place,
    Query,
    ResultPage,
    SortField,
    count_kinds,
)
from factbook.catalog.store.stored_entities import DOCUMENT
from factbook.clock import SECOND
from factbook.storage import Database, Row
from factbook.storage.database import render_counter

_NAME_KEY: Final = "metadata.name"
_TEXTS: Final = ("metadata.description", "metadata.tags", "metadata.title")
TRIGRAM_KEYS: Final = (_NAME_KEY, *_TEXTS)
# Fewer are scanned in 20 ms, so the indexes would not be worth their cost in each push.
_LEAST_ENTITIES: Final = 100_000
# A text is frequent if at least `_FREQUENT_SHARE` of the first `_SAMPLE_SIZE` names contain it; a
# page of matches is then found quickly without an index.
_SAMPLE_SIZE: Final = 500
_FREQUENT_SHARE: Final = 10
# PostgreSQL makes trigrams of letters and digits; the locale determines which non-ASCII ones count.
_trigram = re.compile(r"[^\W_]{3}")
_ascii_trigram = re.compile(r"[A-Za-z0-9]{3}")

_NAME_INDEX: Final = "entities_ref_trgm"
_ON_NAMES: Final = f"""
CREATE INDEX CONCURRENTLY {_NAME_INDEX} ON entities USING gin (ref gin_trgm_ops)
"""

_TEXT_INDEX: Final = "search_texts_trgm"
_ON_TEXTS: Final = f"""
CREATE INDEX CONCURRENTLY {_TEXT_INDEX} ON search USING gin (value gin_trgm_ops)
WHERE key_id = ANY ('{{ids}}'::bigint[])
"""

# Some database providers forbid extensions; failure is harmless.
_EXTEND: Final = """
DO $$ BEGIN CREATE EXTENSION IF NOT EXISTS pg_trgm; EXCEPTION WHEN OTHERS THEN NULL; END $$
"""

_NAME_PATH = "metadata.name"

Order = Literal["name", "kind", "updated"]

_TIME = "e.updated_at"
_OWNED = [kind for kind, fields in RELATIONS.items() if "ownedBy" in {one.type for one in fields}]

_ORDERS: Mapping[Order, Query] = {
    "name": Query(order=[SortField("metadata.name")]),
    "kind": Query(),
    "updated": Query(order=[SortField("", True, _TIME)], ref_descending=True),
}
ORDERS: Sequence[Order] = tuple(_ORDERS)

# If more than one in this many entities has a kind, its pages are read in order of time.
_FREQUENT_KINDS = 8

TEXT_FIELDS = ("metadata.name", "metadata.title", "metadata.description", "metadata.tags")
# The columns of `entities e` in an EntityRow.
BROWSE_COLUMNS = ("e.ref", DOCUMENT, _TIME, "e.id")

# For each column, the condition on other columns that narrows its index.
_WITHIN: Final = {"kind": "", "namespace": "", "name": " AND kind = ?"}
_KEYS: Final = ("metadata.title", "spec.profile.displayname")
# Appended to a prefix, sorts after every text with that prefix.
_LAST: Final = chr(0x10FFFF)

CompletedColumn = Literal["kind", "namespace", "name"]


@dataclass(frozen=True)
class Among:
    """Entities with one of these ids."""

    ids: Sequence[int]

    def sql(self) -> SQL:
        return "e.id IN LIST(?)", [list(self.ids)]


class _Indexes(NamedTuple):
    """The ids of keys, and the contents of the indexes: names, texts of keys, non-ASCII letters.

    `sampled` is the number of the first names that contain the text.
    """

    keys: Mapping[str, int]
    names: bool
    texts: Set[int]
    letters: bool
    sampled: int

    @classmethod
    async def of(cls, database: Database, pattern: str = "") -> Self:
        rows = await database.all(_INDEX_STATE, (f"%/{pattern}", list(TRIGRAM_KEYS)))
        keys = {key: id_ for key, id_, *_ in rows}
        _, _, names, texts, letters, sampled = rows[0] if rows else (None,) * 6
        held = {int(id_) for id_ in (texts or "").split(",") if id_}
        return cls(keys, bool(names), held, bool(letters), sampled or 0)

    def texts_of(self, keys: Iterable[str]) -> Set[int]:
        """The ids of those keys, except the name, that exist in the catalog."""
        return {id_ for key, id_ in self.keys.items() if key in keys and key in _TEXTS}

    def serve(self, wanted: Contains) -> bool:
        """Return true if indexes hold all the search reads, and its text contains a trigram."""
        trigram = _trigram if self.letters else _ascii_trigram
        return (
            self.names
            and self.texts_of(wanted.keys) <= self.texts
            and bool(trigram.search(wanted.text))
        )


async def look_up_text(database: Database, condition: Condition) -> Condition:
    """The condition, with each rare text replaced by the ids of matching entities."""
    if database.dialect != "postgresql" or not isinstance(condition, AllOf):
        return condition
    return AllOf([await _look_up_part(database, part) for part in condition.parts])


async def _look_up_part(database: Database, part: Condition) -> Condition:
    if not isinstance(part, Contains) or not part.keys or not set(part.keys) <= set(TRIGRAM_KEYS):
        return part
    pattern, names = f"%{escape_like(part.text)}%", _NAME_KEY in part.keys
    indexes = await _Indexes.of(database, pattern)
    if not indexes.serve(part) or (names and indexes.sampled >= _FREQUENT_SHARE):
        return part
    ids = sorted(indexes.texts_of(part.keys))
    found = await database.search(*_matching_names(pattern, names=names, ids=ids))
    return Among(sorted({row[0] for row in found})) if len(found) <= MANY_ENTITIES else part


def _matching_names(pattern: str, *, names: bool, ids: Sequence[int]) -> SQL:
    """The statement for entities with a text, up to one more than `MANY_ENTITIES`."""
    halves, parameters = list[str](), list[object]()
    if names:
        halves.append("SELECT id FROM entities WHERE ref LIKE ? ESCAPE '\\'")
        parameters.append(f"%/{pattern}")
    if ids:
        # As literals, so the planner can prove that the partial index covers these keys.
        halves.append(
            f"SELECT entity_id FROM search WHERE key_id = ANY ('{_in_set(ids)}') "
            "AND value LIKE ? ESCAPE '\\' AND value <> ?"
        )
        parameters += [pattern, conditions.EXISTS_VALUE]
    union = " UNION ALL ".join(halves) or "SELECT id FROM entities WHERE 1 = 0"
    return f"SELECT * FROM ({union}) matching LIMIT {MANY_ENTITIES + 1}", parameters


async def build_trigram_indexes(database: Database, least: int = _LEAST_ENTITIES) -> list[str]:
    """Create the indexes that are missing or lack a key; returns their names.

    Creates none without the extension, or if the catalog has fewer than `least` entities.
    """
    if database.dialect != "postgresql":
        return []
    [counted] = await database.one(_COUNT_ENTITIES_TO, (least,)) or (0,)
    if counted < least:
        return []
    if not await database.one(_HAS_OPERATORS):
        if not await database.one(_IS_OFFERED):
            return []
        await database.apart("pg_trgm", [_EXTEND], unless=_HAS_OPERATORS)
        if not await database.one(_HAS_OPERATORS):
            return []
    indexes, built = await _Indexes.of(database), list[str]()
    if not indexes.names and await _create_index(database, _NAME_INDEX, _ON_NAMES):
        built.append(_NAME_INDEX)
    ids = indexes.texts_of(_TEXTS)
    if not ids <= indexes.texts:
        on_texts = _ON_TEXTS.format(ids=_in_set(sorted(ids)))
        if await _create_index(database, _TEXT_INDEX, on_texts):
            built.append(_TEXT_INDEX)
    return built


async def _create_index(database: Database, name: str, statement: str) -> bool:
    drop = f"DROP INDEX CONCURRENTLY IF EXISTS {name}"
    return await database.apart(name, [drop, statement], unless="SELECT 1 WHERE 1 = 0")


def _in_set(ids: Sequence[int]) -> str:
    """An array of numbers in PostgreSQL's notation."""
    return f"{{{','.join(map(str, ids))}}}"


async def match_lone_text(database: Database, condition: Condition, most: int) -> list[int] | None:
    """The ids of up to `most` entities with a text, unordered.

    None on PostgreSQL, and for any condition except a text in names, titles, descriptions or tags.
    """
    if database.dialect != "sqlite":
        return None
    match condition:
        case AllOf(parts=[Contains(keys, text)]) if keys and set(keys) <= set(TRIGRAM_KEYS):
            rows = await database.search(*_match_values(keys, f"%{escape_like(text)}%", most))
            return [id_ for (id_,) in rows]
    return None


def _match_values(keys: Sequence[str], pattern: str, most: int) -> SQL:
    """The statement; SQLite stops reading after `most` rows."""
    halves, parameters = list[str](), list[object]()
    for key in keys:
        if key == _NAME_PATH:
            halves.append("SELECT id FROM entities WHERE ref LIKE ? ESCAPE '\\'")
            parameters.append(f"%/{pattern}")
        else:
            halves.append(_IDS_BY_VALUE)
            parameters += [key, pattern, conditions.EXISTS_VALUE]
    union = " UNION ALL ".join(halves)
    return f"SELECT DISTINCT id FROM ({union}) matching LIMIT {most}", parameters


class _OfKind(NamedTuple):
    """Entities of a kind, as a range of references, which the indexes by change time include."""

    kind: str

    def sql(self) -> SQL:
        return narrow_condition(self.kind, None)


class _InNamespace(NamedTuple):
    """Entities of a namespace, by reference, which all indexes include."""

    namespace: str

    def sql(self) -> SQL:
        # Kinds and names contain no colon or slash.
        return "e.ref LIKE ? ESCAPE '\\'", [f"%:{escape_like(self.namespace)}/%"]


class _InSet(NamedTuple):
    """Entities of a set.

    Uses only ids from an index, since reading `set_id` would load the row with its document. The
    unary `+` keeps SQLite from looking up entities one by one.
    """

    name: str

    def sql(self) -> SQL:
        ids = "SELECT entity_id FROM set_items WHERE set_id = (SELECT id FROM sets WHERE name = ?)"
        return f"+e.id IN ({ids})", [self.name]


class LacksOwner(NamedTuple):
    """Entities without a derived owner, of the kinds that may have an owner."""

    def sql(self) -> SQL:
        # A partial index holds only entities without an owner. With ranges of references, SQLite
        # would choose the full index.
        of_kinds = " OR ".join(["ref LIKE ?"] * len(_OWNED))
        lacking = f"(compliance & {HAS_OWNER_RELATION}) = 0 AND ({of_kinds})"
        sql = f"e.id IN (SELECT id FROM entities WHERE {lacking})"
        return sql, [f"{kind}:%" for kind in _OWNED]


class Filter(Struct, frozen=True):
    """A filter of entities; an empty string, or None, means no restriction.

    `kind`, `namespace`, `tags`, `type`, `lifecycle` and `text` are in lower case. An entity matches
    if it has one of the tags and meets all `others`.
    """

    kind: str = ""
    namespace: str = ""
    tags: Sequence[str] | None = None
    set: str = ""
    text: str = ""
    type: str = ""
    lifecycle: str = ""
    others: Sequence[Condition] = ()

    @property
    def is_quick(self) -> bool:
        """True if an index holds the matching entities ordered by name and by kind."""
        return self == Filter(kind=self.kind)

    def condition(self, order: Order, kinds: Mapping[str, int]) -> AllOf:
        """The condition on `entities e`, optimized for an order and the number of each kind."""
        return AllOf(list(self._parts(order, kinds)))

    def _parts(self, order: Order, kinds: Mapping[str, int]) -> Iterator[Condition]:
        if self.kind and order == "updated":
            of_kind = _OfKind(self.kind)
            is_frequent = kinds.get(self.kind, 0) * _FREQUENT_KINDS >= sum(kinds.values())
            yield Apart(of_kind) if is_frequent else of_kind
        elif self.kind:
            yield Has("kind", [self.kind])
        if self.namespace:
            yield _InNamespace(self.namespace)
        for key, value in (("spec.type", self.type), ("spec.lifecycle", self.lifecycle)):
            if value:
                yield Has(key, [value])
        if self.tags is not None:
            yield Has("metadata.tags", self.tags)
        yield from self.others
        if self.text:
            yield Contains(TEXT_FIELDS, self.text)
        if self.set:
            yield _InSet(self.set)


class EntityRow(NamedTuple):
    """An entity in a list; `document` is the JSON as pushed."""

    ref: str
    document: str
    updated_at: int
    id: int


class BrowseResult(NamedTuple):
    """A page, and the number of entities by kind that match the rest of the filter.

    If `bounded`, kinds are not counted: `kinds` are those of the whole catalog, and `total`, the
    number of matches, may be `MORE_THAN_BOUND`.
    """

    page: ResultPage[EntityRow]
    kinds: Mapping[str, int]
    total: int
    bounded: bool = False

    @property
    def everywhere(self) -> int:
        """The number of entities of all kinds."""
        return sum(self.kinds.values())


async def browse_entities(
    database: Database,
    wanted: Filter,
    order: Order,
    limit: int,
    place: Place | None = None,
    *,
    backward: bool = False,
    exact: bool = False,
) -> BrowseResult:
    """Up to `limit` entities after a position, or before it with `backward`.

    Unless `exact`, matches are not counted if there are more than `COUNT_BOUND`.
    """
    query = replace(_ORDERS[order], limit=limit, after=place, backward=backward)
    kinds = await count_kinds(database)
    anywhere = replace(wanted, kind="").condition(order, kinds)
    bounded = None if wanted.is_quick else await _count_entities(database, anywhere, exact=exact)
    if bounded is not None:
        most = None if exact else entity_query.MORE_THAN_BOUND
        among = replace(query, condition=bounded)
        page, counted = await entity_query.query_page_and_kinds(
            database, among, wanted.kind, BROWSE_COLUMNS, EntityRow, most
        )
        if exact or sum(counted.values()) < entity_query.MORE_THAN_BOUND:
            by_frequency = dict(sorted(counted.items(), key=lambda kind: (-kind[1], kind[0])))
            return BrowseResult(page, by_frequency, _kind_count(counted, wanted.kind))
    query = replace(query, condition=wanted.condition(order, kinds))
    page = await entity_query.query_page_of(database, query, ", ".join(BROWSE_COLUMNS), EntityRow)
    if wanted.is_quick:
        return BrowseResult(page, kinds, _kind_count(kinds, wanted.kind))
    of_kind = wanted.condition("kind", kinds)
    total = (
        await entity_query.count_bounded(database, of_kind)
        if wanted.kind
        else entity_query.MORE_THAN_BOUND
    )
    return BrowseResult(page, kinds, total, bounded=True)


async def _count_entities(database: Database, condition: AllOf, *, exact: bool) -> Condition | None:
    """The condition, with rare texts looked up.

    None if more than `COUNT_BOUND` entities are known to meet it, unless `exact`.
    """
    looked_up = await look_up_text(database, condition)
    if exact:
        return looked_up
    if (
        ids := await match_lone_text(database, looked_up, entity_query.MORE_THAN_BOUND)
    ) is not None:
        return Among(ids) if len(ids) < entity_query.MORE_THAN_BOUND else None
    return None if await entity_query.is_count_above_bound(database, looked_up) else looked_up


async def stream_browsed(database: Database, wanted: Filter) -> AsyncIterator[list[EntityRow]]:
    """All entities by reference, in portions, from one snapshot."""
    condition = await look_up_text(database, wanted.condition("kind", {}))
    async for rows in database.pages(*Query(condition=condition).sql(", ".join(BROWSE_COLUMNS))):
        yield [EntityRow(*row) for row in rows]


def _kind_count(kinds: Mapping[str, int], kind: str) -> int:
    return kinds.get(kind, 0) if kind else sum(kinds.values())


def is_browse_place(place: Sequence[object], order: Order) -> bool:
    """Return true if these values are a valid position in this order."""
    columns = [field.own_column for field in (*_ORDERS[order].order, SortField("", column="e.ref"))]
    return len(place) == len(columns) and all(
        (type(value) is int and abs(value) < 2**63)
        if column == _TIME
        else isinstance(value, str) and "\0" not in value
        for column, value in zip(columns, place, strict=True)
    )


async def complete_values(
    database: Database, column: CompletedColumn, start: str, kind: str, limit: int
) -> list[str]:
    """Up to `limit` sorted values of a column that begin with `start`; names only of `kind`."""
    narrowed = _WITHIN[column]
    given = [kind] if narrowed else []
    sql = _STEPS.replace("{column}", column).replace("{within}", narrowed)
    rows = await database.search(sql, (start, *given, *given, limit))
    return [value for (value,) in rows if value.startswith(start)]


async def complete_refs(database: Database, ref: str, limit: int) -> list[str]:
    """Up to `limit` references after `ref`, in order."""
    rows = await database.search(
        "SELECT ref FROM entities WHERE ref > ? ORDER BY ref LIMIT ?", (ref, limit)
    )
    return [row[0] for row in rows]


async def find_names_beginning(database: Database, text: str, most: int) -> list[EntityRow]:
    """Entities with a name, title or display name that begins with a lowercase text, unordered.

    Up to `most` for each of these fields, shorter values first.
    """
    bounds = (text, text + _LAST)
    parameters: list[object] = [*bounds, most]
    for key in _KEYS:
        parameters += [key, *bounds, EXISTS_VALUE, most]
    rows = await database.all(_BEGINNING, parameters)
    return [EntityRow(*row) for row in rows]


# Keys, each with the same columns: is there an index of names, the ids of keys with indexed texts,
# do trigrams include non-ASCII letters, and how many of the first names contain the text?
_INDEX_STATE: Final = f"""
SELECT k.key, k.id,
    (SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('{_NAME_INDEX}')),
    (
        SELECT substring(pg_get_expr(indpred, indrelid) FROM '[{{]([0-9,]+)[}}]') FROM pg_index
        WHERE indexrelid = to_regclass('{_TEXT_INDEX}') AND indisvalid
    ),
    chr(228) ~ '[[:alpha:]]',
    CASE WHEN to_regclass('{_NAME_INDEX}') IS NOT NULL THEN (
        SELECT count(*) FROM (SELECT ref FROM entities ORDER BY ref LIMIT {_SAMPLE_SIZE}) sampled
        WHERE ref LIKE ? ESCAPE '\\'
    ) END
FROM search_keys k WHERE k.key IN LIST(?)
"""

_COUNT_ENTITIES_TO: Final = "SELECT count(*) FROM (SELECT 1 FROM entities LIMIT ?) counted"

_HAS_OPERATORS: Final = """
SELECT 1 FROM pg_opclass WHERE opcname = 'gin_trgm_ops' AND pg_opclass_is_visible(oid)
"""

_IS_OFFERED: Final = """
SELECT 1 FROM pg_available_extension_versions WHERE name = 'pg_trgm' AND (
    trusted AND has_database_privilege(current_database(), 'CREATE')
    OR (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)
) LIMIT 1
"""

_IDS_BY_VALUE = """
SELECT entity_id AS id FROM search WHERE key_id = (SELECT id FROM search_keys WHERE key = ?)
    AND value LIKE ? ESCAPE '\\' AND value <> ?
"""

_STEPS: Final = """
WITH RECURSIVE found(value) AS (
    SELECT * FROM (
        SELECT {column} FROM entities WHERE {column} >= ?{within} ORDER BY {column} LIMIT 1
    ) first
    UNION ALL
    SELECT (
        SELECT {column} FROM entities WHERE {column} > found.value{within}
        ORDER BY {column} LIMIT 1
    ) FROM found WHERE found.value IS NOT NULL
)
SELECT value FROM found WHERE value IS NOT NULL LIMIT ?
"""

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
SELECT {", ".join(BROWSE_COLUMNS)} FROM entities e
WHERE e.id IN ({" UNION ".join([_BY_NAME, *(_BY_TEXT for _ in _KEYS)])})
"""


_RELATION_PREFIX = "relations."
_OWN_COLUMNS = ("metadata.namespace", "metadata.uid")

# Targets of relations searched for owners.
_LOOKED_AT: Final = 20_000
_OWNER_KINDS: Final = ("group", "user")

_LABELS: Final = "metadata.labels."

# Skips from one value to the next, because an index scan would visit every entity with the value.
_KEY: Final = "key_id = (SELECT id FROM search_keys WHERE key = ?)"

_IS_MISSING: Final = "NOT EXISTS (SELECT 1 FROM entities t WHERE t.ref = target.ref)"

T = TypeVar("T")

_KEPT: Final = 30 * SECOND


class Facet(NamedTuple):
    """A value as it was written, and the number of entities that have it."""

    value: str
    entities: int


async def count_facet(database: Database, key: str, condition: Condition) -> list[Facet]:
    """The values of a key among the entities that meet the condition, in case-insensitive order."""
    key = key.lower()
    if key in _OWN_COLUMNS:
        column = KEY_COLUMNS[key]
        where, parameters = condition.sql()
        sql = (
            f"SELECT {column}, count(*) FROM entities e WHERE {where} GROUP BY {column} ORDER BY 1"
        )
    elif key.startswith(_RELATION_PREFIX):
        sql, parameters = _facet_of_relation(key.removeprefix(_RELATION_PREFIX), condition)
    else:
        return await _facet_of_index(database, key, condition)
    rows = await database.search(sql, parameters)
    return await aside(len(rows), lambda: [Facet(*row) for row in rows])


async def _facet_of_index(database: Database, key: str, condition: Condition) -> list[Facet]:
    among, parameters = _among_sql("entity_id", condition)
    # Do as little as possible per row; the rest is done per value.
    rows = await database.search(
        "SELECT value, original, count(*) FROM search "
        f"WHERE key_id = (SELECT id FROM search_keys WHERE key = ?){among} "
        "GROUP BY value, original",
        [key, *parameters],
    )
    return await aside(len(rows), _merge_spellings, rows)


def _merge_spellings(rows: list[Row]) -> list[Facet]:
    found = (
        (value, written or value, entities)
        for value, written, entities in rows
        if value != conditions.EXISTS_VALUE
    )
    return [Facet(written, entities) for _, written, entities in ordered(found)]


def _facet_of_relation(type_: str, condition: Condition) -> tuple[str, list[object]]:
    forward = next((name for name in REVERSE_RELATIONS if name.lower() == type_), "")
    reverse = REVERSE_RELATIONS.get(forward, "")
    own = "SELECT source_id AS id, target_ref AS target FROM relations WHERE type = ?"
    others = (
        "SELECT t.id, s.ref AS target FROM relations r JOIN entities s ON s.id = r.source_id "
        "JOIN entities t ON t.ref = r.target_ref WHERE r.type = ?"
    )
    halves = [(own, forward)] if forward in STATED_RELATIONS or not forward else []
    halves += [(others, reverse)] if reverse in STATED_RELATIONS else []
    among, parameters = _among_sql("id", condition)
    sql = (
        f"SELECT target, count(*) FROM ({' UNION '.join(half for half, _ in halves)}) related "
        f"WHERE 1 = 1{among} GROUP BY target ORDER BY target"
    )
    return sql, [*(type_ for _, type_ in halves), *parameters]


def _among_sql(column: str, condition: Condition) -> tuple[str, list[object]]:
    if condition == EVERYTHING:
        return "", []
    where, parameters = condition.sql()
    return f" AND {column} IN (SELECT e.id FROM entities e WHERE {where})", parameters


class FilterChoice(NamedTuple):
    """A value to filter by, and the number of entities that have it."""

    value: str
    entities: int


async def list_namespace_choices(database: Database, limit: int) -> list[FilterChoice]:
    """The most frequent namespaces."""
    return [FilterChoice(*row) for row in await database.search(_NAMESPACES, (limit,))]


async def list_owner_choices(database: Database, limit: int) -> list[FilterChoice]:
    """The references that own the most entities, existing or not."""
    return [FilterChoice(*row) for row in await database.search(_OWNERS, (limit,))]


async def list_tag_choices(database: Database, limit: int) -> list[FilterChoice]:
    """The most frequent tags."""
    return [FilterChoice(*row) for row in await database.search(_TAGS, (limit,))]


async def list_set_choices(database: Database, limit: int) -> list[FilterChoice]:
    """The largest sets."""
    return [FilterChoice(*row) for row in await database.all(_SETS, (limit,))]


async def list_value_choices(database: Database, key: str, prefix: str, limit: int) -> list[str]:
    """The first distinct values of a key that begin with a text."""
    bounds = (key, prefix, prefix + _LAST)
    rows = await database.search(_VALUES.format(limit=limit), (*bounds, key, prefix + _LAST))
    return [row[0] for row in rows]


async def list_key_choices(database: Database, path: str, limit: int) -> list[str]:
    """The first field paths at or below `path`; of all paths if empty."""
    # Child paths continue with a dot.
    bounds = (path, f"{path}.", f"{path}/") if path else ("", "", _LAST)
    return [key for (key,) in await database.all(_PATHS, (*bounds, limit))]


async def list_label_choices(database: Database, limit: int) -> list[str]:
    """The first names of labels."""
    first, end = _LABELS, f"{_LABELS[:-1]}/"  # a slash sorts right after a dot
    return [
        key.removeprefix(_LABELS)
        for (key,) in await database.all(_KEYS_BETWEEN, (first, end, limit))
    ]


async def is_relation_target(database: Database, type_: str, ref: str) -> bool:
    """Return true if an entity states a relation of a type to a reference."""
    return await database.one(_IS_TARGET, (ref, type_)) is not None


async def find_owner_choices(database: Database, text: str, limit: int) -> list[str]:
    """The first owner references that contain a text, existing or not."""
    pattern = f"%{escape_like(text)}%"
    return await _owners_of_kinds(database, "ref LIKE ? ESCAPE '\\'", (pattern,), limit)


async def find_missing_owners(database: Database, limit: int) -> list[str]:
    """The first owner references that are not in the catalog."""
    return await _owners_of_kinds(database, _IS_MISSING, (), limit)


async def find_system_choices(database: Database, text: str, limit: int) -> list[str]:
    """The first systems whose references contain a text."""
    rows = await database.search(_SYSTEMS, (f"%{escape_like(text)}%", limit))
    return [row[0] for row in rows]


async def _owners_of_kinds(
    database: Database, condition: str, parameters: Sequence[str], limit: int
) -> list[str]:
    found = list[str]()
    for kind in _OWNER_KINDS:
        first, end = f"{kind}:", f"{kind};"
        sql = _OWNERS_AMONG.format(condition=condition, limit=limit)
        found += [row[0] for row in await database.search(sql, (first, end, end, *parameters))]
    return found[:limit]


class RevisionTotals(NamedTuple):
    """A large revision: the number of entities it added, updated and removed."""

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


async def read_catalog_size(database: Database) -> CatalogSize:
    """The size of the catalog, from the item counts of sets and a count of the other entities."""
    row = await database.one("SELECT COUNT(*), SUM(item_count) FROM sets WHERE item_count > 0")
    outside = await database.one("SELECT COUNT(*) FROM entities WHERE set_id IS NULL")
    assert row is not None
    assert outside is not None
    return CatalogSize(row[0], int(row[1] or 0) + outside[0])


class _KeptCount(NamedTuple):
    """A count at a revision of the catalog, and its time."""

    revision: Row | None
    at: int
    found: Any


@dataclass
class _KeptCounts:
    by_question: dict[str, _KeptCount] = field(default_factory=dict)


async def remember_count(
    database: Database, now: int, question: str, count: Callable[[], Awaitable[T]]
) -> T:
    """The cached answer to a question, counted at most twice a minute while nothing changes."""
    remembered = database.remembered.of(_KeptCounts).by_question
    revision, known = await database.one(_CATALOG_STATE), remembered.get(question)
    if known is None or known.revision != revision or not 0 <= now - known.at < _KEPT:
        known = remembered[question] = _KeptCount(revision, now, await count())
    found: T = known.found
    return found


async def count_compliance(database: Database, kind: str | None) -> dict[int, int]:
    """The number of entities of a kind for each combination of `catalog.compliance` bits."""
    where, parameters = narrow_condition(kind, None)
    rows = await database.search(
        f"SELECT compliance, count(*) FROM entities WHERE {where} GROUP BY compliance", parameters
    )
    return dict(rows)


async def read_largest_changes(database: Database, since: int, limit: int) -> list[RevisionTotals]:
    """The revisions since a time that changed the most entities, largest first."""
    rows = await database.search(
        "SELECT s.name, r.number, r.created_by, r.created_at, r.added, r.updated, r.removed "
        "FROM revisions r JOIN sets s ON s.id = r.set_id WHERE r.created_at >= ? "
        "ORDER BY r.added + r.updated + r.removed DESC, r.created_at DESC LIMIT ?",
        (since, limit),
    )
    return [RevisionTotals(*row) for row in rows]


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

_PATHS: Final = (
    "SELECT key FROM search_keys WHERE key = ? OR (key >= ? AND key < ?) ORDER BY key LIMIT ?"
)

_KEYS_BETWEEN: Final = "SELECT key FROM search_keys WHERE key >= ? AND key < ? ORDER BY key LIMIT ?"

_SETS = (
    "SELECT name, item_count FROM sets WHERE item_count > 0 ORDER BY item_count DESC, name LIMIT ?"
)

_VALUES: Final = f"""
WITH RECURSIVE listed (value) AS (
    SELECT (
        SELECT min(value) FROM search
        WHERE {_KEY} AND value >= ? AND value < ? AND value <> '\x01'
    )
    UNION ALL
    SELECT (
        SELECT min(s.value) FROM search s
        WHERE {_KEY} AND s.value > listed.value AND s.value < ?
    ) FROM listed WHERE listed.value IS NOT NULL
)
SELECT value FROM listed WHERE value IS NOT NULL AND value <> '\x01' LIMIT {{limit}}
"""

_OWNERS_AMONG: Final = f"""
WITH RECURSIVE target (ref, number) AS (
    SELECT (
        SELECT min(target_ref) FROM relations WHERE target_ref >= ? AND target_ref < ?
    ), 1
    UNION ALL
    SELECT (
        SELECT min(r.target_ref) FROM relations r
        WHERE r.target_ref > target.ref AND r.target_ref < ?
    ), target.number + 1
    FROM target WHERE target.ref IS NOT NULL AND target.number < {_LOOKED_AT}
)
SELECT ref FROM target WHERE ref IS NOT NULL AND {{condition}} AND EXISTS (
    SELECT 1 FROM relations o WHERE o.target_ref = target.ref AND o.type = 'ownedBy'
) LIMIT {{limit}}
"""

_SYSTEMS: Final = """
SELECT ref FROM entities WHERE ref >= 'system:' AND ref < 'system;' AND ref LIKE ? ESCAPE '\\'
ORDER BY ref LIMIT ?
"""

_IS_TARGET: Final = "SELECT 1 FROM relations WHERE target_ref = ? AND type = ? LIMIT 1"


# Changes whenever set content or the entities change.
_CATALOG_STATE = f"""
SELECT (SELECT COALESCE(SUM(revision), 0) FROM sets), {render_counter("entity")}
"""
