"""SCIM 2.0 over HTTP, as identity providers call it (RFC 7644)."""

import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

import msgspec

from factbook.api.endpoint import NOTHING_STORED, Handler, Route
from factbook.api.parameters import IF_MATCH
from factbook.audit.trail import About, AuditEntry
from factbook.auth import group_roles
from factbook.auth.permissions import SCIM_WRITE
from factbook.catalog.store.stored_sets import Actor
from factbook.clock import iso
from factbook.errors import (
    ConflictError,
    FactbookError,
    InputError,
    NotAllowedError,
    NotFoundError,
    UnsupportedError,
)
from factbook.http import audit
from factbook.http.context import HandlerContext
from factbook.http.pipeline import message_for_client
from factbook.http.requests import Reply, Request, decode, run_offloaded
from factbook.scim import directory, patch, protocol, store
from factbook.scim.directory import DirectoryChange, DirectoryTarget, ScimDirectory
from factbook.scim.protocol import URN, Resource, TypeName
from factbook.scim.store import GroupLink, ScimRow

SCIM_PATH: Final = "/scim/v2"
SCIM_JSON: Final = b"application/scim+json; charset=utf-8"
_ERROR_SCHEMA: Final = "urn:ietf:params:scim:api:messages:2.0:Error"
# Attributes that every answer includes, whatever the caller selects.
_ALWAYS_RETURNED: Final = frozenset({"schemas", "id", "meta"})
_NOT_OFFERED = ("/Bulk", "/Me", "/.search")
_PAGE: Final = 100
# Members in one answer; a page ends before it would have more.
_MOST_MEMBERS: Final = 20_000
# Bytes of a body, enough for a group with a hundred thousand members.
_LARGEST: Final = 16 * 1024 * 1024
_TAG: Final = re.compile(r'(?:W/)?"(\d{1,15})"')


def reply_scim(value: Any, status: int = 200, **headers: str) -> Reply:
    """Encode a SCIM reply."""
    return Reply(msgspec.json.encode(value), status, headers, SCIM_JSON)


def render_scim_error(error: FactbookError, request: Request) -> Reply:
    """Render an error in SCIM form (RFC 7644, 3.12), without header values."""
    message = message_for_client(error, request)
    body = {"schemas": [_ERROR_SCHEMA], "status": str(error.status), "detail": message}
    kind = error.details.get("scimType")
    if kind is None and isinstance(error, InputError):
        kind = "invalidSyntax"
    if kind is not None:
        body["scimType"] = kind
    # The error quotes the request, so browsers must not sniff another type than JSON.
    headers = {**error.headers(), "x-content-type-options": "nosniff"}
    return Reply(msgspec.json.encode(body), error.status, headers, SCIM_JSON)


def build_base_address(request: Request, state: HandlerContext) -> str:
    """Base URL of SCIM, in the form the caller uses."""
    server = state.settings.public_url
    if not server:
        host = request.header(b"host") or "localhost"
        server = f"{request.scope.get('scheme', 'http')}://{host}"
    return f"{server.rstrip('/')}{SCIM_PATH}"


def build_version_tag(row: ScimRow) -> str:
    """Render the version of a resource as an entity tag."""
    return f'W/"{row.version}"'


def render_resource(base: str, row: ScimRow, links: Sequence[GroupLink]) -> Resource:
    """Render a group with its members, or a user with their groups."""
    location = f"{base}/{row.type}s/{row.id}"
    shown = {
        "schemas": [f"{URN}{row.type}"],
        "id": row.id,
        **row.resource,
        "meta": {
            "resourceType": row.type,
            "created": iso(row.created_at),
            "lastModified": iso(row.changed_at),
            "location": location,
            "version": build_version_tag(row),
        },
    }
    if links and row.type == "Group":
        shown["members"] = [{**_render_link(base, link), "type": link.type} for link in links]
    elif links:
        shown["groups"] = [{**_render_link(base, link), "display": link.display} for link in links]
    return shown


def _render_link(base: str, link: GroupLink) -> Resource:
    return {"value": link.id, "$ref": f"{base}/{link.type}s/{link.id}"}


