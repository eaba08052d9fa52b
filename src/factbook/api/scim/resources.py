"""Users and groups: created, read, listed, replaced, changed and deleted."""

import re
from collections.abc import Sequence
from typing import Any, Final

from factbook.api.openapi.parameters import IF_MATCH
from factbook.api.scim import answers
from factbook.api.scim.answers import AttributeSelection
from factbook.audit.trail import About, AuditEntry
from factbook.auth import group_roles
from factbook.catalog.store.apply import Actor
from factbook.errors import ConflictError, InputError
from factbook.http import audit
from factbook.http.context import HandlerContext
from factbook.http.requests import Reply, Request, decode, offloaded
from factbook.scim import directory, patch, protocol, store
from factbook.scim.directory import DirectoryChange, DirectoryTarget, ScimDirectory
from factbook.scim.protocol import Resource, TypeName
from factbook.scim.store import ScimRow

_PAGE: Final = 100
# Members in one answer: a page ends before it has more.
_MOST_MEMBERS: Final = 20_000
# Of a group with a hundred thousand members.
_LARGEST: Final = 16 * 1024 * 1024
_TAG: Final = re.compile(r'(?:W/)?"(\d{1,15})"')


async def create(request: Request, state: HandlerContext) -> Reply:
    """Make a user or a group."""
    type_ = _type(request)
    async with state.admission.room_for_body(request, _LARGEST):
        resource = protocol.read_resource(type_, await _body(request))
        made = await _directory(request, state, "create", 201).create(type_, resource)
    location = f"{answers.base(request, state)}/{type_}s/{made.row.id}"
    return answers.created(await _shown(request, state, made.row), made.row, location)


async def get(request: Request, state: HandlerContext) -> Reply:
    """A user or a group."""
    type_, id_ = _type(request), request.parameter("id")
    row = await store.find_resource(state.database, type_, id_)
    if row is None:
        raise directory.make_not_found_error(type_, id_)
    tags = request.header(b"if-none-match")
    if tags and (tags.strip() == "*" or row.version in _versions(tags)):
        return Reply(status=304, headers={"etag": answers.tag(row)}, content_type=answers.JSON)
    return answers.reply(await _shown(request, state, row), etag=answers.tag(row))


async def list_all(request: Request, state: HandlerContext) -> Reply:
    """A page of users or groups, of those that the filter finds."""
    type_, query = _type(request), dict(request.query)
    selection = AttributeSelection(query)
    start = max(_integer(query, "startIndex", 1), 1)
    count = min(max(_integer(query, "count", _PAGE), 0), protocol.MOST_RESOURCES)
    text = query.get("filter", "").strip()
    where = store.build_condition(type_, protocol.parse_filter(text)) if text else store.EVERY_ROW
    rows, total = await store.list_resources(state.database, type_, where, start - 1, count)
    resources = await _resources(request, state, rows, selection)
    return answers.reply(
        {
            "schemas": [protocol.LIST_SCHEMA],
            "totalResults": total,
            "startIndex": start,
            "itemsPerPage": len(resources),
            "Resources": resources,
        }
    )


async def replace(request: Request, state: HandlerContext) -> Reply:
    """Replace the attributes of a user or a group."""
    type_, id_ = _type(request), request.parameter("id")
    async with state.admission.room_for_body(request, _LARGEST):
        body = await _body(request)
        try:
            resource = protocol.read_resource(type_, body)
            writer = _directory(request, state, "replace")
            made = await writer.replace(type_, id_, resource, _if_match(request))
        except (InputError, ConflictError):
            if not protocol.is_inactive_user(type_, body):
                raise
            made = await _deactivated(request, state, id_)
    return answers.reply(await _shown(request, state, made.row), etag=answers.tag(made.row))


async def change(request: Request, state: HandlerContext) -> Reply:
    """Change some attributes of a user or a group."""
    type_, id_ = _type(request), request.parameter("id")
    async with state.admission.room_for_body(request, _LARGEST):
        body = await _body(request)
        try:
            changes = patch.parse_operations(body)
            writer = _directory(request, state, "patch")
            made = await writer.patch(type_, id_, changes, _if_match(request))
        except (InputError, ConflictError):
            if not patch.ends_access(type_, body):
                raise
            made = await _deactivated(request, state, id_)
    return answers.reply(await _shown(request, state, made.row), etag=answers.tag(made.row))


