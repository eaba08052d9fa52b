"""Check and scorecard results over HTTP: results, levels, rollups, trends, previews, badges.

Badges are open to everyone, so a scorecard that isn't public, an unknown scorecard and an unknown
entity get the same answer.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from typing import Any, Final

import msgspec

from factbook.api import check_parameters
from factbook.api.check_parameters import (
    CHECK_ID,
    PAGE_LIMIT,
    SCORECARD_ID,
)
from factbook.api.endpoint import Route
from factbook.api.parameters import ENTITY_WANTED
from factbook.auth.permissions import (
    CATALOG_READ,
    CHECK_READ,
    SOURCE_READ,
)
from factbook.catalog import ref as refs
from factbook.catalog.store import stored_entities
from factbook.catalog.store.stored_sets import Actor
from factbook.catalog.validation import deeper_than, too_deep
from factbook.checks import scorecard_figures, state, trials
from factbook.checks.definitions import definition_writes, exemption_store, scorecard
from factbook.checks.definitions.definition_versions import check_store, scorecard_store
from factbook.checks.definitions.exemption_store import ExemptionFilter
from factbook.checks.results import entity_evaluation, level_store, result_queries, state_store
from factbook.checks.results.grader import GradedLevel, Step, decode_level
from factbook.checks.results.result_queries import (
    CheckResult,
    EntityResults,
    ResultAge,
    ResultFilter,
    ResultPlace,
)
from factbook.checks.results.state_store import StateCounts
from factbook.checks.rules.check_definition import Check
from factbook.checks.rules.checked_entity import CheckedEntity
from factbook.checks.rules.rule_evaluation import Evidence, Explainer, Explanation
from factbook.checks.scorecard_figures import Badge, LevelFilter, ScorecardInEffect
from factbook.checks.trials import (
    MOST_EXPLAINED,
    EntityTrial,
    GivenFacts,
    PreviewScope,
    TriedEntityResult,
)
from factbook.clock import DAY, iso, iso_or_none, milliseconds, minute
from factbook.errors import InputError, NotFoundError
from factbook.facts import store
from factbook.http.context import HandlerContext, SourceContext
from factbook.http.csv_lines import (
    CONTENT_TYPE,
    CSV,
    make_attachment_headers,
    render_csv_line,
    render_plain_cell,
    stream_level_lines,
)
from factbook.http.requests import JsonReply, Request, decode, reply
from factbook.outbound.outcomes import Missing
from factbook.schemas import results
from factbook.schemas.results import (
    EntityPreview,
    EntityPreviewResult,
    NewEntityPreview,
    NewPreview,
    Preview,
    PreviewCounts,
    PreviewedEntity,
    PreviewedResult,
    ResultFix,
    ShieldsBadge,
)

_PAGE: Final = 100
_CSV_HEADER: Final = ("check", "entity", "owner", "state", "stale")
_EXEMPTIONS: Final = 20
_TREND_DAYS: Final = 90
_MOST_STEPS: Final = 100
SVG: Final = "image/svg+xml"
# Image proxies ask again after this time.
_CACHED: Final = "public, max-age=300"


async def get_check_results(
    request: Request, state: HandlerContext
) -> JsonReply[results.CheckResults]:
    """Results by check and reference, of every check in effect or of some.

    Entities that a check doesn't apply to are among them if `state` is `not-applicable`. A page
    covers 20 checks, so it may have few results, or none, while there is a `nextCursor`.
    """
    filter_, only = _parse_result_filter(request), _list_check_ids(request)
    limit = PAGE_LIMIT.of(request) or _PAGE
    entity = check_parameters.ONE_ENTITY.of(request)
    if entity is not None:
        found = await _find_entity_results(state, str(refs.parse_ref(entity)), only)
        rows = [row for row in _list_entity_rows(found) if _matches_filter(row, found, filter_)]
        return reply(results.CheckResults(rows))
    # Without a cursor, both parts are empty.
    after_check, _, after_ref = (check_parameters.RESULT_CURSOR.of(request) or "").partition("/")
    page = await result_queries.read_result_page(
        state.database, only, filter_, ResultPlace(after_check, after_ref), limit
    )
    rows = [
        results.CheckResultRow(
            check_id, row.ref, _render_state(row.state), row.owner or None, row.stale
        )
        for check_id, row in page.rows
    ]
    next_cursor = None if page.next is None else "/".join(page.next)
    return reply(results.CheckResults(rows, next_cursor))


async def export_check_results(request: Request, state: HandlerContext) -> JsonReply[str]:
    """All check results as CSV.

    Text that a spreadsheet could take for a formula begins with an apostrophe.
    """
    return JsonReply(
        _stream_result_rows(state, _list_check_ids(request), _parse_result_filter(request)),
        headers=make_attachment_headers("check-results"),
        content_type=CONTENT_TYPE,
    )


async def get_check_overview(
    request: Request, state: HandlerContext
) -> JsonReply[results.CheckOverview]:
    """The number of entities in each state, updated as results change."""
    id_ = CHECK_ID.of(request)
    stored = await check_store.existing(state.database, id_)
    counts = (await state_store.count_totals(state.database, [id_])).get(id_, StateCounts())
    changed = await state_store.find_last_change(state.database, id_)
    known = counts.passing + counts.failing
    times = [at for at in (changed, stored.in_effect_at) if at is not None]
    return reply(
        results.CheckOverview(
            check_id=id_,
            title=stored.current["title"],
            version=stored.version,
            passing=counts.passing,
            failing=counts.failing,
            unknown=counts.undecided,
            exempt=counts.exempt,
            not_applicable=counts.inapplicable,
            total=known + counts.undecided,
            percentage=round(100 * counts.passing / known, 1) if known else None,
            last_run=iso_or_none(max(times, default=None)),
            **render_age(
                await result_queries.read_age_of_checks(state.database, [id_], state.clock())
            ),
        )
    )


async def get_check_result(
    request: Request, state: HandlerContext
) -> JsonReply[results.OneCheckResult]:
    """The result of a check for an entity: each comparison, with its actual and expected value.

    A token that may not read data sources gets no values, and no texts that may contain some.
    """
    ref, id_ = str(refs.parse_ref(request.parameter("ref"))), CHECK_ID.of(request)
    await check_store.existing(state.database, id_)
    found = await _find_entity_results(state, ref, [id_])
    if not found.results:
        raise NotFoundError(f"The check {id_} has no results yet; it is not published.")
    [result] = found.results
    shown = _render_check_result(found, result)
    if not may_read_values(request):
        shown.message = shown.fix = None
        # The expected value may come from a fact too.
        shown.because = [
            msgspec.structs.replace(seen, value=None, wanted=None) for seen in shown.because
        ]
    if shown.state == "exempt":
        approved = ExemptionFilter("approved", ref, id_)
        exemptions = await exemption_store.list_exemptions(state.database, approved, _EXEMPTIONS)
        now = state.clock()
        shown.exemption = next((each.id for each in exemptions if each.holds(now)), None)
    return reply(shown)


async def get_check_result_history(
    request: Request, state: HandlerContext
) -> JsonReply[results.ResultHistory]:
    """The changes of a result, newest first, each with the write that caused it."""
    parts = (request.parameter(name) for name in ("kind", "namespace", "name"))
    ref, id_ = str(refs.parse_ref("{}:{}/{}".format(*parts))), CHECK_ID.of(request)
    await check_store.existing(state.database, id_)
    entity_id = await stored_entities.read_entity_id(state.database, ref)
    if entity_id is None:
        raise await stored_entities.make_unknown_error(state.database, ref)
    limit, cursor = PAGE_LIMIT.of(request) or _PAGE, check_parameters.HISTORY_CURSOR.of(request)
    before: tuple[tuple[int, int], ...] = ()
    if cursor is not None:
        at, _, change_id = cursor.partition("-")
        before = ((int(at), int(change_id)),)
    changes = await state_store.list_entity_changes(
        state.database, entity_id, id_, limit + 1, *before
    )
    page = changes[:limit]
    next_cursor = f"{page[-1].at}-{page[-1].id}" if len(changes) > limit else None
    shown = [
        results.ResultChange(
            iso(change.at), _render_state(change.after), change.why, _render_state(change.before)
        )
        for change in page
    ]
    return reply(results.ResultHistory(id_, ref, shown, next_cursor))


def may_read_values(request: Request) -> bool:
    """Return true if the caller may read the values of facts."""
    return request.token is not None and SOURCE_READ in request.token.permissions


def render_fix(told: Explanation) -> results.ResultFix | None:
    """Render how to fix a failing check; None if the check doesn't say."""
    if not (told.fix_link or told.fix_instructions):
        return None
    return results.ResultFix(told.fix_link, told.fix_instructions)


