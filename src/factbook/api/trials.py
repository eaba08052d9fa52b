"""Trying a data source on one entity over HTTP: what is asked, what comes back, which facts."""

from typing import Any

from msgspec import UNSET

from factbook.api import data_sources
from factbook.api.parameters import SOURCE_ID
from factbook.api.wire_sources import NewTrial
from factbook.catalog import ref as refs
from factbook.catalog.store import subjects
from factbook.collecting import Answered, tried
from factbook.edge.requests import Reply, Request, decode, offloaded, reply
from factbook.edge.state import State
from factbook.errors import NotFoundError
from factbook.sources.custom import Definition, definition

_LARGEST = 512 * 1024


async def create(request: Request, state: State) -> Reply:
    """Collect for one entity, and store nothing.

    The answer of the other system is shown as it came, up to 64 KiB of it.
    """
    source_id = SOURCE_ID.of(request)
    wanted: NewTrial = decode(await request.body(_LARGEST, "a trial"), NewTrial)
    made = await _definition(wanted, source_id, state)
    ref = str(refs.parse(wanted.entity, kind="component"))
    entity = await subjects.entity(state.database, ref)
    if entity is None:
        raise NotFoundError(f"There is no entity {ref}.")
    registry = state.registry
    found = await tried(made, entity, registry.connections, registry.files, state.connect)
    return reply(
        {
            "entity": ref,
            "request": found.request,
            "answer": found.answer and _answer(found.answer),
            "facts": found.facts,
            "reasons": found.reasons,
        }
    )


async def _definition(wanted: NewTrial, source_id: str, state: State) -> Definition:
    if wanted.definition is UNSET:
        stored = await data_sources.existing(state, source_id)
        document = stored.draft or stored.current
    else:
        document = await data_sources.checked(wanted.definition, state, source_id)
    made: Definition = await offloaded(definition.parse, document)
    return made


def _answer(answer: Answered) -> dict[str, Any]:
    return {
        "status": answer.status,
        "contentType": answer.content_type,
        "body": answer.body,
        "truncated": answer.truncated,
    }
