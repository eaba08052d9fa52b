"""The client's requests as values, each with the reader of its answer."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, Literal, TypeVar
from urllib.parse import parse_qsl, quote, urlsplit

import httpx2
import msgspec

from factbook.client.answers import (
    DataSourcePage,
    Entity,
    Initialized,
    ProtocolError,
    PushAnswer,
    SetItemPage,
    ToolCallError,
    ToolDescription,
    TrialAnswer,
    UnexpectedAnswer,
    WebhookAnswer,
    WebhookAnswers,
    accept_nothing,
    decode_answer,
    read_refusal,
)
from factbook.schemas.catalog import (
    Ancestry,
    EntitiesByRefs,
    EntityPage,
    FacetValue,
    FacetValues,
    Revision,
    Revisions,
    Sets,
    SetSummary,
)
from factbook.schemas.common import WireAnswer
from factbook.schemas.events import Events, ShownDigest, ShownDigests, TriedWebhook
from factbook.schemas.facts import (
    FactDistribution,
    History,
    LatestFacts,
    OneSource,
    PushedFacts,
    Run,
    Runs,
    ValuePage,
)

T = TypeVar("T")
Parameters = list[tuple[str, str]]

# `{word}` is the client's push word; whatever else is put into a path has its braces encoded.
_PUSH = "/api/catalog/{word}-entities"
TIMEOUT = 60.0
# A set of 100,000 entities takes the server half a minute, and a slow disk or network longer.
_PUSH_TIMEOUT = 900.0

_CATALOG = "/api/catalog"
_WARNINGS = "factbook-warnings"
PAGE_SIZE = 500

DATA_SOURCES = "/api/tech-insights/v1"
_SOURCES = f"{DATA_SOURCES}/data-sources"
# A trial asks a vendor, which may take its time.
_TEST_TIMEOUT = 180.0

_EVENTS = "/api/events"
_WEBHOOKS = f"{_EVENTS}/webhooks"

_DIGESTS = "/api/tech-insights/v1/digests"

TOOLS_PATH = "/api/mcp/v1/tech-insights-facts"
_REVISION = "2025-11-25"


@dataclass(frozen=True, kw_only=True)
class Call(Generic[T]):
    """A request, and how its answer is read; `timeout` is how long to wait for it, in seconds.

    `answers` are the statuses that are answers as well, beside those of success.
    """

    method: str
    path: str
    read: Callable[[httpx2.Response], T]
    params: Parameters = field(default_factory=list)
    content: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    timeout: float = TIMEOUT
    answers: Collection[int] = ()


def query_parameters(**values: object) -> Parameters:
    """Query parameters without those that are None; a list gives one for each of its elements."""
    found: Parameters = []
    for name, value in values.items():
        if isinstance(value, (list, tuple)):
            found += [(name, str(each)) for each in value]
        elif value is not None:
            found.append((name, str(value)))
    return found


def get_call(path: str, answer: type[T], **params: object) -> Call[T]:
    """A call that reads something; parameters that are None are left out."""
    return Call(
        method="GET",
        path=path,
        read=partial(decode_answer, answer),
        params=query_parameters(**params),
    )


def send_call(
    method: str, path: str, answer: type[T], body: object = None, *, timeout: float = TIMEOUT
) -> Call[T]:
    """A call that changes something, with a body unless that is None."""
    content = None if body is None else msgspec.json.encode(body)
    read = partial(decode_answer, answer)
    return Call(method=method, path=path, read=read, content=content, timeout=timeout)


def segment(text: str) -> str:
    """A text as one segment of a path: dots alone would lead to another one."""
    return text.replace(".", "%2E") if text in {".", ".."} else quote(text, safe="")


def _set_path(set_id: str) -> str:
    return f"{_PUSH}/sets/{segment(set_id)}"


def push(
    set_id: str,
    entities: Iterable[Mapping[str, Any] | msgspec.Raw],
    *,
    dry_run: bool = False,
    on_conflict: str | None = None,
    max_removals: int | str | None = None,
    if_match: int | None = None,
) -> Call[PushAnswer]:
    """Replace the content of a set by these entities, and return the changes.

    With `dry_run` nothing is written. `on_conflict="take"` takes over references that another set
    holds. A push that would remove more than `max_removals` entities (or per cent: `"10%"`), or
    whose set has left the revision `if_match`, raises ApiError (409, 412), as one with an entity
    that is not valid does (400); then nothing was written.
    """
    return Call(
        method="PUT",
        path=_set_path(set_id),
        read=partial(decode_answer, PushAnswer),
        params=query_parameters(
            dryRun="true" if dry_run else None, onConflict=on_conflict, maxRemovals=max_removals
        ),
        content=msgspec.json.encode({"items": list(entities)}),
        headers={} if if_match is None else {"if-match": f'"{if_match}"'},
        timeout=_PUSH_TIMEOUT,
    )


def sets() -> Call[list[SetSummary]]:
    """Every set that has entities."""
    return Call(
        method="GET", path=f"{_PUSH}/sets", read=lambda response: decode_answer(Sets, response).sets
    )


def set(set_id: str, *, limit: int | None = None, cursor: str | None = None) -> Call[SetItemPage]:
    """The entities of a set: all of them, or `limit` of them from `cursor` on."""
    return get_call(_set_path(set_id), SetItemPage, limit=limit, cursor=cursor)


def delete_set(set_id: str) -> Call[PushAnswer]:
    """Remove every entity of a set, and return the changes. Its revisions can still be restored."""
    return send_call("DELETE", _set_path(set_id), PushAnswer, timeout=_PUSH_TIMEOUT)


def revisions(set_id: str) -> Call[list[Revision]]:
    """The pushes that changed a set, as many as the server keeps."""
    return Call(
        method="GET",
        path=f"{_set_path(set_id)}/revisions",
        read=lambda response: decode_answer(Revisions, response).revisions,
    )


def restore(
    set_id: str,
    revision: int,
    *,
    on_conflict: str | None = None,
    max_removals: int | str | None = None,
) -> Call[PushAnswer]:
    """Put the content that a set had at a revision back, as a new one; options as for `push`."""
    return Call(
        method="POST",
        path=f"{_set_path(set_id)}/revisions/{revision}/restore",
        read=partial(decode_answer, PushAnswer),
        params=query_parameters(onConflict=on_conflict, maxRemovals=max_removals),
        timeout=_PUSH_TIMEOUT,
    )


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
    chosen = query_parameters(
        filter=filters, fields=",".join(fields) or None, order=order, offset=offset
    )
    return _page_call(chosen, limit)


def _page_call(params: Parameters, left: int | None) -> Call[EntityBatch]:
    size = PAGE_SIZE if left is None else min(left, PAGE_SIZE)
    asked = [(name, value) for name, value in params if name != "limit"]
    return Call(
        method="GET",
        path=f"{_CATALOG}/entities",
        read=partial(_read_page, left),
        params=[*asked, ("limit", str(size))],
    )


def _read_page(left: int | None, response: httpx2.Response) -> EntityBatch:
    items = decode_answer(list[Entity], response)
    left = None if left is None else left - len(items)
    target = response.links.get("next", {}).get("url")
    if target is None or left == 0:
        return EntityBatch(items, None)
    # Only the query is taken: a token follows no link to another host, and a proxy may have moved
    # the server below a path that it does not know of.
    return EntityBatch(
        items, _page_call(parse_qsl(urlsplit(target).query, keep_blank_values=True), left)
    )


def entity(ref: str) -> Call[Entity]:
    """The entity with the reference `kind:namespace/name`, or `kind:name` in `default`.

    Raises ApiError with status 404 when there is none, and ValueError for anything else.
    """
    return get_call(_entity_path(ref), Entity)


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
        read=lambda response: decode_answer(EntitiesByRefs, response).items,
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
        return send_call("POST", path, EntityPage, given)
    return get_call(
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
        read=lambda response: decode_answer(FacetValues, response).facets,
        params=query_parameters(facet=list(facets), filter=filters),
    )


def ancestry(ref: str) -> Call[Ancestry]:
    """The entity with this reference and those that it comes from, with how they hang together.

    Raises ApiError with status 404 when there is none, and ValueError for an invalid reference.
    """
    return get_call(f"{_entity_path(ref)}/ancestry", Ancestry)


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
    return Call(method="DELETE", path=path, read=accept_nothing)


def refresh(ref: str) -> Call[None]:
    """Have the facts of the entity with this reference collected again, within seconds.

    Raises ApiError with status 404 when there is none.
    """
    content = msgspec.json.encode({"entityRef": ref})
    return Call(method="POST", path=f"{_CATALOG}/refresh", read=accept_nothing, content=content)


def _entity_path(ref: str) -> str:
    kind, colon, rest = ref.partition(":")
    namespace, slash, name = rest.partition("/")
    parts = (kind, namespace, name) if slash else (kind, "default", rest)
    if not colon or not all(parts):
        raise ValueError(f"{ref!r} is not of the form kind:[namespace/]name.")
    return f"{_CATALOG}/entities/by-name/" + "/".join(map(segment, parts))


def _read_problems(warn: Callable[[str], None] | None, response: httpx2.Response) -> list[str]:
    if response.is_success:
        if warn is not None:
            for sentence in _read_warnings(response):
                warn(sentence)
        return []
    try:
        invalid = msgspec.json.decode(response.content, type=_Invalid)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # A request that cannot be read is answered 400 as well.
        raise read_refusal(response) from None
    return [error.message for error in invalid.errors]


def _read_warnings(response: httpx2.Response) -> list[str]:
    try:
        return msgspec.json.decode(response.headers.get(_WARNINGS, "[]"), type=list[str])
    except (msgspec.DecodeError, RecursionError):
        return []  # another program's header


def data_sources(*, limit: int | None = None, cursor: str | None = None) -> Call[DataSourcePage]:
    """The data sources, builtin and custom: at most 100, or `limit` of them, from `cursor` on."""
    return get_call(_SOURCES, DataSourcePage, limit=limit, cursor=cursor)


def data_source(source_id: str) -> Call[OneSource]:
    """The data source with this id. Raises ApiError with status 404 when there is none."""
    return get_call(_source_path(source_id), OneSource)


def put_data_source(definition: Mapping[str, Any]) -> Call[OneSource]:
    """Make a definition the draft of the data source that it names, new or not.

    One that says what is published already ends the draft. Raises ApiError (400) with every problem
    of the definition.
    """
    return send_call("PUT", _source_path(str(definition["id"])), OneSource, definition)


def publish_data_source(source_id: str, *, force: bool = False) -> Call[OneSource]:
    """Publish the draft of a data source under its next version; without a draft nothing changes.

    Raises ApiError (409), unless forced, when a fact is removed or gets another type.
    """
    return send_call("POST", f"{_source_path(source_id)}/publish", OneSource, {"force": force})


def delete_data_source(source_id: str) -> Call[None]:
    """Remove a data source with its facts, their history and its runs."""
    return Call(method="DELETE", path=_source_path(source_id), read=accept_nothing)


def test_data_source(definition: Mapping[str, Any], entity: str) -> Call[TrialAnswer]:
    """Try a definition on one entity and store nothing; return request, answer and facts."""
    body = {"entity": entity, "definition": definition}
    path = f"{_source_path(str(definition['id']))}/test"
    return send_call("POST", path, TrialAnswer, body, timeout=_TEST_TIMEOUT)


def run_data_source(source_id: str, *, entity: str | None = None) -> Call[Run]:
    """Begin to collect a data source now, for every entity or for one.

    Raises ApiError (409) when a run of everything is under way, or nothing collects the source.
    """
    body = {} if entity is None else {"entity": entity}
    return send_call("POST", f"{_source_path(source_id)}/run", Run, body)


def data_source_runs(source_id: str) -> Call[list[Run]]:
    """The last runs of a data source, newest first."""
    return Call(
        method="GET",
        path=f"{_source_path(source_id)}/runs",
        read=lambda response: decode_answer(Runs, response).runs,
    )


def push_facts(source_id: str, items: Iterable[Mapping[str, Any]]) -> Call[PushedFacts]:
    """Push facts to a data source of the type `push`: up to 1,000 items.

    An item is `{"entity": ref, "facts": {name: value}}`, with a `timestamp` when the facts are of
    another moment than now. It replaces what the source says about the entity; with `"merge": True`
    other facts keep their values. `"reasons": {name: text}` says why facts are unknown. The
    answer lists the problems of each item; facts without one are stored.
    """
    return send_call("POST", _facts_path(source_id), PushedFacts, {"items": list(items)})


def facts(
    source_id: str,
    *,
    entity: str | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[LatestFacts]:
    """The latest facts of a data source: of one entity, or a page of all of them."""
    return get_call(_facts_path(source_id), LatestFacts, entity=entity, limit=limit, cursor=cursor)


def fact_history(
    entity: str,
    *,
    sources: Sequence[str] = (),
    start: str | None = None,
    end: str | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[History]:
    """A page of the facts that an entity had, newest first, of these data sources or of all.

    `start` and `end` are ISO 8601 with a UTC offset.
    """
    return get_call(
        f"{DATA_SOURCES}/facts",
        History,
        entity=entity,
        dataSourceIds=",".join(sources) or None,
        startDateTime=start,
        endDateTime=end,
        limit=limit,
        cursor=cursor,
    )


def fact_distribution(
    source_id: str, fact: str, *, by: str | None = None, part: Mapping[str, str] | None = None
) -> Call[FactDistribution]:
    """The distribution of a fact over the entities that its data source is about.

    `by` adds figures for each `owner`, `system` or `kind`. `part` narrows it by `kind`,
    `namespace`, `owner`, `system`, `type` and `lifecycle`.
    """
    path = f"{_facts_path(source_id)}/distribution"
    return get_call(path, FactDistribution, fact=fact, by=by, **(part or {}))


def fact_values(
    source_id: str,
    fact: str,
    *,
    part: Mapping[str, str] | None = None,
    sort: str | None = None,
    limit: int | None = None,
    cursor: str | None = None,
    **wanted: str,
) -> Call[ValuePage]:
    """A page of the entities with their value of a fact, or why they have none.

    `sort` is `value` or `-value`. `wanted` are `known`, `reason`, `value`, `min` and `below`.
    """
    given = {**(part or {}), **wanted, "sort": sort, "limit": limit, "cursor": cursor}
    return get_call(f"{_facts_path(source_id)}/values", ValuePage, fact=fact, **given)


def fact_values_csv(
    source_id: str, fact: str, *, part: Mapping[str, str] | None = None
) -> Call[str]:
    """The entities with their value of a fact, all of them, as CSV."""
    return Call(
        method="GET",
        path=f"{_facts_path(source_id)}/values.csv",
        params=query_parameters(fact=fact, **(part or {})),
        read=lambda response: response.text,
    )


def _source_path(source_id: str) -> str:
    return f"{_SOURCES}/{segment(source_id)}"


def _facts_path(source_id: str) -> str:
    return f"{DATA_SOURCES}/facts/{segment(source_id)}"


def events(
    *,
    after: str | None = None,
    types: Sequence[str] = (),
    set: str | None = None,
    source: str | None = None,
    entity: str | None = None,
    limit: int | None = None,
    wait: int | None = None,
) -> Call[Events]:
    """A page of what changed: from the oldest event that is kept, or behind the cursor `after`.

    `after="now"` begins with what comes next; `wait` holds the answer back for up to so many
    seconds, 30 at most, until something does. Raises ApiError (410) for a cursor of events that
    are not kept any more.
    """
    return Call(
        method="GET",
        path=_EVENTS,
        read=partial(decode_answer, Events),
        params=query_parameters(
            after=after,
            type=list(types),
            set=set,
            source=source,
            entity=entity,
            limit=limit,
            wait=wait,
        ),
        timeout=TIMEOUT + (wait or 0),
    )


def webhooks() -> Call[list[WebhookAnswer]]:
    """Every webhook, the oldest first."""
    return Call(
        method="GET",
        path=_WEBHOOKS,
        read=lambda response: decode_answer(WebhookAnswers, response).webhooks,
    )


def webhook(webhook_id: str) -> Call[WebhookAnswer]:
    """A webhook, with what could not be delivered. Raises ApiError (404) when there is none."""
    return get_call(_webhook_path(webhook_id), WebhookAnswer)


def create_webhook(url: str, *, types: Sequence[str] = ()) -> Call[WebhookAnswer]:
    """Send every event from now on to an address, or those of some types.

    The secret that signs them is in this answer and never again.
    """
    return send_call("POST", _WEBHOOKS, WebhookAnswer, {"url": url, "types": list(types)})


def delete_webhook(webhook_id: str) -> Call[None]:
    """Remove a webhook, and what waits to be sent to it."""
    return Call(method="DELETE", path=_webhook_path(webhook_id), read=accept_nothing)


def enable_webhook(webhook_id: str) -> Call[WebhookAnswer]:
    """Send to a webhook again, beginning with what could not be delivered."""
    return send_call("POST", f"{_webhook_path(webhook_id)}/enable", WebhookAnswer)


def test_webhook(webhook_id: str) -> Call[TriedWebhook]:
    """Send a message of the type `webhook.test` now, once, and return the result."""
    return send_call("POST", f"{_webhook_path(webhook_id)}/test", TriedWebhook)


def _webhook_path(webhook_id: str) -> str:
    return f"{_WEBHOOKS}/{segment(webhook_id)}"


def digests() -> Call[list[ShownDigest]]:
    """Every digest, by owner."""
    return Call(
        method="GET",
        path=_DIGESTS,
        read=lambda response: decode_answer(ShownDigests, response).digests,
    )


def digest(digest_id: str) -> Call[ShownDigest]:
    """A digest, with what became of the last one. Raises ApiError (404) when there is none."""
    return get_call(_digest_path(digest_id), ShownDigest)


def create_digest(
    url: str,
    form: str = "slack",
    *,
    owner: str | None = None,
    cadence: str = "weekly",
    day: str = "monday",
    hour: int = 8,
    time_zone: str = "UTC",
) -> Call[ShownDigest]:
    """Send what changes for an owner, or for everybody, to a channel from now on."""
    return send_call(
        "POST",
        _DIGESTS,
        ShownDigest,
        {**_digest_body(form, owner, cadence, day, hour, time_zone), "url": url},
    )


def replace_digest(
    digest_id: str,
    form: str | None = None,
    *,
    url: str | None = None,
    owner: str | None = None,
    cadence: str = "weekly",
    day: str = "monday",
    hour: int = 8,
    time_zone: str = "UTC",
) -> Call[ShownDigest]:
    """Replace a digest; without `url` its address stays, and so does `form`."""
    body = _digest_body(form, owner, cadence, day, hour, time_zone)
    return send_call(
        "PUT", _digest_path(digest_id), ShownDigest, body if url is None else {**body, "url": url}
    )


def delete_digest(digest_id: str) -> Call[None]:
    """Remove a digest."""
    return Call(method="DELETE", path=_digest_path(digest_id), read=accept_nothing)


def test_digest(digest_id: str) -> Call[TriedWebhook]:
    """Send what the next digest would tell by now, once, and return the result."""
    return send_call("POST", f"{_digest_path(digest_id)}/test", TriedWebhook)


def _digest_body(
    form: str | None, owner: str | None, cadence: str, day: str, hour: int, time_zone: str
) -> dict[str, Any]:
    return {
        **({"owner": owner} if owner is not None else {}),
        **({"form": form} if form is not None else {}),
        "cadence": cadence,
        "day": day,
        "hour": hour,
        "timeZone": time_zone,
    }


def _digest_path(digest_id: str) -> str:
    return f"{_DIGESTS}/{segment(digest_id)}"


class _Fault(msgspec.Struct):
    code: int
    message: str
    data: Any = None


class _Reply(msgspec.Struct):
    result: msgspec.Raw = msgspec.Raw(b"null")
    error: _Fault | None = None


class _Text(msgspec.Struct):
    text: str = ""


class _CallResult(WireAnswer):
    content: list[_Text]
    structured_content: dict[str, Any] | None = None
    is_error: bool = False


class _ToolList(msgspec.Struct):
    tools: list[ToolDescription]


def initialize(path: str = TOOLS_PATH) -> Call[Initialized]:
    """The handshake that agents begin with; the other calls need none.

    `path` is that of another server of tools, such as `/mcp`.
    """
    params = {
        "protocolVersion": _REVISION,
        "capabilities": {},
        "clientInfo": {"name": "factbook-client", "version": "1"},
    }
    return _rpc("initialize", params, partial(_read_result, Initialized), path)


def tools(path: str = TOOLS_PATH) -> Call[list[ToolDescription]]:
    """The tools that the tool-call endpoint offers, or the server at another path."""
    return _rpc("tools/list", {}, lambda response: _read_result(_ToolList, response).tools, path)


def call(
    tool: str, arguments: Mapping[str, Any] | None = None, path: str = TOOLS_PATH
) -> Call[dict[str, Any]]:
    """Call a tool of the tool-call endpoint, or of the server at another path; its result.

    Raises ToolCallError when the tool says that it cannot answer, and ProtocolError when there is
    no such tool.
    """
    return _rpc("tools/call", {"name": tool, "arguments": arguments or {}}, _read_tool_result, path)


def _rpc(
    method: str, params: Mapping[str, Any], read: Callable[[httpx2.Response], T], path: str
) -> Call[T]:
    return Call(
        method="POST",
        path=path,
        read=read,
        content=msgspec.json.encode(
            {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        ),
        headers={"accept": "application/json, text/event-stream"},
    )


def _read_result(type_: type[T], response: httpx2.Response) -> T:
    reply = decode_answer(_Reply, response)
    if reply.error is not None:
        raise ProtocolError(reply.error.code, reply.error.message, reply.error.data)
    try:
        return msgspec.json.decode(reply.result, type=type_)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UnexpectedAnswer(f"The tool-call endpoint's result cannot be read: {error}") from None


def _read_tool_result(response: httpx2.Response) -> dict[str, Any]:
    result = _read_result(_CallResult, response)
    if result.is_error:
        raise ToolCallError("\n".join(part.text for part in result.content))
    if result.structured_content is None:
        raise UnexpectedAnswer("The tool's result has no structuredContent.")
    return result.structured_content