def render_age(age: ResultAge) -> dict[str, Any]:
    """Answer members that say how old the figures are."""
    return {"as_of": iso(age.as_of), "stale_sources": age.stale_sources}


async def _find_entity_results(state: HandlerContext, ref: str, only: list[str]) -> EntityResults:
    found = await result_queries.read_entity_results(state.database, ref, state.clock(), only=only)
    if found is None:
        raise await stored_entities.make_unknown_error(state.database, ref)
    return found


async def _stream_result_rows(
    state: HandlerContext, only: list[str], wanted: ResultFilter
) -> AsyncIterator[bytes]:
    yield render_csv_line(_CSV_HEADER).encode()
    async for rows in result_queries.read_result_pages(state.database, only, wanted):
        lines = (
            (id_, row.ref, row.owner, _render_state(row.state), render_plain_cell(row.stale))
            for id_, row in rows
        )
        yield "".join(map(render_csv_line, lines)).encode()


def _list_check_ids(request: Request) -> list[str]:
    given = [id_ for one in check_parameters.CHECK_IDS.of(request) for id_ in one.split(",") if id_]
    if len(given) > check_parameters.MOST_CHECKS:
        raise InputError(f"checkIds can name {check_parameters.MOST_CHECKS} checks at most.")
    return given


def _parse_result_filter(request: Request) -> ResultFilter:
    return ResultFilter(
        states=check_parameters.RESULT_STATE.of(request),
        owners=check_parameters.parse_owners(request),
        kind=check_parameters.KIND.of(request),
        changed_since=check_parameters.CHANGED_SINCE.of(request),
    )


