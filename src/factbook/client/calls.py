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

# `{word}` is the client's push word; braces in all other parts of a path are encoded.
_PUSH = "/api/catalog/{word}-entities"
TIMEOUT = 60.0
# A set of 100,000 entities takes the server half a minute, or longer with a slow disk or network.
_PUSH_TIMEOUT = 900.0

_CATALOG = "/api/catalog"
_WARNINGS = "factbook-warnings"
PAGE_SIZE = 500

DATA_SOURCES = "/api/tech-insights/v1"
_SOURCES = f"{DATA_SOURCES}/data-sources"
# A trial waits for a vendor, which may be slow.
_TEST_TIMEOUT = 180.0

_EVENTS = "/api/events"
_WEBHOOKS = f"{_EVENTS}/webhooks"

_DIGESTS = "/api/tech-insights/v1/digests"

TOOLS_PATH = "/api/mcp/v1/tech-insights-facts"
_REVISION = "2025-11-25"


@dataclass(frozen=True, kw_only=True)
class Call(Generic[T]):
    """A request, and the reader of its answer; `timeout` is in seconds.

    `answers` are statuses besides success that count as answers.
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
    """Build query parameters; leaves out None, and repeats a parameter for each list element."""
    found: Parameters = []
    for name, value in values.items():
        if isinstance(value, (list, tuple)):
            found += [(name, str(each)) for each in value]
        elif value is not None:
            found.append((name, str(value)))
    return found


def get_call(path: str, answer: type[T], **params: object) -> Call[T]:
    """Make a call that reads; leaves out parameters that are None."""
    return Call(
        method="GET",
        path=path,
        read=partial(decode_answer, answer),
        params=query_parameters(**params),
    )


def send_call(
    method: str, path: str, answer: type[T], body: object = None, *, timeout: float = TIMEOUT
) -> Call[T]:
    """Make a call that writes, with a body unless that is None."""
    content = None if body is None else msgspec.json.encode(body)
    read = partial(decode_answer, answer)
    return Call(method=method, path=path, read=read, content=content, timeout=timeout)


def segment(text: str) -> str:
    """Encode text as one path segment, including `.` and `..`, which would change the path."""
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
    """Replace the content of a set with these entities, and return the changes.

    `dry_run` writes nothing. `on_conflict="take"` takes references from the sets that own them.
    Raises ApiError, and writes nothing, if an entity is invalid (400), if the push would remove
    more than `max_removals` entities (or percent: `"10%"`) (409), or if the set is no longer at
    revision `if_match` (412).
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
    """List the sets that have entities."""
    return Call(
        method="GET", path=f"{_PUSH}/sets", read=lambda response: decode_answer(Sets, response).sets
    )


def set(set_id: str, *, limit: int | None = None, cursor: str | None = None) -> Call[SetItemPage]:
    """List the entities of a set: all of them, or `limit` of them from `cursor` on."""
    return get_call(_set_path(set_id), SetItemPage, limit=limit, cursor=cursor)


def delete_set(set_id: str) -> Call[PushAnswer]:
    """Remove every entity of a set, and return the changes. Its revisions can still be restored."""
    return send_call("DELETE", _set_path(set_id), PushAnswer, timeout=_PUSH_TIMEOUT)


def revisions(set_id: str) -> Call[list[Revision]]:
    """List the pushes that changed a set, as far back as the server keeps them."""
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
    """Restore a set's content at a revision, as a new revision; options are as for `push`."""
    return Call(
        method="POST",
        path=f"{_set_path(set_id)}/revisions/{revision}/restore",
        read=partial(decode_answer, PushAnswer),
        params=query_parameters(onConflict=on_conflict, maxRemovals=max_removals),
        timeout=_PUSH_TIMEOUT,
    )


@dataclass(frozen=True)
class EntityBatch:
    """A batch of the requested entities, and the call for the next batch."""

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
    """Iterate over the catalog's entities, in pages of at most 500.

    `filters` has conditions such as `kind=component,spec.type=service`. An entity has to meet all
    conditions of at least one string. `fields` are dotted paths, `order` is `asc:` or `desc:` and a
    path, and `limit` bounds the total number of entities.
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
    # Uses only the link's query: the token must not go to another host, and a proxy may serve the
    # server below a path that the server doesn't know.
    return EntityBatch(
        items, _page_call(parse_qsl(urlsplit(target).query, keep_blank_values=True), left)
    )


def entity(ref: str) -> Call[Entity]:
    """Get the entity with the reference `kind:namespace/name`, or `kind:name` in `default`.

    Raises ApiError (404) for a missing entity, and ValueError for an invalid reference.
    """
    return get_call(_entity_path(ref), Entity)


def entities_by_refs(
    refs: Sequence[str], *, fields: Sequence[str] = ()
) -> Call[list[Entity | None]]:
    """Get the entities with these references, in this order, with None for missing entities."""
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
    """Get a page of matching entities, with the total and cursors of the pages beside it.

    `filters` and `fields` are as for `entities`; `predicate` replaces `filters` and is more
    expressive. `order` has fields with `"asc"` or `"desc"`; `full_text` is a text and the fields to
    search for it. `cursor` comes from another page and repeats its query, except `limit` and
    `fields`. `total_items` is `"exclude"` for no total, or `"bounded"` for a total of at most
    10,001. Raises ValueError if both `filters` and `predicate` are given.
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
    """Count entities by the values of fields such as `kind` or `spec.type`.

    Counts only entities that match `filters`, which are as for `entities`.
    """
    return Call(
        method="GET",
        path=f"{_CATALOG}/entity-facets",
        read=lambda response: decode_answer(FacetValues, response).facets,
        params=query_parameters(facet=list(facets), filter=filters),
    )