class AttributeSelection:
    """The resource attributes that the query selects."""

    def __init__(self, query: Mapping[str, str]) -> None:
        self._wanted = _parse_attribute_names(query.get("attributes", ""))
        self._unwanted = _parse_attribute_names(query.get("excludedAttributes", ""))
        if self._wanted and self._unwanted:
            raise InputError(
                "attributes and excludedAttributes exclude each other.", scimType="invalidValue"
            )

    def has(self, name: str) -> bool:
        """True if the attribute is selected."""
        if self._wanted:
            return name.lower() in self._wanted
        return name.lower() not in self._unwanted

    def of(self, resource: Resource) -> Resource:
        """Reduce a resource to the selected attributes."""
        return {
            name: value
            for name, value in resource.items()
            if name in _ALWAYS_RETURNED or self.has(name)
        }


def _parse_attribute_names(text: str) -> frozenset[str]:
    """Parse attribute names, dropping schemas and sub-attributes."""
    names = (one.strip().rpartition(":")[2].partition(".")[0] for one in text.split(","))
    return frozenset(name.lower() for name in names if name)


def answer_created(shown: Resource, row: ScimRow, location: str) -> Reply:
    """Answer the creation of a resource, with its location."""
    return reply_scim(shown, HTTPStatus.CREATED, location=location, etag=build_version_tag(row))


async def get_scim_config(request: Request, state: HandlerContext) -> Reply:
    """The configuration of the service."""
    _refuse_filter(request)
    return reply_scim(protocol.describe_service(build_base_address(request, state)))


async def get_scim_resource_types(request: Request, state: HandlerContext) -> Reply:
    """The types of resources."""
    _refuse_filter(request)
    return reply_scim(
        protocol.wrap_list(protocol.describe_resource_types(build_base_address(request, state)))
    )


async def get_scim_resource_type(request: Request, state: HandlerContext) -> Reply:
    """A type of resources."""
    return _answer_description(
        request, protocol.describe_resource_types(build_base_address(request, state))
    )


async def get_scim_schemas(request: Request, state: HandlerContext) -> Reply:
    """The schemas of all resources."""
    _refuse_filter(request)
    return reply_scim(
        protocol.wrap_list(protocol.describe_schemas(build_base_address(request, state)))
    )


async def get_scim_schema(request: Request, state: HandlerContext) -> Reply:
    """The schema of a type of resources."""
    return _answer_description(
        request, protocol.describe_schemas(build_base_address(request, state))
    )


async def refuse_scim_path(request: Request, state: HandlerContext) -> Reply:
    """Any other address of SCIM."""
    if any(request.path.endswith(end) for end in _NOT_OFFERED):
        raise UnsupportedError
    raise NotFoundError(f"There is nothing at {request.path}.")


def _refuse_filter(request: Request) -> None:
    """Raise NotAllowedError for a filter, as the standard requires here (RFC 7644, 4)."""
    if request.all("filter"):
        raise NotAllowedError("This list takes no filter.")


def _answer_description(request: Request, known: list[dict[str, Any]]) -> Reply:
    id_ = request.parameter("id")
    for one in known:
        if one["id"].lower() == id_.lower():
            return reply_scim(one)
    raise NotFoundError(f"There is nothing called {id_[:80]}.")


async def post_scim_resource(request: Request, state: HandlerContext) -> Reply:
    """Create a user or a group."""
    type_ = _read_resource_type(request)
    async with state.admission.room_for_body(request, _LARGEST):
        resource = protocol.parse_resource(type_, await _read_scim_body(request))
        made = await _open_directory(request, state, "create", 201).create(type_, resource)
    location = f"{build_base_address(request, state)}/{type_}s/{made.row.id}"
    return answer_created(await _render_row(request, state, made.row), made.row, location)


async def get_scim_resource(request: Request, state: HandlerContext) -> Reply:
    """A user or a group."""
    type_, id_ = _read_resource_type(request), request.parameter("id")
    row = await store.find_resource(state.database, type_, id_)
    if row is None:
        raise directory.make_not_found_error(type_, id_)
    tags = request.header(b"if-none-match")
    if tags and (tags.strip() == "*" or row.version in _parse_version_tags(tags)):
        return Reply(status=304, headers={"etag": build_version_tag(row)}, content_type=SCIM_JSON)
    return reply_scim(await _render_row(request, state, row), etag=build_version_tag(row))