def _matches_filter(
    row: results.CheckResultRow, found: EntityResults, wanted: ResultFilter
) -> bool:
    words = wanted.states or state.WORDS[:-1]
    since = next((one.since for one in found.results if one.check.id == row.check_id), None)
    return (
        row.state in words
        and (not wanted.owners or found.owner in wanted.owners)
        and (wanted.kind is None or found.ref.startswith(f"{wanted.kind.lower()}:"))
        and (wanted.changed_since is None or (since or 0) >= wanted.changed_since)
    )


def _list_entity_rows(found: EntityResults) -> list[results.CheckResultRow]:
    return [
        results.CheckResultRow(
            one.check.id, found.ref, _render_state(one.state), found.owner or None, one.is_stale
        )
        for one in found.results
    ]


def _render_check_result(found: EntityResults, result: CheckResult) -> results.OneCheckResult:
    check, told = result.check, result.explanation
    effective = check.effective_from
    return results.OneCheckResult(
        check_id=check.id,
        title=check.title,
        entity_ref=found.ref,
        state=_render_state(result.state),
        severity=check.severity,
        flapping=result.is_flapping,
        stale=result.is_stale,
        because=[] if told is None else [render_seen_fact(one) for one in told.because],
        owner=found.owner or None,
        since=iso_or_none(result.since),
        message=None if told is None else told.message,
        fix=None if told is None else render_fix(told),
        effective_from=None if effective is None else scorecard.format_day(effective),
    )


def render_seen_fact(one: Evidence) -> results.SeenFact:
    """Convert the evidence of a comparison to its API form."""
    return results.SeenFact(
        path=one.path,
        source=one.leaf.fact.source,
        fact=one.leaf.fact.fact,
        operator=one.leaf.operator,
        state=_render_state(one.state),
        value=one.value,
        wanted=one.wanted,
        inside=one.leaf.fact.path,
        collected_at=iso_or_none(one.collected_at),
        reason=one.reason,
        stale=one.stale,
    )


async def get_all_scorecard_results(
    request: Request, state: HandlerContext
) -> JsonReply[results.ScorecardResults]:
    """The figures of every scorecard in effect, from counts updated as levels change."""
    stored = await scorecard_store.everything(state.database)
    ids = [one.id for one in stored if one.slot is not None and one.published is not None]
    return reply(
        results.ScorecardResults([await _render_scorecard_figures(state, id_) for id_ in ids])
    )