def ancestry(ref: str) -> Call[Ancestry]:
    """Get the entity with this reference and its ancestors, with their relationships.

    Raises ApiError (404) for a missing entity, and ValueError for an invalid reference.
    """
    return get_call(f"{_entity_path(ref)}/ancestry", Ancestry)


def validate(
    entity: Mapping[str, Any] | msgspec.Raw,
    *,
    location: str = "url:https://localhost/entity-validator",
    warn: Callable[[str], None] | None = None,
) -> Call[list[str]]:
    """List the problems of an entity by the server's strict rules; empty if it is valid.

    These rules are stricter than those of a push. `location` is where the entity would come from.
    `warn` is called with a sentence for each annotation of a valid entity that no integration can
    read. Writes nothing.
    """
    return Call(
        method="POST",
        path=f"{_CATALOG}/validate-entity",
        read=partial(_read_problems, warn),
        content=msgspec.json.encode({"entity": entity, "location": location}),
        answers=(400,),
    )


def remove(uid: str) -> Call[None]:
    """Remove the entity with this `metadata.uid`, if it exists."""
    path = f"{_CATALOG}/entities/by-uid/{segment(uid)}"
    return Call(method="DELETE", path=path, read=accept_nothing)


def refresh(ref: str) -> Call[None]:
    """Request that the facts of an entity be collected again, within seconds.

    Raises ApiError (404) for a missing entity.
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
        if warn is None:
            return []
        try:
            warnings = msgspec.json.decode(response.headers.get(_WARNINGS, "[]"), type=list[str])
        except (msgspec.DecodeError, RecursionError):
            return []  # another program's header
        for warning in warnings:
            warn(warning)
        return []
    try:
        invalid = msgspec.json.decode(response.content, type=_Invalid)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # An unreadable request also gets 400.
        raise read_refusal(response) from None
    return [error.message for error in invalid.errors]


def data_sources(*, limit: int | None = None, cursor: str | None = None) -> Call[DataSourcePage]:
    """List builtin and custom data sources: at most 100, or `limit`, from `cursor` on."""
    return get_call(_SOURCES, DataSourcePage, limit=limit, cursor=cursor)


def data_source(source_id: str) -> Call[OneSource]:
    """Get the data source with this id. Raises ApiError (404) for an unknown id."""
    return get_call(_source_path(source_id), OneSource)


def put_data_source(definition: Mapping[str, Any]) -> Call[OneSource]:
    """Save a definition as the draft of the data source with its id, which may be new.

    A definition equal to the published one deletes the draft. Raises ApiError (400) with every
    problem of the definition.
    """
    return send_call("PUT", _source_path(str(definition["id"])), OneSource, definition)


def publish_data_source(source_id: str, *, force: bool = False) -> Call[OneSource]:
    """Publish the draft of a data source as its next version; does nothing without a draft.

    Raises ApiError (409) if a fact would be removed or change type, unless `force` is set.
    """
    return send_call("POST", f"{_source_path(source_id)}/publish", OneSource, {"force": force})


def delete_data_source(source_id: str) -> Call[None]:
    """Remove a data source with its facts, their history and its runs."""
    return Call(method="DELETE", path=_source_path(source_id), read=accept_nothing)


def test_data_source(definition: Mapping[str, Any], entity: str) -> Call[TrialAnswer]:
    """Try a definition on an entity without storing anything; returns request, answer and facts."""
    body = {"entity": entity, "definition": definition}
    path = f"{_source_path(str(definition['id']))}/test"
    return send_call("POST", path, TrialAnswer, body, timeout=_TEST_TIMEOUT)


def run_data_source(source_id: str, *, entity: str | None = None) -> Call[Run]:
    """Start collecting a data source now, for every entity or for one.

    Raises ApiError (409) during a run for every entity, or if no process collects the source.
    """
    body = {} if entity is None else {"entity": entity}
    return send_call("POST", f"{_source_path(source_id)}/run", Run, body)


def data_source_runs(source_id: str) -> Call[list[Run]]:
    """List the last runs of a data source, newest first."""
    return Call(
        method="GET",
        path=f"{_source_path(source_id)}/runs",
        read=lambda response: decode_answer(Runs, response).runs,
    )


def push_facts(source_id: str, items: Iterable[Mapping[str, Any]]) -> Call[PushedFacts]:
    """Push facts to a data source of the type `push`: up to 1,000 items.

    An item is `{"entity": ref, "facts": {name: value}}`, with a `timestamp` unless the facts are
    current. The item replaces the source's facts about the entity; with `"merge": True` other facts
    keep their values. `"reasons": {name: text}` says why facts are unknown. The answer lists the
    problems of each item; facts without a problem are stored.
    """
    return send_call("POST", _facts_path(source_id), PushedFacts, {"items": list(items)})


def facts(
    source_id: str,
    *,
    entity: str | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[LatestFacts]:
    """Get the latest facts of a data source: about one entity, or a page of all entities."""
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
    """Get a page of an entity's fact history, newest first, from these data sources or all.

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
    """Get the distribution of a fact over the entities that its data source covers.

    `by` adds figures for each `owner`, `system` or `kind`. `part` filters entities by `kind`,
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
    """Get a page of entities with their value of a fact, or the reason they have none.

    `sort` is `value` or `-value`. `wanted` may have `known`, `reason`, `value`, `min` and `below`.
    """
    given = {**(part or {}), **wanted, "sort": sort, "limit": limit, "cursor": cursor}
    return get_call(f"{_facts_path(source_id)}/values", ValuePage, fact=fact, **given)


def fact_values_csv(
    source_id: str, fact: str, *, part: Mapping[str, str] | None = None
) -> Call[str]:
    """Get all entities with their value of a fact, as CSV."""
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
    """Get a page of events: from the oldest that is kept, or after the cursor `after`.

    `after="now"` starts with the next event; `wait` delays the answer until there is an event, for
    up to this many seconds, at most 30. Raises ApiError (410) for a cursor of events that are no
    longer kept.
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
    """All webhooks, oldest first."""
    return Call(
        method="GET",
        path=_WEBHOOKS,
        read=lambda response: decode_answer(WebhookAnswers, response).webhooks,
    )


