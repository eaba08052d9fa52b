"""Asking for the facts of one entity to be collected again."""

from msgspec import UNSET, Struct, UnsetType

from factbook.catalog import ref as refs
from factbook.catalog.store import by_ref
from factbook.facts import refresh_requests
from factbook.http import audit
from factbook.http.context import HandlerContext
from factbook.http.requests import Reply, Request
from factbook.schemas.common import AnyRef


class Refresh(Struct, forbid_unknown_fields=True, rename="camel"):
    """The body of refresh; `authorizationToken` is what some clients send, and means nothing."""

    entity_ref: AnyRef
    authorization_token: str | UnsetType = UNSET


async def refresh(request: Request, state: HandlerContext) -> Reply:
    """Queue a collection of one entity's facts; it begins within seconds of this answer."""
    asked: Refresh = await request.json(Refresh)
    ref = str(refs.parse(asked.entity_ref))
    actor, now = request.actor, state.clock()
    write = audit.writing(request, state, audit.of_request(ref))
    if not await refresh_requests.add(state.database, ref, actor, now, write):
        raise await by_ref.unknown(state.database, ref)
    return Reply()
