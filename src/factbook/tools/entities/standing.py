"""The levels of an entity in scorecards, and the checks that it fails."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from factbook.checks import state as states
from factbook.checks.definitions import scorecard
from factbook.checks.definitions.scorecard import Scorecard
from factbook.checks.levels import level_store
from factbook.checks.levels.grader import decoded
from factbook.checks.maintenance.check_set import CheckCache
from factbook.checks.results import result_age, result_queries
from factbook.checks.results.result_queries import CheckResult
from factbook.checks.scorecards import next_steps
from factbook.checks.scorecards.scorecard_figures import ScorecardInEffect
from factbook.checks.versions.grade_slots import StoredScorecard
from factbook.checks.versions.scorecard_store import scorecard_store
from factbook.errors import FactbookError
from factbook.storage import Database
from factbook.tools.pages import shortened

_MOST: Final = 20
_EXPLAINED: Final = frozenset({states.FAIL, states.UNKNOWN})


async def of_entity(database: Database, ref: str, now: int) -> dict[str, Any]:
    """The members `levels` and `checks`, and their age; nothing where there are no checks."""
    known = await database.remembered.of(CheckCache).last_loaded(database)
    if known.is_empty:
        return {}
    found = await result_queries.of_entity(database, ref, now, explained=_EXPLAINED)
    if found is None:
        return {}
    stored = await scorecard_store.everything(database)
    levels = await level_store.of_entity(database, found.entity_id)
    cards = [card for one in stored if (card := _level(one, levels, found.results, now))]
    age = await result_age.of_checks(database, [one.check.id for one in found.results], now)
    return {**age.render(), "levels": cards, "checks": _checks(found.results)}


def _level(
    stored: StoredScorecard, levels: bytes, found: Sequence[CheckResult], now: int
) -> dict[str, Any] | None:
    """The place of the entity in a scorecard; None outside it."""
    if stored.slot is None or stored.published is None:
        return None
    graded = decoded(levels, stored.slot)
    if graded is None:
        return None
    try:
        card = scorecard.parse(stored.published)
    except FactbookError:
        return None  # one of a later release, which the log tells of
    level, if_known = ScorecardInEffect(card, stored.slot).words(graded)
    following = card.levels[graded.level].id if graded.level < len(card.levels) else None
    shown = {
        "scorecard": card.id,
        "level": level,
        "levelIfKnown": if_known if if_known != level else None,
        "nextLevel": following,
        "score": graded.score,
        "coverage": graded.coverage,
        "missing": _missing(card, graded.level, found, now) if following else [],
    }
    optional = ("levelIfKnown", "nextLevel", "missing")
    return {name: value for name, value in shown.items() if value or name not in optional}


def _missing(card: Scorecard, level: int, found: Iterable[CheckResult], now: int) -> list[str]:
    """The checks that keep the entity from the next level, the cheapest first."""
    steps = next_steps.steps(card, found, now)
    return [step.check for step, _ in steps if 0 < step.rank <= level + 1][:_MOST]


def _checks(found: Iterable[CheckResult]) -> dict[str, Any]:
    """The number of checks by state, and the first that fail or are unknown."""
    by_word: dict[str, list[CheckResult]] = {}
    for one in found:
        by_word.setdefault(states.word(one.state), []).append(one)
    counts = {word: len(by_word[word]) for word in states.WORDS[:-1] if word in by_word}
    shown = {
        "failing": [_told(one) for one in by_word.get("fail", ())[:_MOST]],
        "undecided": [_told(one) for one in by_word.get("unknown", ())[:_MOST]],
    }
    return {"counts": counts} | {name: some for name, some in shown.items() if some}


def _told(result: CheckResult) -> dict[str, Any]:
    """A check with what its author says about the entity, and why it is unknown."""
    check, why = result.check, result.explanation
    shown = {
        "check": check.id,
        "title": check.title,
        "message": shortened(why.message)[0] if why else None,
        "fix": shortened(why.fix_instructions or why.fix_link)[0] if why else None,
        "reason": why.reasons[0] if why and why.reasons else None,
    }
    return {name: value for name, value in shown.items() if value}
