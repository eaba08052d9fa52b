"""The way of one entity to the next level of a scorecard: what keeps it, the cheapest first."""

from collections.abc import Iterable
from typing import NamedTuple

from factbook.checks.definitions.scorecard import Scorecard
from factbook.checks.levels import level_store
from factbook.checks.levels.grader import GradedLevel, Grader, Step, decoded
from factbook.checks.results import result_queries
from factbook.checks.results.result_queries import CheckResult
from factbook.checks.scorecards.scorecard_figures import ScorecardInEffect
from factbook.storage import Database


class EntityStanding(NamedTuple):
    """An entity in a scorecard; `graded` is None outside it. Each step has its result."""

    ref: str
    graded: GradedLevel | None
    steps: list[tuple[Step, CheckResult]]


async def standing(
    database: Database, given: ScorecardInEffect, ref: str, now: int
) -> EntityStanding | None:
    """Standing of the entity and the steps left; None if it does not exist."""
    found = await result_queries.of_entity(database, ref, now, only=given.card.checks)
    if found is None:
        return None
    graded = decoded(await level_store.of_entity(database, found.entity_id), given.slot)
    if graded is None:
        return EntityStanding(ref, None, [])
    return EntityStanding(ref, graded, steps(given.card, found.results, now))


def steps(
    card: Scorecard, found: Iterable[CheckResult], now: int
) -> list[tuple[Step, CheckResult]]:
    """The steps that results of an entity leave in a scorecard, each with its result."""
    counted = {one.check.id: one for one in found if _counts(one, now)}
    places = {id_: place for place, id_ in enumerate(counted, 1)}
    left = Grader(card, places).steps(bytes(one.state for one in counted.values()))
    return [(step, counted[step.check]) for step in left]


def _counts(result: CheckResult, now: int) -> bool:
    check = result.check
    return check.severity != "advisory" and (check.effective_from or 0) <= now
