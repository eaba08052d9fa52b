"""The checker refuses histories that no correct service can bring about."""

import copy
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from tests.model.calls import UNKNOWN, Answer, Call
from tests.model.checking import Event, is_idle, order, smallest, table
from tests.model.clients import inside
from tests.model.histories import Client, recorded
from tests.model.reads import READS
from tests.model.story import BACK, LOST, STALE, call, content, tell
from tests.service import Service

# What is tested here is the checker.
pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)

ACTOR = "user:default/reader"


@pytest.fixture
async def clients(service: Service) -> AsyncIterator[list[Client]]:
    async with inside([service]) as found:
        yield found


@pytest.fixture
async def told(clients: list[Client]) -> list[Event]:
    return await tell(clients)


def answered(events: list[Event], at: int, answer: Answer) -> list[Event]:
    """The same history, with another answer at one place."""
    return [*events[:at], events[at]._replace(answer=answer), *events[at + 1 :]]


def changed(events: list[Event], at: int, change: Callable[[Any], None]) -> list[Event]:
    """The same history, with the body of one answer changed."""
    body = copy.deepcopy(events[at].answer.body)
    change(body)
    return answered(events, at, Answer(events[at].answer.status, body))


async def test_a_read_of_what_was_replaced_before_it_began_is_refused(told: list[Event]) -> None:
    stale = answered(told, STALE, told[1].answer)
    assert order(stale) is None
    # A read that began before the push ended may still show what was there.
    early = stale[STALE]._replace(began=told[2].began)
    stale[STALE] = early
    assert order(stale) is not None


async def test_a_push_that_overwrites_one_it_did_not_know_is_refused(told: list[Event]) -> None:
    both = [told[0], told[2], told[LOST]._replace(answer=told[2].answer)]
    assert order(both) is None

    def as_if_there_were_no_guard(body: Any) -> None:
        body["revision"] = 3
        body["etag"] = '"3"'
        body["items"][0] = told[2].answer.body["items"][0]

    assert order(changed([told[0], told[2], both[2]], 2, as_if_there_were_no_guard)) is None
    # At once, one of them wins: still not both.
    together = [event._replace(began=10, ended=20) for event in both[1:]]
    assert order([told[0], *together]) is None
    assert order([told[0], together[0], told[LOST]._replace(began=10, ended=20)]) is not None


async def test_a_push_that_nobody_finds_again_is_refused(told: list[Event]) -> None:
    for at, event in enumerate(told):
        if event.call.verb in {"put", "post", "remove", "restore"} and event.answer.status < 300:
            assert order(told[:at] + told[at + 1 :]) is None, at


async def test_a_read_that_mixes_two_revisions_is_refused(told: list[Event]) -> None:
    def mix(body: Any) -> None:
        body["items"][0] = told[1].answer.body["items"][0]

    torn = changed(told, STALE, mix)
    assert order(torn) is None
    torn[STALE] = torn[STALE]._replace(began=0, ended=100)
    assert order(torn) is None


async def test_one_id_for_two_entities_is_refused(told: list[Event]) -> None:
    def same(body: Any) -> None:
        body["items"][1]["id"] = body["items"][0]["id"]

    assert order(changed(told[:1], 0, same)) is None


async def test_an_entity_that_comes_back_under_another_id_is_refused(told: list[Event]) -> None:
    def other(body: Any) -> None:
        body["items"][0]["id"] = "00000000-0000-4000-8000-000000000001"

    assert told[BACK].answer.body["items"][0]["id"] == told[0].answer.body["items"][0]["id"]
    assert order(changed(told[: BACK + 1], BACK, other)) is None


@pytest.mark.slow
async def test_a_refusal_without_its_reason_is_refused(told: list[Event]) -> None:
    refusals = [event.answer for event in told if event.answer.status in {404, 409, 412}]
    assert len(refusals) == 5
    for at, event in enumerate(told):
        for refusal in refusals:
            if event.answer != refusal:
                assert order(answered(told, at, refusal)) is None, (at, refusal)
    wrong = Answer(412, {"name": "PreconditionFailedError", "revision": 1})
    assert order(answered(told[:3], 2, wrong)) is None


