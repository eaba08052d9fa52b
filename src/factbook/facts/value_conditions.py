"""Restrictions on the value of a fact: tested one by one, and as SQL on `value`, a JSON text."""

from typing import Any, Final, NamedTuple, cast

import msgspec

from factbook.catalog.store.conditions import SQL
from factbook.facts import distribution
from factbook.facts.across import NUMBERS, FactColumn
from factbook.facts.schema import Fact


class ValueFilter(NamedTuple):
    """Restrictions on the value; None leaves one out.

    `value` is that of a boolean or a text, or an item of a set. `least` and `below` bound numbers,
    and moments in milliseconds. `reason` is a word, so there is no value.
    """

    known: bool | None = None
    reason: str | None = None
    value: Any = None
    least: float | None = None
    below: float | None = None

    @property
    def of_values(self) -> bool:
        """True if no entity without a value is meant."""
        return self.known is True or (self.value, self.least, self.below) != (None, None, None)

    @property
    def of_unknown(self) -> bool:
        """True if no entity with a value is meant."""
        return self.known is False or self.reason is not None


def is_wanted(fact: Fact, value: Any, wanted: ValueFilter) -> bool:
    """Return true if the filter lets a value through."""
    if wanted.value is not None and not _has(value, wanted.value):
        return False
    if wanted.least is None and wanted.below is None:
        return True
    at = cast("float", distribution.position(fact, value))
    return (wanted.least is None or at >= wanted.least) and (
        wanted.below is None or at < wanted.below
    )


def _has(value: Any, wanted: Any) -> bool:
    """Compare a value; items of sets by their text."""
    if isinstance(value, list):
        return wanted in (one if isinstance(one, str) else str(one) for one in value)
    return bool(value == wanted)


def is_told(fact: Fact) -> bool:
    """Return true if SQL tells exactly which of the values are wanted."""
    return fact.type not in {"datetime", "set", "object"}


def lacking(column: FactColumn) -> str:
    """The condition for no value; a value of another type counts as none, which SQL may not see."""
    exact = column.fact.type in {"datetime", "set", "object"}
    return "1 = 1" if exact else f"({place(column)}) IS NULL"


def conditions(column: FactColumn, wanted: ValueFilter) -> SQL:
    """Part of a filter of values that SQL can tell."""
    position, fact = place(column), column.fact
    if wanted.of_unknown:
        return "1 = 0", []
    parts, values = [f"({position}) IS NOT NULL"], list[object]()
    if wanted.value is not None and fact.type in {"string", "boolean"}:
        parts.append("value = ?")
        values.append(msgspec.json.encode(wanted.value).decode())
    if fact.type in NUMBERS:
        for sign, bound in ((">=", wanted.least), ("<", wanted.below), ("=", wanted.value)):
            if bound is not None:
                parts.append(f"({position}) {sign} ?")
                values.append(float(bound))
    return " AND ".join(parts), values


def place(column: FactColumn) -> str:
    """The expression for the order of `value`; NULL where its type is another one."""
    match column.fact.type:
        case "integer":
            return f"CASE WHEN {_IS_NUMBER} AND NOT {_IS_FRACTION} THEN {_AS_NUMBER} END"
        case "float":
            return f"CASE WHEN {_IS_NUMBER} THEN {_AS_NUMBER} END"
        case "string":
            # Between the quotes, so that a text comes before those that it begins.
            return (
                "CASE WHEN SUBSTR(value, 1, 1) = '\"' THEN SUBSTR(value, 2, LENGTH(value) - 2) END"
            )
        case "boolean":
            return "CASE WHEN value IN ('true', 'false') THEN value END"
    return "value"


_IS_NUMBER: Final = (
    "SUBSTR(value, 1, 1) IN ('-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9') "
    "AND LENGTH(value) <= 300"
)
_IS_FRACTION: Final = "(value LIKE '%.%' OR value LIKE '%e%')"
_AS_NUMBER: Final = "CAST(value AS DOUBLE PRECISION)"
