"""The fixed metric shapes: their schema, and results filled from what is known."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from factbook.errors import ToolError
from factbook.facts.reasons import REASONS
from factbook.facts.schema import check
from factbook.facts.shapes import (
    CODEHOST,
    COMPLIANCE,
    INCIDENT,
    OBSERVABILITY,
    REPOSITORY,
    SECURITY,
    SHAPES,
    Group,
    Leaf,
    Shape,
    absent,
    facts,
    fill,
    schema,
)

AT = "2026-11-21T06:00:00.000+00:00"
EXAMPLES = {
    "number|unknown": 1,
    "boolean|unknown": True,
    "string|unknown": "text",
    "string[]": ["text"],
    "number": 1,
    "boolean": True,
    "string": "text",
}

by_name = pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)


def everything(shape: Shape) -> dict[str, Any]:
    """A value for every path of the shape."""
    return {path: EXAMPLES[leaf.type] for member in shape.members for path, leaf in member.paths}


def outline(shape: Shape) -> dict[str, Any]:
    """Groups and leaves with their types, an optional one with a question mark."""

    def mark(member: Group | Leaf) -> str:
        return f"{member.name}?" if member.optional else member.name

    return {
        mark(member): member.type
        if isinstance(member, Leaf)
        else {mark(leaf): leaf.type for leaf in member.leaves}
        for member in shape.members
    }


def known(result: dict[str, object]) -> dict[str, object]:
    """The result without the additive fields."""
    return {key: result[key] for key in result if key not in {"unknownReasons", "collectedAt"}}


NUMBER, BOOLEAN, STRING = "number|unknown", "boolean|unknown", "string|unknown"


@pytest.mark.spec(
    "tools.codehost.pull-requests",
    "tools.codehost.merge-time",
    "tools.codehost.issues",
    "tools.codehost.latest-merged-pr",
    "tools.codehost.collaboration",
    "tools.codehost.branch-protection",
    "tools.codehost.code-review",
    "tools.codehost.number-leaves",
    "tools.codehost.boolean-leaves",
)
def test_the_code_host_shape_is_the_missions() -> None:
    times = "avgHours avgLastMonthHours minHours maxHours minLastMonthHours maxLastMonthHours"
    protection = (
        "enabled enforceAdmins allowDeletions requiredLinearHistory allowForcePushes "
        "blockCreations requiredSignatures"
    )
    review = (
        "dismissStaleReviews requireCodeOwnerReviews requireLastPushApproval "
        "strictRequiredStatusChecks usesCodeowners codeownersHasErrors"
    )
    counts = "total merged open mergedPercentage mergedLastMonth"
    assert outline(CODEHOST) == {
        "pullRequests": dict.fromkeys(counts.split(), NUMBER),
        "mergeTime": dict.fromkeys(times.split(), NUMBER),
        "issues": dict.fromkeys(("total", "open", "closed", "closedLastMonth"), NUMBER),
        "latestMergedPR": {"title": STRING, "author": STRING},
        "collaboration": {
            "languages": "string[]",
            "collaborators": "string[]",
            "collaboratorCount": NUMBER,
        },
        "branchProtection": dict.fromkeys(protection.split(), BOOLEAN),
        "codeReview": {
            **dict.fromkeys(review.split(), BOOLEAN),
            "requiredApprovingReviewCount": NUMBER,
            "codeownersErrorCount": NUMBER,
        },
    }


@pytest.mark.spec("tools.security.shape", "tools.security.group-names")
def test_the_security_shape_is_the_missions() -> None:
    assert outline(SECURITY) == {
        "scannerIssues?": dict.fromkeys(("total", "critical", "high", "medium", "low"), "number"),
        "dependencyAlerts?": dict.fromkeys(("open", "dismissed", "fixed"), "number"),
        "branchProtection?": "boolean",
    }


@pytest.mark.spec("tools.incident.shape")
def test_the_incident_shape_is_the_missions() -> None:
    counts = ("totalIncidents", "monthlyIncidents", "quarterlyIncidents")
    means = ("meanTimeToResolve?", "meanTimeToFirstAck?", "upTimePercentage?")
    flags = ("hasEscalationPolicy", "hasTeamsAssigned", "hasDescription")
    assert outline(INCIDENT) == {
        "incidentMetrics?": dict.fromkeys(counts + means, "number"),
        "serviceInfo?": {**dict.fromkeys(flags, "boolean"), "alertCreationType?": "string"},
    }


@pytest.mark.spec("tools.observability.shape")
def test_the_observability_shape_is_the_missions() -> None:
    assert outline(OBSERVABILITY) == {"sloCount": "number", "monitorCount": "number"}


@pytest.mark.spec(
    "tools.compliance.metadata-leaves",
    "tools.compliance.techdocs-leaf",
    "tools.compliance.ownership-leaves",
)
def test_the_compliance_shape_is_the_missions() -> None:
    metadata = ("hasTitle", "hasDescription", "hasTags", "hasOwner")
    ownership = ("hasOwner", "hasGroupOwner", "hasRelationships")
    assert outline(COMPLIANCE) == {
        "metadata": dict.fromkeys(metadata, BOOLEAN),
        "techdocs": {"hasTechdocsRef": BOOLEAN},
        "ownership": dict.fromkeys(ownership, BOOLEAN),
    }


@pytest.mark.spec("tools.repository.shape")
def test_the_repository_shape_is_the_missions() -> None:
    types = ("docker", "yaml", "javascript", "python", "docs", "config")
    assert outline(REPOSITORY) == {
        "filePaths": "string[]",
        "totalFiles": "number",
        "inCatalog?": "boolean",
        "fileTypes": dict.fromkeys(types, "number"),
    }


@by_name
def test_a_schema_is_valid_inline_open_and_described(shape: Shape) -> None:
    result = schema(shape)
    Draft202012Validator.check_schema(result)
    text = json.dumps(result)
    assert result["type"] == "object"
    assert "$ref" not in text
    assert '"additionalProperties": false' not in text
    assert all(member["description"] for member in result["properties"].values())


def test_schemas_are_made_anew_each_time() -> None:
    schema(CODEHOST)["required"].clear()
    assert "pullRequests" in schema(CODEHOST)["required"]


@pytest.mark.spec("tools.codehost.hours", "tools.codehost.percent")
def test_the_schema_gives_the_units_of_code_host_metrics() -> None:
    groups = schema(CODEHOST)["properties"]
    times = groups["mergeTime"]["properties"].values()
    assert all(leaf["description"].endswith("Unit: hours.") for leaf in times)
    share = groups["pullRequests"]["properties"]["mergedPercentage"]
    assert share["description"].endswith("Unit: percent, 0 to 100.")


@pytest.mark.spec("tools.incident.units")
def test_the_schema_gives_the_units_of_incident_metrics() -> None:
    leaves = schema(INCIDENT)["properties"]["incidentMetrics"]["properties"]
    assert leaves["meanTimeToResolve"]["description"].endswith("Unit: seconds.")
    assert leaves["meanTimeToFirstAck"]["description"].endswith("Unit: seconds.")
    assert leaves["upTimePercentage"]["description"].endswith("Unit: percent, 0 to 100.")


@pytest.mark.spec("unknown.reason-words")
@by_name
def test_the_schema_lists_the_ten_reasons(shape: Shape) -> None:
    reasons = schema(shape)["properties"]["unknownReasons"]["additionalProperties"]["enum"]
    assert reasons == [
        "not-configured",
        "no-annotation",
        "not-applicable",
        "never-collected",
        "not-found",
        "forbidden",
        "feature-off",
        "rate-limited",
        "upstream-error",
        "expired",
    ]


@by_name
def test_a_shape_of_which_everything_is_known_has_no_reasons(shape: Shape) -> None:
    result = fill(shape, everything(shape), {}, {"": AT})
    Draft202012Validator(schema(shape)).validate(result)
    assert result["unknownReasons"] == {}
    assert result["collectedAt"] == {member.name: AT for member in shape.members}
    assert list(known(result)) == [member.name for member in shape.members]


@pytest.mark.spec("unknown.literal-in-typed-leaves", "unknown.every-leaf-has-a-reason")
def test_a_leaf_without_a_value_is_unknown_with_its_reason() -> None:
    values = everything(CODEHOST) | {"issues.open": None}
    del values["latestMergedPR.author"]
    result = fill(CODEHOST, values, {"issues.open": "feature-off"}, {})
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
    result = fill(CODEHOST, values, {"collaboration.collaborators": "forbidden"}, {})
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
    result = fill(SECURITY, values, {"scannerIssues.low": "upstream-error"}, {"": AT})
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
    result = fill(INCIDENT, values, reasons, {})
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
    result = fill(SECURITY, values, {"branchProtection": "not-found"}, {"": AT})
    assert "branchProtection" not in result
    assert result["unknownReasons"] == {"branchProtection": "not-found"}
    assert "branchProtection" not in result["collectedAt"]  # type: ignore[operator]


@pytest.mark.spec("tools.incident.unavailable-groups-are-omitted")
def test_incident_groups_that_nobody_determined_are_left_out() -> None:
    assert absent(INCIDENT, "no-annotation") == {
        "unknownReasons": {"incidentMetrics": "no-annotation", "serviceInfo": "no-annotation"},
        "collectedAt": {},
    }


@pytest.mark.parametrize("value", [0, False, "", [], "unknown"])
def test_a_value_that_looks_like_nothing_is_still_a_value(value: object) -> None:
    shape = Shape("any", "Things", (Leaf("leaf", "string|unknown", "A leaf."),))
    assert fill(shape, {"leaf": value}, {}, {}) == {
        "leaf": value,
        "unknownReasons": {},
        "collectedAt": {},
    }


@pytest.mark.spec("tools.observability.unavailable-is-an-error")
def test_unknown_observability_counts_are_an_error_that_says_what_to_do() -> None:
    with pytest.raises(ToolError) as raised:
        fill(OBSERVABILITY, {"sloCount": 3}, {"monitorCount": "forbidden"}, {})
    assert raised.value.message == (
        "Observability metrics are not available: monitorCount is not known (forbidden). "
        "The credential of the integration may not read this. An administrator can widen its "
        "permissions."
    )


@pytest.mark.spec("tools.repository.unavailable-is-an-error")
@pytest.mark.parametrize("path", ["totalFiles", "fileTypes.docs"])
def test_an_unknown_repository_is_an_error_that_says_what_to_do(path: str) -> None:
    values = everything(REPOSITORY)
    del values[path]
    with pytest.raises(ToolError, match=f"{path} is not known \\(never-collected\\).*Ask again"):
        fill(REPOSITORY, values, {}, {})


def test_the_nearest_reason_is_told() -> None:
    reasons = {"": "not-found", "issues": "feature-off", "issues.open": "forbidden"}
    unknown = fill(CODEHOST, {}, reasons, {})["unknownReasons"]
    assert isinstance(unknown, dict)
    assert unknown["issues.open"] == "forbidden"
    assert unknown["issues.closed"] == "feature-off"
    assert unknown["pullRequests.open"] == "not-found"


def test_a_stored_reason_is_told_by_its_word() -> None:
    reasons = {
        "issues.open": "upstream-error: expected an integer, not this string",
        "issues.closed": "not-applicable: no value was given",
        "issues.total": "the dog ate it",
    }
    unknown = fill(CODEHOST, {}, reasons, {})["unknownReasons"]
    assert isinstance(unknown, dict)
    assert unknown["issues.open"] == unknown["issues.total"] == "upstream-error"
    assert unknown["issues.closed"] == "not-applicable"


@pytest.mark.spec("unknown.collected-at")
def test_the_age_of_each_known_group_is_told() -> None:
    later = "2026-11-21T07:00:00.000+00:00"
    times = {"pullRequests": AT, "issues": later, "codeReview": AT}
    result = fill(CODEHOST, {"pullRequests.open": 1, "issues.open": 2}, {}, times)
    assert result["collectedAt"] == {"pullRequests": AT, "issues": later}


def test_results_share_nothing() -> None:
    first, second = absent(CODEHOST, "not-configured"), absent(CODEHOST, "not-configured")
    first["collaboration"]["languages"].append("Python")  # type: ignore[index]
    assert second["collaboration"]["languages"] == []  # type: ignore[index]


@by_name
def test_the_facts_of_an_integration_are_the_paths_of_the_shape(shape: Shape) -> None:
    values = everything(shape)
    assert [fact.name for fact in facts(shape)] == list(values)
    assert check(facts(shape), values) == (values, {})


def test_a_number_without_a_unit_is_a_whole_number() -> None:
    types = {fact.name: (fact.type, fact.unit) for fact in facts(CODEHOST)}
    assert types["pullRequests.total"] == ("integer", None)
    assert types["mergeTime.avgHours"] == ("float", "hours")
    assert types["collaboration.languages"] == ("set", None)


@given(st.data(), st.sampled_from(SHAPES))
def test_whatever_is_known_the_result_fits_the_schema(data: st.DataObject, shape: Shape) -> None:
    whole = everything(shape)
    missing = data.draw(st.sets(st.sampled_from(list(whole))))
    reasons = data.draw(st.dictionaries(st.sampled_from(list(whole)), st.sampled_from([*REASONS])))
    values = {path: value for path, value in whole.items() if path not in missing}
    try:
        result = fill(shape, values, reasons, {"": AT})
    except ToolError:
        assert shape in (OBSERVABILITY, REPOSITORY)
        return
    Draft202012Validator(schema(shape)).validate(result)
    explained = result["unknownReasons"]
    assert isinstance(explained, dict)
    assert all(path in explained or path.partition(".")[0] in explained for path in missing)
    assert bool(explained) is bool(missing)
