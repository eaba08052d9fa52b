"""Trials of a data source on one entity over HTTP: its request, the answer and the facts."""

from msgspec import UNSET

from factbook.api.openapi.parameters import SOURCE_ID
from factbook.auth.permissions import SOURCE_READ, TITLES
from factbook.datasources import owned_source, trial
from factbook.errors import NotAllowedError
from factbook.http.context import SourceContext
from factbook.http.requests import JsonReply, Request, decode, reply
from factbook.schemas.sources import Answered, NewTrial, Trial

_LARGEST = 512 * 1024


async def create(request: Request, state: SourceContext) -> JsonReply[Trial]:
    """Collect for one entity, and store nothing.

    The answer of the other system is shown as it came, up to 64 KiB of it. A token that may not
    read data sources has to send a definition.
    """
    source_id = SOURCE_ID.of(request)
    wanted: NewTrial = decode(await request.json_body(_LARGEST, "a trial"), NewTrial)
    document = None if wanted.definition is UNSET else wanted.definition
    if document is None and not request.may_read:
        raise NotAllowedError(
            "Without a definition in the body a trial shows the stored one, which needs the "
            f'permission "{TITLES[SOURCE_READ]}" ({SOURCE_READ}).',
            missing=(SOURCE_READ,),
        )
    depth = state.settings.max_json_depth
    made = await trial.to_try(state.database, state.registry, source_id, document, depth)
    if request.own_only:
        await owned_source.check_trial(
            state.database, source_id, made.source.owner, request.actor, state.trust
        )
    ref, found = await trial.tried(
        state.database, state.registry, state.connect, made, wanted.entity
    )
    return reply(
        Trial(
            entity=ref,
            request=None if found.request is None else dict(found.request),
            answer=found.answer and Answered(*found.answer),
            facts=dict(found.facts),
            reasons=dict(found.reasons),
        )
    )
