"""The sequential model: what each call answers, and what it changes, when it is alone.

A fresh id and the time of a change cannot be known beforehand: they are taken from the answer, and
every later read has to show the same.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tests.model.calls import Answer, Call
from tests.model.reads import NOT_FOUND, READS
from tests.model.state import Content, Counts, Draft, Entity, Refused, Revision, Set, State, named


def step(state: State, call: Call, actor: str, answer: Answer) -> State | None:
    """The state after a call that was answered so; None when it cannot be answered so here."""
    draft = Draft(state)
    if call.verb in READS:
        return state if READS[call.verb](draft, call) == answer else None
    try:
        expected = _WRITES[call.verb](draft, call, actor, answer)
    except Refused:
        return None
    return draft.done() if expected == answer else None


def carried_out(state: State, call: Call, actor: str, guess: Answer) -> State | None:
    """The state after a write that was done; None when it is refused here, or not so done.

    Of the guess only what the model cannot know is looked at: ids, the time, the order.
    """
    draft = Draft(state)
    try:
        expected = _WRITES[call.verb](draft, call, actor, guess)
    except Refused:
        return None
    return draft.done() if expected.status < 300 else None


class _Sorted(NamedTuple):
    """What a write would do to a set."""

    added: list[Content]
    taken: list[Content]
    updated: list[Content]
    removed: list[str]
    unchanged: list[str]

    def counts(self) -> Counts:
        added = len(self.added) + len(self.taken)
        return added, len(self.updated), len(self.removed), len(self.unchanged)


def _put(draft: Draft, call: Call, actor: str, answer: Answer) -> Answer:
    return _replace(draft, call, call.items, actor, answer)


def _delete(draft: Draft, call: Call, actor: str, answer: Answer) -> Answer:
    return _replace(draft, call, (), actor, answer)


def _restore(draft: Draft, call: Call, actor: str, answer: Answer) -> Answer:
    assert call.set is not None
    past = draft.set(call.set).past
    if not 0 < call.number <= len(past):
        return NOT_FOUND
    target = past[call.number - 1]
    wanted = target.items
    if not target.exact and answer.status == 200:
        # Which order comes back is left open when a later push turned round what it kept.
        by_ref = {item.ref: item for item in wanted}
        shown = [item["entityRef"] for item in answer.body["items"]]
        if sorted(shown) != sorted(by_ref):
            raise Refused
        wanted = tuple(by_ref[ref] for ref in shown)
    return _replace(draft, call, wanted, actor, answer, restored=call.number)


def _replace(
    draft: Draft,
    call: Call,
    wanted: Sequence[Content],
    actor: str,
    answer: Answer,
    restored: int | None = None,
) -> Answer:
    assert call.set is not None
    before = draft.set(call.set)
    if call.if_match not in {None, before.revision}:
        return _stale(before)
    refs = [item.ref for item in wanted]
    removed = [ref for ref in before.order if ref not in refs]
    found = _sort(draft, call.set, wanted, removed)
    if found.taken and not call.take:
        return _held(draft, found.taken)
    if call.max_removals is not None and len(removed) > _most(call.max_removals, before):
        return Answer(409, {"name": "ConflictError", "removals": len(removed)})
    if call.verb == "try":
        return _tried(call.set, before, found)
    _write(draft, call.set, found, refs, actor, answer, restored)
    after = draft.set(call.set)
    body = {
        "set": call.set,
        "revision": after.revision,
        "changes": named(found.counts()),
        "items": draft.items(call.set),
        "etag": f'"{after.revision}"',
    }
    return Answer(200, body)


def _post(draft: Draft, call: Call, actor: str, answer: Answer) -> Answer:
    [item] = call.items
    order: list[str] = []
    if call.set is not None:
        before = draft.set(call.set)
        if call.if_match not in {None, before.revision}:
            return _stale(before)
        order = [*before.order, *({item.ref} - set(before.order))]
    found = _sort(draft, call.set, [item], [])
    if found.taken and not call.take:
        return _held(draft, found.taken)
    _write(draft, call.set, found, order, actor, answer)
    return Answer(200, draft.entities[item.ref].item())


def _remove(draft: Draft, call: Call, actor: str, answer: Answer) -> Answer:
    for ref, entity in draft.entities.items():
        if entity.uid == call.uid:
            _lose(draft, entity.set, [ref], actor)
            del draft.entities[ref]
            return Answer(204)
    return NOT_FOUND


def _sort(
    draft: Draft, set_id: str | None, wanted: Sequence[Content], removed: list[str]
) -> _Sorted:
    found = _Sorted([], [], [], removed, [])
    for item in wanted:
        held = draft.entities.get(item.ref)
        if held is None:
            found.added.append(item)
        elif held.set != set_id:
            found.taken.append(item)
        elif held.content != item:
            found.updated.append(item)
        else:
            found.unchanged.append(item.ref)
    return found


def _write(
    draft: Draft,
    set_id: str | None,
    found: _Sorted,
    order: list[str],
    actor: str,
    answer: Answer,
    restored: int | None = None,
) -> None:
    """Carry out what was sorted; a new revision when something changes."""
    changed = [*found.added, *found.taken, *found.updated]
    losers = {draft.entities[item.ref].set for item in found.taken}
    for loser in losers:
        lost = [item.ref for item in found.taken if draft.entities[item.ref].set == loser]
        _lose(draft, loser, lost, actor)
    for ref in found.removed:
        del draft.entities[ref]
    shown = _shown(answer)
    if len({shown[item.ref]["updatedAt"] for item in changed if item.ref in shown}) > 1:
        raise Refused
    for item in changed:
        if item.ref not in shown:
            raise Refused
        seen = shown[item.ref]
        uid = draft.uid(item.ref, seen["id"])
        draft.entities[item.ref] = Entity(item, set_id, uid, actor, seen["updatedAt"])
    if set_id is not None:
        _arrange(draft, set_id, order, {item.ref for item in changed})
        if changed or found.removed:
            _record(draft, set_id, found.counts(), actor, restored)


def _shown(answer: Answer) -> dict[str, Any]:
    """The items of an answer to a write, by reference."""
    if answer.status != 200:
        raise Refused
    items = answer.body.get("items", [answer.body])
    return {item["entityRef"]: item for item in items}


def _lose(draft: Draft, set_id: str | None, lost: list[str], actor: str) -> None:
    """A set loses entities to another set, or for good."""
    if set_id is None:
        return
    order = [ref for ref in draft.set(set_id).order if ref not in lost]
    _arrange(draft, set_id, order, set())
    _record(draft, set_id, (0, 0, len(lost), len(order)), actor, None)


def _arrange(draft: Draft, set_id: str, order: list[str], changed: set[str]) -> None:
    """Give a set a new order; one that turns round what is kept is not undone by a restore."""
    before = draft.set(set_id)
    if not before.revision and not order:
        return
    kept = set(before.order) & set(order) - changed
    turned = [ref for ref in before.order if ref in kept] != [ref for ref in order if ref in kept]
    past = before.past
    if turned:
        past = tuple(revision._replace(exact=False) for revision in past)
    draft.sets[set_id] = before._replace(order=tuple(order), past=past)
    if turned and set(before.order) == set(order) and not changed:
        # The same content in another order is the same revision, which then has that order.
        now = tuple(draft.entities[ref].content for ref in order)
        past = (*past[:-1], past[-1]._replace(items=now, exact=True))
        draft.sets[set_id] = draft.sets[set_id]._replace(past=past)


def _record(draft: Draft, set_id: str, changes: Counts, actor: str, restored: int | None) -> None:
    """A new revision of a set, which already has its new order."""
    now = draft.set(set_id)
    number = now.revision + 1
    added, updated, removed, _ = changes
    counts = (added, updated, removed, len(now.order) - added - updated)
    items = tuple(draft.entities[ref].content for ref in now.order)
    revision = Revision(number, actor, counts, restored, items)
    draft.sets[set_id] = Set(number, now.order, actor, (*now.past, revision))


def _most(text: str, before: Set) -> int:
    if text.endswith("%"):
        return len(before.order) * int(text[:-1]) // 100
    return int(text)


def _stale(before: Set) -> Answer:
    return Answer(412, {"name": "PreconditionFailedError", "revision": before.revision})


def _held(draft: Draft, taken: list[Content]) -> Answer:
    owners = {item.ref: draft.entities[item.ref].set or "no set" for item in taken}
    conflicts = [{"entityRef": ref, "owner": owner} for ref, owner in sorted(owners.items())]
    return Answer(409, {"name": "ConflictError", "conflicts": conflicts})


def _tried(set_id: str, before: Set, found: _Sorted) -> Answer:
    groups = (
        ("added", [item.ref for item in [*found.added, *found.taken]]),
        ("updated", [item.ref for item in found.updated]),
        ("removed", found.removed),
    )
    difference = [{"entityRef": ref, "change": change} for change, refs in groups for ref in refs]
    body = {
        "set": set_id,
        "dryRun": True,
        "revision": before.revision,
        "changes": named(found.counts()),
        "difference": difference,
    }
    return Answer(200, body)


_WRITES: dict[str, Callable[[Draft, Call, str, Answer], Answer]] = {
    "put": _put,
    "try": _put,
    "post": _post,
    "delete": _delete,
    "remove": _remove,
    "restore": _restore,
}