async def get_scorecard_results(
    request: Request, state: HandlerContext
) -> JsonReply[results.OneScorecardResults]:
    """The figures of a scorecard, and the levels of its entities.

    A page covers a bounded number of entities, so it may have few, or none, while there is a
    `nextCursor`.
    """
    given = await _find_scorecard(request, state)
    figures = await _render_scorecard_figures(state, given.card.id)
    after, limit = check_parameters.ENTITY_CURSOR.of(request) or 0, PAGE_LIMIT.of(request) or _PAGE
    page = await scorecard_figures.read_ranked_page(
        state.database, given, _parse_level_filter(request, given), after, limit
    )
    return reply(
        results.OneScorecardResults(
            **{name: getattr(figures, name) for name in figures.__struct_fields__},
            entities=[_render_entity_level(given, *one) for one in page.entities],
            next_cursor=None if page.next is None else str(page.next),
        )
    )


async def export_scorecard_levels(request: Request, state: HandlerContext) -> JsonReply[str]:
    """The levels of all entities of a scorecard as CSV."""
    given = await _find_scorecard(request, state)
    return JsonReply(
        stream_level_lines(
            state.database, given, _parse_level_filter(request, given), state.clock()
        ),
        headers=make_attachment_headers(given.card.id),
        content_type=CONTENT_TYPE,
    )


async def get_scorecard_rollup(
    request: Request, state: HandlerContext
) -> JsonReply[results.Rollup]:
    """A scorecard by owner, system, domain, kind or label; a group includes all below it."""
    given, by = await _find_scorecard(request, state), check_parameters.BY.of(request) or "owner"
    group, depth = _parse_group(request), check_parameters.DEPTH.of(request)
    found = await scorecard_figures.roll_up_scorecard(
        state.database, given, by, group, 1 if depth is None else depth
    )
    groups = [one.render(given.names) for one in found]
    return reply(
        results.Rollup(given.card.id, by, groups, **await _render_scorecard_age(state, given))
    )


async def get_scorecard_trend(request: Request, state: HandlerContext) -> JsonReply[results.Trend]:
    """The figures of a scorecard by day, for all entities or a group; today's are current."""
    given, now = await _find_scorecard(request, state), state.clock()
    start, step = check_parameters.TREND_START.of(request), check_parameters.STEP.of(request) or 1
    first = now // DAY - _TREND_DAYS if start is None else start // DAY
    group = _parse_group(request)
    found = await scorecard_figures.read_trend(state.database, given, group, first, now, step)
    points, age = [one.render() for one in found], await _render_scorecard_age(state, given)
    return reply(results.Trend(given.card.id, group, points, **age))


async def get_next_steps(request: Request, state: HandlerContext) -> JsonReply[results.NextSteps]:
    """The steps of an entity to the next level of a scorecard, cheapest first.

    Messages and fixes may contain values of facts, so they need the permission to read data
    sources.
    """
    given = await _find_scorecard(request, state)
    ref = str(refs.parse_ref(ENTITY_WANTED.of(request) or ""))
    found = await scorecard_figures.read_standing(state.database, given, ref, state.clock())
    if found is None:
        raise await stored_entities.make_unknown_error(state.database, ref)
    if found.graded is None:
        raise NotFoundError(f"The scorecard {given.card.id} does not apply to {ref}.")
    entity = _render_entity_level(given, ref, found.graded)
    return reply(
        results.NextSteps(
            **{name: getattr(entity, name) for name in entity.__struct_fields__},
            scorecard_id=given.card.id,
            **await _render_scorecard_age(state, given),
            steps=[
                _render_next_step(given, *one, shows=may_read_values(request))
                for one in found.steps[:_MOST_STEPS]
            ],
        )
    )


async def _find_scorecard(request: Request, state: HandlerContext) -> ScorecardInEffect:
    return await scorecard_figures.get_scorecard_in_effect(state.database, SCORECARD_ID.of(request))


async def _render_scorecard_age(state: HandlerContext, given: ScorecardInEffect) -> dict[str, Any]:
    return render_age(
        await result_queries.read_age_of_checks(state.database, given.card.checks, state.clock())
    )


async def _render_scorecard_figures(
    state: HandlerContext, scorecard_id: str
) -> results.ScorecardFigures:
    stored = await scorecard_store.one(state.database, scorecard_id)
    given = await scorecard_figures.get_scorecard_in_effect(state.database, scorecard_id)
    shown = (await level_store.count_all_levels(state.database, given.slot)).render(given.names)
    return results.ScorecardFigures(
        scorecard_id=scorecard_id,
        title=given.card.title,
        version="" if stored is None else stored.version,
        total=shown["total"],
        levels=shown["levels"],
        no_level=shown["noLevel"],
        score=shown["score"],
        scored=shown["scored"],
        **await _render_scorecard_age(state, given),
    )