async def _deactivated(request: Request, state: HandlerContext, id_: str) -> DirectoryChange:
    """End a person's access, and leave the rest of a call that cannot be done as it is."""
    writer = _directory(request, state, "patch")
    return await writer.patch("User", id_, patch.DEACTIVATION, _if_match(request))


async def delete(request: Request, state: HandlerContext) -> Reply:
    """Delete a user or a group."""
    type_, id_ = _type(request), request.parameter("id")
    await _directory(request, state, "delete", 204).delete(type_, id_, _if_match(request))
    return Reply(status=204, content_type=answers.JSON)


def _type(request: Request) -> TypeName:
    is_user = request.path.removeprefix(answers.PATH).startswith("/Users")
    return "User" if is_user else "Group"


async def _body(request: Request) -> Any:
    body = await request.json_body(_LARGEST, "the body of a call of SCIM")
    try:
        return await offloaded(decode, body, Any)
    except InputError as error:
        raise InputError(error.message, scimType="invalidSyntax") from None


def _directory(
    request: Request, state: HandlerContext, action: str, status: int = 200
) -> ScimDirectory:
    groups, kept = group_roles.rules(state.settings), state.settings.revisions_kept
    write = audit.writing(request, state, _about(f"scim.{action}"), status)
    actor = Actor(request.actor, state.clock())
    return ScimDirectory(DirectoryTarget(write, state.rules, kept, groups, actor))


def _about(action: str) -> About:
    """Entry for a change: the entity, the numbers of members, and whose account it concerns."""

    def about(done: DirectoryChange) -> AuditEntry:
        row = done.row
        told = {"type": row.type, "entity": row.ref, "active": row.active, **_counts(done)}
        accounts = {"disabled": done.disabled, "enabled": done.enabled, "left": done.left}
        detail = {**told, **{name: ref for name, ref in accounts.items() if ref}}
        return AuditEntry(action, f"{row.type}s/{row.id}", detail)

    return about


def _counts(done: DirectoryChange) -> dict[str, int]:
    return {"added": done.added, "removed": done.removed} if done.row.type == "Group" else {}


async def _shown(request: Request, state: HandlerContext, row: ScimRow) -> Resource:
    selection = AttributeSelection(dict(request.query))
    [shown] = await _resources(request, state, [row], selection)
    return shown


async def _resources(
    request: Request, state: HandlerContext, rows: Sequence[ScimRow], selection: AttributeSelection
) -> list[Resource]:
    """Resources as they are shown; fewer of them where they have very many members."""
    database, base = state.database, answers.base(request, state)
    links: dict[str, list[store.GroupLink]] = {}
    ids = [row.id for row in rows]
    if rows and rows[0].type == "User" and selection.has("groups"):
        links = await store.list_groups(database, ids)
    elif rows and rows[0].type == "Group" and selection.has("members"):
        counts = await store.count_members(database, ids)
        ids = _few_enough(ids, counts)
        links = await store.list_members(database, ids)
    kept = rows[: len(ids)]
    return [selection.of(answers.resource(base, row, links.get(row.id, ()))) for row in kept]


def _few_enough(ids: Sequence[str], counts: dict[str, int]) -> list[str]:
    """The first groups, at least one, that together have no more members than an answer shows."""
    kept: list[str] = []
    total = 0
    for id_ in ids:
        total += counts.get(id_, 0)
        if kept and total > _MOST_MEMBERS:
            break
        kept.append(id_)
    return kept


def _if_match(request: Request) -> list[int] | None:
    """The versions that If-Match allows; None for any."""
    tags = IF_MATCH.text(request)
    return None if tags is None or tags.strip() == "*" else _versions(tags)


def _versions(tags: str) -> list[int]:
    return [int(one) for one in _TAG.findall(tags)]


def _integer(query: dict[str, str], name: str, default: int) -> int:
    text = query.get(name, "").strip()
    if not text:
        return default
    try:
        return max(min(int(text), 2**31), -1)
    except ValueError:
        raise InputError(f"{name} has to be a number.", scimType="invalidValue") from None
