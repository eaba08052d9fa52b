"""Checks and scorecards of one entity: what fails and how to fix it, and what a level lacks."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from factbook.checks import scorecard_figures
from factbook.checks import state as states
from factbook.checks.definitions import scorecard
from factbook.checks.definitions.definition_versions import StoredScorecard, scorecard_store
from factbook.checks.definitions.scorecard import Scorecard
from factbook.checks.results import level_store, result_queries
from factbook.checks.results.entity_evaluation import CheckCache
from factbook.checks.results.grader import GradedLevel, Step, decode_level
from factbook.checks.results.result_queries import CheckResult, ResultAge
from factbook.checks.rules.check_definition import Check
from factbook.checks.rules.rule_evaluation import Explanation
from factbook.errors import FactbookError
from factbook.storage import Database
from factbook.web.site import fact_display, formats
from factbook.web.site.fact_display import Reason
from factbook.web.site.formats import segment

_MOST: Final = 200  # of a group
_MISSING: Final = 5  # checks of a scorecard that are named
_REASONS: Final = 3
_EXPLAINED: Final = frozenset({states.FAIL, states.UNKNOWN})


class ShownResult(NamedTuple):
    """The result of a check: its word, what is said about it, and how to fix it.

    `reasons` say why it is unknown.
    """

    title: str
    path: str
    word: str
    message: str
    fix: str
    fix_link: str | None
    reasons: list[Reason]
    since: int | None
    is_flapping: bool
    is_stale: bool
    is_advisory: bool


class ResultGroups(NamedTuple):
    """The first results for an entity by their words, and the number of all of each word."""

    failing: list[ShownResult]
    unknown: list[ShownResult]
    exempt: list[ShownResult]
    passing: list[ShownResult]
    numbers: Mapping[str, int]

    @property
    def total(self) -> int:
        """The number of checks that are about the entity."""
        return sum(self.numbers.values()) - self.others

    @property
    def others(self) -> int:
        """The number of checks that are not about it."""
        return self.numbers["not-applicable"]


class EntityScorecard(NamedTuple):
    """A scorecard with the level of an entity, None below the first, and what the next one lacks.

    `missing` are the first checks that block the next level, or, at the highest, lower the score;
    `more` counts the others.
    """

    title: str
    path: str
    level: str | None
    next_level: str | None
    score: int | None
    coverage: int | None
    missing: list[ShownResult]
    more: int


class EntityChecks(NamedTuple):
    """Everything that checks say about an entity."""

    results: ResultGroups
    scorecards: list[EntityScorecard]
    age: ResultAge


async def of_entity(database: Database, ref: str, now: int) -> EntityChecks | None:
    """The checks of the entity with this reference; None if there are no checks at all."""
    known = await database.remembered.of(CheckCache).loaded(database)
    if known.is_empty:
        return None
    found = await result_queries.read_entity_results(database, ref, now, explained=_EXPLAINED)
    if found is None or not found.results:
        return None
    levels = await level_store.read_entity_levels(database, found.entity_id)
    stored = await scorecard_store.everything(database)
    cards = [card for one in stored if (card := _scorecard(one, levels, found.results, now))]
    ids = [one.check.id for one in found.results if one.state in result_queries.ABOUT_ENTITY]
    age = await result_queries.read_age_of_checks(database, ids, now)
    return EntityChecks(_groups(found.results), cards, age)


def _groups(found: Iterable[CheckResult]) -> ResultGroups:
    by_word: dict[str, list[ShownResult]] = {name: [] for name in states.WORDS}
    for one in found:
        by_word[states.name_state(one.state)].append(_shown(one))
    for group in by_word.values():
        group.sort(key=lambda one: (one.is_advisory, formats.naturally(one.title)))
    return ResultGroups(
        by_word["fail"][:_MOST],
        by_word["unknown"][:_MOST],
        by_word["exempt"][:_MOST],
        by_word["pass"][:_MOST],
        {word: len(shown) for word, shown in by_word.items()},
    )


def _shown(result: CheckResult) -> ShownResult:
    check, explanation = result.check, result.explanation
    return ShownResult(
        check.title,
        f"/checks/{segment(check.id)}",
        states.name_state(result.state),
        _message(check, explanation),
        (explanation and explanation.fix_instructions) or "",
        formats.external(explanation.fix_link) if explanation else None,
        [fact_display.explain_check_reason(one) for one in explanation.reasons[:_REASONS]]
        if explanation
        else [],
        result.since,
        result.is_flapping,
        result.is_stale,
        check.severity == "advisory",
    )


def _message(check: Check, explanation: Explanation | None) -> str:
    """The message of the check about the entity, or else what it is about."""
    return (explanation and explanation.message) or check.description or ""


def _scorecard(
    stored: StoredScorecard, levels: bytes, found: Sequence[CheckResult], now: int
) -> EntityScorecard | None:
    """The place of the entity in a scorecard; None outside it, and where nothing counts."""
    if stored.slot is None or stored.published is None:
        return None
    graded = decode_level(levels, stored.slot)
    if graded is None or graded.coverage is None:
        return None
    try:
        card = scorecard.parse_scorecard(stored.published)
    except FactbookError:
        return None  # one of a later release, which the log tells of
    return _placed(card, graded, scorecard_figures.list_next_steps(card, found, now))


def _placed(
    card: Scorecard, graded: GradedLevel, steps: Sequence[tuple[Step, CheckResult]]
) -> EntityScorecard:
    titles = [None, *(level.title for level in card.levels)]
    is_highest = graded.level == len(card.levels)
    wanted = [
        _shown(result) for step, result in steps if is_highest or 0 < step.rank <= graded.level + 1
    ]
    return EntityScorecard(
        card.title,
        f"/scorecards/{segment(card.id)}",
        titles[graded.level],
        None if is_highest else titles[graded.level + 1],
        graded.score,
        graded.coverage,
        wanted[:_MISSING],
        len(wanted[_MISSING:]),
    )