def _parse_level_filter(request: Request, given: ScorecardInEffect) -> LevelFilter:
    level, owners = check_parameters.LEVEL.of(request), check_parameters.parse_owners(request)
    return scorecard_figures.filter_by_level(given.card, level, owners)


def _parse_group(request: Request) -> str | None:
    group = check_parameters.GROUP.of(request)
    return None if group is None else refs.canonicalize_ref(group, kind="group")


def _render_entity_level(
    given: ScorecardInEffect, ref: str, graded: GradedLevel
) -> results.EntityLevel:
    return results.EntityLevel(ref, *given.named(graded), graded.score, graded.coverage)


def _render_next_step(
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
        fix=None if told is None else render_fix(told),
    )


async def get_badge_image(request: Request, state: HandlerContext) -> JsonReply[str]:
    """The level of an entity as an image."""
    text = scorecard_figures.draw_badge(await _find_badge(request, state)).encode()
    return _answer_badge(request, text, f"{SVG}; charset=utf-8".encode())


async def get_shields_badge(request: Request, state: HandlerContext) -> JsonReply[ShieldsBadge]:
    """The level of an entity in the format of a shields.io endpoint."""
    found = await _find_badge(request, state)
    shown = ShieldsBadge(1, found.label, found.message, found.color)
    return _answer_badge(request, msgspec.json.encode(shown), b"application/json")


async def _find_badge(request: Request, state: HandlerContext) -> Badge:
    missing = NotFoundError("There is no such badge.")
    parts = (request.parameter(name) for name in ("kind", "namespace", "name"))
    try:
        ref = str(refs.parse_ref("{}:{}/{}".format(*parts)))
        given = await scorecard_figures.get_scorecard_in_effect(
            state.database, SCORECARD_ID.of(request)
        )
    except (InputError, NotFoundError):
        raise missing from None
    entity_id = (
        await stored_entities.read_entity_id(state.database, ref) if given.card.public else None
    )
    if entity_id is None:
        raise missing
    levels = await level_store.read_entity_levels(state.database, entity_id)
    found = scorecard_figures.make_level_badge(given.card, decode_level(levels, given.slot))
    age = await result_queries.read_age_of_checks(state.database, given.card.checks, state.clock())
    # Only stale badges show a time; for others, caching determines the age.
    is_old = bool(age.stale_sources)
    return (
        found._replace(message=f"{found.message}, as of {minute(age.as_of)}") if is_old else found
    )


def _answer_badge(request: Request, body: bytes, content_type: bytes) -> JsonReply[Any]:
    tag = f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
    headers = {"etag": tag, "cache-control": _CACHED}
    given = request.header(b"if-none-match") or ""
    if tag in (one.strip().removeprefix("W/") for one in given.split(",")):
        return JsonReply(b"", 304, headers, content_type)
    return JsonReply(body, 200, headers, content_type)


_render_state = state.name_state


_LARGEST_PREVIEW: Final = 512 * 1024
_MOST_EXPLAINED_CHANGES: Final = 20
Document = dict[str, Any]
_LARGEST_TREE: Final = 4 * 1024 * 1024
_MOST_EXPLAINED_RESULTS: Final = 50


async def post_check_preview(request: Request, state: SourceContext) -> JsonReply[Preview]:
    """Counts by state as they are and as they would be with a check, and who would change.

    With `facts`, entities are evaluated as if those were known. Writes nothing.
    """
    asked = decode(await request.json_body(_LARGEST_PREVIEW, "a preview"), NewPreview)
    check = await _read_preview_check(asked, state)
    now, depth = _parse_preview_time(asked, state.clock()), state.settings.max_json_depth
    facts: Mapping[str, Document] = {} if asked.facts is msgspec.UNSET else asked.facts
    if deeper_than(facts, depth):
        raise InputError(f"{too_deep(depth)}.")
    entities = [] if asked.entities is msgspec.UNSET else asked.entities
    scope = PreviewScope([str(refs.parse_ref(text)) for text in entities], facts)
    async with request.aside():
        found = await trials.preview_check(
            state.database, check, now, asked.limit, request.caller, scope
        )
    shown = [PreviewedResult(one.ref, *one.words) for one in found.first]
    explainer = Explainer(check)
    for one in shown[:_MOST_EXPLAINED_CHANGES]:
        await _explain_preview(one, explainer, state, scope, now)
    counts = PreviewCounts(*found.now), PreviewCounts(*found.then)
    return reply(Preview(*counts, found.changed, shown, **render_age(found.age)))