def webhook(webhook_id: str) -> Call[WebhookAnswer]:
    """Get a webhook with its undelivered messages. Raises ApiError (404) for an unknown id."""
    return get_call(_webhook_path(webhook_id), WebhookAnswer)


def create_webhook(url: str, *, types: Sequence[str] = ()) -> Call[WebhookAnswer]:
    """Send all future events, or those of some types, to an address.

    Only this answer contains the secret that signs the messages.
    """
    return send_call("POST", _WEBHOOKS, WebhookAnswer, {"url": url, "types": list(types)})


def delete_webhook(webhook_id: str) -> Call[None]:
    """Remove a webhook and its pending messages."""
    return Call(method="DELETE", path=_webhook_path(webhook_id), read=accept_nothing)


def enable_webhook(webhook_id: str) -> Call[WebhookAnswer]:
    """Enable a webhook again, starting with its undelivered messages."""
    return send_call("POST", f"{_webhook_path(webhook_id)}/enable", WebhookAnswer)


def test_webhook(webhook_id: str) -> Call[TriedWebhook]:
    """Send one message of the type `webhook.test` now, and return the result."""
    return send_call("POST", f"{_webhook_path(webhook_id)}/test", TriedWebhook)


def _webhook_path(webhook_id: str) -> str:
    return f"{_WEBHOOKS}/{segment(webhook_id)}"


def digests() -> Call[list[ShownDigest]]:
    """List all digests, ordered by owner."""
    return Call(
        method="GET",
        path=_DIGESTS,
        read=lambda response: decode_answer(ShownDigests, response).digests,
    )


def digest(digest_id: str) -> Call[ShownDigest]:
    """Get a digest with the result of its last message. Raises ApiError (404) for an unknown id."""
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
    """Create a digest, which sends changes for an owner, or for everyone, to a channel."""
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
    """Replace a digest; `url` and `form` stay as they are if None."""
    body = _digest_body(form, owner, cadence, day, hour, time_zone)
    return send_call(
        "PUT", _digest_path(digest_id), ShownDigest, body if url is None else {**body, "url": url}
    )


def delete_digest(digest_id: str) -> Call[None]:
    """Remove a digest."""
    return Call(method="DELETE", path=_digest_path(digest_id), read=accept_nothing)


def test_digest(digest_id: str) -> Call[TriedWebhook]:
    """Send the current content of the next digest once, and return the result."""
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
    """Do the handshake that agents start with; other calls don't need one.

    `path` leads to another tool server, such as `/mcp`.
    """
    params = {
        "protocolVersion": _REVISION,
        "capabilities": {},
        "clientInfo": {"name": "factbook-client", "version": "1"},
    }
    return _rpc("initialize", params, partial(_read_result, Initialized), path)


def tools(path: str = TOOLS_PATH) -> Call[list[ToolDescription]]:
    """List the tools of the tool-call endpoint, or of the tool server at another path."""
    return _rpc("tools/list", {}, lambda response: _read_result(_ToolList, response).tools, path)


def call(
    tool: str, arguments: Mapping[str, Any] | None = None, path: str = TOOLS_PATH
) -> Call[dict[str, Any]]:
    """Call a tool of the tool-call endpoint, or of the server at another path; return its result.

    Raises ToolCallError if the tool cannot answer, and ProtocolError for an unknown tool.
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
