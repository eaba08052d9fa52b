"""Queries for many entities: conditions, orders, pages, and numbers of results."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from factbook.catalog.store import conditions
from factbook.catalog.store.conditions import (
    EVERYTHING,
    KEY_COLUMNS,
    SQL,
    AllOf,
    AnyOf,
    Apart,
    Condition,
    Has,
    Related,
    required_kind,
    single_key,
)
from factbook.catalog.store.stored_entities import (
    JOINED_DOCUMENT,
    RENDERED_DOCUMENT,
    STORED_COLUMNS,
    StoredEntity,
)
from factbook.storage import Database, Row
from factbook.storage.database import render_counter

Place = Sequence[str | int | None]  # a row's sort values and, last, its reference

# If more than one in two entities match, SQLite finds a page or a bounded number faster by probing
# entities one by one than by listing all matches. Above one in eight, it lists all matches for
# counting, but not for sorting. PostgreSQL always probes.
_MOST_FREQUENT: Final = 2
_FREQUENT: Final = 8

# This many entities can be found and sorted almost instantly.
MANY_ENTITIES: Final = 1_000
_MOST_VALUES = 5
_MOST_SPELLINGS = 20
_ALMOST_UNIQUE = ("metadata.name", "metadata.uid")

_KEY_ID = "key_id = (SELECT id FROM search_keys WHERE key = ?)"

# The OFFSET keeps PostgreSQL from reading all entities with the value.
_PROBE_VALUES = """EXISTS (
    SELECT 1 FROM search WHERE key_id = (SELECT id FROM search_keys WHERE key = ?)
        AND value = ? AND original IN ({}) AND entity_id = e.id LIMIT 1 OFFSET 0
)"""

T = TypeVar("T")

_NEAR_ROWS = 1_000
# Entities probed per entity of a page, before falling back to all entities.
_WINDOWS = (5, 50, 500)
_LARGEST_WINDOW = 10_000

# This many entities are counted in tens of milliseconds, whatever the size of the catalog.
COUNT_BOUND: Final = 10_000
MORE_THAN_BOUND: Final = COUNT_BOUND + 1
# The first entities, on which a frequent condition is tried.
_WINDOW: Final = 5 * COUNT_BOUND


class SortField(NamedTuple):
    """A field to order by; entities without it come last in both directions.

    `column` is a column of `entities` to order by instead, which is never null.
    """

    field: str
    descending: bool = False
    column: str = ""

    @property
    def own_column(self) -> str | None:
        """The column of `entities e` that holds the field; None if the index holds it."""
        return self.column or KEY_COLUMNS.get(self.field.lower())


class _Sort(NamedTuple):
    """A term of an order: the sort expression, and true if it can be null."""

    expression: str
    descending: bool
    nullable: bool = False

    def sql(self, direction: str) -> str:
        term = f"{self.expression}{' DESC' if self.descending else ''}"
        # A column of `entities` is never null; without IS NULL, an index can provide the order.
        return f"{self.expression} IS NULL{direction}, {term}" if self.nullable else term


class SortOrder:
    """An order with its joins and their parameters; the reference makes each position unique."""

    def __init__(self, fields: Sequence[SortField], backward: bool, ref_descending: bool) -> None:
        self.joins = ""
        self.parameters: list[object] = []
        self._backward = backward
        self._sorts = [self._sort(place, field) for place, field in enumerate(fields)]
        self._ref = _Sort("e.ref", ref_descending is not backward)

    @property
    def values(self) -> list[str]:
        """The sort expressions before the reference."""
        return [sort.expression for sort in self._sorts]

    def by(self, values: Sequence[str] | None = None, ref: str = "e.ref") -> str:
        """The ORDER BY clause, of these expressions if they are given."""
        direction = " DESC" if self._backward else ""
        named = zip(self._sorts, self.values if values is None else values, strict=True)
        sorts = [sort._replace(expression=value) for sort, value in named]
        sorts.append(self._ref._replace(expression=ref))
        return f" ORDER BY {', '.join(sort.sql(direction) for sort in sorts)}"

    def after(self, place: Place) -> SQL:
        """The condition for rows after a position."""
        sorts = [*self._sorts, self._ref]
        if len({sort.descending for sort in sorts}) == 1 and not any(
            sort.nullable for sort in sorts
        ):
            # A single row comparison lets an index scan start at the position.
            named, marks = ", ".join(sort.expression for sort in sorts), ", ".join("?" * len(sorts))
            return f"({named}) {'<' if self._ref.descending else '>'} ({marks})", list(place)
        return self._after_each(sorts, place)

    def _after_each(self, sorts: Sequence[_Sort], place: Place) -> SQL:
        """Like `after`, for sort values that may be missing or have different directions."""
        alternatives, parameters = [], list[object]()
        same, same_parameters = "", list[object]()
        for sort, value in zip(sorts, place, strict=True):
            column = sort.expression
            if value is None:
                # Rows without a value come last; backward, rows with a value follow them.
                if self._backward:
                    alternatives.append(f"({same}{column} IS NOT NULL)")
                    parameters += same_parameters
                same += f"{column} IS NULL AND "
                continue
            beyond = f"{column} {'<' if sort.descending else '>'} ?"
            if sort.nullable and not self._backward:
                beyond = f"({beyond} OR {column} IS NULL)"
            alternatives.append(f"({same}{beyond})")
            parameters += [*same_parameters, value]
            same += f"{column} = ? AND "
            same_parameters.append(value)
        sql = " OR ".join(alternatives)
        if self._sorts and not self._sorts[0].nullable:
            # Repeated without OR, so an index scan begins at the position, not at its start.
            sign = "<=" if self._sorts[0].descending else ">="
            return f"({sql}) AND {self._sorts[0].expression} {sign} ?", [*parameters, place[0]]
        return sql, parameters

    def _sort(self, place: int, field: SortField) -> _Sort:
        descending = field.descending is not self._backward
        if column := field.own_column:
            return _Sort(column, descending)
        self.joins += (
            " LEFT JOIN (SELECT entity_id, min(value) AS value FROM search"
            " WHERE key_id = (SELECT id FROM search_keys WHERE key = ?) AND value <> ?"
            f" GROUP BY entity_id) o{place} ON o{place}.entity_id = e.id"
        )
        self.parameters += [field.field.lower(), conditions.EXISTS_VALUE]
        return _Sort(f"o{place}.value", descending, nullable=True)


class TargetedNear(NamedTuple):
    """Entities that state a relation to one of the targets, probed one by one."""

    type: str
    targets: Sequence[str]

    def sql(self) -> SQL:
        marks = ", ".join("?" * len(self.targets))
        return (
            "EXISTS (SELECT 1 FROM relations o WHERE o.source_id = e.id AND o.type = ? "
            f"AND o.target_ref IN ({marks}))"
        ), [self.type, *self.targets]


class Targeted(NamedTuple):
    """Entities, of which there are many, that state a relation to one of the targets."""

    type: str
    targets: Sequence[str]

    @property
    def near(self) -> TargetedNear:
        """A form that suits probing a few entities."""
        return TargetedNear(self.type, self.targets)

    def sql(self) -> SQL:
        return Related([self.type.lower()], self.targets).sql()


async def build_related_condition(
    database: Database, type_: str, targets: Sequence[str]
) -> Condition:
    """The condition that an entity states a relation of a type to one of the targets."""
    stated = Related([type_.lower()], targets)
    if database.dialect != "sqlite" or not targets:
        return stated
    entities = sum((await count_kinds(database)).values())
    enough = entities // _MOST_FREQUENT + 1
    [[found]] = await database.search(_COUNT_TARGETS.format(most=enough), (type_, list(targets)))
    if found == enough:
        return TargetedNear(type_, targets)
    return Targeted(type_, targets) if found * _FREQUENT > entities else stated


class Frequent(NamedTuple):
    """Two forms of a condition whose every part is met by many entities.

    `near` probes entities one by one and suits a few of them; None where that is impossible.
    `apart` evaluates each part before it reads entities and suits all of them.
    """

    near: Condition | None
    apart: Condition


class _Met(Struct, frozen=True):
    """An entity has the key with the value, in one of these spellings."""

    key: str
    value: str
    spellings: Sequence[str]

    def sql(self) -> SQL:
        marks = ", ".join("?" * len(self.spellings))
        return _PROBE_VALUES.format(marks), [self.key, self.value, *self.spellings]


class Selectivity:
    """Selectivity of a condition, looked up once for a page and its total."""

    def __init__(self, database: Database, condition: Condition) -> None:
        self._database = database
        self.condition = condition
        self._found: tuple[Frequent | None] | None = None

    async def frequent(self) -> Frequent | None:
        """The condition rewritten; None if few entities meet it."""
        if self._found is None:
            self._found = (await rewrite_frequent(self._database, self.condition),)
        return self._found[0]


async def rewrite_frequent(database: Database, condition: Condition) -> Frequent | None:
    """Rewrite a conjunction of conditions on keys; None if few entities meet it."""
    parts = list(_condition_parts(condition))
    looked_up = [
        part
        for part in parts
        if isinstance(part, Targeted) or (isinstance(part, Has) and part.key not in KEY_COLUMNS)
    ]
    if not looked_up or any(not _is_usual_value(part) for part in parts):
        return None
    for part in looked_up:
        if not await _is_met_by_many(database, part):
            return None
    near = [one for part in looked_up if (one := await _near_part(database, part))]
    others = [part for part in parts if part not in looked_up]
    apart = AllOf([*others, *map(Apart, looked_up)])
    return Frequent(AllOf([*others, *near]) if len(near) == len(looked_up) else None, apart)


async def probe_part(database: Database, part: Has) -> Condition:
    """Rewrite a condition to be probed on the few entities that another condition finds."""
    if part.key in KEY_COLUMNS:
        return Apart(part)
    return (await _near_part(database, part)) or part


def _condition_parts(condition: Condition) -> Iterator[Condition]:
    """The terms of a conjunction."""
    if isinstance(condition, AllOf) or (isinstance(condition, AnyOf) and len(condition.parts) == 1):
        for part in condition.parts:
            yield from _condition_parts(part)
    else:
        yield condition


def _is_usual_value(part: Condition) -> bool:
    """Return true if many entities may meet this part."""
    return isinstance(part, Apart | Targeted) or (
        isinstance(part, Has)
        and part.key not in _ALMOST_UNIQUE
        and not part.key.startswith("relations.")
        and (part.values is None or 0 < len(part.values) <= _MOST_VALUES)
    )


async def _is_met_by_many(database: Database, part: Has | Targeted) -> bool:
    if isinstance(part, Targeted):
        return True
    if part.values is None:
        counted = [await database.one(_COUNT_KEY, (part.key, MANY_ENTITIES))]
    else:
        counted = [
            await database.one(_COUNT_VALUES, (part.key, value, MANY_ENTITIES))
            for value in part.values
            if value != conditions.EXISTS_VALUE
        ]
    met: int = sum(row[0] for row in counted if row)
    return met >= MANY_ENTITIES


async def _near_part(database: Database, part: Has | Targeted) -> Condition | None:
    if isinstance(part, Targeted):
        return part.near
    met = []
    for value in part.values or ():
        keys = (part.key, value, part.key, value, _MOST_SPELLINGS + 1)
        rows = await database.all(_SPELLINGS, keys)
        if len(rows) > _MOST_SPELLINGS:
            return None
        if rows and value != conditions.EXISTS_VALUE:
            met.append(_Met(part.key, value, [row[0] for row in rows]))
    return AnyOf(met) if met else None


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
        """True if an index yields exactly the rows of the page without sorting."""
        key = single_key(self.condition)
        if key is None or self.offset > _NEAR_ROWS:
            return False
        fields = [item.own_column for item in self.order]
        return not fields or (fields == [KEY_COLUMNS["metadata.name"]] and key in ("", "kind"))

    @property
    def is_walkable(self) -> bool:
        """True if an index holds the entities in this order."""
        return self.offset <= _NEAR_ROWS and all(item.own_column for item in self.order)

    def sql(self, columns: str = STORED_COLUMNS) -> SQL:
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
        """The statement for the page of a kind, or of any kind if "", and the numbers by kind.

        Both use one search, which ends after `most` entities. Rows of the page end in NULL; the
        others begin with a kind and end in its number. Only columns of `entities` can be sorted by.
        """
        order = self._order
        where, parameters = self.condition.sql()
        of_kind, kinds = Has("kind", [kind] if kind else None).sql()
        of_kind, kinds = self._placed(order, of_kind, kinds)
        # One index has all of these except the time, and is a tenth of the size of the table.
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
        # Literals: with parameters, PostgreSQL's generic plan would assume a tenth of all rows.
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
            # SQLite uses only one bound to enter an index, and that must be the position.
            del bounds["<" if self.ref_descending is not self.backward else ">="]
        ranged = [f"({where})", *(f"e.ref {sign} ?" for sign in bounds)]
        return " AND ".join(ranged), [*parameters, *bounds.values()]

    def _placed(self, order: SortOrder, where: str, parameters: list[object]) -> SQL:
        """The condition, restricted to rows after the position."""
        if self.after is None:
            return where, parameters
        condition, values = order.after(self.after)
        return f"({where}) AND ({condition})", [*parameters, *values]

    def _found(
        self, order: SortOrder, columns: str, sources: str, *others: str
    ) -> tuple[str, str, list[str]]:
        """The table `found` with a page's ids, a query of its rows, and its sort values.

        Many rows are scanned, so documents are read only for the page.
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
    """A page in order; `before` and `after` are true if there are more items.

    `places` are the positions of the first and the last item; empty for an empty page.
    """

    items: list[T]
    places: list[list[Any]]
    before: bool
    after: bool


