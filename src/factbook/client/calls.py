"""Every request of the client as a value: what to ask, and how its answer is read."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar
from urllib.parse import parse_qsl, quote, urlsplit

import httpx2
import msgspec

from factbook.client.answers import Entity, Pushed, Revision, SetPage, SetSummary
from factbook.client.responses import decode

T = TypeVar("T")
Parameters = list[tuple[str, str]]

# `{word}` is the client's push word; whatever else is put into a path has its braces encoded.
_PUSH = "/api/catalog/{word}-entities"
_CATALOG = "/api/catalog"
_TIMEOUT = 60.0
# A set of 100,000 entities takes the server half a minute, and a slow disk or network longer.
_PUSH_TIMEOUT = 900.0
PAGE_SIZE = 500


@dataclass(frozen=True, kw_only=True)
class Call(Generic[T]):
    """A request, and how its answer is read; `timeout` is how long to wait for it, in seconds."""

    method: str
    path: str
    read: Callable[[httpx2.Response], T]
    params: Parameters = field(default_factory=list)
    content: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    timeout: float = _TIMEOUT


@dataclass(frozen=True)
class Page:
    """Some of the entities that were asked for, and the call for the next ones."""

    items: list[Entity]
    next: "Call[Page] | None"


class _Sets(msgspec.Struct):
    sets: list[SetSummary]


class _Revisions(msgspec.Struct):
    revisions: list[Revision]


class _Found(msgspec.Struct):
    items: list[Entity | None]


def _parameters(**values: object) -> Parameters:
    """Query parameters without those that are None; a list gives one for each of its elements."""
    found: Parameters = []
    for name, value in values.items():
        if isinstance(value, (list, tuple)):
            found += [(name, str(each)) for each in value]
        elif value is not None:
            found.append((name, str(value)))
    return found


def _set_path(set_id: str) -> str:
    return f"{_PUSH}/sets/{quote(set_id, safe='')}"


def push(
    set_id: str,
    entities: Iterable[Mapping[str, Any] | msgspec.Raw],
    *,
    dry_run: bool = False,
    on_conflict: str | None = None,
    max_removals: int | str | None = None,
    if_match: int | None = None,
) -> Call[Pushed]:
    """Replace the content of a set by these entities; what that changed.

    With `dry_run` nothing is written. `on_conflict="take"` takes over references that another set
    holds. A push that would remove more than `max_removals` entities (or per cent: `"10%"`), or
    whose set has left the revision `if_match`, raises ApiError (409, 412), as one with an entity
    that is not valid does (400); then nothing was written.
    """
    return Call(
        method="PUT",
        path=_set_path(set_id),
        read=partial(decode, Pushed),
        params=_parameters(
            dryRun="true" if dry_run else None, onConflict=on_conflict, maxRemovals=max_removals
        ),
        content=msgspec.json.encode({"items": list(entities)}),
        headers={} if if_match is None else {"if-match": f'"{if_match}"'},
        timeout=_PUSH_TIMEOUT,
    )


def sets() -> Call[list[SetSummary]]:
    """Every set that has entities."""
    return Call(
        method="GET", path=f"{_PUSH}/sets", read=lambda response: decode(_Sets, response).sets
    )


def set(set_id: str, *, limit: int | None = None, cursor: str | None = None) -> Call[SetPage]:
    """The entities of a set: all of them, or `limit` of them from `cursor` on."""
    params = _parameters(limit=limit, cursor=cursor)
    return Call(method="GET", path=_set_path(set_id), read=partial(decode, SetPage), params=params)


def delete_set(set_id: str) -> Call[Pushed]:
    """Remove every entity of a set; what that changed. Its revisions can still be restored."""
    read = partial(decode, Pushed)
    return Call(method="DELETE", path=_set_path(set_id), read=read, timeout=_PUSH_TIMEOUT)


def revisions(set_id: str) -> Call[list[Revision]]:
    """The pushes that changed a set, as many as the server keeps."""
    return Call(
        method="GET",
        path=f"{_set_path(set_id)}/revisions",
        read=lambda response: decode(_Revisions, response).revisions,
    )


def restore(
    set_id: str,
    revision: int,
    *,
    on_conflict: str | None = None,
    max_removals: int | str | None = None,
) -> Call[Pushed]:
    """Put the content that a set had at a revision back, as a new one; options as for `push`."""
    return Call(
        method="POST",
        path=f"{_set_path(set_id)}/revisions/{revision}/restore",
        read=partial(decode, Pushed),
        params=_parameters(onConflict=on_conflict, maxRemovals=max_removals),
        timeout=_PUSH_TIMEOUT,
    )


def entities(
    *,
    filter: Sequence[str] = (),
    fields: Sequence[str] = (),
    order: Sequence[str] = (),
    limit: int | None = None,
    offset: int | None = None,
) -> Call[Page]:
    """The catalog's entities, one after the other, asked for in pages of at most 500.

    `filter` has conditions such as `kind=component,spec.type=service`: those in one string must all
    hold, of several strings one. `fields` are dotted paths, `order` is `asc:` or `desc:` and a
    path, and `limit` bounds the number of entities in all.
    """
    chosen = _parameters(filter=filter, fields=",".join(fields) or None, order=order, offset=offset)
    return _page(chosen, limit)


def _page(params: Parameters, left: int | None) -> Call[Page]:
    size = PAGE_SIZE if left is None else min(left, PAGE_SIZE)
    asked = [(name, value) for name, value in params if name != "limit"]
    return Call(
        method="GET",
        path=f"{_CATALOG}/entities",
        read=partial(_read_page, left),
        params=[*asked, ("limit", str(size))],
    )


def _read_page(left: int | None, response: httpx2.Response) -> Page:
    items = decode(list[Entity], response)
    left = None if left is None else left - len(items)
    target = response.links.get("next", {}).get("url")
    if target is None or left == 0:
        return Page(items, None)
    # Only the query is taken: a token follows no link to another host, and a proxy may have moved
    # the server below a path that it does not know of.
    return Page(items, _page(parse_qsl(urlsplit(target).query, keep_blank_values=True), left))


def entity(ref: str) -> Call[Entity]:
    """The entity with the reference `kind:namespace/name`, or `kind:name` in `default`.

    Raises ApiError with status 404 when there is none, and ValueError for anything else.
    """
    kind, colon, rest = ref.partition(":")
    namespace, slash, name = rest.partition("/")
    parts = (kind, namespace, name) if slash else (kind, "default", rest)
    if not colon or not all(parts):
        raise ValueError(f"{ref!r} is not of the form kind:[namespace/]name.")
    path = "/".join(quote(part, safe="") for part in parts)
    return Call(
        method="GET", path=f"{_CATALOG}/entities/by-name/{path}", read=partial(decode, Entity)
    )


def entities_by_refs(
    refs: Sequence[str], *, fields: Sequence[str] = ()
) -> Call[list[Entity | None]]:
    """The entities with these references, in their order, and None for each that does not exist."""
    body: dict[str, Any] = {"entityRefs": list(refs)}
    if fields:
        body["fields"] = list(fields)
    return Call(
        method="POST",
        path=f"{_CATALOG}/entities/by-refs",
        read=lambda response: decode(_Found, response).items,
        content=msgspec.json.encode(body),
    )
