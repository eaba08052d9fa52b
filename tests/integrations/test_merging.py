"""Merge times from a few pages against the same from the whole history."""

import random
from collections.abc import Iterator
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factbook.clock import DAY, HOUR, MINUTE
from factbook.integrations.code_host import (
    MONTH,
    NEWEST_PULLS,
    MergedPull,
    is_population_complete,
    make_merge_figures,
)
from factbook.outbound.outcomes import Missing, Outcome
from tests.service import NOON

CUTOFF = NOON - MONTH
PAGE = 100


def history(seed: int, size: int, years: float) -> list[MergedPull]:
    """Merged pull requests, some of which were updated long after; none merged in one moment."""
    chance = random.Random(seed)
    span = round(years * 365 * DAY)
    moments = chance.sample(range(NOON - span, NOON), size)
    return [
        MergedPull(
            number,
            f"Change {number}",
            "alice",
            chance.random() < 0.2,
            merged_at - chance.randint(0, 20 * DAY),
            merged_at,
            chance.choice([merged_at, chance.randint(merged_at, NOON)]),
        )
        for number, merged_at in enumerate(moments)
    ]


def pages(pulls: list[MergedPull]) -> Iterator[list[MergedPull]]:
    """The pages that a code host gives, in descending order of update."""
    ordered = sorted(pulls, key=lambda pull: pull.updated_at, reverse=True)
    yield from (ordered[start : start + PAGE] for start in range(0, len(ordered), PAGE))


def read(pulls: list[MergedPull], *, bots: bool) -> tuple[list[MergedPull], int]:
    """What is read until it is enough, and the number of pages."""
    seen: list[MergedPull] = []
    for number, page in enumerate(pages(pulls), 1):
        seen += page
        if is_population_complete(seen, page[-1].updated_at, CUTOFF, bots=bots):
            return seen, number
    return seen, -(-len(pulls) // PAGE)


def naive(pulls: list[MergedPull], *, bots: bool) -> dict[str, dict[str, object]]:
    """The same figures from the whole history, computed as they are defined."""
    counted = [pull for pull in pulls if bots or not pull.is_bot]
    by_merge = sorted(counted, key=lambda pull: -pull.merged_at)
    month = [pull for pull in counted if pull.merged_at >= CUTOFF]
    overall = {pull.number: pull for pull in [*by_merge[:NEWEST_PULLS], *month]}.values()
    latest = max(pulls, key=lambda pull: pull.merged_at)
    times: dict[str, object] = {}
    for suffix, some in (("Hours", overall), ("LastMonthHours", month)):
        hours = [(pull.merged_at - pull.created_at) / HOUR for pull in some]
        if hours:
            times |= {
                f"avg{suffix}": pytest.approx(fmean(hours), abs=0.006),
                f"min{suffix}": round(min(hours), 2),
                f"max{suffix}": round(max(hours), 2),
            }
    return {
        "pullRequests": {"mergedLastMonth": sum(pull.merged_at >= CUTOFF for pull in pulls)},
        "mergeTime": times,
        "latestMergedPR": {"title": latest.title, "author": "alice"},
    }


def known(found: dict[str, dict[str, object]]) -> dict[str, dict[str, object]]:
    """The figures without what there is nothing to take them of."""
    return {
        group: {name: one for name, one in leaves.items() if not isinstance(one, Missing)}
        for group, leaves in found.items()
    }


@pytest.mark.slow
@given(
    seed=st.integers(0, 2**32),
    size=st.integers(1, 450),
    years=st.sampled_from([0.05, 0.2, 1, 5]),
    bots=st.booleans(),
)
def test_figures_of_the_pages_read_are_those_of_the_whole_history(
    seed: int, size: int, years: float, bots: bool
) -> None:
    pulls = history(seed, size, years)
    seen, _ = read(pulls, bots=bots)
    assert known(make_merge_figures(seen, CUTOFF, bots=bots)) == naive(pulls, bots=bots)


@given(seed=st.integers(0, 2**32), size=st.integers(1, 450))
def test_the_last_month_lies_within_the_whole(seed: int, size: int) -> None:
    times = known(make_merge_figures(history(seed, size, 1), CUTOFF))["mergeTime"]
    if "maxLastMonthHours" in times:
        assert times["maxLastMonthHours"] <= times["maxHours"]  # type: ignore[operator]
        assert times["minLastMonthHours"] >= times["minHours"]  # type: ignore[operator]


def test_one_page_is_enough_for_a_history_that_nobody_touches_later() -> None:
    pulls = [
        MergedPull(number, "Change", None, False, at - HOUR, at, at)
        for number in range(1_000)
        for at in [NOON - number * DAY]
    ]
    assert read(pulls, bots=True)[1] == 1


def test_every_pull_request_of_a_busy_month_counts() -> None:
    pulls = [
        MergedPull(number, "Change", None, False, at - number * MINUTE, at, at)
        for number in range(350)
        for at in [NOON - number * HOUR]
    ]
    seen, page_count = read(pulls, bots=True)
    found = make_merge_figures(seen, CUTOFF)
    assert page_count == 4
    assert found["pullRequests"]["mergedLastMonth"] == 350
    assert found["mergeTime"]["maxHours"] == round(349 / 60, 2)


def test_figures_of_nothing_are_not_applicable() -> None:
    found = make_merge_figures([], CUTOFF)
    assert found["pullRequests"] == {"mergedLastMonth": 0}
    absent = [*found["mergeTime"].values(), *found["latestMergedPR"].values()]
    assert {one.outcome for one in absent} == {Outcome.NOT_APPLICABLE}


def robots(size: int, people: int) -> list[MergedPull]:
    """One merged each hour, by bots but for the oldest ones."""
    return [
        MergedPull(number, "Bump", "robot", number < size - people, at - HOUR, at, at)
        for number in range(size)
        for at in [NOON - number * HOUR]
    ]


def test_a_repository_of_bots_is_not_read_to_its_end() -> None:
    seen, page_count = read(robots(5_000, 0), bots=False)
    assert page_count == 10
    found = make_merge_figures(seen, CUTOFF, bots=False)
    assert found["pullRequests"]["mergedLastMonth"] == 30 * 24 + 1
    assert found["latestMergedPR"] == {"title": "Bump", "author": "robot"}
    assert {one.outcome for one in found["mergeTime"].values()} == {Outcome.NOT_APPLICABLE}


def test_a_month_of_bots_is_read_whole_however_long_it_is() -> None:
    busy = [pull._replace(updated_at=NOON, merged_at=NOON) for pull in robots(1_500, 0)]
    assert read(busy, bots=False)[1] == 15


def test_people_among_many_bots_are_found() -> None:
    seen, _ = read(robots(900, 50), bots=False)
    assert make_merge_figures(seen, CUTOFF, bots=False)["mergeTime"]["avgHours"] == 1.0
