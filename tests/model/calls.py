"""The calls of a history: what clients ask of the service, and what they hear of its answer."""

from typing import Any, NamedTuple

import httpx2

from tests.model.state import Content
from tests.service import PUSH, TOOLS, call

CATALOG = "/api/catalog/entities"
# Of an error everything is compared but its words.
_DETAILS = ("name", "conflicts", "removals", "revision")
# How a tool says that the database cannot answer.
_AGAIN = "cannot answer right now"
_OWNERSHIP = {"dataSourceId": "entity-ownership"}


class Call(NamedTuple):
    """One call; `verb` names a row of `_REQUESTS` and of the model."""

    verb: str
    namespace: str
    set: str | None = None
    items: tuple[Content, ...] = ()
    if_match: int | None = None
    max_removals: str | None = None
    take: bool = False
    number: int = 0
    uid: str = ""
    ref: str = ""
    owner: str = ""


class Answer(NamedTuple):
    """What was answered."""

    status: int
    body: Any = None


# The answer was lost, or said that the service cannot answer: a write may have been done or not.
UNKNOWN = Answer(0)


async def send(client: httpx2.AsyncClient, call_: Call) -> Answer:
    """Make a call, and wait for its answer."""
    method, path, body = _request(call_)
    query = {
        **({"maxRemovals": call_.max_removals} if call_.max_removals is not None else {}),
        **({"onConflict": "take"} if call_.take else {}),
    }
    match = {} if call_.if_match is None else {"if-match": f'"{call_.if_match}"'}
    request = client.build_request(method, path, json=body, headers=match)
    request.url = request.url.copy_merge_params(query) if query else request.url
    return heard(call_, await client.send(request))


def _request(call_: Call) -> tuple[str, str, Any]:
    a_set = f"{PUSH}/sets/{call_.set}"
    name = call_.ref.rpartition("/")[2]
    place = f"component/{call_.namespace}/{name}"
    owned = f",spec.owner={call_.owner}" if call_.owner else ""
    about = {"name": name, "namespace": call_.namespace}
    items = [item.sent() for item in call_.items]
    requests: dict[str, tuple[str, str, Any]] = {
        "put": ("PUT", a_set, {"items": items}),
        "try": ("PUT", f"{a_set}?dryRun=true", {"items": items}),
        "post": ("POST", a_set if call_.set else f"{PUSH}/entities", items[0] if items else None),
        "delete": ("DELETE", a_set, None),
        "remove": ("DELETE", f"{PUSH}/entities/{call_.uid}", None),
        "restore": ("POST", f"{a_set}/revisions/{call_.number}/restore", None),
        "set": ("GET", a_set, None),
        "page": ("GET", f"{a_set}?limit=1", None),
        "sets": ("GET", f"{PUSH}/sets", None),
        "revisions": ("GET", f"{a_set}/revisions", None),
        "items": ("GET", f"{PUSH}/entities?set={call_.set}", None),
        "item": ("GET", f"{PUSH}/entities/by-ref/{call_.ref}", None),
        "entity": ("GET", f"{CATALOG}/by-name/{place}", None),
        "refs": ("POST", f"{CATALOG}/by-refs", {"entityRefs": call_.ref.split()}),
        "filter": (
            "GET", f"{CATALOG}?filter=metadata.namespace={call_.namespace}{owned}", None
        ),
        "compliance": ("POST", TOOLS, call("get-entity-compliance", about)),
        "ownership": ("POST", TOOLS, call("get-entity-facts", about | _OWNERSHIP)),
        "everybody": (
            "POST",
            TOOLS,
            call("get-all-entities-facts", {"namespace": call_.namespace} | _OWNERSHIP),
        ),
    }  # fmt: skip
    return requests[call_.verb]


def heard(call_: Call, answer: httpx2.Response) -> Answer:
    """What of an answer can be compared: no words of errors, nothing of other histories."""
    if answer.status_code == 204:
        return Answer(204)
    body = answer.json()
    if answer.status_code != 200:
        error = body["error"]
        return Answer(answer.status_code, {key: error[key] for key in _DETAILS if key in error})
    if "etag" in answer.headers:
        body["etag"] = answer.headers["etag"]
    return _CLEANED.get(call_.verb, _same)(call_, body)


def _same(call_: Call, body: Any) -> Answer:
    return Answer(200, body)


def _pushed(call_: Call, body: Any) -> Answer:
    assert body.pop("warnings") == []
    return Answer(200, body)


def _page(call_: Call, body: Any) -> Answer:
    return Answer(200, _without(body, "nextCursor") | {"more": "nextCursor" in body})


def _sets(call_: Call, body: Any) -> Answer:
    own = [item for item in body["sets"] if item["id"].startswith(f"{call_.namespace}-")]
    return Answer(200, [_without(item, "updatedAt") for item in own])


def _revisions(call_: Call, body: Any) -> Answer:
    return Answer(200, [_without(revision, "createdAt") for revision in body["revisions"]])


def _entity(call_: Call, body: Any) -> Answer:
    return Answer(200, _without_etag(body))


def _refs(call_: Call, body: Any) -> Answer:
    return Answer(200, [entity and _without_etag(entity) for entity in body["items"]])


def _filtered(call_: Call, body: Any) -> Answer:
    found = sorted(body, key=lambda entity: str(entity["metadata"]["name"]))
    return Answer(200, [_without_etag(entity) for entity in found])


def _tool(call_: Call, body: Any) -> Answer:
    result = body["result"]
    if result["isError"]:
        return Answer(503 if _AGAIN in result["content"][0]["text"] else 404)
    shown = result["structuredContent"]
    if call_.verb == "ownership":
        return Answer(200, {key: shown[key] for key in ("entityRef", "facts", "timestamp")})
    if call_.verb == "everybody":
        return Answer(200, shown["entities"])
    return Answer(200, {key: shown[key] for key in ("metadata", "ownership")})


def _without(found: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in found.items() if name != key}


def _without_etag(entity: dict[str, Any]) -> dict[str, Any]:
    return entity | {"metadata": _without(entity["metadata"], "etag")}


_CLEANED = {
    "put": _pushed,
    "try": _pushed,
    "delete": _pushed,
    "restore": _pushed,
    "page": _page,
    "sets": _sets,
    "revisions": _revisions,
    "entity": _entity,
    "refs": _refs,
    "filter": _filtered,
    "compliance": _tool,
    "ownership": _tool,
    "everybody": _tool,
}
