"""What becomes of the last values when a collection brought none."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factbook.clock import DAY, HOUR
from factbook.facts.datasource import DataSource
from factbook.facts.freshness import Latest, Observation, find_reason, merge_observation
from factbook.facts.schema import Fact

NOW = 1_795_262_400_000
PATHS = ["a.x", "a.y", "b.x", "c"]
SOURCE = DataSource(
    id="made-up",
    title="Made up",
    cadence="0 * * * *",
    schema=tuple(Fact(path, "integer") for path in PATHS),
)
ALL = dict.fromkeys(PATHS, 1)


def after(
    values: dict[str, int],
    reasons: dict[str, str],
    passing: set[str],
    before: Latest | None = None,
    now: int = NOW,
    source: DataSource = SOURCE,
) -> Latest:
    observation = Observation(1, values, reasons, frozenset(passing))
    return merge_observation(source, observation, before, now).latest


def before(**changes: Any) -> Latest:
    return Latest(ALL, {}, "1.0.0", NOW - HOUR)._replace(**changes)


def test_a_place_that_passes_keeps_its_values_and_their_time() -> None:
    found = after({"b.x": 2}, {"a": "upstream-error", "c": "forbidden"}, {"a"}, before())
    assert found.facts == {"a.x": 1, "a.y": 1, "b.x": 2}
    assert found.kept == {"a.x": NOW - HOUR, "a.y": NOW - HOUR}
    assert (found.reasons, found.written_at) == ({"c": "forbidden"}, NOW)


def test_what_was_kept_before_keeps_its_first_time() -> None:
    old = before(kept={"a.x": NOW - 2 * HOUR})
    found = after({"c": 2}, {"a": "rate-limited", "b": "rate-limited"}, {"a", "b"}, old)
    assert found.kept == {"a.x": NOW - 2 * HOUR, "a.y": NOW - HOUR, "b.x": NOW - HOUR}


def test_a_collection_that_said_nothing_leaves_the_time_as_it_was_and_every_value_stale() -> None:
    found = after({}, {"": "upstream-error"}, {""}, before())
    assert found == before(kept=dict.fromkeys(PATHS, NOW - HOUR))
    assert found.brought_at == NOW - HOUR
    never = after({}, {"": "rate-limited: later"}, {""})
    assert never == Latest({}, {"": "rate-limited: later"}, "1.0.0", 0)


def test_a_denied_place_inside_one_that_passes_is_unknown_at_once() -> None:
    found = after({}, {"": "upstream-error", "a.x": "forbidden"}, {""}, before())
    assert found.facts == {"a.y": 1, "b.x": 1, "c": 1}
    assert (found.reasons, found.written_at) == ({"a.x": "forbidden"}, NOW)


def test_what_the_vendor_said_once_still_holds_while_it_fails() -> None:
    old = before(facts={"c": 1}, reasons={"a": "feature-off", "b": "rate-limited"})
    found = after({}, {"": "upstream-error: 502"}, {""}, old)
    assert found.facts == {"c": 1}
    assert found.reasons == {
        "a.x": "feature-off",
        "a.y": "feature-off",
        "b.x": "upstream-error: 502",
    }


def test_a_source_without_a_cadence_keeps_values_for_three_days() -> None:
    source = DataSource(id="asked", title="Asked", schema=SOURCE.schema)
    for age, facts in ((3 * DAY, ALL), (3 * DAY + 1, {})):
        old = before(written_at=NOW - age)
        assert after({}, {"": "upstream-error"}, {""}, old, source=source).facts == facts


def test_what_expired_stays_expired_until_a_value_comes() -> None:
    old = before(written_at=NOW - 5 * HOUR)
    expired = after({}, {"": "upstream-error"}, {""}, old)
    assert (expired.facts, expired.reasons) == ({}, {"": "expired: upstream-error"})
    again = after({}, {"": "rate-limited"}, {""}, expired, NOW + HOUR)
    assert again.reasons == {"": "expired: rate-limited"}
    assert after(ALL, {}, set(), again, NOW + 2 * HOUR) == Latest(ALL, {}, "1.0.0", NOW + 2 * HOUR)


def test_values_last_for_three_cadences_and_at_least_an_hour() -> None:
    often = replace(SOURCE, cadence="*/5 * * * *")
    weekdays = replace(SOURCE, cadence="0 9 * * 1-5")  # NOW is a Saturday, 12:00
    cases = [
        (SOURCE, 3 * HOUR),
        (often, HOUR),
        (replace(SOURCE, cadence="0 0 * * *"), 3 * DAY),
    ]
    for source, lasts in cases:
        for age, facts in ((lasts, ALL), (lasts + 1, {})):
            old = before(written_at=NOW - age)
            assert after({}, {"": "upstream-error"}, {""}, old, source=source).facts == facts
    friday = before(written_at=NOW - 26 * HOUR)
    for hours, facts in ((4 * 24, ALL), (5 * 24, {})):
        now = NOW - 3 * HOUR + hours * HOUR
        assert after({}, {"": "upstream-error"}, {""}, friday, now, weekdays).facts == facts


PLACES = st.sampled_from(["", "a", "b", *PATHS])
REASONS = st.dictionaries(PLACES, st.sampled_from(["forbidden", "upstream-error"]), min_size=1)
ROUNDS = st.lists(
    st.tuples(st.dictionaries(st.sampled_from(PATHS), st.integers(2, 9)), REASONS), max_size=8
)


@pytest.mark.slow
@given(ROUNDS)
def test_every_fact_has_a_value_that_was_observed_or_a_reason(
    rounds: list[tuple[dict[str, int], dict[str, str]]],
) -> None:
    latest: Latest | None = None
    observed: dict[str, tuple[int, int]] = {}
    for number, (values, reasons) in enumerate(rounds):
        now = NOW + number * HOUR
        reasons.setdefault("", "upstream-error")
        passing = {place for place in reasons if reasons[place] == "upstream-error"}
        latest = after(values, reasons, passing, latest, now)
        observed |= {path: (values[path], now) for path in values}
        for path in PATHS:
            assert path in latest.facts or find_reason(path, latest.reasons) is not None
            if path in latest.facts:
                time = latest.kept.get(path, latest.written_at)
                assert (latest.facts[path], time) == observed[path]
                assert now - time <= 4 * HOUR
