"""Catalog browsing: a page of entities, counts by kind, and values to filter by."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from factbook.catalog.store import overview
from factbook.catalog.store.conditions import (
    SQL,
    AllOf,
    Condition,
    Contains,
    Has,
    Related,
    escaped,
)
from factbook.storage import Database, Row, counters

Order = Literal["name", "kind", "updated"]

# The columns of each order and whether it is downwards; the reference makes every place unique.
_ORDERS: dict[Order, tuple[tuple[str, ...], bool]] = {
    "name": (("name", "ref"), False),
    "kind": (("ref",), False),
    "updated": (("updated_at", "ref"), True),
}
ORDERS: Sequence[Order] = tuple(_ORDERS)

_TEXT_FIELDS = ("metadata.name", "metadata.title", "metadata.description", "metadata.tags")

# An index that holds the ids is enough so; the set of an entity stands beside its document alone.
# The sign keeps SQLite from looking up one entity after another.
_IN_SET = """+e.id IN (
    SELECT entity_id FROM set_items WHERE set_id = (SELECT id FROM sets WHERE name = ?)
)"""

Place = tuple[str | int, ...]  # a row's values of the columns of an order


@dataclass(frozen=True)
class Filter:
    """A filter of entities; an empty string means no restriction. `owner` is a canonical reference.

    `kind`, `namespace`, `tag` and `text` are in lower case.
    """

    kind: str = ""
    namespace: str = ""
    owner: str = ""
    tag: str = ""
    set: str = ""
    text: str = ""

    @property
    def is_quick(self) -> bool:
        """True if an index holds the matching entities ordered by name and by kind."""
        return not (self.namespace or self.owner or self.tag or self.set or self.text)

    def sql(self, order: Order | None = None) -> SQL:
        """The condition on `entities e`."""
        where, parameters = self._named(order)
        others, values = AllOf(list(self._others())).sql()
        where, parameters = f"{where} AND {others}", [*parameters, *values]
        if not self.set:
            return where, parameters
        return f"{where} AND {_IN_SET}", [*parameters, self.set]

    def _named(self, order: Order | None) -> SQL:
        """Kind and namespace, as conditions on columns that an index for this order holds."""
        conditions, parameters = ["1 = 1"], list[object]()
        if self.kind and order == "updated":
            conditions.append("e.ref >= ? AND e.ref < ?")
            parameters += [f"{self.kind}:", f"{self.kind};"]
        elif self.kind:
            conditions.append("e.kind = ?")
            parameters.append(self.kind)
        if self.namespace:
            # Neither kinds nor names have a colon or a slash.
            conditions.append("e.ref LIKE ? ESCAPE '\\'")
            parameters.append(f"%:{escaped(self.namespace)}/%")
        return " AND ".join(conditions), parameters

    def _others(self) -> Iterator[Condition]:
        if self.owner:
            yield Related(["ownedby"], [self.owner])
        if self.tag:
            yield Has("metadata.tags", [self.tag])
        if self.text:
            yield Contains(_TEXT_FIELDS, self.text)


class EntityRow(NamedTuple):
    """An entity in a list; `document` is the JSON as pushed."""

    ref: str
    document: str
    updated_at: int


class BrowsePage(NamedTuple):
    """Entities in order, with their positions; `before` and `after` tell if there are more."""

    items: list[EntityRow]
    places: list[Place]
    before: bool
    after: bool


class BrowseResult(NamedTuple):
    """A page, and the number of entities of each kind under the rest of the filter."""

    page: BrowsePage
    kinds: list["FilterChoice"]


async def find(
    database: Database,
    wanted: Filter,
    order: Order,
    limit: int,
    place: Place | None = None,
    *,
    backward: bool = False,
) -> BrowseResult:
    """Up to `limit` entities after a position, or with `backward` before it."""
    ask = _walk if wanted.is_quick else _look
    rows, kinds = await ask(database, wanted, _Part(order, limit + 1, place, backward))
    kept = rows[:limit]
    more, came = len(rows) > limit, place is not None
    if backward:
        kept.reverse()
    items = [EntityRow(*row[:3]) for row in kept]
    places = [_place(row, order) for row in kept]
    found = BrowsePage(items, places, more if backward else came, came if backward else more)
    return BrowseResult(found, sorted(kinds, key=lambda kind: (-kind.entities, kind.value)))


class _Part(NamedTuple):
    order: Order
    limit: int
    place: Place | None
    backward: bool

    @property
    def columns(self) -> tuple[str, ...]:
        return _ORDERS[self.order][0]

    @property
    def is_downward(self) -> bool:
        return _ORDERS[self.order][1] is not self.backward

    def ordered(self, table: str) -> str:
        direction = " DESC" if self.is_downward else ""
        return ", ".join(f"{table}.{column}{direction}" for column in self.columns)

    def behind(self, table: str) -> SQL:
        """The condition for rows after the position."""
        if self.place is None:
            return "1 = 1", []
        named = ", ".join(f"{table}.{column}" for column in self.columns)
        sign = "<" if self.is_downward else ">"
        marks = ", ".join("?" * len(self.columns))
        return f"({named}) {sign} ({marks})", list(self.place)


_Rows = tuple[list[Row], list["FilterChoice"]]


async def _walk(database: Database, wanted: Filter, part: _Part) -> _Rows:
    """Walk an index in the requested order; the order by change time needs a search."""
    where, parameters = wanted.sql(part.order)
    behind, values = part.behind("e")
    sql = _PAGE.format(
        columns=", ".join(f"e.{column}" for column in part.columns),
        where=f"({where}) AND {behind}",
        found_order=part.ordered("e"),
        order=part.ordered("d"),
        limit=part.limit,
    )
    ask = database.search if part.order == "updated" else database.all
    rows = await ask(sql, [*parameters, *values])
    return rows, [FilterChoice(*row) for row in (await overview.by_kind(database)).items()]


async def _look(database: Database, wanted: Filter, part: _Part) -> _Rows:
    """Search many entities once, for both the page and the counts by kind."""
    where, parameters = replace(wanted, kind="").sql(part.order)
    behind, values = part.behind("m")
    of_kind, kinds = ("m.kind = ?", [wanted.kind]) if wanted.kind else ("1 = 1", [])
    # One index has all of them but the time, and is a tenth as large as the entities.
    time = ", e.updated_at" if part.order == "updated" else ""
    sql = _LOOK.format(
        columns=f"e.id, e.kind, e.name, e.ref{time}",
        where=where,
        found=f"{of_kind} AND {behind}",
        found_order=part.ordered("m"),
    )
    rows = await database.search(sql, [*parameters, *kinds, *values, part.limit])
    found = [row[:4] for row in rows if row[4] is None]
    # Both databases compare texts as Python does.
    found.sort(key=lambda row: _place(row, part.order), reverse=part.is_downward)
    return found, [FilterChoice(row[0], row[4]) for row in rows if row[4] is not None]


def _place(row: Row, order: Order) -> Place:
    at = {"ref": 0, "updated_at": 2, "name": 3}
    return tuple(row[at[column]] for column in _ORDERS[order][0])


def is_place(place: Sequence[object], order: Order) -> bool:
    """Return true if these values are a valid position in this order."""
    columns, _ = _ORDERS[order]
    return len(place) == len(columns) and all(
        (type(value) is int and abs(value) < 2**63)
        if column == "updated_at"
        else isinstance(value, str) and "\0" not in value
        for column, value in zip(columns, place, strict=True)
    )


class FilterChoice(NamedTuple):
    """A value to filter by, and the number of entities that have it."""

    value: str
    entities: int


async def namespaces(database: Database, limit: int) -> list[FilterChoice]:
    """The most frequent namespaces."""
    return [FilterChoice(*row) for row in await database.search(_NAMESPACES, (limit,))]


async def owners(database: Database, limit: int) -> list[FilterChoice]:
    """The references that are the owner of the most entities, existing or not."""
    return [FilterChoice(*row) for row in await database.search(_OWNERS, (limit,))]


async def tags(database: Database, limit: int) -> list[FilterChoice]:
    """The most frequent tags."""
    return [FilterChoice(*row) for row in await database.search(_TAGS, (limit,))]


async def sets(database: Database, limit: int) -> list[FilterChoice]:
    """The largest sets."""
    return [FilterChoice(*row) for row in await database.all(_SETS, (limit,))]


async def revision(database: Database) -> tuple[int, int]:
    """A version that changes with the content of sets and with new entities."""
    row = await database.one(_REVISION)
    assert row is not None
    return row[0], row[1]


# Documents are read of the entities of the page alone, not of those that are looked through. The
# limit is no parameter: PostgreSQL's plan for any number of rows is one for a tenth of all.
_PAGE = """
WITH found AS MATERIALIZED (
    SELECT e.id, {columns} FROM entities e WHERE {where} ORDER BY {found_order} LIMIT {limit}
)
SELECT d.ref, d.head || d.body || '}}', d.updated_at, d.name
FROM found JOIN entities d ON d.id = found.id ORDER BY {order}
"""

_LOOK = """
WITH matching AS MATERIALIZED (
    SELECT {columns} FROM entities e WHERE {where}
), found AS MATERIALIZED (
    SELECT m.id FROM matching m WHERE {found} ORDER BY {found_order} LIMIT ?
)
SELECT d.ref, d.head || d.body || '}}', d.updated_at, d.name, NULL
FROM found JOIN entities d ON d.id = found.id
UNION ALL SELECT kind, '', 0, '', count(*) FROM matching GROUP BY kind
"""

_REVISION = f"""
SELECT (SELECT COALESCE(SUM(revision), 0) FROM sets), {counters.expression("entity")}
"""

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

_SETS = (
    "SELECT name, item_count FROM sets WHERE item_count > 0 ORDER BY item_count DESC, name LIMIT ?"
)