async def query_page(
    database: Database, query: Query, selectivity: Selectivity | None = None
) -> ResultPage[str]:
    """Up to `query.limit` rendered entities; `selectivity` is for the query's condition."""
    columns = f"e.ref, {RENDERED_DOCUMENT}"
    rows = await _query_rows(database, _with_next_row(query), columns, selectivity)
    return _build_page(query, rows, lambda ref, rendered: rendered)


async def query_page_of(
    database: Database, query: Query, columns: str, item: Callable[..., T]
) -> ResultPage[T]:
    """Like `query_page` with other columns, the first of which is the reference."""
    return _build_page(query, await _query_rows(database, _with_next_row(query), columns), item)


async def query_page_and_kinds(
    database: Database,
    query: Query,
    kind: str,
    columns: Sequence[str],
    item: Callable[..., T],
    most: int | None = None,
) -> tuple[ResultPage[T], dict[str, int]]:
    """Up to `query.limit` entities of a kind, or of any kind if "", and the numbers by kind.

    Only the first `most` matches are read, unordered: if the numbers add up to `most`, both the
    numbers and the page may be incomplete.
    """
    rows = await database.search(*_with_next_row(query).kinds_sql(kind, columns, most))
    found = [row[:-1] for row in rows if row[-1] is None]
    return _build_page(query, found, item), {row[0]: row[-1] for row in rows if row[-1] is not None}


