"""Previews of checks over HTTP: what a check would do, before it is stored."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from factbook.api.checks.check_results import aged, seen
from factbook.catalog import ref as refs
from factbook.catalog.store import collectable
from factbook.catalog.validation import deeper_than, too_deep
from factbook.checks import state
from factbook.checks.maintenance import latest_facts
from factbook.checks.rules.check_definition import Check
from factbook.checks.rules.checked_entity import CheckedEntity
from factbook.checks.rules.explanation import Explainer
from factbook.checks.states.count_store import StateCounts
from factbook.checks.submissions import check_documents
from factbook.checks.trials import preview
from factbook.checks.trials.preview import PreviewedChange, PreviewScope
from factbook.checks.versions.check_store import check_store
from factbook.clock import milliseconds
from factbook.errors import InputError
from factbook.facts import store
from factbook.http.context import SourceContext
from factbook.http.requests import JsonReply, Request, decode, reply
from factbook.schemas.results import NewPreview, Preview, PreviewCounts, PreviewedResult

_LARGEST: Final = 512 * 1024
_EXPLAINED: Final = 20

Document = dict[str, Any]


async def create(request: Request, state: SourceContext) -> JsonReply[Preview]:
    """Counts by state as they are and as they would be with a check, and who would change.

    With `facts` it answers what would be if those were known. Nothing is written.
    """
    asked = decode(await request.json_body(_LARGEST, "a preview"), NewPreview)
    check = await _check(asked, state)
    now, scope = _moment(asked, state.clock()), _scope(asked, state.settings.max_json_depth)
    async with request.aside():
        found = await preview.preview(
            state.database, check, now, asked.limit, request.caller, scope
        )
    shown = [_shown(one) for one in found.first]
    explainer = Explainer(check)
    for one in shown[:_EXPLAINED]:
        await _explain(one, explainer, state, scope, now)
    counts = _counts(found.now), _counts(found.then)
    return reply(Preview(*counts, found.changed, shown, **aged(found.age)))


async def _check(asked: NewPreview, state: SourceContext) -> Check:
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
    return await check_documents.read_check(given, state.database, state.registry, depth)


def _scope(asked: NewPreview, depth: int) -> PreviewScope:
    facts: Mapping[str, Document] = {} if asked.facts is msgspec.UNSET else asked.facts
    if deeper_than(facts, depth):
        raise InputError(f"{too_deep(depth)}.")
    wanted = [] if asked.entities is msgspec.UNSET else asked.entities
    return PreviewScope([str(refs.parse(one)) for one in wanted], facts)


def _moment(asked: NewPreview, now: int) -> int:
    if asked.at is msgspec.UNSET:
        return now
    moment = milliseconds(asked.at)
    if moment is None:
        raise InputError("at has to be an ISO 8601 date and time with a UTC offset.")
    return moment


async def _explain(
    shown: PreviewedResult,
    explainer: Explainer,
    state: SourceContext,
    scope: PreviewScope,
    now: int,
) -> None:
    """Add what the result would rest on, where the check is about the entity."""
    entity_id = await collectable.id_of(state.database, shown.entity_ref)
    document = await collectable.entity(state.database, shown.entity_ref)
    if entity_id is None or document is None or shown.then == _OUT:
        return
    own = await latest_facts.own_of(state.database, entity_id)
    facts = {**await store.latest_of_ref(state.database, shown.entity_ref), **own}
    latest = preview.with_facts(facts, scope.facts, now)
    entity = CheckedEntity(shown.entity_ref, document, latest)
    told = await asyncio.to_thread(explainer.explained, entity, now)
    shown.message = told.message
    shown.because = [seen(one) for one in told.because]


def _shown(change: PreviewedChange) -> PreviewedResult:
    return PreviewedResult(change.ref, *change.words)


def _counts(found: StateCounts) -> PreviewCounts:
    return PreviewCounts(*found)


_OUT: Final = state.name_state(state.OUT)
