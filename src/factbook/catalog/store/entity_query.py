"""Queries for many entities: a condition, an order, and a page of the result or all of it."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from factbook.catalog.store.conditions import COLUMNS as KEY_COLUMNS
from factbook.catalog.store.conditions import (
    EVERYTHING,
    SQL,
    Condition,
    Has,
    only_key,
    required_kind,
)
from factbook.catalog.store.documents import COLUMNS, JOINED, RENDERED, StoredEntity
from factbook.catalog.store.selectivity import Selectivity
from factbook.catalog.store.sort_order import Place, SortField, SortOrder
from factbook.storage import Database, Row

T = TypeVar("T")

_NEAR = 1_000
# Entities that are looked at for one of a page, before all of them are.
_WINDOWS = (5, 50, 500)
_LARGEST_WINDOW = 10_000


class Query(Struct, frozen=True):
    """A query for entities: condition, order and position.

    `backward` reverses the order: with `after`, the page is the one before that position.
    References of entities with the same sort values ascend, unless `ref_descending`.
    """

    condition: Condition = EVERYTHING
    order: Sequence[SortField] = ()
    limit: int | None = None
    offset: int = 0
    after: Place | None = None
    backward: bool = False
    ref_descending: bool = False

    @property
    def is_quick(self) -> bool:
        """True if an index leads to exactly the rows of the page, so that no sort is needed."""
        key = only_key(self.condition)
        if key is None or self.offset > _NEAR:
            return False
        fields = [item.own_column for item in self.order]
        return not fields or (fields == [KEY_COLUMNS["metadata.name"]] and key in ("", "kind"))

    @property
    def is_walkable(self) -> bool:
        """True if an index holds the entities in this order."""
        return self.offset <= _NEAR and all(item.own_column for item in self.order)

    def sql(self, columns: str = COLUMNS) -> SQL:
        """The statement; its rows are the columns and, for a page, the sort values."""
        order = self._order
        ranged = self.limit is not None and self.is_quick
        where, values = self._ranged(self.condition) if ranged else self.condition.sql()
        where, values = self._placed(order, where, values)
        parameters = [*order.parameters, *values]
        sources = f"entities e{order.joins} WHERE {where}"
        if self.limit is None:
            return f"SELECT {columns} FROM {sources}{order.by()}", parameters
        if self.is_quick:
            selected = ", ".join([columns, *order.values])
            return f"SELECT {selected} FROM {sources}{order.by()}{self._part}", parameters
        found, selected, named = self._found(order, columns, sources)
        return f"WITH {found} {selected}{order.by(named)}", parameters

    def kinds_sql(self, kind: str, columns: Sequence[str], most: int | None) -> SQL:
        """The statement for the page of a kind, or with "" of any, and the numbers by kind.

        The search for both is one, and ends with `most` entities. A row ends in NULL, or begins
        with a kind and ends in its number. The order is by columns of our own.
        """
        order = self._order
        where, parameters = self.condition.sql()
        of_kind, kinds = Has("kind", [kind] if kind else None).sql()
        of_kind, kinds = self._placed(order, of_kind, kinds)
        # One index has all of them but the time, and is a tenth as large as the entities.
        matched = ", ".join(dict.fromkeys(["e.id", "e.kind", "e.ref", *order.values]))
        found, selected, values = self._found(
            order, ", ".join(columns), f"matching e WHERE {of_kind}", "NULL"
        )
        if most is not None:
            where += f" LIMIT {most}"
        empty = "NULL, " * (len(columns) - 1 + len(values))
        places = [str(len(columns) + place) for place, _ in enumerate(values, 1)]
        return (
            f"WITH matching AS MATERIALIZED (SELECT {matched} FROM entities e WHERE {where}), "
            f"{found} {selected} "
            f"UNION ALL SELECT kind, {empty}count(*) FROM matching GROUP BY kind"
            f"{order.by(places, '1')}"
        ), [*parameters, *kinds]

    def near_sql(self, window: int, met: Condition, columns: str) -> SQL:
        """The statement for the page among the first `window` entities, tested by `met` alone."""
        assert self.limit is not None
        order = self._order
        kind = required_kind(self.condition)
        where, parameters = self._ranged(Has("kind", [kind]) if kind else EVERYTHING)
        where, parameters = self._placed(order, where, parameters)
        sql, values = met.sql()
        return (
            f"WITH near AS MATERIALIZED (SELECT e.id FROM entities e WHERE {where}"
            f"{order.by()} LIMIT {window}) "
            f"SELECT {', '.join([columns, *order.values])} "
            f"FROM near JOIN entities e ON e.id = near.id WHERE {sql}{order.by()}{self._part}"
        ), [*parameters, *values]

    @property
    def _order(self) -> SortOrder:
        return SortOrder(self.order, self.backward, self.ref_descending)

    @property
    def _part(self) -> str:
        # No parameters: PostgreSQL's plan for any number of rows is one for a tenth of all.
        return f" LIMIT {self.limit} OFFSET {self.offset}"

    def _ranged(self, condition: Condition) -> SQL:
        """The condition, with a range of references added for one kind in reference order.

        References begin with the kind, so a walk along them would otherwise scan all preceding
        kinds.
        """
        where, parameters = condition.sql()
        kind = None if self.order else required_kind(condition)
        if kind is None:
            return where, parameters
        bounds = {">=": f"{kind}:", "<": f"{kind};"}
        if self.after is not None:
            # SQLite enters an index at one bound, which has to be the position.
            del bounds["<" if self.ref_descending is not self.backward else ">="]
        ranged = [f"({where})", *(f"e.ref {sign} ?" for sign in bounds)]
        return " AND ".join(ranged), [*parameters, *bounds.values()]

    def _placed(self, order: SortOrder, where: str, parameters: list[object]) -> SQL:
        """The condition, for rows after the position alone."""
        if self.after is None:
            return where, parameters
        condition, values = order.after(self.after)
        return f"({where}) AND ({condition})", [*parameters, *values]

    def _found(
        self, order: SortOrder, columns: str, sources: str, *others: str
    ) -> tuple[str, str, list[str]]:
        """The table `found` of a page's ids, the rows of them, and the sort values in it.

        It scans many rows: documents are read for the page only.
        """
        values = [f"found.s{place}" for place, _ in enumerate(order.values)]
        named = [f"{value} AS s{place}" for place, value in enumerate(order.values)]
        return (
            f"found AS MATERIALIZED (SELECT {', '.join(['e.id AS id', *named])} FROM {sources}"
            f"{order.by()}{self._part})",
            f"SELECT {', '.join([columns, *values, *others])} "
            "FROM found JOIN entities e ON e.id = found.id",
            values,
        )


class ResultPage(NamedTuple, Generic[T]):
    """A page in order; `before` and `after` tell if there are more.

    `places` are the positions of its first and its last item, none of an empty page.
    """

    items: list[T]
    places: list[list[Any]]
    before: bool
    after: bool


async def page(
    database: Database, query: Query, selectivity: Selectivity | None = None
) -> ResultPage[str]:
    """Up to `query.limit` entities, rendered; `selectivity` is that of the query's condition."""
    columns = f"e.ref, {RENDERED}"
    rows = await _rows(database, _with_next(query), columns, selectivity)
    return _paged(query, rows, lambda ref, rendered: rendered)