def _with_next_row(query: Query) -> Query:
    """The query with one more entity, to detect whether more follow."""
    assert query.limit is not None
    return replace(query, limit=query.limit + 1)


def _build_page(query: Query, rows: Sequence[Row], item: Callable[..., T]) -> ResultPage[T]:
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


async def _query_rows(
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


async def stream_entities(database: Database, query: Query) -> AsyncIterator[list[StoredEntity]]:
    """All entities of a query, in portions, from one snapshot."""
    async for rows in database.pages(*query.sql()):
        yield [StoredEntity(*row) for row in rows]


def stream_documents(database: Database, query: Query) -> AsyncIterator[bytes]:
    """All entities of a query as rendered JSON, each preceded by a comma, in chunks."""
    assert query.limit is None
    return database.text(*query.sql(JOINED_DOCUMENT))


@dataclass
class _Counted:
    state: Row | None = None
    kinds: Mapping[str, int] = field(default_factory=dict)
    one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)


async def count_by_kind(database: Database) -> Mapping[str, int]:
    """The number of entities of each existing kind."""
    known = database.remembered.of(_Counted)
    if known.state != await database.find(_STATE, _ENTITIES):
        async with known.one_at_a_time:
            # Read before counting, so a concurrent write causes a recount.
            state = await database.find(_STATE, _ENTITIES)
            if known.state != state:
                known.kinds = dict(await database.search(_COUNT_KINDS))
                known.state = state
    return known.kinds