async def test_two_readers_who_saw_two_pushes_in_opposite_orders_are_refused(
    clients: list[Client],
) -> None:
    one, two = (
        call("put", set=f"s-{name}", items=(content(name, "v1"),)) for name in ("one", "two")
    )
    first, second = [
        Event(number, clients[number].actor, write, await clients[number].ask(write), 0, 100)
        for number, write in enumerate((one, two))
    ]
    nothing = Answer(404, {"name": "NotFoundError"})
    reads = {
        name: (call("set", set=f"s-{name}"), await clients[0].ask(call("set", set=f"s-{name}")))
        for name in ("one", "two")
    }

    def reader(client: int, sees: str, misses: str) -> list[Event]:
        began = client * 20
        asked, shown = reads[sees]
        return [
            Event(client, ACTOR, asked, shown, began, began + 1),
            Event(client, ACTOR, reads[misses][0], nothing, began + 2, began + 3),
        ]

    assert order([first, second, *reader(2, "one", "two")]) is not None
    assert order([first, second, *reader(3, "two", "one")]) is not None
    assert order([first, second, *reader(2, "one", "two"), *reader(3, "two", "one")]) is None


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all that is in a body and holds nothing itself."""
    children = (
        value.items() if isinstance(value, dict) else enumerate(value or ())
        if isinstance(value, list) else None
    )  # fmt: skip
    if children is None:
        yield path
        return
    for key, child in children:
        yield from leaves(child, (*path, key))


def spoiled(value: Any) -> Any:
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int) else f"{value}x"


@pytest.mark.slow
async def test_no_answer_of_calls_one_after_another_can_differ_in_any_place(
    told: list[Event],
) -> None:
    places = 0
    for at, event in enumerate(told):
        for *outer, last in leaves(event.answer.body) if event.answer.body else ():

            def spoil(body: Any, outer: list[Any] = outer, last: Any = last) -> None:
                for key in outer:
                    body = body[key]
                body[last] = spoiled(body[last])

            places += 1
            assert order(changed(told, at, spoil)) is None, (at, event.call, outer, last)
    assert places > 500


async def test_of_a_refused_history_the_part_that_shows_why_is_left(told: list[Event]) -> None:
    left = smallest(answered(told, STALE, told[1].answer))
    assert [event.began for event in left if is_idle(event)] == [told[STALE].began]
    assert [event for event in left if not is_idle(event)] == [
        event for event in told if not is_idle(event)
    ]
    assert "client 0: set {'set': 's-one'}" in table(left)


Fault = Callable[[Call, Answer, dict[Call, Answer]], Answer]


def keeps_reads(call_: Call, answer: Answer, before: dict[Call, Answer]) -> Answer:
    """As if every second read were answered from memory."""
    if call_ in before:
        return before.pop(call_)
    before[call_] = answer
    return answer


def reads_in_two_moments(call_: Call, answer: Answer, before: dict[Call, Answer]) -> Answer:
    """As if the items of a set were read at another moment than its revision."""
    last = before.get(call_)
    before[call_] = answer
    if call_.verb != "set" or last is None or {answer.status, last.status} != {200}:
        return answer
    return Answer(200, answer.body | {"items": last.body["items"]})


@pytest.mark.slow
@pytest.mark.parametrize("fault", [keeps_reads, reads_in_two_moments])
async def test_a_service_that_reads_wrongly_is_found_out_by_random_histories(
    clients: list[Client], fault: Fault
) -> None:
    before: dict[Call, Answer] = {}

    def faulty(client: Client) -> Client:
        async def ask(call_: Call) -> Answer:
            answer = await client.ask(call_)
            return fault(call_, answer, before) if call_.verb in READS else answer

        return Client(client.actor, ask)

    assert await found_out([faulty(client) for client in clients])


async def test_a_service_that_does_not_heed_if_match_is_found_out_by_random_histories(
    clients: list[Client],
) -> None:
    def faulty(client: Client) -> Client:
        return Client(client.actor, lambda call_: client.ask(call_._replace(if_match=None)))

    assert await found_out([faulty(client) for client in clients])


async def found_out(clients: list[Client]) -> bool:
    """Whether one of some histories has no order."""
    for seed in range(20):
        if order(await recorded(seed, clients)) is None:
            return True
    return False


def lost(event: Event) -> Event:
    """The same call, whose answer nobody heard."""
    return event._replace(answer=UNKNOWN, ended=sys.maxsize)


def late(event: Event) -> Event:
    """The same call, made after all others of a story have ended."""
    return event._replace(began=100, ended=101)


async def test_any_write_of_which_the_answer_was_lost_may_have_been_done(
    told: list[Event],
) -> None:
    writes = [at for at, event in enumerate(told) if not is_idle(event)]
    assert len(writes) > 5
    for at in writes:
        assert order([*told[:at], lost(told[at]), *told[at + 1 :]]) is not None, at


async def test_a_write_of_which_the_answer_was_lost_is_done_once_or_never(
    told: list[Event],
) -> None:
    first, old, write, _, new = told[:5]
    assert order([first, old, lost(write), late(old)]) is not None
    assert order([first, old, lost(write), new]) is not None
    # It may be done long after whoever asked for it has gone.
    assert order([first, lost(write), old._replace(began=50, ended=51), late(new)])
    assert order([first, lost(write), new, late(old)]) is None
    assert order([first, old, lost(write)._replace(began=50), new]) is None


async def test_what_was_acknowledged_is_not_explained_by_what_may_have_been_done(
    told: list[Event],
) -> None:
    first, old, write, _, new = told[:5]
    assert order([first, write, lost(told[LOST]), new]) is not None
    assert order([first, write, lost(told[LOST]), late(old)]) is None
