"""Figures of a fact across the catalog, and pages by value, as they are shown: see kept_answers."""

import asyncio
from functools import partial
from typing import Final, NamedTuple

from factbook.clock import Clock
from factbook.facts import across, distribution, entity_values, kept_answers
from factbook.facts import ends as both_ends
from factbook.facts.across import By
from factbook.facts.distribution import Distribution
from factbook.facts.ends import Ends
from factbook.facts.entity_values import EntityValues, Place, ValueQuery
from factbook.facts.kept_answers import KeptAnswer
from factbook.storage import Database

# Entities with the lowest or highest values from which pages are taken.
_WINDOW: Final = 1_000
# Types whose values are short: as many texts may be long.
_WINDOWED: Final = frozenset({"integer", "float", "boolean", "datetime"})


class CatalogFigures(NamedTuple):
    """The distribution of a fact, and the entities at both of its ends."""

    distribution: Distribution
    ends: Ends


class CurrentValues(NamedTuple):
    """A page of entities with their values, and the time at which these were read."""

    page: EntityValues
    at: int


async def figures(
    database: Database,
    clock: Clock,
    asked: ValueQuery,
    by: By | None,
    *,
    top: int,
    ends: int = 0,
    anew: bool = False,
) -> KeptAnswer[CatalogFigures]:
    """The figures over the part of the catalog, whatever else the query restricts.

    They have up to `top` of the most frequent texts, and `ends` entities at each end.
    """
    question = f"{asked.column!r} {asked.part!r} {by} {top} {ends}"
    count = partial(_count, database, clock, asked, by, top, ends)
    return await kept_answers.answer(database, clock, question, count, anew=anew)


async def values(
    database: Database,
    clock: Clock,
    asked: ValueQuery,
    after: Place | None,
    limit: int,
    *,
    anew: bool = False,
) -> CurrentValues:
    """Up to `limit` entities behind a place, as `entity_values.page` has them."""
    window = None
    is_by_value = asked.sort != "entity" and not asked.wanted.of_unknown
    if is_by_value and asked.column.fact.type in _WINDOWED and (after is None or after[0]):
        count = partial(entity_values.window, database, asked, _WINDOW)
        window = await kept_answers.answer(database, clock, repr(asked), count, anew=anew)
    at = clock()
    if window is None:
        return CurrentValues(await entity_values.page(database, asked, after, limit), at)
    page = await entity_values.page(database, asked, after, limit, window.value)
    return CurrentValues(page, window.at)


async def _count(
    database: Database, clock: Clock, asked: ValueQuery, by: By | None, top: int, ends: int
) -> CatalogFigures:
    counted = await across.counted(database, asked.column, asked.part, by)
    found = await asyncio.to_thread(
        distribution.of, asked.column.fact, counted, top=top, now=clock()
    )
    return CatalogFigures(found, await both_ends.ends(database, asked, ends))
