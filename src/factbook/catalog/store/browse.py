"""Catalog browsing: pages of entities, search by text, and completion of names."""

import re
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, Self

from msgspec import Struct
from msgspec.structs import replace

from factbook.catalog.kinds import HAS_OWNER_RELATION, RELATIONS
from factbook.catalog.store import conditions, entity_query, facets
from factbook.catalog.store.conditions import (
    EXISTS_VALUE,
    SQL,
    AllOf,
    Apart,
    Condition,
    Contains,
    Has,
    escape_like,
    narrow_condition,
)
from factbook.catalog.store.entity_query import MANY_ENTITIES, Place, Query, ResultPage, SortField
from factbook.catalog.store.stored_entities import DOCUMENT
from factbook.storage import Database

_NAME_KEY: Final = "metadata.name"
_TEXTS: Final = ("metadata.description", "metadata.tags", "metadata.title")
TRIGRAM_KEYS: Final = (_NAME_KEY, *_TEXTS)
# Fewer are read in 20 ms, and would have to pay for the indexes with every push.
_LEAST_ENTITIES: Final = 100_000
# A text is frequent if so many of the first entities have it; a page of it is found soon enough.
_SAMPLE_SIZE: Final = 500
_FREQUENT_SHARE: Final = 10
# PostgreSQL makes trigrams of letters and digits; which others there are depends on the locale.
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

# Providers have rules of their own, and nothing depends on it.
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

# Of a kind that more than one in so many entities have, a page is found in order of the time.
_FREQUENT_KINDS = 8

TEXT_FIELDS = ("metadata.name", "metadata.title", "metadata.description", "metadata.tags")
# Of `entities e`, as an EntityRow has them.
BROWSE_COLUMNS = ("e.ref", DOCUMENT, _TIME, "e.id")

# The index of each column, and those of the others that narrow it.
_WITHIN: Final = {"kind": "", "namespace": "", "name": " AND kind = ?"}
_KEYS: Final = ("metadata.title", "spec.profile.displayname")
# Sorts behind every text that begins with what stands before it.
_LAST: Final = chr(0x10FFFF)

CompletedColumn = Literal["kind", "namespace", "name"]


@dataclass(frozen=True)
class Among:
    """Entities with one of these ids."""

    ids: Sequence[int]

    def sql(self) -> SQL:
        return "e.id IN LIST(?)", [list(self.ids)]


