"""Random histories: several clients that write and read the same few entities at once.

What a client does depends on the seed and on what it has seen, as with people: it builds on the
revision that it read last, and removes entities whose ids it knows.
"""

import asyncio
import random
import sys
from collections.abc import Awaitable, Callable, Sequence
from itertools import count
from typing import NamedTuple

from tests.model.calls import UNKNOWN, Answer, Call
from tests.model.checking import Event
from tests.model.state import Content

NAMES = "abcd"
_HALVES = (NAMES[:2], NAMES[2:])
SETS = ("one", "two")
# In one of so many histories the entities of two sets point at each other.
_MUTUAL = 4
NOBODY = "00000000-0000-4000-8000-000000000000"

_VERBS = {
    "put": 10, "post": 6, "delete": 2, "remove": 4, "restore": 7, "try": 1,
    "set": 4, "page": 2, "sets": 1, "revisions": 1, "items": 1, "item": 1, "entity": 2, "refs": 3,
    "filter": 3, "compliance": 3, "ownership": 4, "everybody": 2,
}  # fmt: skip
_WRITES = {"put", "try", "post", "delete", "restore"}
_OF_A_SET = _WRITES | {"set", "page", "revisions", "items"}


class Client(NamedTuple):
    """Who asks, and how a call of theirs is answered."""

    actor: str
    ask: Callable[[Call], Awaitable[Answer]]


class _Person:
    """A client in one history: its chance, and what it has seen.

    `mutual`: each set has names of its own, and its entities point at those of the other.
    """

    def __init__(self, seed: str, namespace: str, ids: dict[str, str], *, mutual: bool) -> None:
        self._chance = random.Random(seed)
        self._mutual = mutual
        self._namespace = namespace
        self._ids = ids  # of entities, shared by all who take part
        self._revisions: dict[str, int] = {}

    def call(self, verb: str | None = None) -> Call:
        """The next call."""
        chance = self._chance
        verb = verb or chance.choices(list(_VERBS), list(_VERBS.values()))[0]
        call = Call(verb, self._namespace)
        if verb in _OF_A_SET:
            call = call._replace(set=f"{self._namespace}-{chance.choice(SETS)}")
            return self._write(call) if verb in _WRITES else call
        if verb == "remove":
            known = [*self._ids.values()] if chance.random() < 0.9 else []
            return call._replace(uid=chance.choice(known or [NOBODY]))
        if verb == "refs":
            return call._replace(ref=all_refs(self._namespace))
        if verb == "filter":
            return call._replace(owner=chance.choice(("", "", "v1", "v2")))
        if verb in {"sets", "everybody"}:
            return call
        return call._replace(ref=f"component:{self._namespace}/{chance.choice(NAMES)}")

    def saw(self, call: Call, answer: Answer) -> None:
        """Remember what later calls may build on."""
        body = answer.body if isinstance(answer.body, dict) else {}
        if call.set is not None and isinstance(body.get("revision"), int):
            self._revisions[call.set] = body["revision"]
        for item in body.get("items") or [body]:
            if isinstance(item, dict) and "entityRef" in item and "id" in item:
                self._ids[item["entityRef"]] = item["id"]

    def _write(self, call: Call) -> Call:
        chance = self._chance
        assert call.set is not None
        known = self._revisions.get(call.set, 0)
        call = call._replace(
            if_match=known if chance.random() < 0.35 else None,
            take=chance.random() < (0.2 if call.verb == "restore" else 0.45),
        )
        if call.verb == "restore":
            call = call._replace(number=chance.choice((1, max(1, known - 1), known + 1, 2)))
        if call.verb == "post":
            outside = chance.random() < 0.15
            items = self._contents(1, call.set)
            return call._replace(items=items, set=None if outside else call.set)
        if chance.random() < 0.25:
            call = call._replace(max_removals=chance.choice(("0", "1", "50%")))
        if call.verb in {"put", "try"}:
            number = chance.choice((0, 1, 2, 2, 3, 4))
            call = call._replace(items=self._contents(number, call.set))
        return call

    def _contents(self, number: int, set_id: str | None) -> tuple[Content, ...]:
        chance = self._chance
        own, others = NAMES, NAMES
        if self._mutual:
            own, others = _HALVES if str(set_id).endswith(SETS[0]) else _HALVES[::-1]
        return tuple(
            Content(
                self._namespace,
                name,
                chance.choice(("v1", "v2", "v3")),
                tuple(
                    f"component:{self._namespace}/{other}"
                    for other in chance.sample(others, chance.choice((0, 0, 1, 2)))
                    if other != name
                ),
                chance.choice((None, None, "Title")),
            )
            for name in chance.sample(own, min(number, len(own)))
        )


def all_refs(namespace: str) -> str:
    """The references of a history, which `refs` asks for."""
    return " ".join(f"component:{namespace}/{name}" for name in NAMES)


async def recorded(seed: int, clients: Sequence[Client], longest: int = 12) -> list[Event]:
    """One history: some begin alone, then all act at once, and at the end everything is read."""
    chance = random.Random(f"history {seed}")
    namespace = f"h{seed}"
    ids: dict[str, str] = {}
    acting = chance.randint(3, min(4, len(clients)))
    people = [
        _Person(f"{seed} {number}", namespace, ids, mutual=seed % _MUTUAL == 0)
        for number in range(acting)
    ]
    ticks = count()
    history: list[Event] = []

    async def act(number: int, call: Call) -> None:
        began = next(ticks)
        answer = await clients[number].ask(call)
        ended = sys.maxsize if answer == UNKNOWN else next(ticks)
        history.append(Event(number, clients[number].actor, call, answer, began, ended))
        people[number].saw(call, answer)

    async def live(number: int, calls: int) -> None:
        for _ in range(calls):
            await act(number, people[number].call())

    for number in range(chance.randint(1, 4)):
        await act(number % acting, people[number % acting].call("put"))
    shares = [number % acting for number in range(chance.randint(6, longest))]
    await asyncio.gather(*(live(number, shares.count(number)) for number in range(acting)))
    for number, call in enumerate(_closing(namespace)):
        await act(number % acting, call)
    return history


def _closing(namespace: str) -> list[Call]:
    sets = [f"{namespace}-{name}" for name in SETS]
    return [
        Call("sets", namespace),
        *(Call(verb, namespace, name) for verb in ("set", "revisions") for name in sets),
        Call("refs", namespace, ref=all_refs(namespace)),
        Call("filter", namespace),
        Call("everybody", namespace),
        *(Call("ownership", namespace, ref=ref) for ref in all_refs(namespace).split()),
    ]


async def histories(
    seeds: Sequence[int], clients: Sequence[Client], at_once: int = 4
) -> dict[int, list[Event]]:
    """The history of each seed; some are made at once."""
    found: dict[int, list[Event]] = {}
    waiting = iter(seeds)

    async def work() -> None:
        for seed in waiting:
            found[seed] = await recorded(seed, clients)

    await asyncio.gather(*(work() for _ in range(at_once)))
    return found