async def _read_preview_check(asked: NewPreview, state: SourceContext) -> Check:
    depth = state.settings.max_json_depth
    given, check_id = asked.definition, asked.check_id
    if (given is msgspec.UNSET) is (check_id is msgspec.UNSET):
        raise InputError("Give a definition, or the checkId of a stored one.")
    if given is msgspec.UNSET:
        id_ = str(check_id)
        stored = await check_store.existing(state.database, id_)
        changes = {} if asked.changes is msgspec.UNSET else asked.changes
        merged = {**stored.written, **changes}
        given = {name: value for name, value in merged.items() if value is not None}
    elif asked.changes is not msgspec.UNSET:
        raise InputError("changes are for a stored check; change the definition itself.")
    return await definition_writes.read_check_document(given, state.database, state.registry, depth)


def _parse_preview_time(asked: NewPreview, now: int) -> int:
    if asked.at is msgspec.UNSET:
        return now
    moment = milliseconds(asked.at)
    if moment is None:
        raise InputError("at has to be an ISO 8601 date and time with a UTC offset.")
    return moment


async def _explain_preview(
    shown: PreviewedResult,
    explainer: Explainer,
    state: SourceContext,
    scope: PreviewScope,
    now: int,
) -> None:
    """Add the evidence for a previewed result, if the check applies to the entity."""
    entity_id = await stored_entities.read_entity_id(state.database, shown.entity_ref)
    document = await stored_entities.read_collectable(state.database, shown.entity_ref)
    if entity_id is None or document is None or shown.then == _OUT:
        return
    own = await entity_evaluation.read_own_facts(state.database, entity_id)
    facts = {**await store.list_latest_by_ref(state.database, shown.entity_ref), **own}
    latest = trials.replace_facts(facts, scope.facts, now)
    entity = CheckedEntity(shown.entity_ref, document, latest)
    told = await asyncio.to_thread(explainer.explained, entity, now)
    shown.message = told.message
    shown.because = [render_seen_fact(one) for one in told.because]


async def post_entity_preview(request: Request, state: SourceContext) -> JsonReply[EntityPreview]:
    """The results that the entities of a working tree would change.

    Each entity is evaluated where it is, whoever pushes or imports it. A result that depends on
    facts from elsewhere, such as those of a code host, is not `decided`, and is no new failure.
    Writes nothing.
    """
    async with state.admission.room_for_body(request, _LARGEST_TREE):
        asked = decode(await request.json_body(_LARGEST_TREE, "a preview"), NewEntityPreview)
        actor = Actor(request.actor, state.clock())
        trial = EntityTrial(
            state.write_trial(request.caller), state.rules, actor, asked.set or None
        )
        paths = None if asked.paths is msgspec.UNSET else asked.paths
        items = [msgspec.Raw(msgspec.json.encode(one)) for one in asked.items]
        given = await _prepare_given_facts(state, paths)
        async with request.aside():
            await trial.run(items, given)
    results = [_render_tried_result(one) for one in trial.results[:MOST_EXPLAINED]]
    for one in results[_MOST_EXPLAINED_RESULTS:]:
        one.because = None
    return reply(
        EntityPreview(
            [PreviewedEntity(*one) for one in trial.changes],
            len(trial.results),
            sum(one.is_new_failure for one in trial.results),
            results,
        )
    )


async def _prepare_given_facts(
    state: SourceContext, paths: Collection[str] | None
) -> Callable[[Mapping[str, Any]], GivenFacts | None]:
    """Return a function that derives an entity's code host facts from file paths."""
    # Imported late: it loads all code host integrations and is only for previews of trees.
    from factbook.datasources import tree_facts  # noqa: PLC0415

    sources = (await state.registry.current()).sources

    def given(entity: Mapping[str, Any]) -> GivenFacts | None:
        place = None if paths is None else state.registry.files.locate(entity)
        if paths is None or place is None or isinstance(place, Missing):
            return None
        source = sources[place[0]]
        names = {fact.name for fact in source.schema}
        found = tree_facts.list_tree_facts(source.id, paths)
        return GivenFacts(source, {name: found[name] for name in found if name in names})

    return given


