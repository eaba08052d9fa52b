"""Previews of results over HTTP: of entities as documents have them, before they are merged."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

import msgspec

from factbook.api.checks.check_results import seen
from factbook.catalog.store.apply import Actor
from factbook.checks.trials.entity_trial import (
    MOST_EXPLAINED,
    EntityTrial,
    GivenFacts,
    TriedEntityResult,
)
from factbook.http.context import SourceContext
from factbook.http.requests import JsonReply, Request, decode, reply
from factbook.outbound.outcomes import Missing
from factbook.schemas.results import (
    EntityPreview,
    EntityPreviewResult,
    NewEntityPreview,
    PreviewedEntity,
    ResultFix,
)

_LARGEST: Final = 4 * 1024 * 1024
_EXPLAINED: Final = 50


async def create(request: Request, state: SourceContext) -> JsonReply[EntityPreview]:
    """Results that would be others with entities as a working tree has them.

    Each is evaluated where it is, whoever pushes or imports it. A result that rests on facts from
    elsewhere, such as those of a code host, is not `decided`, and no new failure. Nothing is
    written.
    """
    async with state.admission.room_for_body(request, _LARGEST):
        asked = decode(await request.json_body(_LARGEST, "a preview"), NewEntityPreview)
        actor = Actor(request.actor, state.clock())
        trial = EntityTrial(
            state.write_trial(request.caller), state.rules, actor, asked.set or None
        )
        paths = None if asked.paths is msgspec.UNSET else asked.paths
        items = [msgspec.Raw(msgspec.json.encode(one)) for one in asked.items]
        given = await _given(state, paths)
        async with request.aside():
            await trial.run(items, given)
    results = [_shown(one) for one in trial.results[:MOST_EXPLAINED]]
    for one in results[_EXPLAINED:]:
        one.because = None
    return reply(
        EntityPreview(
            [PreviewedEntity(*one) for one in trial.changes],
            len(trial.results),
            sum(one.is_new_failure for one in trial.results),
            results,
        )
    )


async def _given(
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
        found = tree_facts.of(source.id, paths)
        return GivenFacts(source, {name: found[name] for name in found if name in names})

    return given


def _shown(found: TriedEntityResult) -> EntityPreviewResult:
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
        [seen(one) for one in told.because] if told else None,
    )
