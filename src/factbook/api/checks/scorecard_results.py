"""Results of scorecards over HTTP: levels, rollups, trends and next steps."""

from typing import Any, Final

from factbook.api.checks import result_parameters as parameters
from factbook.api.checks.check_results import aged, fix_of, reads_values
from factbook.api.checks.parameters import PAGE_LIMIT, SCORECARD_ID
from factbook.api.openapi.parameters import ENTITY_WANTED
from factbook.catalog import ref as refs
from factbook.catalog.store import by_ref
from factbook.checks import state
from factbook.checks.levels import level_store
from factbook.checks.levels.grader import GradedLevel, Step
from factbook.checks.results import result_age
from factbook.checks.results.result_queries import CheckResult
from factbook.checks.scorecards import level_pages, next_steps, scorecard_figures
from factbook.checks.scorecards.level_pages import LevelFilter
from factbook.checks.scorecards.scorecard_figures import ScorecardInEffect
from factbook.checks.versions.scorecard_store import scorecard_store
from factbook.clock import DAY
from factbook.errors import NotFoundError
from factbook.http import csv_lines
from factbook.http.context import HandlerContext
from factbook.http.requests import JsonReply, Request, reply
from factbook.schemas import results

_PAGE: Final = 100
_DAYS: Final = 90
_MOST_STEPS: Final = 100


async def list_all(request: Request, state: HandlerContext) -> JsonReply[results.ScorecardResults]:
    """The figures of every scorecard in effect, from counts that are kept as levels change."""
    stored = await scorecard_store.everything(state.database)
    ids = [one.id for one in stored if one.slot is not None and one.published is not None]
    return reply(results.ScorecardResults([await _figures(state, id_) for id_ in ids]))


async def get(request: Request, state: HandlerContext) -> JsonReply[results.OneScorecardResults]:
    """The figures of a scorecard, and the levels of its entities.

    A page looks at a bounded number of entities, so it may hold few, or none, while there is a
    `nextCursor`.
    """
    given = await _in_effect(request, state)
    figures = await _figures(state, given.card.id)
    after, limit = parameters.ENTITY_CURSOR.of(request) or 0, PAGE_LIMIT.of(request) or _PAGE
    page = await level_pages.page(state.database, given, _wanted(request, given), after, limit)
    return reply(
        results.OneScorecardResults(
            **{name: getattr(figures, name) for name in figures.__struct_fields__},
            entities=[_entity(given, *one) for one in page.entities],
            next_cursor=None if page.next is None else str(page.next),
        )
    )


async def export(request: Request, state: HandlerContext) -> JsonReply[str]:
    """The levels of all entities of a scorecard as CSV."""
    given = await _in_effect(request, state)
    return JsonReply(
        csv_lines.of_levels(state.database, given, _wanted(request, given), state.clock()),
        headers=csv_lines.attachment(given.card.id),
        content_type=csv_lines.CONTENT_TYPE,
    )


async def roll_up(request: Request, state: HandlerContext) -> JsonReply[results.Rollup]:
    """A scorecard by owner, system, domain, kind or label; groups with all that is below them."""
    given, by = await _in_effect(request, state), parameters.BY.of(request) or "owner"
    group, depth = _group(request), parameters.DEPTH.of(request)
    found = await scorecard_figures.rolled_up(
        state.database, given, by, group, 1 if depth is None else depth
    )
    groups = [one.render(given.names) for one in found]
    return reply(results.Rollup(given.card.id, by, groups, **await _age(state, given)))


async def follow(request: Request, state: HandlerContext) -> JsonReply[results.Trend]:
    """The figures of a scorecard day by day, of everybody or of a group; today as it is now."""
    given, now = await _in_effect(request, state), state.clock()
    start, step = parameters.TREND_START.of(request), parameters.STEP.of(request) or 1
    first = now // DAY - _DAYS if start is None else start // DAY
    group = _group(request)
    found = await scorecard_figures.over_time(state.database, given, group, first, now, step)
    points, age = [one.render() for one in found], await _age(state, given)
    return reply(results.Trend(given.card.id, group, points, **age))


async def plan(request: Request, state: HandlerContext) -> JsonReply[results.NextSteps]:
    """Steps of an entity to the next level of a scorecard, the cheapest first.

    Messages and fixes, which may hold values of facts, take the right to read data sources.
    """
    given = await _in_effect(request, state)
    ref = str(refs.parse(ENTITY_WANTED.of(request) or ""))
    found = await next_steps.standing(state.database, given, ref, state.clock())
    if found is None:
        raise await by_ref.unknown(state.database, ref)
    if found.graded is None:
        raise NotFoundError(f"The scorecard {given.card.id} does not apply to {ref}.")
    entity = _entity(given, ref, found.graded)
    return reply(
        results.NextSteps(
            **{name: getattr(entity, name) for name in entity.__struct_fields__},
            scorecard_id=given.card.id,
            **await _age(state, given),
            steps=[
                _step(given, *one, shows=reads_values(request)) for one in found.steps[:_MOST_STEPS]
            ],
        )
    )


async def _in_effect(request: Request, state: HandlerContext) -> ScorecardInEffect:
    return await scorecard_figures.in_effect(state.database, SCORECARD_ID.of(request))


async def _age(state: HandlerContext, given: ScorecardInEffect) -> dict[str, Any]:
    return aged(await result_age.of_checks(state.database, given.card.checks, state.clock()))


async def _figures(state: HandlerContext, scorecard_id: str) -> results.ScorecardFigures:
    stored = await scorecard_store.one(state.database, scorecard_id)
    given = await scorecard_figures.in_effect(state.database, scorecard_id)
    shown = (await level_store.total(state.database, given.slot)).render(given.names)
    return results.ScorecardFigures(
        scorecard_id=scorecard_id,
        title=given.card.title,
        version="" if stored is None else stored.version,
        total=shown["total"],
        levels=shown["levels"],
        no_level=shown["noLevel"],
        score=shown["score"],
        scored=shown["scored"],
        **await _age(state, given),
    )


def _wanted(request: Request, given: ScorecardInEffect) -> LevelFilter:
    level, owners = parameters.LEVEL.of(request), parameters.owners(request)
    return level_pages.at_level(given.card, level, owners)


def _group(request: Request) -> str | None:
    group = parameters.GROUP.of(request)
    return None if group is None else refs.canonical(group, kind="group")


def _entity(given: ScorecardInEffect, ref: str, graded: GradedLevel) -> results.EntityLevel:
    return results.EntityLevel(ref, *given.named(graded), graded.score, graded.coverage)


def _step(
    given: ScorecardInEffect, step: Step, result: CheckResult, *, shows: bool
) -> results.NextStep:
    told = result.explanation if shows else None
    return results.NextStep(
        check_id=step.check,
        title=result.check.title,
        state=state.name_state(step.state),
        level=given.names.get(step.rank),
        gain=round(step.gain, 4),
        effort=step.effort,
        message=None if told is None else told.message,
        fix=None if told is None else fix_of(told),
    )
