"""When a host may be called again."""

import asyncio
from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factbook.clock import DAY, MINUTE, SECOND
from factbook.outbound.client import (
    LONGEST_PAUSE,
    Allowance,
    Governor,
    find_allowance,
    find_retry_time,
)
from factbook.outbound.outcomes import HostReply
from tests.service import NOON, Time


def http_date(moment: int) -> str:
    return format_datetime(datetime.fromtimestamp(moment // SECOND, UTC), usegmt=True)


def github(remaining: int, *, limit: int = 5000, reset: int = NOON + 30 * MINUTE) -> HostReply:
    names = {"limit": limit, "remaining": remaining, "reset": reset // SECOND}
    return HostReply(200, {f"x-ratelimit-{name}": str(value) for name, value in names.items()})


@given(st.integers(0, 86_400))
def test_seconds_of_retry_after_count_from_the_answer(seconds: int) -> None:
    assert find_retry_time(str(seconds), NOON) == NOON + seconds * SECOND


@given(st.integers(0, 86_400))
def test_a_date_of_retry_after_is_the_moment_itself(seconds: int) -> None:
    assert find_retry_time(http_date(NOON + seconds * SECOND), NOON) == NOON + seconds * SECOND


@given(st.integers(0, 3600), st.integers(-10_000, 10_000))
def test_a_date_of_retry_after_is_read_by_the_clock_of_the_host(seconds: int, ahead: int) -> None:
    value = http_date(NOON + (seconds + ahead) * SECOND)
    assert find_retry_time(value, NOON, -ahead * SECOND) == NOON + seconds * SECOND


@pytest.mark.slow
@given(
    st.text(max_size=40)
    | st.from_regex(r"[0-9]{1,20}|-[0-9]+|[A-Z][a-z]{2}, \d+ .*", fullmatch=True)
)
def test_whatever_retry_after_holds_the_wait_is_none_or_at_most_a_day(value: str) -> None:
    found = find_retry_time(value, NOON)
    assert found is None or NOON <= found <= NOON + DAY


@pytest.mark.parametrize("value", ["86401", "999999999999", "Thu, 31 Dec 9998 23:59:59 GMT"])
def test_nobody_can_ask_for_more_than_a_day(value: str) -> None:
    assert find_retry_time(value, NOON) == NOON + DAY


def test_what_is_neither_seconds_nor_a_date_says_nothing() -> None:
    values = ["", "soon", "-5", "1e3", "٣", "Mon, 99 Nov 2026 12:00:00 GMT"]
    assert {value: find_retry_time(value, NOON) for value in values} == dict.fromkeys(values)


def test_the_headers_of_each_vendor_are_read(subtests: pytest.Subtests) -> None:
    cases: dict[str, tuple[dict[str, str], Allowance]] = {
        "GitHub": (
            {
                "x-ratelimit-limit": "5000",
                "x-ratelimit-remaining": "4987",
                "x-ratelimit-reset": str(NOON // SECOND + 600),
            },
            Allowance(5000, 4987, NOON + 600 * SECOND),
        ),
        "PagerDuty": (
            {"ratelimit-limit": "960", "ratelimit-remaining": "12", "ratelimit-reset": "44"},
            Allowance(960, 12, NOON + 44 * SECOND),
        ),
        "GitLab": (
            {
                "ratelimit-limit": "2000",
                "ratelimit-remaining": "1999",
                "ratelimit-reset": str(NOON // SECOND + 60),
            },
            Allowance(2000, 1999, NOON + 60 * SECOND),
        ),
        "Datadog": (
            {
                "x-ratelimit-limit": "1000",
                "x-ratelimit-period": "3600",
                "x-ratelimit-remaining": "0",
                "x-ratelimit-reset": "17",
                "x-ratelimit-name": "monitors",
            },
            Allowance(1000, 0, NOON + 17 * SECOND),
        ),
        "a policy after the number": (
            {"ratelimit-limit": "100, 100;w=60", "ratelimit-remaining": "7"},
            Allowance(100, 7, None),
        ),
    }
    for case, (headers, expected) in cases.items():
        with subtests.test(case):
            assert find_allowance(headers, NOON) == expected


@pytest.mark.slow
@given(st.dictionaries(st.sampled_from(["limit", "remaining", "reset"]), st.text(max_size=15)))
def test_headers_that_make_no_sense_say_nothing_or_end_within_a_day(found: dict[str, str]) -> None:
    allowance = find_allowance({f"x-ratelimit-{name}": text for name, text in found.items()}, NOON)
    assert allowance is None or NOON <= (allowance.reset_at or NOON) <= NOON + DAY


async def test_a_host_whose_clock_is_ahead_is_waited_for_by_its_own_clock() -> None:
    governor = Governor(clock=Time())
    ahead = 7 * MINUTE
    reply = github(0, reset=NOON + ahead + MINUTE)
    headers = {**reply.headers, "date": http_date(NOON + ahead)}
    governor.learn("", HostReply(200, headers), refused=False)
    assert governor.held_until() == NOON + MINUTE


@pytest.mark.parametrize(("remaining", "held"), [(501, False), (500, True), (0, True)])
async def test_calls_stop_before_the_last_tenth_and_go_on_after_the_reset(
    remaining: int, held: bool
) -> None:
    time = Time()
    governor = Governor(clock=time)
    governor.learn("core", github(remaining), refused=False)
    async with governor.turn("core"):
        assert governor.held_until("core") == (NOON + 30 * MINUTE if held else None)
        time.advance(30 * MINUTE)
        assert governor.held_until("core") is None


async def test_calls_under_way_count_as_spent() -> None:
    governor = Governor(at_once=3, clock=Time())
    governor.learn("core", github(502), refused=False)
    async with governor.turn("core"), governor.turn("core"):
        assert governor.held_until("core") is None
        async with governor.turn("core"):
            assert governor.held_until("core") is not None


async def test_one_budget_that_is_spent_leaves_the_others() -> None:
    governor = Governor(clock=Time())
    governor.learn("core", github(0), refused=False)
    async with governor.turn("graphql"):
        assert governor.held_until("graphql") is None
    async with governor.turn("core"):
        assert governor.held_until("core") is not None


async def test_a_limit_too_small_for_a_reserve_is_used_up() -> None:
    governor = Governor(clock=Time())
    governor.learn("", github(1, limit=1), refused=False)
    async with governor.turn():
        assert governor.held_until() is None


async def test_a_pause_that_a_host_asks_for_holds_every_budget() -> None:
    time = Time()
    governor = Governor(clock=time)
    until = governor.learn("core", HostReply(429, {"retry-after": "90"}), refused=True)
    assert until == NOON + 90 * SECOND
    assert governor.held_until("graphql") == until
    time.advance(90 * SECOND)
    assert governor.held_until("graphql") is None


async def test_a_failing_host_may_ask_for_a_pause_too() -> None:
    governor = Governor(clock=Time())
    assert governor.learn("", HostReply(503, {"retry-after": "20"}), refused=False) is None
    assert governor.held_until() == NOON + 20 * SECOND


async def test_refusals_that_name_no_time_make_pauses_of_a_minute_that_double() -> None:
    time = Time()
    governor = Governor(clock=time)
    pauses = []
    for _ in range(7):
        until = governor.learn("", HostReply(403), refused=True)
        assert until is not None
        pauses.append((until - time.now) // MINUTE)
        time.now = until
    assert pauses == [1, 2, 4, 8, 15, 15, 15]
    assert LONGEST_PAUSE == 15 * MINUTE
    governor.learn("", HostReply(200), refused=False)
    assert governor.learn("", HostReply(403), refused=True) == time.now + MINUTE


async def test_a_spent_limit_that_says_when_it_resets_holds_its_own_budget_alone() -> None:
    governor = Governor(clock=Time())
    reply = github(0)
    assert governor.learn("core", HostReply(403, reply.headers), refused=True) == NOON + 30 * MINUTE
    assert governor.held_until("graphql") is None


@pytest.mark.parametrize("at_once", [1, 3])
async def test_as_many_calls_as_allowed_are_under_way(at_once: int) -> None:
    governor = Governor(at_once=at_once)
    under_way, most = 0, 0

    async def call() -> None:
        nonlocal under_way, most
        async with governor.turn():
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(0)
            under_way -= 1

    await asyncio.gather(*(call() for _ in range(10)))
    assert most == at_once


async def test_a_call_that_is_cancelled_gives_its_place_back() -> None:
    governor = Governor(clock=Time())
    held = asyncio.Event()

    async def call() -> None:
        async with governor.turn():
            held.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(call())
    await held.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    governor.learn("", github(501), refused=False)
    async with governor.turn():
        assert governor.held_until() is None


async def test_calls_of_a_paced_budget_begin_at_even_distances_and_others_at_once() -> None:
    time = Time()
    governor = Governor(at_once=6, pace={"core": 120}, clock=time)
    assert [governor.distance("core") for _ in range(3)] == [0.0, 0.5, 1.0]
    assert [governor.distance("graphql") for _ in range(3)] == [0.0, 0.0, 0.0]
    # A pause saves up nothing.
    time.advance(10 * MINUTE)
    assert [governor.distance("core") for _ in range(2)] == [0.0, 0.5]


async def test_a_pace_does_not_wait_for_a_clock_that_was_set_back() -> None:
    time = Time()
    governor = Governor(pace={"core": 120}, clock=time)
    governor.distance("core")
    time.advance(-DAY)
    assert [governor.distance("core") for _ in range(2)] == [0.0, 0.5]


async def test_an_urgent_call_waits_for_urgent_ones_alone() -> None:
    governor = Governor(at_once=1)
    order: list[str] = []
    end = asyncio.Event()

    async def call(name: str, *, urgent: bool = False) -> None:
        async with governor.turn(urgent=urgent):
            order.append(name)
            await end.wait()

    calls = [call("first"), call("second"), call("urgent", urgent=True), call("one", urgent=True)]
    tasks = [asyncio.create_task(one) for one in calls]
    await asyncio.sleep(0)
    assert order == ["first", "urgent"]
    end.set()
    await asyncio.gather(*tasks)
    assert sorted(order[2:]) == ["one", "second"]


async def test_urgent_calls_keep_the_pace_among_themselves_and_others_make_room() -> None:
    time = Time()
    governor = Governor(at_once=6, pace={"core": 120}, clock=time)
    assert [governor.distance("core") for _ in range(3)] == [0.0, 0.5, 1.0]
    assert [governor.distance("core", urgent=True) for _ in range(2)] == [0.0, 0.5]
    assert governor.distance("core") == 2.5
    assert governor.distance("graphql", urgent=True) == 0.0
