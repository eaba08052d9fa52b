"""One fact of all entities that its source is about, or of some: counted, and as pages of them."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple

import msgspec

from factbook.catalog.store import affiliation
from factbook.catalog.store.affiliation import CatalogPart
from factbook.catalog.store.by_ref import COMPLIANCE
from factbook.catalog.store.conditions import SQL
from factbook.errors import InputError
from factbook.facts import entity_filter
from factbook.facts.datasource import DataSource
from factbook.facts.freshness import reason_of
from factbook.facts.reasons import BAD_DEFINITION, NEVER_COLLECTED
from factbook.facts.schema import TYPES, Fact
from factbook.facts.unknown import by_place
from factbook.storage import Database, Row
from factbook.storage.database import LONGEST_SEARCH, in_time

By = Literal["owner", "system", "kind"]

# Different rows of a count that are read; behind them it is said to be incomplete.
MOST_COUNTED: Final = 500_000
# Characters of a text by which it is counted.
LONGEST_TEXT: Final = 400
_LONGEST_NUMBER: Final = 300
NUMBERS: Final = frozenset({"integer", "float"})


class FactColumn(NamedTuple):
    """A fact of a source; `bit` is the one that holds it where the catalog itself knows it.

    Values from before `stale_before` are stale, whatever their collection said, and those that are
    older than others of their row if from before `kept_before`.
    """

    source: DataSource
    fact: Fact
    bit: int | None = None
    stale_before: int = 0
    kept_before: int = 2**53

    @property
    def is_ordered(self) -> bool:
        """True if its values have an order."""
        return self.fact.type not in {"set", "object"}


class CountedValue(NamedTuple):
    """A value or a reason, and the entities of a group that share it.

    `value` is None where none is known, and then `reason` says why. `kept` of the entities have it
    from before the last run; `oldest` and `newest` are the times of the values.
    """

    group: str | None
    value: Any
    reason: str | None
    number: int
    kept: int
    oldest: int | None
    newest: int | None


class CountedValues(NamedTuple):
    """Counts, by group if `by` is set; not `is_whole` if there was too much of it."""

    by: By | None
    rows: list[CountedValue]
    is_whole: bool


async def counted(
    database: Database, column: FactColumn, part: CatalogPart, by: By | None
) -> CountedValues:
    """The values of a fact with the number of entities that have each, for each group."""
    inner, values = selected(column, part, f"{_GROUPS[by]} AS part" if by else "NULL AS part")
    value = f"SUBSTR(value, 1, {LONGEST_TEXT})" if column.fact.type == "string" else "value"
    if column.fact.type == "object":
        value = "SUBSTR(value, 1, 1)"
    sql = _COUNTED.format(found=inner, value=value, most=MOST_COUNTED + 1)
    rows = await _read(database, sql, values)
    read = await asyncio.to_thread(_counted_rows, column.fact, rows[:MOST_COUNTED])
    return CountedValues(by, read, len(rows) <= MOST_COUNTED)


async def _read(database: Database, sql: str, values: Sequence[Any]) -> list[Row]:
    """Rows of which there may be as many as entities."""
    if database.dialect == "sqlite":
        return await database.search(sql, values)
    # The driver would take all of them apart at once, while nobody else is answered.
    async with in_time(LONGEST_SEARCH):
        return [row async for rows in database.pages(sql, values) for row in rows]


def selected(
    column: FactColumn,
    part: CatalogPart,
    *others: str,
    collected: bool = False,
    by_ref: bool = False,
) -> SQL:
    """The statement for the value, reasons and times of every entity of the part.

    With `collected`, entities that were never collected may be left out. `by_ref`: the rows are
    wanted in the order of references.
    """
    where, values = _where(column, part, by_ref=by_ref)
    columns = ", ".join(others)
    if column.bit is not None:
        bits = COMPLIANCE if column.bit not in _STORED_BITS else "e.compliance"
        return _OWN.format(columns=columns, bits=bits, bit=column.bit, where=where), values
    name = member_name(column.fact)
    # An inner join lets SQLite read the facts in the order in which they lie.
    sql = _STORED.format(columns=columns, join="" if collected else "LEFT ", where=where)
    return sql, [
        name,
        name,
        column.kept_before,
        name,
        column.stale_before,
        column.source.id,
        *values,
    ]


def member_name(fact: Fact) -> str:
    """The name of a fact as SQL takes it; raises InputError for one that it does not take."""
    if not fact.name.isprintable() or set('"\\') & set(fact.name):
        raise InputError(
            "A fact whose name has quotes, backslashes or invisible characters cannot be shown "
            "across the catalog."
        )
    return fact.name


def known(fact: Fact, text: str | None) -> Any:
    """The value in a JSON text; None for none, or one that the fact's type no longer allows."""
    if text is None:
        return None
    if fact.type in NUMBERS and len(text) > _LONGEST_NUMBER:
        return None
    value = msgspec.json.decode(text)
    return value if TYPES[fact.type].holds(value) else None


