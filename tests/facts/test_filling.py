"""Results of the metric shapes, filled from what is known: values, reasons and ages."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from factbook.errors import ToolError
from factbook.facts.schema import (
    CODEHOST,
    INCIDENT,
    OBSERVABILITY,
    REASONS,
    REPOSITORY,
    SECURITY,
    SHAPES,
    Leaf,
    Shape,
    fill_shape,
    shape_schema,
)
from tests.facts.shapes import everything

AT = "2026-11-21T06:00:00.000+00:00"


def absent(shape: Shape, reason: str) -> dict[str, Any]:
    """The result without any known value, for one reason."""
    return fill_shape(shape, {}, {"": reason}, {})


def known(result: dict[str, object]) -> dict[str, object]:
    """The result without the additive fields."""
    return {key: result[key] for key in result if key not in {"unknownReasons", "collectedAt"}}


def test_a_shape_of_which_everything_is_known_has_no_reasons(subtests: pytest.Subtests) -> None:
    for shape in SHAPES:
        with subtests.test(shape.name):
            result = fill_shape(shape, everything(shape), {}, {"": AT})
            Draft202012Validator(shape_schema(shape)).validate(result)
            assert result["unknownReasons"] == {}
            assert result["collectedAt"] == {member.name: AT for member in shape.members}
            assert list(known(result)) == [member.name for member in shape.members]


@pytest.mark.spec("unknown.literal-in-typed-leaves", "unknown.every-leaf-has-a-reason")
def test_a_leaf_without_a_value_is_unknown_with_its_reason() -> None:
    values = everything(CODEHOST) | {"issues.open": None}
    del values["latestMergedPR.author"]
    result = fill_shape(CODEHOST, values, {"issues.open": "feature-off"}, {})
    assert result["issues"] == {"total": 1, "open": "unknown", "closed": 1, "closedLastMonth": 1}
    assert result["latestMergedPR"] == {"title": "text", "author": "unknown"}
    assert result["unknownReasons"] == {
        "issues.open": "feature-off",
        "latestMergedPR.author": "never-collected",
    }


@pytest.mark.spec("unknown.empty-lists-have-a-reason")
def test_a_list_that_nobody_determined_is_empty_with_its_reason() -> None:
    values = everything(CODEHOST) | {"collaboration.languages": []}
    del values["collaboration.collaborators"]
    result = fill_shape(CODEHOST, values, {"collaboration.collaborators": "forbidden"}, {})
    assert result["collaboration"] == {
        "languages": [],
        "collaborators": [],
        "collaboratorCount": 1,
    }
    assert result["unknownReasons"] == {"collaboration.collaborators": "forbidden"}


@pytest.mark.spec(
    "unknown.group-with-unknown-number-is-absent",
    "unknown.omitted-groups-have-a-reason",
    "tools.security.unavailable-groups-are-omitted",
)
def test_an_optional_group_that_misses_a_required_number_is_left_out() -> None:
    values = everything(SECURITY)
    del values["scannerIssues.low"]
    result = fill_shape(SECURITY, values, {"scannerIssues.low": "upstream-error"}, {"": AT})
    assert known(result) == {
        "dependencyAlerts": {"open": 1, "dismissed": 1, "fixed": 1},
        "branchProtection": True,
    }
    assert result["unknownReasons"] == {"scannerIssues": "upstream-error"}
    assert result["collectedAt"] == {"dependencyAlerts": AT, "branchProtection": AT}


@pytest.mark.spec("unknown.optional-fields-are-omitted")
def test_an_optional_leaf_without_a_value_is_left_out_with_its_reason() -> None:
    values = everything(INCIDENT)
    del values["incidentMetrics.meanTimeToFirstAck"]
    reasons = {"incidentMetrics.meanTimeToFirstAck": "not-applicable"}
    result = fill_shape(INCIDENT, values, reasons, {})
    assert result["incidentMetrics"] == {
        "totalIncidents": 1,
        "monthlyIncidents": 1,
        "quarterlyIncidents": 1,
        "meanTimeToResolve": 1,
        "upTimePercentage": 1,
    }
    assert result["unknownReasons"] == reasons


@pytest.mark.spec("unknown.optional-fields-are-omitted")
def test_an_optional_leaf_of_the_root_is_left_out_with_its_reason() -> None:
    values = everything(SECURITY)
    del values["branchProtection"]
    result = fill_shape(SECURITY, values, {"branchProtection": "not-found"}, {"": AT})
    assert "branchProtection" not in result
    assert result["unknownReasons"] == {"branchProtection": "not-found"}
    assert "branchProtection" not in result["collectedAt"]  # type: ignore[operator]


@pytest.mark.spec("tools.incident.unavailable-groups-are-omitted")
def test_incident_groups_that_nobody_determined_are_left_out() -> None:
    assert absent(INCIDENT, "no-annotation") == {
        "unknownReasons": {"incidentMetrics": "no-annotation", "serviceInfo": "no-annotation"},
        "collectedAt": {},
    }


def test_a_value_that_looks_like_nothing_is_still_a_value(subtests: pytest.Subtests) -> None:
    values: list[object] = [0, False, "", [], "unknown"]
    for value in values:
        with subtests.test(value=value):
            shape = Shape("any", "Things", (Leaf("leaf", "string|unknown", "A leaf."),))
            assert fill_shape(shape, {"leaf": value}, {}, {}) == {
                "leaf": value,
                "unknownReasons": {},
                "collectedAt": {},
            }


@pytest.mark.spec("tools.observability.unavailable-is-an-error")
def test_unknown_observability_counts_are_an_error_that_says_what_is_known_and_what_to_do() -> None:
    with pytest.raises(ToolError) as raised:
        fill_shape(
            OBSERVABILITY, {"sloCount": 3}, {"monitorCount": "forbidden: needs monitors_read"}, {}
        )
    assert raised.value.message == (
        "Observability metrics are not available: monitorCount is not known "
        "(forbidden: needs monitors_read). Known: sloCount is 3. "
        "The credential of the integration may not read this, or is not accepted; the detail says "
        "which. An administrator can widen its permissions, or renew it."
    )


def test_each_reason_of_such_an_error_has_its_own_step() -> None:
    reasons = {"sloCount": "not-applicable: no rules", "monitorCount": "upstream-error"}
    with pytest.raises(ToolError) as raised:
        fill_shape(OBSERVABILITY, {}, reasons, {})
    text = raised.value.message
    assert "sloCount is not known (not-applicable: no rules); monitorCount is not known" in text
    assert "Known:" not in text
    assert "Nothing needs to be done" not in text
    assert "An administrator can configure one that has it, or the fact can be pushed" in text
    assert text.endswith(REASONS["upstream-error"])


def test_of_a_long_list_such_an_error_has_the_beginning() -> None:
    values = {"filePaths": [f"src/{number}" for number in range(10_000)], "inCatalog": True}
    with pytest.raises(ToolError) as raised:
        fill_shape(REPOSITORY, values, {"": "too-large: more than 1,000 files"}, {})
    text = raised.value.message
    assert '"src/19","… of 10000"]; inCatalog is true.' in text
    assert "totalFiles, fileTypes.docker, fileTypes.yaml" in text
    assert len(text) < 1_000


@pytest.mark.spec("tools.repository.unavailable-is-an-error")
@pytest.mark.parametrize("path", ["totalFiles", "fileTypes.docs"])
def test_an_unknown_repository_is_an_error_that_says_what_to_do(path: str) -> None:
    values = everything(REPOSITORY)
    del values[path]
    with pytest.raises(ToolError, match=f"{path} is not known \\(never-collected\\).*Ask again"):
        fill_shape(REPOSITORY, values, {}, {})


def test_the_nearest_reason_is_told() -> None:
    reasons = {"": "not-found", "issues": "feature-off", "issues.open": "forbidden"}
    unknown = fill_shape(CODEHOST, {}, reasons, {})["unknownReasons"]
    assert isinstance(unknown, dict)
    assert unknown["issues.open"] == "forbidden"
    assert unknown["issues.closed"] == "feature-off"
    assert unknown["pullRequests"] == "not-found"


def test_a_stored_reason_is_told_by_its_word() -> None:
    reasons = {
        "issues.open": "upstream-error: expected an integer, not this string",
        "issues.closed": "not-applicable: no value was given",
        "issues.total": "the dog ate it",
    }
    unknown = fill_shape(CODEHOST, {}, reasons, {})["unknownReasons"]
    assert isinstance(unknown, dict)
    assert unknown["issues.open"] == unknown["issues.total"] == "upstream-error"
    assert unknown["issues.closed"] == "not-applicable"


@pytest.mark.spec("unknown.collected-at")
def test_the_age_of_each_known_group_is_told() -> None:
    later = "2026-11-21T07:00:00.000+00:00"
    times = {"pullRequests": AT, "issues": later, "codeReview": AT}
    result = fill_shape(CODEHOST, {"pullRequests.open": 1, "issues.open": 2}, {}, times)
    assert result["collectedAt"] == {"pullRequests": AT, "issues": later}


def test_results_share_nothing() -> None:
    first, second = absent(CODEHOST, "not-configured"), absent(CODEHOST, "not-configured")
    first["collaboration"]["languages"].append("Python")
    assert second["collaboration"]["languages"] == []


@pytest.mark.slow
@given(st.data(), st.sampled_from(SHAPES))
def test_whatever_is_known_the_result_fits_the_schema(data: st.DataObject, shape: Shape) -> None:
    whole = everything(shape)
    missing = data.draw(st.sets(st.sampled_from(list(whole))))
    reasons = data.draw(st.dictionaries(st.sampled_from(list(whole)), st.sampled_from([*REASONS])))
    values = {path: value for path, value in whole.items() if path not in missing}
    try:
        result = fill_shape(shape, values, reasons, {"": AT})
    except ToolError:
        assert shape in (OBSERVABILITY, REPOSITORY)
        return
    Draft202012Validator(shape_schema(shape)).validate(result)
    explained = result["unknownReasons"]
    assert isinstance(explained, dict)
    assert all(path in explained or path.partition(".")[0] in explained for path in missing)
    assert bool(explained) is bool(missing)
