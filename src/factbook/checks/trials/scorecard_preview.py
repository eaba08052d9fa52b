"""Preview of a scorecard: the level of every entity as it would be, beside what it is."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import Final, NamedTuple

from factbook.catalog.store import collectable
from factbook.checks.definitions.scorecard import Scorecard, parse
from factbook.checks.levels import level_store
from factbook.checks.levels.grader import Grader
from factbook.checks.levels.rollup import LevelTally
from factbook.checks.maintenance.check_set import CheckCache, CheckSet
from factbook.checks.states import state_store
from factbook.checks.trials import trial_budget
from factbook.checks.trials.trial_budget import TrialBudget, TrialRoom
from factbook.checks.versions.scorecard_store import scorecard_store
from factbook.errors import FactbookError
from factbook.facts import entity_filter
from factbook.storage import Database

_AT_ONCE: Final = 2_000
_ADVISORY: Final = "advisory"


class PreviewedLevel(NamedTuple):
    """An entity whose level would be another one; None is outside the scorecard.

    Levels are ids, '' below the first.
    """

    ref: str
    before: str | None
    after: str | None


class ScorecardPreview(NamedTuple):
    """Entities by rank as they would be, and those that would change: all, and the first of them.

    An entity that is exempt from the scorecard as a whole counts as if it were not in it yet.
    """

    then: LevelTally
    changed: int
    first: list[PreviewedLevel]


async def preview(
    database: Database, card: Scorecard, now: int, limit: int, caller: str
) -> ScorecardPreview:
    """Grade every entity of the catalog; nothing is written.

    Raises InputError, TooManyRequestsError and UnavailableError if that costs the caller too much.
    """
    async with database.remembered.of(TrialRoom).enter(caller) as budget:
        return await _previewed(database, card, now, limit, budget)


async def _previewed(
    database: Database, card: Scorecard, now: int, limit: int, budget: TrialBudget
) -> ScorecardPreview:
    known = await database.remembered.of(CheckCache).loaded(database)
    stored = await scorecard_store.one(database, card.id)
    slot = stored.slot if stored else None
    names = _names(card)
    former = _names_of(stored.published, names) if stored and stored.published else names
    grader = Grader(card, _counted(known, now))
    levels, changed, after = Counter[int](), list[PreviewedLevel](), 0
    while portion := await collectable.refs_after(database, after, _AT_ONCE, []):
        budget.count(trial_budget.EVALUATION * len(portion))
        found = await _graded(database, card, grader, portion, budget)
        old = await _before(database, slot, portion)
        levels.update(found.values())
        for id_, ref in portion:
            was = former[old[id_]] if id_ in old else None
            now_at = names[found[id_]] if id_ in found else None
            if was != now_at:
                changed.append(PreviewedLevel(ref, was, now_at))
        after = portion[-1][0]
        await asyncio.sleep(0)
    first = sorted(changed, key=lambda one: one.ref)[:limit]
    return ScorecardPreview(LevelTally(levels), len(changed), first)


async def _graded(
    database: Database,
    card: Scorecard,
    grader: Grader,
    portion: list[tuple[int, str]],
    budget: TrialBudget,
) -> dict[int, int]:
    """The ranks of those of the entities that the scorecard applies to."""
    ends = portion[0][0], portion[-1][0]
    where = collectable.EVERYTHING
    if card.applies_to is not None:
        where = entity_filter.where(card.applies_to)
    matching = await collectable.between(database, where, *ends)
    states = await state_store.portion(database, *ends)

    def graded() -> dict[int, int]:
        # The rank is stored as one more.
        return {
            id_: grader.encoded(states.get(id_, b""))[0] - 1
            for id_, _ in portion
            if id_ in matching
        }

    budget.check()
    return await budget.work(graded)


async def _before(
    database: Database, slot: int | None, portion: list[tuple[int, str]]
) -> dict[int, int]:
    """The ranks of the entities as they are."""
    if slot is None:
        return {}
    last = portion[-1][0]
    rows = await level_store.page(database, slot, portion[0][0] - 1, len(portion))
    return {id_: graded.level for id_, graded in rows if id_ <= last}


def _counted(known: CheckSet, now: int) -> dict[str, int]:
    """The slots of the checks that count now."""
    checks = [one for one in known.checks if not one.is_pending]
    return {
        one.id: one.slot
        for one in checks
        if one.compiled.check.severity != _ADVISORY and one.compiled.check.is_effective(now)
    }


def _names(card: Scorecard) -> list[str]:
    """The ids of the levels by rank."""
    return ["", *(level.id for level in card.levels)]


def _names_of(document: Mapping[str, object], otherwise: list[str]) -> list[str]:
    try:
        return _names(parse(document))
    except FactbookError:
        return otherwise  # another release took it
