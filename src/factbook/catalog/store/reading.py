"""Reading entities, one or many, as the bytes that clients get."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from factbook.catalog import filters, search
from factbook.catalog.filters import Condition
from factbook.storage import Database

_COLUMNS = "e.ref, e.uid, e.etag, e.document, e.relations, e.problems"


class Stored(NamedTuple):
    """An entity as it is stored; `document`, `relations` and `problems` are JSON text."""

    ref: str
    uid: str
    etag: str
    document: str
    relations: str
    problems: str | None

    def render(self) -> str:
        """The entity as the catalog shows it: with uid, etag, relations and status."""
        # metadata is the first object of a stored document: nothing before it can hold this text.
        head, _, tail = self.document.partition('"metadata":{')
        status = f',"status":{{"items":{self.problems}}}' if self.problems else ""
        return (
            f'{head}"metadata":{{"uid":"{self.uid}","etag":"{self.etag}",{tail[:-1]}'
            f',"relations":{self.relations}{status}}}'
        )


class Order(NamedTuple):
    """One field to order by; entities that lack it come last in both directions."""

    field: str
    descending: bool = False


@dataclass(frozen=True)
class Query:
    """Which entities, in which order, from where on."""

    filters: list[Condition] = field(default_factory=list)
    order: Sequence[Order] = ()
    limit: int | None = None
    offset: int = 0
    after: list[str | None] | None = None  # a row's sort values and reference

    def sql(self) -> tuple[str, list[object]]:
        """The statement; its rows are the columns of Stored and then the sort values."""
        joins, sorts, parameters = _sorts(self.order)
        where, values = filters.where(self.filters)
        parameters += values
        if self.after is not None:
            condition, values = _after(sorts, self.order, self.after)
            where = f"({where}) AND ({condition})"
            parameters += values
        columns = "".join(f", {sort}" for sort in sorts)
        statement = f"SELECT {_COLUMNS}{columns} FROM entities e{joins} WHERE {where}"
        statement += f" ORDER BY {_ordering(sorts, self.order)}"
        if self.limit is not None:
            statement += " LIMIT ?"
            parameters.append(self.limit)
            if self.offset:
                statement += " OFFSET ?"
                parameters.append(self.offset)
        return statement, parameters


def _sorts(order: Sequence[Order]) -> tuple[str, list[str], list[object]]:
    joins, sorts, parameters = "", [], list[object]()
    for position, item in enumerate(order):
        name = item.field.lower()
        if column := filters.COLUMNS.get(name):
            sorts.append(column)
            continue
        joins += (
            " LEFT JOIN (SELECT entity_id, min(value) AS value FROM search"
            " WHERE key_id = (SELECT id FROM search_keys WHERE key = ?) AND value <> ?"
            f" GROUP BY entity_id) o{position} ON o{position}.entity_id = e.id"
        )
        parameters += [name, search.EXISTS]
        sorts.append(f"o{position}.value")
    return joins, sorts, parameters


def _ordering(sorts: list[str], order: Sequence[Order]) -> str:
    terms = []
    for sort, item in zip(sorts, order, strict=True):
        direction = " DESC" if item.descending else ""
        # A column of our own is never null, and naming it alone lets an index give the order.
        terms.append(
            f"{sort}{direction}" if sort.startswith("e.") else f"{sort} IS NULL, {sort}{direction}"
        )
    return ", ".join([*terms, "e.ref"])


def _after(
    sorts: list[str], order: Sequence[Order], after: list[str | None]
) -> tuple[str, list[object]]:
    """The rows that sort behind a row with these sort values and, last, this reference."""
    *values, ref = after
    alternatives, parameters = [], list[object]()
    same, same_parameters = "", list[object]()
    for sort, item, value in zip(sorts, order, values, strict=True):
        if value is None:  # only others without a value can follow
            same += f"{sort} IS NULL AND "
            continue
        sign = "<" if item.descending else ">"
        alternatives.append(f"({same}({sort} {sign} ? OR {sort} IS NULL))")
        parameters += [*same_parameters, value]
        same += f"{sort} = ? AND "
        same_parameters.append(value)
    alternatives.append(f"({same}e.ref > ?)")
    return " OR ".join(alternatives), [*parameters, *same_parameters, ref]


async def entity(database: Database, ref: str) -> Stored | None:
    """The entity with this canonical reference."""
    row = await database.find(
        f"SELECT {_COLUMNS} FROM entities e WHERE e.ref IN LIST(?)",
        ref,
    )
    return Stored(*row) if row else None


async def entity_by_uid(database: Database, uid: str) -> Stored | None:
    """The entity with this uid."""
    row = await database.one(f"SELECT {_COLUMNS} FROM entities e WHERE e.uid = ?", (uid,))
    return Stored(*row) if row else None


async def entities_by_refs(
    database: Database, wanted: list[str], conditions: list[Condition]
) -> dict[str, Stored]:
    """Those of the references that exist and meet the filter."""
    where, parameters = filters.where(conditions)
    rows = await database.all(
        f"SELECT {_COLUMNS} FROM entities e WHERE e.ref IN LIST(?) AND ({where})",
        [wanted, *parameters],
    )
    return {row[0]: Stored(*row) for row in rows}


class Found(NamedTuple):
    """One page of a query, and where the next one begins."""

    items: list[Stored]
    last: list[str | None] | None


async def page(database: Database, query: Query) -> Found:
    """At most `query.limit` entities; `last` is given when there are more."""
    assert query.limit is not None
    width = len(Stored._fields)
    more = Query(query.filters, query.order, query.limit + 1, query.offset, query.after)
    rows = await database.all(*more.sql())
    kept = rows[: query.limit]
    last = [*kept[-1][width:], kept[-1][0]] if kept and len(rows) > len(kept) else None
    return Found([Stored(*row[:width]) for row in kept], last)


async def stream(database: Database, query: Query) -> AsyncIterator[list[Stored]]:
    """Every entity of a query, in portions, all of one moment."""
    width = len(Stored._fields)
    async for rows in database.pages(*query.sql()):
        yield [Stored(*row[:width]) for row in rows]


async def nearest(database: Database, kind: str, name: str, limit: int = 100) -> list[str]:
    """References of this kind whose names are neighbours of `name`, and some that begin like it."""
    found: dict[str, None] = {}
    for condition, order, text in (
        ("e.name >= ?", "e.name", name),
        ("e.name < ?", "e.name DESC", name),
        ("e.name >= ?", "e.name", name[:2]),
    ):
        rows = await database.all(
            "SELECT e.ref FROM entities e "
            f"WHERE e.kind = ? AND {condition} ORDER BY {order} LIMIT ?",
            (kind, text, limit),
        )
        found.update(dict.fromkeys(row[0] for row in rows))
    return list(found)


# Entities whose facts are read in one statement.
_PORTION = 2_000


class Complying(NamedTuple):
    """The catalog's own facts about an entity: the bits of `catalog.compliance`, and its time."""

    ref: str
    compliance: int
    updated_at: int


