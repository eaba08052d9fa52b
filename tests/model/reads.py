"""The reads of the sequential model: what each shows of a state."""

from collections.abc import Callable
from typing import Any

from tests.model.calls import Answer, Call
from tests.model.state import Draft, named

NOT_FOUND = Answer(404, {"name": "NotFoundError"})


def _set(state: Draft, call: Call) -> Answer:
    assert call.set is not None
    found = state.set(call.set)
    if not found.order:
        return NOT_FOUND
    tag = f'"{found.revision}"'
    items = state.items(call.set)
    return Answer(200, {"set": call.set, "revision": found.revision, "items": items, "etag": tag})


def _page(state: Draft, call: Call) -> Answer:
    whole = _set(state, call)
    if whole.status != 200:
        return whole
    items = whole.body["items"]
    return Answer(200, whole.body | {"items": items[:1], "more": len(items) > 1})


def _sets(state: Draft, call: Call) -> Answer:
    shown = [
        {
            "id": name,
            "itemCount": len(found.order),
            "revision": found.revision,
            "updatedBy": found.updated_by,
        }
        for name, found in sorted(state.sets.items())
        if found.order
    ]
    return Answer(200, shown)


def _revisions(state: Draft, call: Call) -> Answer:
    assert call.set is not None
    found = state.set(call.set)
    if not found.revision:
        return NOT_FOUND
    shown = [
        {
            "revision": revision.number,
            "createdBy": revision.created_by,
            "changes": named(revision.changes),
            **({"restored": revision.restored} if revision.restored else {}),
        }
        for revision in reversed(found.past)
    ]
    return Answer(200, shown)


def _items(state: Draft, call: Call) -> Answer:
    assert call.set is not None
    return Answer(200, {"items": state.items(call.set)})


def _item(state: Draft, call: Call) -> Answer:
    found = state.entities.get(call.ref)
    return NOT_FOUND if found is None else Answer(200, found.item())


def _entity(state: Draft, call: Call) -> Answer:
    shown = state.shown(call.ref)
    return NOT_FOUND if shown is None else Answer(200, shown)


def _refs(state: Draft, call: Call) -> Answer:
    return Answer(200, [state.shown(ref) for ref in call.ref.split()])


def _filter(state: Draft, call: Call) -> Answer:
    found = [
        state.shown(ref)
        for ref, entity in sorted(state.entities.items())
        if call.owner in {"", entity.content.owner}
    ]
    return Answer(200, found)


def _compliance(state: Draft, call: Call) -> Answer:
    entity = state.entities.get(call.ref)
    if entity is None:
        return Answer(404)
    metadata = {
        "hasTitle": entity.content.title is not None,
        "hasDescription": False,
        "hasTags": False,
        "hasOwner": True,
    }
    return Answer(200, {"metadata": metadata, "ownership": _owned(state, call.ref)})


def _ownership(state: Draft, call: Call) -> Answer:
    if call.ref not in state.entities:
        return Answer(404)
    return Answer(200, _facts(state, call.ref))


def _everybody(state: Draft, call: Call) -> Answer:
    return Answer(200, [_facts(state, ref) for ref in sorted(state.entities)])


def _facts(state: Draft, ref: str) -> dict[str, Any]:
    written = state.entities[ref].updated_at
    return {"entityRef": ref, "facts": _owned(state, ref), "timestamp": written}


def _owned(state: Draft, ref: str) -> dict[str, Any]:
    relations = state.relations(ref)
    related = any(relation["type"] != "ownedBy" for relation in relations)
    owners = [one["targetRef"] for one in relations if one["type"] == "ownedBy"]
    return {
        "hasOwner": True,
        "hasGroupOwner": True,
        "hasRelationships": related,
        "ownerExists": any(owner in state.entities for owner in owners),
    }


READS: dict[str, Callable[[Draft, Call], Answer]] = {
    "set": _set,
    "page": _page,
    "sets": _sets,
    "revisions": _revisions,
    "items": _items,
    "item": _item,
    "entity": _entity,
    "refs": _refs,
    "filter": _filter,
    "compliance": _compliance,
    "ownership": _ownership,
    "everybody": _everybody,
}