async def page_of(
    database: Database, query: Query, columns: str, item: Callable[..., T]
) -> ResultPage[T]:
    """The same with other columns, of which the first is the reference."""
    return _paged(query, await _rows(database, _with_next(query), columns), item)


async def page_and_kinds(
    database: Database,
    query: Query,
    kind: str,
    columns: Sequence[str],
    item: Callable[..., T],
    most: int | None = None,
) -> tuple[ResultPage[T], dict[str, int]]:
    """Up to `query.limit` entities of a kind, or with "" of any, and the numbers by kind.

    Only `most` of the matching entities are looked at, in no order: if the numbers add up to that,
    neither they nor the page tell of all.
    """
    rows = await database.search(*_with_next(query).kinds_sql(kind, columns, most))
    found = [row[:-1] for row in rows if row[-1] is None]
    return _paged(query, found, item), {row[0]: row[-1] for row in rows if row[-1] is not None}


def _with_next(query: Query) -> Query:
    """The query with one entity more, which tells if there are more."""
    assert query.limit is not None
    return replace(query, limit=query.limit + 1)


def _paged(query: Query, rows: Sequence[Row], item: Callable[..., T]) -> ResultPage[T]:
    kept, more = list(rows[: query.limit]), len(rows) > (query.limit or 0)
    if query.backward:
        kept.reverse()
    width = len(kept[0]) - len(query.order) if kept else 0
    came = query.after is not None or query.offset > 0
    before, after = (more, came) if query.backward else (came, more)
    return ResultPage(
        [item(*row[:width]) for row in kept],
        [[*row[width:], row[0]] for row in (kept[0], kept[-1])] if kept else [],
        before,
        after,
    )


async def _rows(
    database: Database, query: Query, columns: str, selectivity: Selectivity | None = None
) -> list[Row]:
    if query.is_quick:
        return await database.all(*query.sql(columns))
    found = await (selectivity or Selectivity(database, query.condition)).frequent()
    if found is None:
        return await database.search(*query.sql(columns))
    assert query.limit is not None
    for part in _WINDOWS if found.near and query.is_walkable else ():
        assert found.near
        window = min(part * (query.offset + query.limit), _LARGEST_WINDOW)
        rows = await database.search(*query.near_sql(window, found.near, columns))
        if len(rows) == query.limit:
            return rows
    return await database.search(*replace(query, condition=found.apart).sql(columns))


async def stream(database: Database, query: Query) -> AsyncIterator[list[StoredEntity]]:
    """All entities of a query, in portions, from one snapshot."""
    async for rows in database.pages(*query.sql()):
        yield [StoredEntity(*row) for row in rows]


def stream_text(database: Database, query: Query) -> AsyncIterator[bytes]:
    """The same as rendered JSON, each entity preceded by a comma, in chunks."""
    assert query.limit is None
    return database.text(*query.sql(JOINED))
