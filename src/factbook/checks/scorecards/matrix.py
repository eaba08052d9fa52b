"""Matrix of a scorecard: the states of its checks for each of its entities, page by page."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from factbook.catalog.store import collectable
from factbook.checks import state
from factbook.checks.levels import level_store
from factbook.checks.levels.grader import GradedLevel
from factbook.checks.maintenance.check_set import CheckCache, CheckSet
from factbook.checks.scorecards.level_pages import LevelFilter
from factbook.checks.scorecards.scorecard_figures import ScorecardInEffect
from factbook.checks.states import state_store
from factbook.checks.states.state_store import EntityStates
from factbook.checks.versions.check_store import check_store
from factbook.storage import Database

# Entities that a page looks at: with a filter that few of them meet it holds few.
_LOOKED_AT: Final = 10_000
_PORTION: Final = 1_000
_READS: Final = 3  # of states whose slots were moved meanwhile


class MatrixFilter(NamedTuple):
    """A filter of entities: those with one of the checks in a state, in words of interfaces."""

    levels: LevelFilter = LevelFilter()
    state: str | None = None


class MatrixRow(NamedTuple):
    """An entity with its level and the states of the checks, in their order."""

    ref: str
    owner: str
    graded: GradedLevel
    states: tuple[int, ...]


class MatrixPage(NamedTuple):
    """Rows, and the id of the last entity that was looked at; None at the end."""

    rows: list[MatrixRow]
    next: int | None


class _FoundEntity(NamedTuple):
    id: int
    graded: GradedLevel
    owner: str
    states: tuple[int, ...]


async def page(
    database: Database,
    given: ScorecardInEffect,
    check_ids: Sequence[str],
    wanted: MatrixFilter,
    after: int,
    limit: int,
) -> MatrixPage:
    """Up to `limit` entities with ids above `after`; a check that is not in effect has no state."""
    cache = database.remembered.of(CheckCache)
    for _ in range(_READS):
        known = await cache.loaded(database)
        found = await _page(database, given, _places(known, check_ids), wanted, after, limit)
        if await check_store.revision(database) == known.revision:
            break
    return found


async def _page(
    database: Database,
    given: ScorecardInEffect,
    places: Sequence[int],
    wanted: MatrixFilter,
    after: int,
    limit: int,
) -> MatrixPage:
    found: list[_FoundEntity] = []
    for _ in range(_LOOKED_AT // _PORTION):
        size = _PORTION if wanted.state or wanted.levels.rank is not None else limit + 1
        rows = await level_store.page(database, given.slot, after, size, wanted.levels.owners)
        for one in await _meeting(database, rows, places, wanted):
            if len(found) == limit:
                return MatrixPage(await _named(database, found), found[-1].id)
            found.append(one)
        if len(rows) < size:
            return MatrixPage(await _named(database, found), None)
        after = rows[-1][0]
    return MatrixPage(await _named(database, found), after)


async def _meeting(
    database: Database,
    rows: Sequence[tuple[int, GradedLevel]],
    places: Sequence[int],
    wanted: MatrixFilter,
) -> list[_FoundEntity]:
    rank = wanted.levels.rank
    chosen = [(id_, graded) for id_, graded in rows if rank is None or graded.level == rank]
    states = await state_store.of_entities(database, [id_ for id_, _ in chosen])
    width, none = max(places, default=0), EntityStates(0, "", b"", None)
    found = []
    for id_, graded in chosen:
        own = states.get(id_, none)
        vector = own.padded(width)
        picked = tuple(vector[place] for place in places)
        if wanted.state is None or wanted.state in map(state.name_state, picked):
            found.append(_FoundEntity(id_, graded, own.owner, picked))
    return found


async def _named(database: Database, found: Sequence[_FoundEntity]) -> list[MatrixRow]:
    refs = await collectable.refs_of_ids(database, [one.id for one in found])
    # One that has just gone has no reference.
    return [
        MatrixRow(refs[one.id], one.owner, one.graded, one.states)
        for one in found
        if one.id in refs
    ]


def _places(known: CheckSet, check_ids: Sequence[str]) -> list[int]:
    """The slots of checks; 0, where nothing stands, of one that is not in effect."""
    return [known.slots.get(id_, 0) for id_ in check_ids]