async def complying(database: Database, ref: str) -> Complying | None:
    """The catalog's own facts about one entity."""
    row = await database.find(
        "SELECT ref, compliance, updated_at FROM entities WHERE ref IN LIST(?)", ref, small=True
    )
    return Complying(*row) if row else None


async def complying_pages(
    database: Database, kind: str | None, namespace: str | None, after: str, limit: int | None
) -> AsyncIterator[list[tuple[str, int, int]]]:
    """The rows of Complying for a kind and namespace, by reference, all of one moment."""
    where, parameters = _narrowed(kind, namespace)
    sql = (
        "SELECT LIST_OF(ref), LIST_OF(compliance), LIST_OF(updated_at) FROM ("
        f"SELECT ref, compliance, updated_at FROM entities WHERE {where} AND ref > ? "
        "ORDER BY ref LIMIT ?) found"
    )
    left = limit
    async with database.moment() as moment:
        while left is None or left > 0:
            size = _PORTION if left is None else min(left, _PORTION)
            columns = await moment.columns(sql, (*parameters, after, size))
            rows = list(zip(*columns, strict=True))
            if rows:
                yield rows
            if len(rows) < size:
                return
            after = rows[-1][0]
            left = left and left - size


async def compliance_by_id(database: Database, after: int, limit: int) -> list[tuple[int, int]]:
    """(id, compliance bits) of up to `limit` entities with an id above `after`, by id."""
    rows = await database.all(
        "SELECT id, compliance FROM entities WHERE id > ? ORDER BY id LIMIT ?", (after, limit)
    )
    return [(row[0], row[1]) for row in rows]


async def count(database: Database, kind: str | None, namespace: str | None) -> int:
    """How many entities of a kind and namespace there are."""
    where, parameters = _narrowed(kind, namespace)
    row = await database.one(f"SELECT count(*) FROM entities WHERE {where}", parameters)
    return row[0] if row else 0


def _narrowed(kind: str | None, namespace: str | None) -> tuple[str, list[object]]:
    if kind is None:
        return ("1 = 1", []) if namespace is None else ("namespace = ?", [namespace])
    # A kind, and a namespace of it, is a range of references, which one index covers.
    prefix = f"{kind}:" if namespace is None else f"{kind}:{namespace}/"
    return "ref >= ? AND ref < ?", [prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1)]
