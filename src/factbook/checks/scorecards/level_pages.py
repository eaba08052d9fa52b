"""Levels of the entities of a scorecard, page by page, in the order of their ids."""

from collections.abc import AsyncIterator, Sequence
from typing import Final, NamedTuple

from factbook.catalog.store import collectable
from factbook.checks.definitions.scorecard import NO_LEVEL_WORD, Scorecard
from factbook.checks.levels import level_store
from factbook.checks.levels.grader import GradedLevel
from factbook.checks.scorecards.scorecard_figures import ScorecardInEffect
from factbook.errors import InputError, one_of
from factbook.storage import Database

# Entities that a page looks at: with a filter that few of them meet it holds few.
_LOOKED_AT: Final = 10_000
_PORTION: Final = 1_000


class LevelFilter(NamedTuple):
    """A filter of entities; `rank` is that of the level, 0 below the first."""

    owners: Sequence[str] = ()
    rank: int | None = None


def at_level(card: Scorecard, level: str | None, owners: Sequence[str]) -> LevelFilter:
    """A filter by the id of a level, or the word for none; raises InputError for another word."""
    if level is None:
        return LevelFilter(owners)
    if level == NO_LEVEL_WORD:
        return LevelFilter(owners, 0)
    if level not in card.ranks:
        raise InputError(f"level {one_of(level, [*card.ranks, NO_LEVEL_WORD])}.")
    return LevelFilter(owners, card.rank(level))


class RankedEntity(NamedTuple):
    """An entity with its level."""

    ref: str
    graded: GradedLevel


class LevelPage(NamedTuple):
    """Entities, and the id of the last one that was looked at; None at the end."""

    entities: list[RankedEntity]
    next: int | None


async def page(
    database: Database, given: ScorecardInEffect, wanted: LevelFilter, after: int, limit: int
) -> LevelPage:
    """Up to `limit` entities with ids above `after`."""
    found: list[tuple[int, GradedLevel]] = []
    for _ in range(_LOOKED_AT // _PORTION):
        rows = await level_store.page(database, given.slot, after, _PORTION, wanted.owners)
        for id_, graded in rows:
            if wanted.rank is None or graded.level == wanted.rank:
                if len(found) == limit:
                    return LevelPage(await _named(database, found), found[-1][0])
                found.append((id_, graded))
        if len(rows) < _PORTION:
            return LevelPage(await _named(database, found), None)
        after = rows[-1][0]
    return LevelPage(await _named(database, found), after)


async def everything(
    database: Database, given: ScorecardInEffect, wanted: LevelFilter
) -> AsyncIterator[list[RankedEntity]]:
    """All entities, in portions."""
    after: int | None = 0
    while after is not None:
        entities, after = await page(database, given, wanted, after, _PORTION)
        yield entities


async def _named(
    database: Database, found: Sequence[tuple[int, GradedLevel]]
) -> list[RankedEntity]:
    refs = await collectable.refs_of_ids(database, [id_ for id_, _ in found])
    # One that has just gone has no reference.
    return [RankedEntity(refs[id_], graded) for id_, graded in found if id_ in refs]