async def get_scim_resources(request: Request, state: HandlerContext) -> Reply:
    """A page of the users or groups that match the filter."""
    type_, query = _read_resource_type(request), dict(request.query)
    selection = AttributeSelection(query)
    start = max(_read_integer(query, "startIndex", 1), 1)
    count = min(max(_read_integer(query, "count", _PAGE), 0), protocol.MOST_RESOURCES)
    text = query.get("filter", "").strip()
    where = store.build_condition(type_, protocol.parse_filter(text)) if text else store.EVERY_ROW
    rows, total = await store.list_rows(state.database, type_, where, start - 1, count)
    resources = await _render_rows(request, state, rows, selection)
    return reply_scim(
        {
            "schemas": [protocol.LIST_SCHEMA],
            "totalResults": total,
            "startIndex": start,
            "itemsPerPage": len(resources),
            "Resources": resources,
        }
    )


async def put_scim_resource(request: Request, state: HandlerContext) -> Reply:
    """Replace the attributes of a user or a group."""
    type_, id_ = _read_resource_type(request), request.parameter("id")
    async with state.admission.room_for_body(request, _LARGEST):
        body = await _read_scim_body(request)
        try:
            resource = protocol.parse_resource(type_, body)
            writer = _open_directory(request, state, "replace")
            made = await writer.replace(type_, id_, resource, _parse_if_match_versions(request))
        except (InputError, ConflictError):
            if not protocol.is_inactive_user(type_, body):
                raise
            made = await _deactivate_person(request, state, id_)
    return reply_scim(await _render_row(request, state, made.row), etag=build_version_tag(made.row))


async def patch_scim_resource(request: Request, state: HandlerContext) -> Reply:
    """Change some attributes of a user or a group."""
    type_, id_ = _read_resource_type(request), request.parameter("id")
    async with state.admission.room_for_body(request, _LARGEST):
        body = await _read_scim_body(request)
        try:
            changes = patch.parse_operations(body)
            writer = _open_directory(request, state, "patch")
            made = await writer.patch(type_, id_, changes, _parse_if_match_versions(request))
        except (InputError, ConflictError):
            if not patch.ends_access(type_, body):
                raise
            made = await _deactivate_person(request, state, id_)
    return reply_scim(await _render_row(request, state, made.row), etag=build_version_tag(made.row))


async def _deactivate_person(request: Request, state: HandlerContext, id_: str) -> DirectoryChange:
    """Revoke a person's access although the rest of their update can't be applied."""
    writer = _open_directory(request, state, "patch")
    return await writer.patch("User", id_, patch.DEACTIVATION, _parse_if_match_versions(request))


async def delete_scim_resource(request: Request, state: HandlerContext) -> Reply:
    """Delete a user or a group."""
    type_, id_ = _read_resource_type(request), request.parameter("id")
    await _open_directory(request, state, "delete", 204).delete(
        type_, id_, _parse_if_match_versions(request)
    )
    return Reply(status=204, content_type=SCIM_JSON)


def _read_resource_type(request: Request) -> TypeName:
    is_user = request.path.removeprefix(SCIM_PATH).startswith("/Users")
    return "User" if is_user else "Group"


async def _read_scim_body(request: Request) -> Any:
    body = await request.json_body(_LARGEST, "the body of a call of SCIM")
    try:
        return await run_offloaded(decode, body, Any)
    except InputError as error:
        raise InputError(error.message, scimType="invalidSyntax") from None


def _open_directory(
    request: Request, state: HandlerContext, action: str, status: int = 200
) -> ScimDirectory:
    groups, kept = group_roles.make_group_rules(state.settings), state.settings.revisions_kept
    write = audit.audit_request_writes(request, state, _build_scim_entry(f"scim.{action}"), status)
    actor = Actor(request.actor, state.clock())
    return ScimDirectory(DirectoryTarget(write, state.rules, kept, groups, actor))


