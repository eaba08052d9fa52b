"""The times of pushed facts: which are the latest, and what history has of them."""

import asyncio
from typing import Any

import pytest

from tests.api.defining import API, WEB, history, item, latest, push
from tests.service import Service


@pytest.mark.spec("facts.older-pushes-are-history-alone")
async def test_an_item_that_is_older_than_the_latest_goes_into_history_alone(
    covered: Service,
) -> None:
    await push(covered, item(timestamp="2026-11-21T11:00:00Z", lines=5))
    answer = await push(covered, item(timestamp="2026-11-21T10:00:00+00:00", lines=4))
    [one] = answer["items"]
    assert (one["accepted"], one["latest"], one["stored"]) == (True, False, ["lines"])
    assert await latest(covered) == {WEB: {"lines": 5}}
    answer = await push(covered, item(timestamp="2026-11-21T12:00:00+00:30", lines=6))
    assert (answer["items"][0]["timestamp"], answer["items"][0]["latest"]) == (
        "2026-11-21T11:30:00.000+00:00",
        True,
    )
    assert await latest(covered) == {WEB: {"lines": 6}}
    assert [row["facts"]["lines"] for row in await history(covered)] == [6, 5, 4]


async def test_of_several_items_about_an_entity_the_newest_is_the_latest(covered: Service) -> None:
    times = [f"2026-11-21T{hour:02}:00:00Z" for hour in (9, 11, 10)]
    answer = await push(
        covered, *(item(timestamp=time, lines=number) for number, time in enumerate(times))
    )
    assert [one["latest"] for one in answer["items"]] == [False, True, False]
    assert await latest(covered) == {WEB: {"lines": 1}}
    assert [row["facts"]["lines"] for row in await history(covered)] == [1, 2, 0]


@pytest.mark.spec("facts.pushes-can-be-repeated")
async def test_a_push_that_is_repeated_changes_nothing(covered: Service) -> None:
    items = (item(timestamp="2026-11-21T11:00:00Z", lines=5), item(API, lines=6, tool="cov"))
    first = await push(covered, *items)
    rows = await history(covered), await history(covered, API)
    assert await push(covered, *items) == first
    assert await push(covered, *items, *items) == first | {
        "acceptedItems": 4,
        "items": first["items"] * 2,
    }
    assert (await history(covered), await history(covered, API)) == rows
    assert list(map(len, rows)) == [1, 1]


@pytest.mark.spec("facts.pushes-can-be-repeated", "facts.history-is-append-only")
async def test_other_facts_of_a_time_that_history_has_are_refused(covered: Service) -> None:
    time = "2026-11-21T11:00:00Z"
    await push(covered, item(timestamp=time, lines=5))
    answer = await push(covered, item(timestamp=time, lines=6), item(API, time, lines=7))
    first, second = answer["items"]
    assert (first["accepted"], first["stored"], first["latest"]) == (False, [], False)
    assert first["problems"] == [
        {"path": "items[0].timestamp", "message": "other facts of this time are stored already"}
    ]
    assert second["accepted"] is True
    assert await latest(covered) == {WEB: {"lines": 5}, API: {"lines": 7}}
    assert [row["facts"] for row in await history(covered)] == [{"lines": 5}]


async def test_pushes_at_once_lose_nothing_and_the_newest_is_the_latest(covered: Service) -> None:
    def of(second: int) -> list[dict[str, Any]]:
        time = f"2026-11-21T11:00:{second:02}Z"
        # In opposite orders, so that writers that wait for each other would be seen.
        items = [item(time_of, time, lines=second) for time_of in (WEB, API, "resource:db")]
        return items if second % 2 else items[::-1]

    answers = await asyncio.gather(*(push(covered, *of(second)) for second in range(20)))
    assert sum(answer["acceptedItems"] for answer in answers) == 60
    assert set(map(str, (await latest(covered)).values())) == {"{'lines': 19}"}
    rows = await history(covered, API)
    assert [row["facts"]["lines"] for row in rows] == list(range(19, -1, -1))
