"""Connections over HTTP, which custom sources ask; their secrets are taken and never given."""

from typing import Any

from factbook.api.openapi.parameters import CONNECTION
from factbook.clock import iso
from factbook.datasources import connections
from factbook.datasources.connection_store import ConnectionInput
from factbook.datasources.connections import ConnectionDetail
from factbook.http import audit
from factbook.http.context import SourceContext
from factbook.http.requests import Reply, Request, decode, reply
from factbook.schemas.connections import NewConnection

_LARGEST = 256 * 1024


async def list_all(request: Request, state: SourceContext) -> Reply:
    """Every connection that sources may ask, without its secrets."""
    found = await connections.listed(state.database, state.registry)
    return reply({"connections": [_render(one, request) for one in found]})


async def get(request: Request, state: SourceContext) -> Reply:
    """A connection, without its secrets."""
    name = CONNECTION.of(request)
    return reply(_render(await connections.one(state.database, state.registry, name), request))


async def put(request: Request, state: SourceContext) -> Reply:
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
    return reply(_render(found, request))


async def delete(request: Request, state: SourceContext) -> Reply:
    """Remove a connection that no data source asks."""
    name = CONNECTION.of(request)
    write = audit.writing(request, state, audit.of_connection(deleted=True), 204)
    await connections.delete(state.database, state.registry, name, actor=request.actor, write=write)
    return Reply(status=204)


def _render(shown: ConnectionDetail, request: Request) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": shown.name,
        "baseUrl": shown.base_url,
        "methods": shown.methods,
        "atOnce": shown.at_once,
        "headers": [
            {"name": name, "setAt": None if time is None else iso(time)}
            for name, time in shown.headers.items()
        ],
        "origin": "settings" if shown.stored is None else "stored",
        "usedBy": shown.used_by if request.may_read else [],
        "usedByCount": len(shown.used_by),
    }
    if shown.problem is not None:
        found["problem"] = shown.problem
    if shown.stored is not None:
        stored = shown.stored
        found |= {
            "createdAt": iso(stored.created_at),
            "createdBy": stored.created_by,
            "updatedAt": iso(stored.updated_at),
            "updatedBy": stored.updated_by,
        }
    return found
