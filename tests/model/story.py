"""A history of calls one after another, in which everything happens that can happen to a set."""

from collections.abc import Sequence
from typing import Any

from tests.model.calls import Call
from tests.model.checking import Event
from tests.model.histories import Client
from tests.model.state import Content

# Places in the story below.
LOST, STALE, BACK = 3, 4, 11


def content(name: str, owner: str, *depends_on: str) -> Content:
    return Content("s", name, owner, tuple(f"component:s/{other}" for other in depends_on))


def call(verb: str, **arguments: Any) -> Call:
    return Call(verb, "s", **({"set": "s-one"} | arguments))


def story(uid: str) -> list[tuple[int, Call]]:
    """Calls one after another, in which everything happens once; `uid` is the id of `a`."""
    a, b = content("a", "v1", "b"), content("b", "v1")
    refs = "component:s/a component:s/b"
    ref = {"ref": "component:s/b"}
    return [
        (0, call("put", items=(a, b))),
        (1, call("set")),
        (1, call("put", items=(content("a", "v2"), b), if_match=1)),
        (0, call("put", items=(content("a", "v3"), b), if_match=1)),
        (0, call("set")),
        (2, call("entity", **ref)),
        (2, call("post", set="s-two", items=(b,))),
        (2, call("post", set="s-two", items=(b,), take=True)),
        (3, call("item", **ref)),
        (0, call("set")),
        (1, call("remove", uid=uid)),
        (1, call("put", items=(a,))),
        (0, call("restore", number=1)),
        (0, call("restore", number=9)),
        (0, call("restore", number=1, take=True)),
        (1, call("delete", max_removals="1")),
        (1, call("put", items=(b, a))),
        *((3, call(verb, **ref)) for verb in ("entity", "compliance", "ownership", "item")),
        (3, call("refs", ref=refs)),
        *(
            (3, call(verb))
            for verb in ("set", "page", "sets", "revisions", "filter", "items", "everybody")
        ),
        (3, call("revisions", set="s-two")),
    ]


async def tell(clients: Sequence[Client]) -> list[Event]:
    """The story as the service answers it."""
    events: list[Event] = []
    uid = ""
    for at in range(len(story(uid))):
        client, call_ = story(uid)[at]
        answer = await clients[client].ask(call_)
        events.append(Event(client, clients[client].actor, call_, answer, at * 2, at * 2 + 1))
        uid = uid or answer.body["items"][0]["id"]
    return events
