"""Connections over HTTP, which custom sources ask; their secrets are taken and never given."""

from factbook.api.openapi.parameters import CONNECTION
from factbook.clock import iso, iso_or_none
from factbook.datasources import connections
from factbook.datasources.connection_store import ConnectionInput
from factbook.datasources.connections import ConnectionDetail
from factbook.http import audit
from factbook.http.context import SourceContext
from factbook.http.requests import JsonReply, Reply, Request, decode, reply
from factbook.schemas.sources import Connections, NewConnection, ShownConnection, ShownHeader

_LARGEST = 256 * 1024


async def list_all(request: Request, state: SourceContext) -> JsonReply[Connections]:
    """Every connection that sources may ask, without its secrets.

    Owners of data sources are shown those that are shared with their groups.
    """
    found = await _usable(request, state)
    return reply(Connections([_shown(one, request) for one in found]))


async def get(request: Request, state: SourceContext) -> JsonReply[ShownConnection]:
    """A connection, without its secrets."""
    name = CONNECTION.of(request)
    usable = await _usable(request, state)
    for found in usable:
        if found.name == name:
            return reply(_shown(found, request))
    raise connections.missing(name, usable)


async def put(request: Request, state: SourceContext) -> JsonReply[ShownConnection]:
    """Make a connection, or change it.

    Sources that ask it do so with the new values from their next call on.
    """
    name = CONNECTION.of(request)
    body = await request.json_body(_LARGEST, "a connection")
    given: NewConnection = decode(body, NewConnection)
    wanted = ConnectionInput(
        base_url=given.base_url,
        methods=tuple(given.methods),
        at_once=given.at_once,
        headers=given.headers,
        shared_with=tuple(given.shared_with),
    )
    found = await connections.put(
        state.database,
        state.registry,
        state.token_key,
        name,
        wanted,
        actor=request.actor,
        now=state.clock(),
        write=audit.writing(request, state, audit.of_connection()),
    )
    return reply(_shown(found, request))


async def delete(request: Request, state: SourceContext) -> Reply:
    """Remove a connection that no data source asks."""
    name = CONNECTION.of(request)
    write = audit.writing(request, state, audit.of_connection(deleted=True), 204)
    await connections.delete(state.registry, name, actor=request.actor, write=write)
    return Reply(status=204)


async def _usable(request: Request, state: SourceContext) -> list[ConnectionDetail]:
    """The connections that the caller may use in some data source."""
    if request.own_only:
        return await connections.shared_with(
            state.database, state.registry, request.actor, state.trust
        )
    return await connections.listed(state.database, state.registry)


def _shown(found: ConnectionDetail, request: Request) -> ShownConnection:
    shown = ShownConnection(
        name=found.name,
        base_url=found.base_url,
        methods=list(found.methods),
        at_once=found.at_once,
        headers=[ShownHeader(name, iso_or_none(time)) for name, time in found.headers.items()],
        shared_with=list(found.shared_with),
        origin="settings" if found.stored is None else "stored",
        used_by=list(found.used_by) if request.may_read else [],
        used_by_count=len(found.used_by),
        problem=found.problem,
    )
    if stored := found.stored:
        shown.created_at, shown.created_by = iso(stored.created_at), stored.created_by
        shown.updated_at, shown.updated_by = iso(stored.updated_at), stored.updated_by
    return shown
