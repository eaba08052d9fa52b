"""Previews over HTTP: results with a check before it is stored, or with changed entities."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

import msgspec

from factbook.api.results import render_age, render_seen_fact
from factbook.catalog import ref as refs
from factbook.catalog.store import stored_entities
from factbook.catalog.store.stored_sets import Actor
from factbook.catalog.validation import deeper_than, too_deep
from factbook.checks import state, trials
from factbook.checks.definitions import definition_writes
from factbook.checks.definitions.definition_versions import check_store
from factbook.checks.results import entity_evaluation
from factbook.checks.rules.check_definition import Check
from factbook.checks.rules.checked_entity import CheckedEntity
from factbook.checks.rules.rule_evaluation import Explainer
from factbook.checks.trials import (
    MOST_EXPLAINED,
    EntityTrial,
    GivenFacts,
    PreviewScope,
    TriedEntityResult,
)
from factbook.clock import milliseconds
from factbook.errors import InputError
from factbook.facts import store
from factbook.http.context import SourceContext
from factbook.http.requests import JsonReply, Request, decode, reply
from factbook.outbound.outcomes import Missing
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
)

_LARGEST_PREVIEW: Final = 512 * 1024
_MOST_EXPLAINED_CHANGES: Final = 20
Document = dict[str, Any]
_LARGEST_TREE: Final = 4 * 1024 * 1024
_MOST_EXPLAINED_RESULTS: Final = 50


async def post_check_preview(request: Request, state: SourceContext) -> JsonReply[Preview]:
    """Counts by state as they are and as they would be with a check, and who would change.

    With `facts` it answers what would be if those were known. Nothing is written.
    """
    asked = decode(await request.json_body(_LARGEST_PREVIEW, "a preview"), NewPreview)
    check = await _read_preview_check(asked, state)
    now, scope = (
        _parse_preview_time(asked, state.clock()),
        _build_preview_scope(asked, state.settings.max_json_depth),
    )
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


def _build_preview_scope(asked: NewPreview, depth: int) -> PreviewScope:
    facts: Mapping[str, Document] = {} if asked.facts is msgspec.UNSET else asked.facts
    if deeper_than(facts, depth):
        raise InputError(f"{too_deep(depth)}.")
    wanted = [] if asked.entities is msgspec.UNSET else asked.entities
    return PreviewScope([str(refs.parse_ref(one)) for one in wanted], facts)


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
    """Add what the result would rest on, where the check is about the entity."""
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
    """Results that would be others with entities as a working tree has them.

    Each is evaluated where it is, whoever pushes or imports it. A result that rests on facts from
    elsewhere, such as those of a code host, is not `decided`, and no new failure. Nothing is
    written.
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
    """A function that gives the facts of an entity's code host that follow from the paths."""
    # Not with the service: it takes the integrations of all code hosts, for previews of trees.
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