async def count_kinds(database: Database) -> dict[str, int]:
    """The number of entities of each kind, most frequent first."""
    rows = (await count_by_kind(database)).items()
    return dict(sorted(rows, key=lambda row: (-row[1], row[0])))


async def count_exactly(
    database: Database, condition: Condition, selectivity: Selectivity | None = None
) -> int:
    """Count the entities that meet the condition; pass its selectivity if known."""
    selectivity = selectivity or Selectivity(database, condition)
    key = single_key(condition)
    if key in ("", "kind"):
        kinds, kind = await count_by_kind(database), required_kind(condition)
        return sum(kinds.values()) if kind is None else kinds.get(kind, 0)
    if key is None and (found := await selectivity.frequent()):
        condition = found.apart
    where, parameters = condition.sql()
    # Entries of one value are adjacent in an index, so counting is fast.
    ask = database.search if key is None else database.all
    rows = await ask(f"SELECT count(*) FROM entities e WHERE {where}", parameters)
    count: int = rows[0][0]
    return count


async def count_bounded(
    database: Database, condition: Condition, selectivity: Selectivity | None = None
) -> int:
    """Count the entities that meet the condition; `MORE_THAN_BOUND` for any number above the bound.

    Numbers known without counting are exact even above the bound.
    """
    if single_key(condition) in ("", "kind"):
        return await count_exactly(database, condition)
    selectivity = selectivity or Selectivity(database, condition)
    if found := await selectivity.frequent():
        # SQLite lists the entities with a value faster than it probes many entities.
        near = None if database.dialect == "sqlite" else found.near
        if (
            near
            and await _count_up_to_bound(database, _count_among_first(condition, near))
            == MORE_THAN_BOUND
        ):
            return MORE_THAN_BOUND
        condition = found.apart
    where, parameters = condition.sql()
    return await _count_up_to_bound(database, (f"entities e WHERE {where}", parameters))


