"""The client's requests to the catalog: reading, counting, and changing one entity."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal
from urllib.parse import parse_qsl, urlsplit

import httpx2
import msgspec

from factbook.client.answers import Entity
from factbook.client.calls import Call, Parameters, get, parameters, segment, send
from factbook.client.responses import decode, nothing, refusal
from factbook.schemas.catalog import Ancestry, EntitiesByRefs, EntityPage, FacetValue, FacetValues

_CATALOG = "/api/catalog"
_WARNINGS = "factbook-warnings"
PAGE_SIZE = 500


@dataclass(frozen=True)
class EntityBatch:
    """Some of the entities that were asked for, and the call for the next ones."""

    items: list[Entity]
    next: "Call[EntityBatch] | None"


class _Message(msgspec.Struct):
    message: str


class _Invalid(msgspec.Struct):
    errors: list[_Message]


def entities(
    *,
    filters: Sequence[str] = (),
    fields: Sequence[str] = (),
    order: Sequence[str] = (),
    limit: int | None = None,
    offset: int | None = None,
) -> Call[EntityBatch]:
    """The catalog's entities, one after the other, asked for in pages of at most 500.

    `filters` has conditions such as `kind=component,spec.type=service`: those in one string must
    all hold, of several strings one. `fields` are dotted paths, `order` is `asc:` or `desc:` and a
    path, and `limit` bounds the number of entities in all.
    """
    chosen = parameters(filter=filters, fields=",".join(fields) or None, order=order, offset=offset)
    return _page(chosen, limit)


def _page(params: Parameters, left: int | None) -> Call[EntityBatch]:
    size = PAGE_SIZE if left is None else min(left, PAGE_SIZE)
    asked = [(name, value) for name, value in params if name != "limit"]
    return Call(
        method="GET",
        path=f"{_CATALOG}/entities",
        read=partial(_read_page, left),
        params=[*asked, ("limit", str(size))],
    )


def _read_page(left: int | None, response: httpx2.Response) -> EntityBatch:
    items = decode(list[Entity], response)
    left = None if left is None else left - len(items)
    target = response.links.get("next", {}).get("url")
    if target is None or left == 0:
        return EntityBatch(items, None)
    # Only the query is taken: a token follows no link to another host, and a proxy may have moved
    # the server below a path that it does not know of.
    return EntityBatch(
        items, _page(parse_qsl(urlsplit(target).query, keep_blank_values=True), left)
    )


def entity(ref: str) -> Call[Entity]:
    """The entity with the reference `kind:namespace/name`, or `kind:name` in `default`.

    Raises ApiError with status 404 when there is none, and ValueError for anything else.
    """
    return get(_by_name(ref), Entity)


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
        read=lambda response: decode(EntitiesByRefs, response).items,
        content=msgspec.json.encode(body),
    )


def query(
    *,
    filters: Sequence[str] = (),
    predicate: Mapping[str, Any] | None = None,
    fields: Sequence[str] = (),
    order: Sequence[tuple[str, str]] = (),
    full_text: tuple[str, Sequence[str]] | None = None,
    limit: int | None = None,
    offset: int | None = None,
    cursor: str | None = None,
    total_items: Literal["include", "exclude", "bounded"] | None = None,
) -> Call[EntityPage]:
    """A page of the entities that fit, with their number and the cursors of its neighbours.

    `filters` and `fields` are as for `entities`; `predicate` says more than `filters` can and is
    given instead of it. `order` has fields with `"asc"` or `"desc"`; `full_text` is a text and the
    fields that have to contain it. `cursor` is one of another page, and repeats what that one asked
    for except `limit` and `fields`. `total_items` is `"exclude"` for none, or `"bounded"` for one
    that is 10,001 for any larger number. Raises ValueError for `filters` beside `predicate`.
    """
    path = f"{_CATALOG}/entities/by-query"
    term, within = full_text if full_text else (None, ())
    if predicate is not None:
        if filters:
            raise ValueError("A query takes either filters or a predicate.")
        body = {
            "query": predicate,
            "fields": list(fields),
            "orderBy": [{"field": name, "order": direction} for name, direction in order],
            "fullTextFilter": {"term": term, "fields": list(within)} if full_text else None,
            "limit": limit,
            "offset": offset,
            "cursor": cursor,
            "totalItems": total_items,
        }
        given = {name: value for name, value in body.items() if value not in (None, [])}
        return send("POST", path, EntityPage, given)
    return get(
        path,
        EntityPage,
        filter=filters,
        fields=",".join(fields) or None,
        orderField=[f"{name},{direction}" for name, direction in order],
        fullTextFilterTerm=term,
        fullTextFilterFields=",".join(within) or None,
        limit=limit,
        offset=offset,
        cursor=cursor,
        totalItems=total_items,
    )


def facets(
    facets: Sequence[str], *, filters: Sequence[str] = ()
) -> Call[dict[str, list[FacetValue]]]:
    """The values that fields such as `kind` or `spec.type` have, each with how many have it.

    Only entities that fit `filters` are counted, which is as for `entities`.
    """
    return Call(
        method="GET",
        path=f"{_CATALOG}/entity-facets",
        read=lambda response: decode(FacetValues, response).facets,
        params=parameters(facet=list(facets), filter=filters),
    )


def ancestry(ref: str) -> Call[Ancestry]:
    """The entity with this reference and those that it comes from, with how they hang together.

    Raises ApiError with status 404 when there is none, and ValueError for an invalid reference.
    """
    return get(f"{_by_name(ref)}/ancestry", Ancestry)


def validate(
    entity: Mapping[str, Any] | msgspec.Raw,
    *,
    location: str = "url:https://localhost/entity-validator",
    warn: Callable[[str], None] | None = None,
) -> Call[list[str]]:
    """List the problems that the server's strict rules find in an entity; none if it is valid.

    These rules are narrower than those of a push. `location` says where the entity would come
    from. `warn` is given each sentence about annotations of a valid entity that no integration can
    read. Nothing is written.
    """
    return Call(
        method="POST",
        path=f"{_CATALOG}/validate-entity",
        read=partial(_read_problems, warn),
        content=msgspec.json.encode({"entity": entity, "location": location}),
        answers=(400,),
    )


def remove(uid: str) -> Call[None]:
    """Remove the entity with this `metadata.uid`; nothing happens when there is none."""
    path = f"{_CATALOG}/entities/by-uid/{segment(uid)}"
    return Call(method="DELETE", path=path, read=nothing)


def refresh(ref: str) -> Call[None]:
    """Have the facts of the entity with this reference collected again, within seconds.

    Raises ApiError with status 404 when there is none.
    """
    content = msgspec.json.encode({"entityRef": ref})
    return Call(method="POST", path=f"{_CATALOG}/refresh", read=nothing, content=content)


def _by_name(ref: str) -> str:
    kind, colon, rest = ref.partition(":")
    namespace, slash, name = rest.partition("/")
    parts = (kind, namespace, name) if slash else (kind, "default", rest)
    if not colon or not all(parts):
        raise ValueError(f"{ref!r} is not of the form kind:[namespace/]name.")
    return f"{_CATALOG}/entities/by-name/" + "/".join(map(segment, parts))


def _read_problems(warn: Callable[[str], None] | None, response: httpx2.Response) -> list[str]:
    if response.is_success:
        if warn is not None:
            for sentence in _warnings(response):
                warn(sentence)
        return []
    try:
        invalid = msgspec.json.decode(response.content, type=_Invalid)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # A request that cannot be read is answered 400 as well.
        raise refusal(response) from None
    return [error.message for error in invalid.errors]


def _warnings(response: httpx2.Response) -> list[str]:
    try:
        return msgspec.json.decode(response.headers.get(_WARNINGS, "[]"), type=list[str])
    except (msgspec.DecodeError, RecursionError):
        return []  # another program's header
