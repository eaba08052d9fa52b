"""Queries for many entities: a condition, an order, and a page of the result or all of it."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from factbook.catalog import search
from factbook.catalog.store import documents, overview
from factbook.catalog.store.conditions import COLUMNS as KEY_COLUMNS
from factbook.catalog.store.conditions import EVERYTHING, AllOf, Condition, Has, only_key
from factbook.catalog.store.selectivity import frequent
from factbook.storage import Database, Row

COLUMNS = "e.ref, e.head, e.uid, e.etag, e.body, e.relations, e.problems"

_NEAR = 1_000
# Entities that are looked at for one of a page, before all of them are.
_WINDOWS = (5, 50, 500)
_LARGEST_WINDOW = 10_000

Place = list[str | None]  # a row's sort values and, last, its reference


class StoredEntity(NamedTuple):
    """A stored entity; `relations` and `problems` are JSON, the other texts as in `documents`."""

    ref: str
    head: str
    uid: str
    etag: str
    body: str
    relations: str
    problems: str | None

    def render(self) -> str:
        """The entity in the form that the catalog shows: with uid, etag, relations and status."""
        return documents.rendered(*self[1:])


class SortField(NamedTuple):
    """A field to order by; entities without it come last in both directions."""

    field: str
    descending: bool = False


class _Sort(NamedTuple):
    """An order as SQL: the sort expression, and true if it can be null."""

    expression: str
    descending: bool
    nullable: bool


@dataclass(frozen=True)
class Query:
    """A query for entities: condition, order and position.

    `backward` reverses the order: with `after`, the page is the one before that position.
    """

    condition: Condition = EVERYTHING
    order: Sequence[SortField] = ()
    limit: int | None = None
    offset: int = 0
    after: Place | None = None
    backward: bool = False

    @property
    def is_quick(self) -> bool:
        """True if an index leads to exactly the rows of the page, so that no sort is needed."""
        key = only_key(self.condition)
        if key is None or self.offset > _NEAR:
            return False
        fields = [item.field.lower() for item in self.order]
        return not fields or (fields == ["metadata.name"] and key in ("", "kind"))

    def sql(self) -> tuple[str, list[object]]:
        """The statement; its rows are the columns of Stored and, for a page, the sort values."""
        return self._sql(COLUMNS)

    def text_sql(self) -> tuple[str, list[object]]:
        """The statement whose concatenated columns render each entity, preceded by a comma."""
        assert self.limit is None
        return self._sql(documents.RENDERED)

    def _ranged(self, condition: Condition) -> tuple[str, list[object]]:
        """The condition, with a range of references added for one kind in reference order.

        References begin with the kind, so a walk along them would otherwise scan all preceding
        kinds.
        """
        where, parameters = condition.sql()
        kind = None if self.order else _kind(condition)
        if kind is None:
            return where, parameters
        return f"({where}) AND e.ref >= ? AND e.ref < ?", [*parameters, f"{kind}:", f"{kind};"]

    @property
    def _part(self) -> str:
        # No parameters: PostgreSQL's plan for any number of rows is one for a tenth of all.
        return f" LIMIT {self.limit} OFFSET {self.offset}"

    def _narrowly(self, columns: str, sources: str, sorts: list[_Sort]) -> str:
        """The statement for a page that scans many rows: documents are read for the result only."""
        named = ", ".join(
            ["e.id AS id", *(f"{sort.expression} AS s{place}" for place, sort in enumerate(sorts))]
        )
        found = [sort._replace(expression=f"found.s{place}") for place, sort in enumerate(sorts)]
        return (
            f"WITH found AS MATERIALIZED (SELECT {named} FROM {sources}"
            f"{_ordered(sorts, self.backward)}{self._part}) "
            f"SELECT {', '.join([columns, *(sort.expression for sort in found)])} "
            f"FROM found JOIN entities e ON e.id = found.id{_ordered(found, self.backward)}"
        )

    @property
    def is_walkable(self) -> bool:
        """True if an index holds the entities in this order."""
        return self.offset <= _NEAR and all(
            item.field.lower() in KEY_COLUMNS for item in self.order
        )

    def near_sql(self, window: int, met: Condition) -> tuple[str, list[object]]:
        """The statement for the page among the first `window` entities, tested by `met` alone."""
        assert self.limit is not None
        _, sorts, _ = _sorts(self.order, self.backward)
        kind = _kind(self.condition)
        where, parameters = self._ranged(Has("kind", [kind]) if kind else EVERYTHING)
        if self.after is not None:
            condition, values = _after(sorts, self.after, self.backward)
            where = f"({where}) AND ({condition})"
            parameters = [*parameters, *values]
        sql, values = met.sql()
        ordered = _ordered(sorts, self.backward)
        selected = ", ".join([COLUMNS, *(sort.expression for sort in sorts)])
        return (
            f"WITH near AS MATERIALIZED (SELECT e.id FROM entities e WHERE {where}"
            f"{ordered} LIMIT {window}) "
            f"SELECT {selected} FROM near JOIN entities e ON e.id = near.id WHERE {sql}"
            f"{ordered}{self._part}"
        ), [*parameters, *values]

    def _sql(self, columns: str) -> tuple[str, list[object]]:
        joins, sorts, parameters = _sorts(self.order, self.backward)
        ranged = self.limit is not None and self.is_quick
        where, values = self._ranged(self.condition) if ranged else self.condition.sql()
        parameters += values
        if self.after is not None:
            condition, values = _after(sorts, self.after, self.backward)
            where = f"({where}) AND ({condition})"
            parameters += values
        sources = f"entities e{joins} WHERE {where}"
        if self.limit is None:
            return f"SELECT {columns} FROM {sources}{_ordered(sorts, self.backward)}", parameters
        if not self.is_quick:
            return self._narrowly(columns, sources, sorts), parameters
        selected = ", ".join([columns, *(sort.expression for sort in sorts)])
        ordered = _ordered(sorts, self.backward)
        return f"SELECT {selected} FROM {sources}{ordered}{self._part}", parameters


def _kind(condition: Condition) -> str | None:
    """The kind required by a condition, if there is one."""
    match condition:
        case AllOf(parts=parts):
            return next((kind for part in parts if (kind := _kind(part))), None)
        case Has("kind", [kind]):
            return kind
    return None


def _sorts(order: Sequence[SortField], backward: bool) -> tuple[str, list[_Sort], list[object]]:
    joins, sorts, parameters = "", list[_Sort](), list[object]()
    for position, item in enumerate(order):
        name, descending = item.field.lower(), item.descending is not backward
        if column := KEY_COLUMNS.get(name):
            sorts.append(_Sort(column, descending, nullable=False))
            continue
        joins += (
            " LEFT JOIN (SELECT entity_id, min(value) AS value FROM search"
            " WHERE key_id = (SELECT id FROM search_keys WHERE key = ?) AND value <> ?"
            f" GROUP BY entity_id) o{position} ON o{position}.entity_id = e.id"
        )
        parameters += [name, search.EXISTS]
        sorts.append(_Sort(f"o{position}.value", descending, nullable=True))
    return joins, sorts, parameters


def _ordered(sorts: list[_Sort], backward: bool) -> str:
    direction = " DESC" if backward else ""
    terms = []
    for sort in sorts:
        if sort.nullable:
            terms.append(f"{sort.expression} IS NULL{direction}")
        # A column of our own is never null, and naming it alone lets an index give the order.
        terms.append(f"{sort.expression}{' DESC' if sort.descending else ''}")
    return f" ORDER BY {', '.join([*terms, f'e.ref{direction}'])}"


def _after(sorts: list[_Sort], after: Place, backward: bool) -> tuple[str, list[object]]:
    """The condition for rows after a row with these sort values and, as tie-breaker, reference."""
    *values, ref = after
    alternatives, parameters = [], list[object]()
    same, same_parameters = "", list[object]()
    for sort, value in zip(sorts, values, strict=True):
        column = sort.expression
        if value is None:
            # Rows without a value are the last ones; backward, those with one follow.
            if backward:
                alternatives.append(f"({same}{column} IS NOT NULL)")
                parameters += same_parameters
            same += f"{column} IS NULL AND "
            continue
        beyond = f"{column} {'<' if sort.descending else '>'} ?"
        if sort.nullable and not backward:
            beyond = f"({beyond} OR {column} IS NULL)"
        alternatives.append(f"({same}{beyond})")
        parameters += [*same_parameters, value]
        same += f"{column} = ? AND "
        same_parameters.append(value)
    alternatives.append(f"({same}e.ref {'<' if backward else '>'} ?)")
    sql, parameters = " OR ".join(alternatives), [*parameters, *same_parameters, ref]
    if sorts and not sorts[0].nullable:
        # Said once more without OR, so that an index is entered at the place and not at its start.
        sign = "<=" if sorts[0].descending else ">="
        return f"({sql}) AND {sorts[0].expression} {sign} ?", [*parameters, values[0]]
    return sql, parameters


class StoredEntityPage(NamedTuple):
    """A page of a query in its order; `more` is true if entities follow in its direction."""

    items: list[StoredEntity]
    places: list[Place]
    more: bool


async def page(database: Database, query: Query) -> StoredEntityPage:
    """Up to `query.limit` entities."""
    assert query.limit is not None
    width = len(StoredEntity._fields)
    wanted = replace(query, limit=query.limit + 1)
    rows = await _rows(database, wanted)
    kept = rows[: query.limit]
    if query.backward:
        kept.reverse()
    items = [StoredEntity(*row[:width]) for row in kept]
    places: list[Place] = [[*row[width:], row[0]] for row in kept]
    return StoredEntityPage(items, places, len(rows) > query.limit)


async def _rows(database: Database, query: Query) -> list[Row]:
    if query.is_quick:
        return await database.all(*query.sql())
    found = await frequent(database, query.condition)
    if found is None:
        return await database.search(*query.sql())
    assert query.limit is not None
    for part in _WINDOWS if found.near and query.is_walkable else ():
        assert found.near
        window = min(part * (query.offset + query.limit), _LARGEST_WINDOW)
        rows = await database.search(*query.near_sql(window, found.near))
        if len(rows) == query.limit:
            return rows
    return await database.search(*replace(query, condition=found.apart).sql())


async def stream(database: Database, query: Query) -> AsyncIterator[list[StoredEntity]]:
    """All entities of a query, in portions, from one snapshot."""
    width = len(StoredEntity._fields)
    async for rows in database.pages(*query.sql()):
        yield [StoredEntity(*row[:width]) for row in rows]


def stream_text(database: Database, query: Query) -> AsyncIterator[bytes]:
    """The same as rendered JSON, each entity preceded by a comma, in chunks."""
    return database.text(*query.text_sql())


async def total(database: Database, condition: Condition) -> int:
    """Count the entities that meet the condition."""
    key = only_key(condition)
    if key in ("", "kind"):
        kinds, kind = await overview.by_kind(database), _kind(condition)
        return sum(kinds.values()) if kind is None else kinds.get(kind, 0)
    if key is None and (found := await frequent(database, condition)):
        condition = found.apart
    where, parameters = condition.sql()
    # The entries of one value stand side by side in an index: they are counted in no time.
    ask = database.search if key is None else database.all
    rows = await ask(f"SELECT count(*) FROM entities e WHERE {where}", parameters)
    count: int = rows[0][0]
    return count
