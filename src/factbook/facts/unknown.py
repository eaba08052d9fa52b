"""Entities without facts of a source that is about them, and the reasons for missing values."""

from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping
from functools import lru_cache
from typing import NamedTuple

import msgspec

from factbook.catalog.store.conditions import SQL, EntityRange
from factbook.errors import UnavailableError
from factbook.facts import entity_filter
from factbook.facts.datasource import DataSource
from factbook.facts.freshness import reason_of
from factbook.facts.reasons import EVERYTHING, NEVER_COLLECTED, word
from factbook.storage import Database

Reasons = Mapping[str, str]
_read = lru_cache(maxsize=256)(msgspec.json.Decoder(dict[str, str]).decode)


class UnknownCount(NamedTuple):
    """The number of entities without facts, by reason word and in total.

    An entity with several reasons counts for each. `is_whole`: the count is complete.
    """

    reasons: Mapping[str, int]
    entities: int
    is_whole: bool


def shown(
    names: Collection[str], known: Collection[str], stored: Reasons, kept: Collection[str] | None
) -> dict[str, str]:
    """Reasons for missing values: by fact, by group, or `*` for all others.

    `names` are the facts of the source, `known` those with a value, `stored` the reasons. If `kept`
    names some facts, only these are included, each with its own reason.
    """
    if kept is not None:
        lacking = [name for name in names if name in kept and name not in known]
        return {name: reason_of(name, stored) or NEVER_COLLECTED for name in lacking}
    if not known and not stored:
        return {EVERYTHING: NEVER_COLLECTED}
    found = {place or EVERYTHING: reason for place, reason in stored.items()}
    if "" in stored:
        return found
    silent = (n for n in names if n not in known and reason_of(n, stored) is None)
    return found | dict.fromkeys(silent, NEVER_COLLECTED)


def by_place(reasons: str | msgspec.Raw) -> Reasons:
    """Decode stored reasons, caching equal texts."""
    return _read(reasons if isinstance(reasons, str) else bytes(reasons).decode())


async def pages(
    database: Database, source: DataSource, wanted: EntityRange
) -> AsyncIterator[list[tuple[str, str]]]:
    """References of entities without facts, in order, with the stored reasons."""
    sql, values = _of(source, wanted)
    bound, most = ("", ()) if wanted.limit is None else (" LIMIT ?", (wanted.limit,))
    text = f"SELECT e.ref, {_REASONS} {sql} AND e.ref > ? ORDER BY e.ref{bound}"
    async for rows in database.pages(text, (*values, wanted.after, *most)):
        yield [(ref, reasons) for ref, reasons in rows]


async def count(
    database: Database, source: DataSource, wanted: EntityRange, most: int
) -> UnknownCount:
    """The number of entities without facts, up to `most`; none are counted if it takes too long."""
    sql, values = _of(source, wanted)
    # The number is no parameter: PostgreSQL's plan for any number is one for all entities.
    found = f"SELECT {_REASONS} AS reasons {sql} LIMIT {most}"
    try:
        rows = await database.search(_GROUPED.replace("{found}", found), values)
    except UnavailableError:
        return UnknownCount({}, 0, is_whole=False)
    counted = Counter[str]()
    for reasons, number in rows:
        for reason in {word(one) for one in by_place(reasons).values()} or {NEVER_COLLECTED}:
            counted[reason] += number
    entities = sum(number for _, number in rows)
    return UnknownCount(dict(counted), entities, is_whole=entities < most)


def _of(source: DataSource, wanted: EntityRange) -> SQL:
    narrowed, values = entity_filter.narrowed(source.selection, wanted)
    return f"{_FROM}{narrowed}", [source.id, *values]


_REASONS = "COALESCE(l.reasons, '{}')"

_GROUPED = """
SELECT reasons, COUNT(*) FROM ({found}) found GROUP BY reasons ORDER BY reasons
"""

_FROM = """
FROM entities e LEFT JOIN facts_latest l ON l.source_id = ? AND l.entity_id = e.id
WHERE (l.entity_id IS NULL OR l.facts = '{}')"""