def _build_scim_entry(action: str) -> About:
    """Audit entry for a change: the entity, member counts, and the affected accounts."""

    def about(done: DirectoryChange) -> AuditEntry:
        row = done.row
        detail: dict[str, Any] = {"type": row.type, "entity": row.ref, "active": row.active}
        if row.type == "Group":
            detail |= {"added": done.added, "removed": done.removed}
        accounts = {"disabled": done.disabled, "enabled": done.enabled, "left": done.left}
        detail |= {name: ref for name, ref in accounts.items() if ref}
        return AuditEntry(action, f"{row.type}s/{row.id}", detail)

    return about


async def _render_row(request: Request, state: HandlerContext, row: ScimRow) -> Resource:
    selection = AttributeSelection(dict(request.query))
    [shown] = await _render_rows(request, state, [row], selection)
    return shown


async def _render_rows(
    request: Request, state: HandlerContext, rows: Sequence[ScimRow], selection: AttributeSelection
) -> list[Resource]:
    """Render resources; returns fewer if they have too many members for one answer."""
    database, base = state.database, build_base_address(request, state)
    links: dict[str, list[store.GroupLink]] = {}
    ids = [row.id for row in rows]
    if rows and rows[0].type == "User" and selection.has("groups"):
        links = await store.list_groups(database, ids)
    elif rows and rows[0].type == "Group" and selection.has("members"):
        counts = await store.count_members(database, ids)
        ids = _limit_groups(ids, counts)
        links = await store.list_members(database, ids)
    kept = rows[: len(ids)]
    return [selection.of(render_resource(base, row, links.get(row.id, ()))) for row in kept]


def _limit_groups(ids: Sequence[str], counts: dict[str, int]) -> list[str]:
    """Keep the first groups whose members fit into one answer, but at least one group."""
    kept: list[str] = []
    total = 0
    for id_ in ids:
        total += counts.get(id_, 0)
        if kept and total > _MOST_MEMBERS:
            break
        kept.append(id_)
    return kept


def _parse_if_match_versions(request: Request) -> list[int] | None:
    """Parse the versions in If-Match; None for any."""
    tags = IF_MATCH.text(request)
    return None if tags is None or tags.strip() == "*" else _parse_version_tags(tags)


def _parse_version_tags(tags: str) -> list[int]:
    return [int(one) for one in _TAG.findall(tags)]


def _read_integer(query: dict[str, str], name: str, default: int) -> int:
    text = query.get(name, "").strip()
    if not text:
        return default
    try:
        return max(min(int(text), 2**31), -1)
    except ValueError:
        raise InputError(f"{name} has to be a number.", scimType="invalidValue") from None


def _build_scim_route(method: str, path: str, handler: Handler) -> Route:
    return Route(
        method,
        f"{SCIM_PATH}{path}",
        handler,
        (SCIM_WRITE,),
        # Identity providers send their own parameters.
        None,
        described=False,
        errors=render_scim_error,
        reading=None if method == "GET" else NOTHING_STORED,
    )


def _list_resource_routes(type_: str) -> list[Route]:
    one = f"/{type_}/{{id}}"
    return [
        _build_scim_route("POST", f"/{type_}", post_scim_resource),
        _build_scim_route("GET", f"/{type_}", get_scim_resources),
        _build_scim_route("GET", one, get_scim_resource),
        _build_scim_route("PUT", one, put_scim_resource),
        _build_scim_route("PATCH", one, patch_scim_resource),
        _build_scim_route("DELETE", one, delete_scim_resource),
    ]


SCIM_ROUTES: Sequence[Route] = (
    *_list_resource_routes("Users"),
    *_list_resource_routes("Groups"),
    _build_scim_route("GET", "/ServiceProviderConfig", get_scim_config),
    _build_scim_route("GET", "/ResourceTypes", get_scim_resource_types),
    _build_scim_route("GET", "/ResourceTypes/{id}", get_scim_resource_type),
    _build_scim_route("GET", "/Schemas", get_scim_schemas),
    _build_scim_route("GET", "/Schemas/{id}", get_scim_schema),
    *(
        _build_scim_route(method, "/{rest:path}", refuse_scim_path)
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE")
    ),
)
