"""The catalog as people look through it: a page of entities, how many there are, what to choose."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from factbook.catalog.store.conditions import (
    SQL,
    AllOf,
    Condition,
    Contains,
    Has,
    Related,
    escaped,
)
from factbook.storage import Database

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
    """Which entities: an empty text asks for nothing. `owner` is a canonical reference.

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
        """Whether an index has the entities in the order of their names and of their kinds."""
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
        """Kind and namespace, said of columns that an index for this order holds."""
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


class Listed(NamedTuple):
    """An entity in a list; `document` is the JSON of what was pushed."""

    ref: str
    document: str
    updated_at: int


class Page(NamedTuple):
    """Entities in their order, with their places; whether there are more on either side."""

    items: list[Listed]
    places: list[Place]
    before: bool
    after: bool


async def page(
    database: Database,
    wanted: Filter,
    order: Order,
    limit: int,
    place: Place | None = None,
    *,
    backward: bool = False,
) -> Page:
    """Up to `limit` entities behind a place; `backward`: those that stand before it."""
    columns, downward = _ORDERS[order]
    where, parameters = wanted.sql(order)
    direction = " DESC" if downward is not backward else ""
    if place is not None:
        named = ", ".join(f"e.{column}" for column in columns)
        sign = "<" if direction else ">"
        where = f"({where}) AND ({named}) {sign} ({', '.join('?' * len(columns))})"
        parameters = [*parameters, *place]
    ask = database.all if wanted.is_quick and order != "updated" else database.search
    sql = _PAGE.format(
        columns=", ".join(f"e.{column}" for column in columns),
        where=where,
        found_order=_ordered("e", columns, direction),
        order=_ordered("d", columns, direction),
    )
    rows = await ask(sql, [*parameters, limit + 1])
    kept = rows[:limit]
    more, came = len(rows) > limit, place is not None
    if backward:
        kept.reverse()
    items = [Listed(*row[:3]) for row in kept]
    at = {"ref": 0, "updated_at": 2, "name": 3}
    places = [tuple(row[at[column]] for column in columns) for row in kept]
    return Page(items, places, more if backward else came, came if backward else more)


def is_place(place: Sequence[object], order: Order) -> bool:
    """Whether these values can be a place in this order."""
    columns, _ = _ORDERS[order]
    return len(place) == len(columns) and all(
        (type(value) is int and abs(value) < 2**63)
        if column == "updated_at"
        else isinstance(value, str) and "\0" not in value
        for column, value in zip(columns, place, strict=True)
    )


class Choice(NamedTuple):
    """A value to choose, and how many entities have it."""

    value: str
    entities: int


async def kinds(database: Database, wanted: Filter) -> list[Choice]:
    """The kinds among the entities, the most frequent first."""
    where, parameters = wanted.sql()
    rows = await database.search(_KINDS.format(where), parameters)
    return [Choice(*row) for row in rows]


async def namespaces(database: Database, limit: int) -> list[Choice]:
    """The most frequent namespaces."""
    return [Choice(*row) for row in await database.search(_NAMESPACES, (limit,))]


async def owners(database: Database, limit: int) -> list[Choice]:
    """The references that most entities have as their owner, whether they exist or not."""
    return [Choice(*row) for row in await database.search(_OWNERS, (limit,))]


async def tags(database: Database, limit: int) -> list[Choice]:
    """The most frequent tags."""
    return [Choice(*row) for row in await database.search(_TAGS, (limit,))]


async def sets(database: Database, limit: int) -> list[Choice]:
    """The largest sets."""
    return [Choice(*row) for row in await database.all(_SETS, (limit,))]


def _ordered(table: str, columns: Sequence[str], direction: str) -> str:
    return ", ".join(f"{table}.{column}{direction}" for column in columns)


# Documents are read of the entities of the page alone, not of those that are looked through.
_PAGE = """
WITH found AS MATERIALIZED (
    SELECT e.id, {columns} FROM entities e WHERE {where} ORDER BY {found_order} LIMIT ?
)
SELECT d.ref, d.head || d.body || '}}', d.updated_at, d.name
FROM found JOIN entities d ON d.id = found.id ORDER BY {order}
"""

_KINDS = """
SELECT e.kind, count(*) FROM entities e WHERE {} GROUP BY e.kind ORDER BY count(*) DESC, e.kind
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
