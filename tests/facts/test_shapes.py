"""The fixed metric shapes: their groups and leaves, their schemas, and the facts they ask for."""

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from factbook.facts.schema import (
    CODEHOST,
    COMPLIANCE,
    INCIDENT,
    OBSERVABILITY,
    REPOSITORY,
    SECURITY,
    SHAPES,
    Leaf,
    LeafGroup,
    Shape,
    check_values,
    shape_facts,
    shape_schema,
)
from tests.facts.shapes import everything


def outline(shape: Shape) -> dict[str, Any]:
    """Groups and leaves with their types, an optional one with a question mark."""

    def mark(member: LeafGroup | Leaf) -> str:
        return f"{member.name}?" if member.optional else member.name

    return {
        mark(member): member.type
        if isinstance(member, Leaf)
        else {mark(leaf): leaf.type for leaf in member.leaves}
        for member in shape.members
    }


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
    ownership = ("hasOwner", "hasGroupOwner", "hasRelationships", "ownerExists")
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


def test_a_schema_is_valid_inline_open_and_described(subtests: pytest.Subtests) -> None:
    for shape in SHAPES:
        with subtests.test(shape.name):
            result = shape_schema(shape)
            Draft202012Validator.check_schema(result)
            text = json.dumps(result)
            assert result["type"] == "object"
            assert "$ref" not in text
            assert '"additionalProperties": false' not in text
            assert all(member["description"] for member in result["properties"].values())


def test_schemas_are_made_anew_each_time() -> None:
    shape_schema(CODEHOST)["required"].clear()
    assert "pullRequests" in shape_schema(CODEHOST)["required"]


@pytest.mark.spec("tools.codehost.hours", "tools.codehost.percent")
def test_the_schema_gives_the_units_of_code_host_metrics() -> None:
    groups = shape_schema(CODEHOST)["properties"]
    times = groups["mergeTime"]["properties"].values()
    assert all(leaf["description"].endswith("Unit: hours.") for leaf in times)
    share = groups["pullRequests"]["properties"]["mergedPercentage"]
    assert share["description"].endswith("Unit: percent, 0 to 100.")


@pytest.mark.spec("tools.incident.units")
def test_the_schema_gives_the_units_of_incident_metrics() -> None:
    leaves = shape_schema(INCIDENT)["properties"]["incidentMetrics"]["properties"]
    assert leaves["meanTimeToResolve"]["description"].endswith("Unit: seconds.")
    assert leaves["meanTimeToFirstAck"]["description"].endswith("Unit: seconds.")
    assert leaves["upTimePercentage"]["description"].endswith("Unit: percent, 0 to 100.")


@pytest.mark.spec("unknown.reason-words")
def test_the_schema_lists_the_reasons(subtests: pytest.Subtests) -> None:
    for shape in SHAPES:
        with subtests.test(shape.name):
            reasons = shape_schema(shape)["properties"]["unknownReasons"]["additionalProperties"][
                "enum"
            ]
            assert reasons == [
                "not-configured",
                "no-annotation",
                "bad-annotation",
                "not-applicable",
                "never-collected",
                "not-sent",
                "bad-definition",
                "not-found",
                "forbidden",
                "feature-off",
                "rate-limited",
                "too-large",
                "upstream-error",
                "expired",
            ]


def test_the_facts_of_an_integration_are_the_paths_of_the_shape(subtests: pytest.Subtests) -> None:
    for shape in SHAPES:
        with subtests.test(shape.name):
            values = everything(shape)
            assert [fact.name for fact in shape_facts(shape)] == list(values)
            assert check_values(shape_facts(shape), values) == (values, {})


def test_a_number_without_a_unit_is_a_whole_number() -> None:
    types = {fact.name: (fact.type, fact.unit) for fact in shape_facts(CODEHOST)}
    assert types["pullRequests.total"] == ("integer", None)
    assert types["mergeTime.avgHours"] == ("float", "hours")
    assert types["collaboration.languages"] == ("set", None)
