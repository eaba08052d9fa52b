from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factbook.checks import takeover
from factbook.checks.state import FAIL, PASS, UNKNOWN
from factbook.errors import InputError
from tests.checks.making import check, entity, evaluated


def config(rules: list[tuple[str, Any]], *names: str) -> dict[str, Any]:
    """An app-config with thresholds of one metric."""
    given: Any = {"thresholds": {"rules": [{"key": key, "expression": e} for key, e in rules]}}
    for name in reversed(names or ("github", "openPRs")):
        given = {name: given}
    return {"scorecard": {"plugins": given}}


def remarks(found: Any) -> list[str]:
    return [f"{one.remark.kind}: {one.item}: {one.remark.path}" for one in found.remarks]


LADDER = [("success", "<10"), ("warning", "10-50"), ("error", ">50")]


def test_a_metric_becomes_a_check_and_an_advisory_one() -> None:
    found = takeover.take_over_rhdh(config(LADDER), {"github": "code"})

    both = {one.document["id"]: check(one.document["rule"]) for one in found.documents}
    states = {
        id_: [evaluated(one, entity({"code": {"openPRs": n}})).state for n in (9, 10, 50, 51)]
        for id_, one in both.items()
    }
    assert states == {
        "github.openPRs": [PASS, PASS, PASS, FAIL],
        "github.openPRs-no-warning": [PASS, FAIL, FAIL, FAIL],
    }
    assert found.documents[1].document["severity"] == "advisory"
    assert all(evaluated(one, entity()).state == UNKNOWN for one in both.values())


_NUMBERS = st.integers(-3, 3)
_EXPRESSIONS = st.one_of(
    st.tuples(st.sampled_from((">", ">=", "<", "<=", "==", "!=")), _NUMBERS).map(
        lambda one: f"{one[0]}{one[1]}"
    ),
    st.tuples(_NUMBERS, _NUMBERS).map(sorted).map(lambda one: f"{one[0]}-{one[1]}"),
)


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.sampled_from(("success", "warning", "error")), _EXPRESSIONS), max_size=5)
)
def test_the_first_threshold_that_matches_decides(rules: list[tuple[str, str]]) -> None:
    rules = [*rules, ("success", "!=9"), ("error", "==9")]
    read = [(key, takeover.parse_threshold(expression)) for key, expression in rules]

    found = takeover.take_over_rhdh(config(rules), {})

    by_id = {one.document["id"]: check(one.document["rule"]) for one in found.documents}
    for value in (-4, -3, -2.5, -1, 0, 0.5, 1, 2, 3, 4, 9):
        first = next(key for key, one in read if one and one.matches(value))
        subject = entity({"github": {"openPRs": value}})
        main = evaluated(by_id["github.openPRs"], subject).state
        assert (main == FAIL) is (first == "error")
        if "github.openPRs-no-warning" in by_id:
            advisory = evaluated(by_id["github.openPRs-no-warning"], subject).state
            assert (advisory == PASS) is (first == "success")


def test_an_expression_that_is_none_is_told(subtests: pytest.Subtests) -> None:
    for expression in ("", "10", "=<3", "3-1", ">true", "a-b", "1-2-3", None, 5):
        with subtests.test(expression=expression):
            found = takeover.take_over_rhdh(config([("success", "==1"), ("error", expression)]), {})

            assert found.documents == []
            assert "refused: github.openPRs: thresholds.rules[1].expression" in remarks(found)


def test_booleans_are_compared() -> None:
    found = takeover.take_over_rhdh(config([("success", "!=false"), ("error", "==false")]), {})

    [one] = found.documents
    rule = check(one.document["rule"])
    assert evaluated(rule, entity({"github": {"openPRs": True}})).state == PASS
    assert evaluated(rule, entity({"github": {"openPRs": False}})).state == FAIL


@pytest.mark.parametrize(
    ("given", "remark"),
    [
        (config(LADDER, "sonar"), "refused: sonar: thresholds"),
        (config([("success", "<1")]), "refused: github.openPRs: thresholds.rules"),
        (config([]), "refused: github.openPRs: thresholds.rules"),
        (
            config([*LADDER, ("critical", ">99")]),
            "refused: github.openPRs: thresholds.rules[3].key",
        ),
    ],
)
def test_what_has_no_meaning_here_is_left_out(given: Any, remark: str) -> None:
    found = takeover.take_over_rhdh(given, {})

    assert found.documents == []
    assert remark in remarks(found)
    assert "changed: scorecard: " in remarks(found)


@pytest.mark.parametrize("given", [None, {}, {"scorecard": []}, {"scorecard": {"plugins": {}}}])
def test_a_configuration_without_thresholds_is_refused(given: Any) -> None:
    with pytest.raises(InputError, match="no thresholds"):
        takeover.take_over_rhdh(given, {})