def reason(fact: Fact, text: str | None, reasons: str | None) -> str:
    """The reason for having no value."""
    if text is not None:
        return f"{BAD_DEFINITION}: schema.{fact.name}.type: expected {TYPES[fact.type].words}"
    return reason_of(fact.name, by_place(reasons or "{}")) or NEVER_COLLECTED


def _counted_rows(fact: Fact, rows: Sequence[Row]) -> list[CountedValue]:
    found = []
    for group, text, reasons, number, kept, oldest, newest in rows:
        value = _counted_value(fact, text)
        if value is None:
            why = reason(fact, text, reasons)
            found.append(CountedValue(group, None, why, number, 0, None, None))
        else:
            found.append(CountedValue(group, value, None, number, kept, oldest, newest))
    return found


def _counted_value(fact: Fact, text: str | None) -> Any:
    if fact.type == "object":
        return True if text in {"{", "["} else None
    if fact.type == "string" and text is not None and len(text) == LONGEST_TEXT:
        return _beginning(text)
    return known(fact, text)


def _beginning(text: str) -> str | None:
    """Whole part of the JSON of a text that was cut."""
    if not text.startswith('"'):
        return None
    for left in range(7):  # characters of the longest escape, less one, and a quote
        try:
            value = msgspec.json.decode(text[: len(text) - left].removesuffix('"') + '"')
        except msgspec.DecodeError:
            continue
        return value if isinstance(value, str) else None
    return None


def _where(column: FactColumn, part: CatalogPart, *, by_ref: bool) -> SQL:
    """The entities that the source is about, and of these the part."""
    where, values = part.condition().sql()
    if column.source.selection is None:
        return where, values
    about, more = entity_filter.where(column.source.selection)
    # Wrapped, because SQLite would read all that an index finds for it, and sort them.
    return f"({where}) AND ({about}){' IS TRUE' if by_ref else ''}", [*values, *more]


# All of them are stored but that of an owner in the catalog.
_STORED_BITS: Final = frozenset(1 << place for place in range(8))

_GROUPS: Final = {"kind": "e.kind", "owner": affiliation.OWNER, "system": affiliation.SYSTEM}

_STORED = """
SELECT {columns}, JSON_MEMBER(l.facts, ?) AS value, l.reasons AS reasons,
    l.written_at AS written_at,
    COALESCE(
        CASE
            WHEN l.kept = '{{}}' THEN NULL
            WHEN CAST(JSON_MEMBER(l.kept, ?) AS BIGINT) < CAST(? AS BIGINT)
                THEN CAST(JSON_MEMBER(l.kept, ?) AS BIGINT)
        END,
        CASE WHEN l.written_at < CAST(? AS BIGINT) THEN l.written_at END
    ) AS kept
FROM entities e {join}JOIN facts_latest l ON l.source_id = ? AND l.entity_id = e.id
WHERE {where}"""

_OWN = """
SELECT {columns}, CASE WHEN (({bits}) & {bit}) <> 0 THEN 'true' ELSE 'false' END AS value,
    '{{}}' AS reasons, e.updated_at AS written_at, CAST(NULL AS BIGINT) AS kept
FROM entities e WHERE {where}"""

# Materialized, so that PostgreSQL reads the JSON of a row once. The number is no parameter: its
# plan for any number is one for all rows.
_COUNTED = """
WITH found AS MATERIALIZED ({found})
SELECT part, {value} AS shown, CASE WHEN value IS NULL THEN COALESCE(reasons, '{{}}') END AS why,
    COUNT(*), COUNT(kept), MIN(COALESCE(kept, written_at)), MAX(COALESCE(kept, written_at))
FROM found GROUP BY 1, 2, 3 LIMIT {most}
"""
