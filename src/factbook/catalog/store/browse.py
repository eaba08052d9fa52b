"""Catalog browsing: a page of the entities that a filter lets through, and counts by kind."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from factbook.catalog.compliance import HAS_OWNER_RELATION
from factbook.catalog.kinds import RELATIONS
from factbook.catalog.store import entity_query, overview, text_matches, totals, trigrams
from factbook.catalog.store.conditions import (
    SQL,
    AllOf,
    Apart,
    Condition,
    Contains,
    Has,
    escaped,
    narrowed,
)
from factbook.catalog.store.documents import DOCUMENT
from factbook.catalog.store.entity_query import Query, ResultPage
from factbook.catalog.store.sort_order import Place, SortField
from factbook.catalog.store.trigrams import Among
from factbook.storage import Database

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
_FREQUENT = 8

TEXT_FIELDS = ("metadata.name", "metadata.title", "metadata.description", "metadata.tags")
# Of `entities e`, as an EntityRow has them.
COLUMNS = ("e.ref", DOCUMENT, _TIME, "e.id")


class _OfKind(NamedTuple):
    """Entities of a kind, as a range of references, which the indexes by change time hold."""

    kind: str

    def sql(self) -> SQL:
        return narrowed(self.kind, None)


class _InNamespace(NamedTuple):
    """Entities of a namespace, by the reference, which all indexes hold."""

    namespace: str

    def sql(self) -> SQL:
        # Neither kinds nor names have a colon or a slash.
        return "e.ref LIKE ? ESCAPE '\\'", [f"%:{escaped(self.namespace)}/%"]


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
            is_frequent = kinds.get(self.kind, 0) * _FREQUENT >= sum(kinds.values())
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
    under the whole filter, may be `totals.MORE`.
    """

    page: ResultPage[EntityRow]
    kinds: Mapping[str, int]
    total: int
    bounded: bool = False

    @property
    def everywhere(self) -> int:
        """The number of entities of all kinds."""
        return sum(self.kinds.values())


async def find(
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

    Unless `exact`, numbers of a filter that more than `totals.BOUND` entities meet are not counted.
    """
    query = replace(_ORDERS[order], limit=limit, after=place, backward=backward)
    kinds = await overview.kinds(database)
    anywhere = replace(wanted, kind="").condition(order, kinds)
    bounded = None if wanted.is_quick else await _bounded(database, anywhere, exact=exact)
    if bounded is not None:
        most = None if exact else totals.MORE
        among = replace(query, condition=bounded)
        page, counted = await entity_query.page_and_kinds(
            database, among, wanted.kind, COLUMNS, EntityRow, most
        )
        if exact or sum(counted.values()) < totals.MORE:
            return BrowseResult(page, _most_first(counted), _of_kind(counted, wanted.kind))
    query = replace(query, condition=wanted.condition(order, kinds))
    page = await entity_query.page_of(database, query, ", ".join(COLUMNS), EntityRow)
    if wanted.is_quick:
        return BrowseResult(page, kinds, _of_kind(kinds, wanted.kind))
    of_kind = wanted.condition("kind", kinds)
    total = await totals.bounded(database, of_kind) if wanted.kind else totals.MORE
    return BrowseResult(page, kinds, total, bounded=True)


async def _bounded(database: Database, condition: AllOf, *, exact: bool) -> Condition | None:
    """The condition, with what few entities meet looked up.

    None if it is known that more than `totals.BOUND` meet it, unless the number is to be `exact`.
    """
    looked_up = await trigrams.looked_up(database, condition)
    if exact:
        return looked_up
    if (ids := await text_matches.of_lone_text(database, looked_up, totals.MORE)) is not None:
        return Among(ids) if len(ids) < totals.MORE else None
    return None if await totals.is_above_bound(database, looked_up) else looked_up


async def stream(database: Database, wanted: Filter) -> AsyncIterator[list[EntityRow]]:
    """All entities by reference, in portions, from one snapshot."""
    condition = await trigrams.looked_up(database, wanted.condition("kind", {}))
    async for rows in database.pages(*Query(condition=condition).sql(", ".join(COLUMNS))):
        yield [EntityRow(*row) for row in rows]


def _most_first(kinds: Mapping[str, int]) -> Mapping[str, int]:
    return dict(sorted(kinds.items(), key=lambda kind: (-kind[1], kind[0])))


def _of_kind(kinds: Mapping[str, int], kind: str) -> int:
    return kinds.get(kind, 0) if kind else sum(kinds.values())


def is_place(place: Sequence[object], order: Order) -> bool:
    """Return true if these values are a valid position in this order."""
    columns = [field.own_column for field in (*_ORDERS[order].order, SortField("", column="e.ref"))]
    return len(place) == len(columns) and all(
        (type(value) is int and abs(value) < 2**63)
        if column == _TIME
        else isinstance(value, str) and "\0" not in value
        for column, value in zip(columns, place, strict=True)
    )
