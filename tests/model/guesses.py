"""What may have come of a write whose answer nobody heard: it was done, at some time, or never.

What only its answer would have told is guessed from what others saw: the id of an entity is the one
that it has in every answer, and its time is one of those that are shown of it, or one that nobody
saw.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import permutations, product
from typing import Any

from tests.model.calls import Answer, Call
from tests.model.model import carried_out
from tests.model.state import Draft, State


class Guesses:
    """The guesses for one history, from the bodies of its answers."""

    def __init__(self, bodies: Iterable[Any]) -> None:
        self._ids: dict[str, str] = {}
        self._times: defaultdict[str, set[str]] = defaultdict(set)
        for body in bodies:
            self._look(body)

    def states(self, state: State, call: Call, actor: str) -> Iterator[State]:
        """The states after the call if it was done, each of them another one than before."""
        orders = _orders(state, call)
        refs = orders[0]
        times = sorted({time for ref in refs for time in self._times[ref]})
        for order, time in product(orders, [*times, f"unseen, of {actor}: {call}"]):
            items = [
                {"entityRef": ref, "id": self._ids.get(ref, f"unseen {ref}"), "updatedAt": time}
                for ref in order
            ]
            guess = Answer(204) if call.verb == "remove" else Answer(200, {"items": items})
            after = carried_out(state, call, actor, guess)
            if after is not None and after != state:
                yield after

    def _look(self, body: Any) -> None:
        if isinstance(body, list):
            for each in body:
                self._look(each)
        if not isinstance(body, dict):
            return
        if "entityRef" in body:
            if "id" in body:
                self._ids[body["entityRef"]] = body["id"]
            self._times[body["entityRef"]] |= {
                body[key] for key in ("updatedAt", "timestamp") if key in body
            }
        metadata = body.get("metadata", {})
        if "uid" in metadata:
            ref = f"component:{metadata['namespace']}/{metadata['name']}"
            self._ids[ref] = metadata["uid"]
        for each in body.values():
            self._look(each)


def _orders(state: State, call: Call) -> list[Sequence[str]]:
    """The orders in which the references of a write may come back; one, but for some restores."""
    if call.verb != "restore":
        return [[item.ref for item in call.items]]
    assert call.set is not None
    past = Draft(state).set(call.set).past
    if not 0 < call.number <= len(past):
        return [[]]
    target = past[call.number - 1]
    refs = [item.ref for item in target.items]
    return [refs] if target.exact else [list(order) for order in permutations(refs)]