async def is_count_above_bound(database: Database, condition: Condition) -> bool:
    """Return true if the condition is a single value that more than `COUNT_BOUND` entities have.

    Uses an index only; returns false for any other condition.
    """
    match condition:
        case AllOf(parts=[Has(key, [value])]) if single_key(condition) is None:
            rows = await database.search(_HAVING, (key, value))
            return bool(rows[0][0] == MORE_THAN_BOUND)
    return False


async def _count_up_to_bound(database: Database, sources: SQL) -> int:
    sql, parameters = sources
    rows = await database.search(
        f"SELECT count(*) FROM (SELECT 1 FROM {sql} LIMIT {MORE_THAN_BOUND}) counted", parameters
    )
    count: int = rows[0][0]
    return count


def _count_among_first(condition: Condition, met: Condition) -> SQL:
    """Entities that meet `met` among the first ones of the required kind."""
    kind = required_kind(condition)
    of_kind, kinds = (Has("kind", [kind]) if kind else EVERYTHING).sql()
    where, parameters = met.sql()
    # An index has this order, with kinds mixed; only columns used by `met` are read.
    first = (
        "SELECT e.id, e.uid, e.ref, e.kind, e.namespace, e.name FROM entities e "
        f"WHERE {of_kind} ORDER BY e.name, e.ref LIMIT {_WINDOW}"
    )
    return f"({first}) e WHERE {where}", [*kinds, *parameters]


async def count_up_to_id(database: Database, entity_id: int) -> tuple[int, int]:
    """The number of entities with ids up to this one, and of all."""
    row = await database.one(_UP_TO, (entity_id,))
    return row or (0, 0)


_COUNT_TARGETS: Final = """
SELECT count(*) FROM (
    SELECT 1 FROM relations WHERE type = ? AND target_ref IN LIST(?) LIMIT {most}
) counted
"""

_COUNT_KEY = f"SELECT count(*) FROM (SELECT 1 FROM search WHERE {_KEY_ID} LIMIT ?) met"

_COUNT_VALUES = (
    f"SELECT count(*) FROM (SELECT 1 FROM search WHERE {_KEY_ID} AND value = ? LIMIT ?) met"
)

# Skips from one spelling to the next, because an index scan would visit every entity with it.
_SPELLINGS = f"""
WITH RECURSIVE spelled (original) AS (
    SELECT (SELECT min(original) FROM search WHERE {_KEY_ID} AND value = ?)
    UNION ALL
    SELECT (
        SELECT min(s.original) FROM search s
        WHERE {_KEY_ID} AND s.value = ? AND s.original > spelled.original
    ) FROM spelled WHERE spelled.original IS NOT NULL
)
SELECT original FROM spelled WHERE original IS NOT NULL LIMIT ?
"""

_HAVING: Final = f"""
SELECT count(*) FROM (
    SELECT DISTINCT entity_id FROM search
    WHERE key_id = (SELECT id FROM search_keys WHERE key = ?) AND value = ? LIMIT {MORE_THAN_BOUND}
) met
"""

_UP_TO: Final = "SELECT COUNT(CASE WHEN id <= ? THEN 1 END), COUNT(*) FROM entities"

# Entities are added or removed by a new revision of their set, or outside any set. The state is
# read by name, so concurrent requests on PostgreSQL share one query.
_ENTITIES = "entities"

_STATE = f"""
SELECT s.name, s.number, s.revisions, s.items,
    {render_counter("entity")},
    (SELECT count(*) FROM entities WHERE set_id IS NULL),
    (SELECT max(removed_at) FROM removed_entities)
FROM (
    SELECT '{_ENTITIES}' AS name, count(*) AS number, SUM(revision) AS revisions,
        SUM(item_count) AS items FROM sets
) s
WHERE s.name IN LIST(?)
"""

_COUNT_KINDS = "SELECT kind, count(*) FROM entities GROUP BY kind"
