"""Previews of checks and scorecards for their editors: nothing is written."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

from factbook.auth.permissions import CATALOG_READ, SOURCE_READ
from factbook.checks import trials
from factbook.checks.definitions.scorecard import NO_LEVEL_TITLE, Scorecard
from factbook.checks.results import result_queries
from factbook.checks.results.result_queries import ResultAge
from factbook.checks.results.state_store import StateCounts
from factbook.checks.rules import check_trial, language
from factbook.checks.rules.check_definition import Check
from factbook.checks.rules.check_trial import CheckTrial
from factbook.checks.trials import TrialRoom
from factbook.web.checks import shares
from factbook.web.data_sources.fact_across import Share
from factbook.web.site import formats
from factbook.web.site.page_context import PageContext

_SHOWN: Final = 20
# Rules can ask for every fact of every entity.
NEEDS: Final = (CATALOG_READ, SOURCE_READ)


class ChangedEntity(NamedTuple):
    """An entity whose result or level would be another one, in words."""

    ref: str
    before: str
    after: str


class DefinitionPreview(NamedTuple):
    """Effects of a definition: counts as bars, changes, and what to think of.

    `figures` are the counts beside those that are, as pairs of words; `tests` are those of a check.
    """

    words: str
    bars: Sequence[Share]
    figures: Sequence[tuple[str, int, int]]
    changed: int
    first: Sequence[ChangedEntity]
    tests: Sequence[CheckTrial]
    gaps: Sequence[tuple[str, str]]
    age: ResultAge
    is_check: bool


async def of_check(visit: PageContext, check: Check) -> DefinitionPreview:
    """The results of a check for every entity, and of the tests that it carries."""
    caller = visit.person.ref
    database = visit.state.database
    found = await trials.preview_check(database, check, visit.now, _SHOWN, caller)
    async with database.remembered.of(TrialRoom).enter(caller) as budget:
        tests = await budget.work(partial(check_trial.try_check, check, visit.now))
    first = [ChangedEntity(one.ref, *one.words) for one in found.first]
    return DefinitionPreview(
        language.describe_rule(check.rule),
        _bars(found.then),
        list(_pairs(found.now, found.then)),
        found.changed,
        first,
        tests,
        list(check_trial.list_test_gaps(check)) if check.tests else [],
        found.age,
        is_check=True,
    )


async def of_scorecard(visit: PageContext, card: Scorecard) -> DefinitionPreview:
    """The levels of every entity."""
    database, caller = visit.state.database, visit.person.ref
    found = await trials.preview_scorecard(database, card, visit.now, _SHOWN, caller)
    titles = {level.id: level.title for level in card.levels}
    first = [
        ChangedEntity(one.ref, _level(titles, one.before), _level(titles, one.after))
        for one in found.first
    ]
    bars = [one._replace(path=None) for one in shares.of_levels(card, found.then)]
    age = await result_queries.read_age_of_checks(database, card.checks, visit.now)
    words = formats.counted(found.then.total, "entity", "entities")
    return DefinitionPreview(
        f"It is about {words}.", bars, [], found.changed, first, [], [], age, is_check=False
    )


def _bars(counts: StateCounts) -> list[Share]:
    most = sum(counts)
    return [
        Share(word, count, most, None, kind)
        for (word, kind), count in zip(shares.KINDS.items(), counts, strict=True)
    ]


def _pairs(now: StateCounts, then: StateCounts) -> Iterator[tuple[str, int, int]]:
    yield from zip(shares.KINDS, now, then, strict=True)


def _level(titles: dict[str, str], level: str | None) -> str:
    if level is None:
        return "not in it"
    return titles.get(level, level) or NO_LEVEL_TITLE
