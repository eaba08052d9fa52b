"""Entities of a part of the catalog about which a condition on facts and checks holds.

They are looked at in the order of references, a portion at a time: until there are enough of them,
or where their numbers are wanted, all of them.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final, NamedTuple

from factbook.catalog.store import overview, summaries, totals
from factbook.catalog.store.conditions import Condition
from factbook.catalog.store.summaries import FilterCandidate
from factbook.checks.rules.checked_entity import CheckedEntity
from factbook.checks.state import PASS, UNKNOWN
from factbook.storage import Database
from factbook.storage.database import LONGEST_SEARCH, in_time
from factbook.tools.entities import conditions
from factbook.tools.entities.conditions import FactConditions

# Of so few candidates all are looked at, so that the numbers of a page are whole; of fewer in a
# large catalog, where an answer takes as long as in any other.
_FEW: Final = 2_500
_FEW_OF_MANY: Final = 250
_LARGE: Final = 20_000
# The first portions are small, since they may be enough for a page.
_PORTIONS: Final = (128, 128, 256, 512, 1_600)
_WITH_DOCUMENTS: Final = 400
_EVALUATED: Final = 500  # before others have their turn


class Match(NamedTuple):
    """An entity that is wanted, with the values that its answer rests on."""

    ref: str
    id: int
    values: dict[str, Any]


class Matches(NamedTuple):
    """Entities that are wanted: the first of them, and the ids of all that were found.

    `unknown` counts those about which the condition cannot be decided. If not `is_whole`, only the
    first `examined` candidates were looked at.
    """

    first: list[Match]
    ids: list[int]
    unknown: int
    examined: int
    is_whole: bool


class Search(NamedTuple):
    """A part of the catalog, and the condition; `of_unknown` looks for undecided ones instead."""

    part: Condition
    asked: FactConditions
    now: int
    of_unknown: bool = False


async def found(
    database: Database, search: Search, limit: int, after: str, *, whole: bool
) -> Matches:
    """Up to `limit` entities after a reference, and one more where more follow.

    With `whole` all candidates are looked at, however many there are.
    """
    whole = whole or await has_few(database, search.part)
    wanted = UNKNOWN if search.of_unknown else PASS
    first, ids, unknown, examined = list[Match](), list[int](), 0, 0
    async with in_time(LONGEST_SEARCH):
        async for rows, entities, states in evaluated(database, search, after):
            for row, entity, state in zip(rows, entities, states, strict=True):
                unknown += state == UNKNOWN
                if state == wanted:
                    ids.append(row.id)
                    if len(first) <= limit:
                        values = search.asked.values(entity) if state == PASS else {}
                        first.append(Match(row.ref, row.id, values))
            examined += len(rows)
            if len(first) > limit and not whole:
                return Matches(first, ids, unknown, examined, is_whole=False)
    return Matches(first, ids, unknown, examined, is_whole=True)


async def has_few(database: Database, part: Condition) -> bool:
    """Return true if all candidates are looked at for every page."""
    is_large = sum((await overview.by_kind(database)).values()) > _LARGE
    return await totals.bounded(database, part) <= (_FEW_OF_MANY if is_large else _FEW)


async def evaluated(
    database: Database, search: Search, after: str
) -> AsyncIterator[tuple[list[FilterCandidate], list[CheckedEntity], list[int]]]:
    """Candidates after a reference, what was read of each, and its state."""
    asked, sizes = search.asked, list(_PORTIONS)
    while True:
        size = sizes.pop(0) if len(sizes) > 1 else sizes[0]
        if asked.reads_entity:
            size = min(size, _WITH_DOCUMENTS)
        rows = await summaries.candidates(
            database, search.part, size, after, documents=asked.reads_entity
        )
        for start in range(0, len(rows), _EVALUATED):
            some = rows[start : start + _EVALUATED]
            entities = await conditions.checked(database, asked, some)
            by_id = {row.id: one for row, one in zip(some, entities, strict=True)}
            yield some, entities, await asked.states(database, by_id, search.now)
            await asyncio.sleep(0)
        if len(rows) < size:
            return
        after = rows[-1].ref