class _Indexes(NamedTuple):
    """The ids of keys, and what the indexes hold: names, the texts of some keys, any letters.

    `sampled` is how many of the first names have a text.
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
        """The ids of those of the keys, except the name, that any entity has."""
        return {id_ for key, id_ in self.keys.items() if key in keys and key in _TEXTS}

    def serve(self, wanted: Contains) -> bool:
        """Return true if all that the search reads is in an index, and its text can be found."""
        trigram = _trigram if self.letters else _ascii_trigram
        return (
            self.names
            and self.texts_of(wanted.keys) <= self.texts
            and bool(trigram.search(wanted.text))
        )


async def look_up_text(database: Database, condition: Condition) -> Condition:
    """The condition, in which entities stand for each text that few have."""
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
    """The statement for the entities with a text, up to one more than are few."""
    halves, parameters = list[str](), list[object]()
    if names:
        halves.append("SELECT id FROM entities WHERE ref LIKE ? ESCAPE '\\'")
        parameters.append(f"%/{pattern}")
    if ids:
        # As numbers, so that the planner sees that the index has all of them.
        halves.append(
            f"SELECT entity_id FROM search WHERE key_id = ANY ('{_in_set(ids)}') "
            "AND value LIKE ? ESCAPE '\\' AND value <> ?"
        )
        parameters += [pattern, conditions.EXISTS_VALUE]
    union = " UNION ALL ".join(halves) or "SELECT id FROM entities WHERE 1 = 0"
    return f"SELECT * FROM ({union}) matching LIMIT {MANY_ENTITIES + 1}", parameters


async def build_trigram_indexes(database: Database, least: int = _LEAST_ENTITIES) -> list[str]:
    """Create the indexes that are missing or lack a key; returns their names.

    None without the extension, or for a catalog of fewer than `least` entities.
    """
    if database.dialect != "postgresql" or not await _is_large_catalog(database, least):
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


async def _is_large_catalog(database: Database, least: int) -> bool:
    [found] = await database.one(_COUNT_ENTITIES_TO, (least,)) or (0,)
    return bool(found >= least)


async def _create_index(database: Database, name: str, statement: str) -> bool:
    drop = f"DROP INDEX CONCURRENTLY IF EXISTS {name}"
    return await database.apart(name, [drop, statement], unless="SELECT 1 WHERE 1 = 0")


def _in_set(ids: Sequence[int]) -> str:
    """An array of numbers, as PostgreSQL writes it."""
    return f"{{{','.join(map(str, ids))}}}"


async def match_lone_text(database: Database, condition: Condition, most: int) -> list[int] | None:
    """The ids of up to `most` entities with a text, in no order.

    None on PostgreSQL, and for any condition but a text in names, titles, descriptions or tags.
    """
    if database.dialect != "sqlite":
        return None
    match condition:
        case AllOf(parts=[Contains(keys, text)]) if keys and set(keys) <= set(TRIGRAM_KEYS):
            rows = await database.search(*_match_values(keys, f"%{escape_like(text)}%", most))
            return [id_ for (id_,) in rows]
    return None


def _match_values(keys: Sequence[str], pattern: str, most: int) -> SQL:
    """The statement, of which SQLite reads no more than `most` need."""
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
    """Entities of a kind, as a range of references, which the indexes by change time hold."""

    kind: str

    def sql(self) -> SQL:
        return narrow_condition(self.kind, None)


class _InNamespace(NamedTuple):
    """Entities of a namespace, by the reference, which all indexes hold."""

    namespace: str

    def sql(self) -> SQL:
        # Neither kinds nor names have a colon or a slash.
        return "e.ref LIKE ? ESCAPE '\\'", [f"%:{escape_like(self.namespace)}/%"]


class _InSet(NamedTuple):
    """Entities of a set.

    An index that holds the ids is enough so; the set of an entity stands beside its document alone.
    The sign keeps SQLite from looking up one entity after another.
    """

    name: str

    def sql(self) -> SQL:
        ids = "SELECT entity_id FROM set_items WHERE set_id = (SELECT id FROM sets WHERE name = ?)"
        return f"+e.id IN ({ids})", [self.name]


class LacksOwner(NamedTuple):
    """Entities of which no owner is derived, of the kinds that may have one."""

    def sql(self) -> SQL:
        # An index has nothing else. By ranges of references SQLite would choose the one of all.
        of_kinds = " OR ".join(["ref LIKE ?"] * len(_OWNED))
        lacking = f"(compliance & {HAS_OWNER_RELATION}) = 0 AND ({of_kinds})"
        sql = f"e.id IN (SELECT id FROM entities WHERE {lacking})"
        return sql, [f"{kind}:%" for kind in _OWNED]


class Filter(Struct, frozen=True):
    """A filter of entities; an empty string, or None, means no restriction.

    `kind`, `namespace`, `tags`, `type`, `lifecycle` and `text` are in lower case; an entity has one
    of the tags. It meets all `others`.
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
        """The condition on `entities e`, suited to an order and to what there is of each kind."""
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
    """A page, and the numbers of entities of each kind under the rest of the filter.

    Where `bounded`, they are not counted: `kinds` are those of the catalog, and `total`, the number
    under the whole filter, may be `MORE_THAN_BOUND`.
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
    """Up to `limit` entities after a position, or with `backward` before it.

    Unless `exact`, numbers of a filter that more than `COUNT_BOUND` entities meet are not counted.
    """
    query = replace(_ORDERS[order], limit=limit, after=place, backward=backward)
    kinds = await facets.count_kinds(database)
    anywhere = replace(wanted, kind="").condition(order, kinds)
    bounded = None if wanted.is_quick else await _count_entities(database, anywhere, exact=exact)
    if bounded is not None:
        most = None if exact else entity_query.MORE_THAN_BOUND
        among = replace(query, condition=bounded)
        page, counted = await entity_query.query_page_and_kinds(
            database, among, wanted.kind, BROWSE_COLUMNS, EntityRow, most
        )
        if exact or sum(counted.values()) < entity_query.MORE_THAN_BOUND:
            return BrowseResult(page, _order_kinds(counted), _kind_count(counted, wanted.kind))
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
    """The condition, with what few entities meet looked up.

    None if it is known that more than `COUNT_BOUND` meet it, unless the number is to be `exact`.
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


def _order_kinds(kinds: Mapping[str, int]) -> Mapping[str, int]:
    return dict(sorted(kinds.items(), key=lambda kind: (-kind[1], kind[0])))


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
    """Up to `limit` values of a column that begin so, in their order; names are of one kind."""
    narrowed = _WITHIN[column]
    given = [kind] if narrowed else []
    sql = _STEPS.replace("{column}", column).replace("{within}", narrowed)
    rows = await database.search(sql, (start, *given, *given, limit))
    return [value for (value,) in rows if value.startswith(start)]


async def complete_refs(database: Database, ref: str, limit: int) -> list[str]:
    """Up to `limit` references after one, in their order."""
    rows = await database.search(
        "SELECT ref FROM entities WHERE ref > ? ORDER BY ref LIMIT ?", (ref, limit)
    )
    return [row[0] for row in rows]


async def find_names_beginning(database: Database, text: str, most: int) -> list[EntityRow]:
    """Entities with a name that begins with a text in lower case, in no order.

    Up to `most` by each sort of name, of which those that are shorter come first.
    """
    bounds = (text, text + _LAST)
    parameters: list[object] = [*bounds, most]
    for key in _KEYS:
        parameters += [key, *bounds, EXISTS_VALUE, most]
    rows = await database.all(_BEGINNING, parameters)
    return [EntityRow(*row) for row in rows]


# Keys, and of each the same: is there an index of names, the ids of the keys whose texts have one,
# does a trigram hold letters that are not ASCII, and how many of the first names have the text?
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
