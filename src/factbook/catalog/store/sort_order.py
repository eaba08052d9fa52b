"""Orders of entities and positions in them, as SQL on `entities e`."""

from collections.abc import Sequence
from typing import NamedTuple

from factbook.catalog import search
from factbook.catalog.store.conditions import COLUMNS, SQL

Place = Sequence[str | int | None]  # a row's sort values and, last, its reference


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
        return self.column or COLUMNS.get(self.field.lower())


class _Sort(NamedTuple):
    """A term of an order: the sort expression, and true if it can be null."""

    expression: str
    descending: bool
    nullable: bool = False

    def sql(self, direction: str) -> str:
        term = f"{self.expression}{' DESC' if self.descending else ''}"
        # A column of our own is never null, and naming it alone lets an index give the order.
        return f"{self.expression} IS NULL{direction}, {term}" if self.nullable else term


class SortOrder:
    """An order with its joins and their parameters; the reference makes every place unique."""

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
            # As one comparison, so that an index of all of them is entered at the place.
            named, marks = ", ".join(sort.expression for sort in sorts), ", ".join("?" * len(sorts))
            return f"({named}) {'<' if self._ref.descending else '>'} ({marks})", list(place)
        return self._after_each(sorts, place)

    def _after_each(self, sorts: Sequence[_Sort], place: Place) -> SQL:
        """The same for sort values that may be missing, or whose directions differ."""
        alternatives, parameters = [], list[object]()
        same, same_parameters = "", list[object]()
        for sort, value in zip(sorts, place, strict=True):
            column = sort.expression
            if value is None:
                # Rows without a value are the last ones; backward, those with one follow.
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
            # Said once more without OR, so that an index is entered at the place, not at its start.
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
        self.parameters += [field.field.lower(), search.EXISTS]
        return _Sort(f"o{place}.value", descending, nullable=True)
