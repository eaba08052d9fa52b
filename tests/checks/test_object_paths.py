"""Paths inside objects, whose work is bounded by steps rather than by a clock."""

import itertools
import time
from typing import Any

import pytest

from factbook.checks.rules.checked_entity import CheckedEntity
from factbook.checks.rules.rule_evaluation import explain_check
from factbook.checks.state import FAIL, PASS, UNKNOWN
from tests.checks.making import NOW, check, entity, evaluated, problems

# Each element is a step for each of the projections.
LONG_WAY = "[*]|" * 20 + "length(@)"
ITEMS = {"items": list(range(100_000))}
FEW_STEPS = 1_000
FEW_ITEMS = {"items": list(range(FEW_STEPS))}


@pytest.fixture
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundredth of the steps that a path may take: objects past the bound are soon explained."""
    monkeypatch.setattr("factbook.checks.rules.rule_evaluation._MOST_EXPRESSION_STEPS", FEW_STEPS)


def leaf(path: str, operator: str, value: Any = None) -> dict[str, Any]:
    """A comparison of a part of an object."""
    given = {} if value is None else {"value": value}
    return {"source": "scan", "fact": "report", "path": path, "operator": operator, **given}


def having(report: object) -> CheckedEntity:
    """An entity with an object as a fact."""
    return entity({"scan": {"report": report}})


@pytest.mark.slow
@pytest.mark.parametrize("length", [1_000, 100_000])
def test_what_a_path_finds_does_not_depend_on_the_clock(
    length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, given = check(leaf(LONG_WAY, "equal", length)), having([0] * length)
    state = evaluated(one, given)
    hours = itertools.count(0, 3600)
    for name in ("monotonic", "perf_counter", "process_time", "thread_time"):
        monkeypatch.setattr(time, name, lambda: next(hours))
    assert evaluated(one, given) == state
    assert state.state == (PASS if length == 1_000 else UNKNOWN)


@pytest.mark.usefixtures("few_steps")
def test_an_object_that_is_too_large_for_a_path_is_unknown_with_its_reason(
    subtests: pytest.Subtests,
) -> None:
    rules: list[object] = [
        leaf("items[*].a | length(@)", "equal", 0),
        leaf("items[*].a | length(@)", "isKnown"),
        leaf("items[*].a | length(@)", "isUnknown"),
        leaf("items[*].a | length(@)", "reasonIs", "not-applicable"),
        leaf("items[*].a | to_string(@)", "before", "2026-01-01"),
        leaf("items[*].a | to_string(@)", "olderThan", {"days": 1}),
    ]
    for rule in rules:
        with subtests.test(rule=rule):
            explained = explain_check(check(rule), having(FEW_ITEMS), NOW)
            assert evaluated(check(rule), having(FEW_ITEMS)).state == UNKNOWN
            assert explained.state == UNKNOWN
            [reason] = explained.reasons
            assert reason.startswith("check-error: report is too large for items")


def test_a_large_object_is_read_by_a_path_that_takes_few_steps() -> None:
    one = check(leaf("items[-1]", "equal", 99_999))
    assert evaluated(one, having(ITEMS)).state == PASS


@pytest.mark.usefixtures("few_steps")
def test_every_kind_of_expression_is_bounded(subtests: pytest.Subtests) -> None:
    paths = [
        "[*].[" + "@, " * 90 + "@]",
        "[*].[`[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]`][][]",
        "[?@ == `[0]` || @ == `[0, 0]`]",
        "sort_by(@, &to_string(@))",
        "map(&[@, @, @], @)",
        "[::-1][::-1]",
        "[[], [[]]][][]" + " | [@, @][]" * 5,
        "to_string(@)",
        "contains(@, `1`)",
        "@ == `[0]` || @ == @",
    ]
    for path in paths:
        with subtests.test(path=path):
            explained = explain_check(
                check(leaf(path, "isEmpty")), having([0] * (4 * FEW_STEPS)), NOW
            )
            assert explained.reasons == [f"check-error: report is too large for {path}"]


@pytest.mark.slow
def test_a_fact_compared_with_a_part_that_is_too_large_is_unknown() -> None:
    other = {"source": "scan", "fact": "report", "path": "items[*].a | length(@)"}
    rule = {"source": "scan", "fact": "count", "operator": "equal", "value": other}
    given = entity({"scan": {"count": 0, "report": ITEMS}})
    assert evaluated(check(rule), given).state == UNKNOWN
    assert explain_check(check({"not": rule}), given, NOW).state == UNKNOWN


def test_paths_that_could_need_more_stack_than_there_is_are_refused() -> None:
    assert not problems(leaf("!" * 40 + "a", "equal", True))
    told = {"rule.path": "is nested more than 50 levels deep"}
    assert problems(leaf("!" * 60 + "a", "equal", True)) == told


def test_a_part_that_is_lacking_is_told_apart_from_one_that_is_too_large() -> None:
    one = check(leaf("name", "isKnown"))
    assert evaluated(one, having(ITEMS)).state == FAIL