def _render_tried_result(found: TriedEntityResult) -> EntityPreviewResult:
    told = found.explanation
    fix = told and ResultFix(told.fix_link, told.fix_instructions)
    return EntityPreviewResult(
        found.difference.check_id,
        found.check.title,
        found.difference.ref,
        found.difference.before,
        found.difference.after,
        found.check.severity,
        found.is_decided,
        found.is_new_failure,
        told and told.message,
        fix if fix and (fix.link or fix.instructions) else None,
        [render_seen_fact(one) for one in told.because] if told else None,
    )


_OUT: Final = state.name_state(state.OUT)


_READ_CHECKS = (CHECK_READ,)
# Results name entities and reveal their facts.
_READ_RESULTS = (CATALOG_READ, CHECK_READ)
_RESULTS = "/check-results"
_RESULT = f"{_RESULTS}/{{id}}"
_CARDS = "/scorecard-results"
_CARD = f"{_CARDS}/{{id}}"
_OF_CARD = (
    SCORECARD_ID,
    check_parameters.LEVEL,
    check_parameters.OWNER,
    PAGE_LIMIT,
    check_parameters.ENTITY_CURSOR,
)
# Below /api/tech-insights/v1.
RESULT_ROUTES: Sequence[Route] = (
    Route(
        "GET",
        _RESULTS,
        get_check_results,
        _READ_RESULTS,
        (
            *check_parameters.RESULT_FILTERS,
            check_parameters.ONE_ENTITY,
            PAGE_LIMIT,
            check_parameters.RESULT_CURSOR,
        ),
        refusals=(NotFoundError,),
    ),
    Route(
        "GET",
        f"{_RESULTS}.csv",
        export_check_results,
        _READ_RESULTS,
        check_parameters.RESULT_FILTERS,
        media=CSV,
    ),
    Route(
        "POST",
        f"{_RESULTS}/preview",
        post_entity_preview,
        # Messages reveal facts. Permission to read facts includes checks.
        (CATALOG_READ, SOURCE_READ),
        body=results.NewEntityPreview,
        reading=_READ_CHECKS,
    ),
    Route("GET", _RESULT, get_check_overview, _READ_CHECKS, (CHECK_ID,)),
    Route("GET", f"{_RESULT}/{{ref:path}}", get_check_result, _READ_RESULTS, (CHECK_ID,)),
    Route(
        "GET",
        f"{_RESULT}/{{kind}}:{{namespace}}/{{name}}/history",
        get_check_result_history,
        _READ_RESULTS,
        (CHECK_ID, PAGE_LIMIT, check_parameters.HISTORY_CURSOR),
    ),
    Route("GET", _CARDS, get_all_scorecard_results, _READ_CHECKS),
    # Before the next route, which would match the suffix as part of an id.
    Route(
        "GET",
        f"{_CARD}.csv",
        export_scorecard_levels,
        _READ_RESULTS,
        (SCORECARD_ID, check_parameters.LEVEL, check_parameters.OWNER),
        media=CSV,
    ),
    Route("GET", _CARD, get_scorecard_results, _READ_RESULTS, _OF_CARD),
    # Alias of the route above.
    Route(
        "GET",
        "/scorecards/entity-results/{id}",
        get_scorecard_results,
        _READ_RESULTS,
        _OF_CARD,
        described=False,
    ),
    Route(
        "GET",
        f"{_CARD}/rollup",
        get_scorecard_rollup,
        _READ_RESULTS,
        (SCORECARD_ID, check_parameters.BY, check_parameters.GROUP, check_parameters.DEPTH),
    ),
    Route(
        "GET",
        f"{_CARD}/trend",
        get_scorecard_trend,
        _READ_RESULTS,
        (SCORECARD_ID, check_parameters.GROUP, check_parameters.TREND_START, check_parameters.STEP),
    ),
    Route(
        "GET",
        f"{_CARD}/next-steps",
        get_next_steps,
        _READ_RESULTS,
        (SCORECARD_ID, ENTITY_WANTED),
    ),
    *(
        Route(
            "GET",
            f"/badges/{{id}}/{{kind}}:{{namespace}}/{{name}}.{ending}",
            handler,
            None,
            (SCORECARD_ID,),
            media=media,
            headers=(check_parameters.BADGE_TAG,),
        )
        for ending, handler, media in (
            ("svg", get_badge_image, SVG),
            ("json", get_shields_badge, "application/json"),
        )
    ),
)
