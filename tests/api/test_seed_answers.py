"""Answers at the address of the first nine tools: as before, and with `?read=seed` as agreed."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import jsonschema
import pytest

from tests.api.seed_calls import ALL_SOURCES, LISTS, NINE, answers, fill
from tests.conftest import StartService
from tests.service import Service

RECORDED = Path(__file__).parents[1] / "data/seed-answers.jsonl"
# Part of an answer before, and now; the reason for which it had to change is above each.
CHANGED: Final[Mapping[str, tuple[str, str]]] = {
    # Issue 35, D: no names of types of Python in messages.
    "body: number": ("`object`, got `int`", "an object, got a whole number"),
    "body: null": ("`object`, got `null`", "an object, got null"),
    "body: method 7": ("`str`, got `int`", "text, got a whole number"),
    "body: id list": ("`int | str`, got `array`", "a whole number or text, got a list"),
    "body: params list": ("`object`, got `array`", "an object, got a list"),
    "body: name 7": ("`str`, got `int`", "text, got a whole number"),
    'get-data-source-discovery {"limit": 0}': ("`int`", "a whole number"),
    'get-all-entities-facts {"dataSourceId": "coverage", "limit": 0}': ("`int`", "a whole number"),
    # Issue 35, D: near names in every refusal.
    'get-all-entities-facts {"dataSourceId": "coverage", "facts": ["lins"]}': (
        "Choose among:",
        "Did you mean lines? There are:",
    ),
    "body: unknown tool": (
        "; tools/list lists those there are.",
        ". Did you mean get-fact-history, get-entity, get-incident-metrics? There are: TOOLS.",
    ),
    "body: check tool": (
        "; tools/list lists those there are.",
        ". Did you mean get-changed-facts? There are: TOOLS.",
    ),
    # Issue 36, 5: batches in the revision that demands them.
    "body: empty batch": (
        "Batches are not accepted.",
        "A batch is for revision 2025-03-26 alone.",
    ),
}
TOOLS = f"{', '.join(NINE)}, get-fact-history, get-changed-facts, get-entity, find-entities"
# A namespace that nothing is in may have been emptied by a push: the answer has no entities.
NO_ENTITIES = 'get-all-entities-facts {"dataSourceId": "entity-metadata", "namespace": "nowhere"}'
# Members of results that were added since. Issue 35, B: staleness, the age of numbers and the two
# reasons. Issue 36, 7: groups of entities without a value, and how many groups are left out.
ADDED: Final = frozenset(
    ["asOf", "otherGroups", "stale", "staleCount", "staleFacts", "staleSources"]
)
REASONS: Final = frozenset(["not-sent", "bad-definition"])


@pytest.fixture
async def filled(start: StartService) -> Service:
    service = await start(sources=list(ALL_SOURCES))
    await fill(service)
    return service


def as_before(case: str, answer: list[Any]) -> list[Any]:
    """An answer of today without what was added to the results of tools."""
    status, headers, text = answer
    if case in LISTS:
        text = json.dumps(_without(json.loads(text)), ensure_ascii=False, separators=(",", ":"))
    return [status, headers, text]


def _without(value: Any) -> Any:
    if isinstance(value, list):
        kept = [one for one in value if one not in (*REASONS, {"type": "null"})]
        return [_without(one) for one in kept]
    if not isinstance(value, dict):
        return value
    return {name: _without(part) for name, part in value.items() if name not in ADDED}


@pytest.mark.slow
@pytest.mark.spec("endpoint.v1-only-grows")
async def test_answers_are_byte_for_byte_those_of_before(
    filled: Service, subtests: pytest.Subtests
) -> None:
    rows = [json.loads(line) for line in RECORDED.read_text("utf-8").splitlines()]
    before = {case: answer for case, *answer in rows}
    now = await answers(filled)
    assert now.keys() == before.keys()
    assert "is no namespace" not in str(now.pop(NO_ENTITIES))
    for case, answer in now.items():
        with subtests.test(case):
            status, headers, text = before[case]
            old, new = CHANGED.get(case, ("", ""))
            assert old in text
            expected = text.replace(old, new.replace("TOOLS", TOOLS)) if old else text
            assert as_before(case, answer) == [status, headers, expected]


# Source: the seed, sections 2.1 to 2.10.
def record(*names: str, optional: str = "", **parts: Any) -> dict[str, Any]:
    """An object with these members and no others; names are lists of members of a type."""
    properties = dict(parts)
    for text in names:
        type_, _, members = text.partition(": ")
        properties |= dict.fromkeys(members.split(), TYPES[type_])
    required = sorted(properties.keys() - set(optional.split()))
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


TEXT: Final = {"type": "string"}
NUMBER: Final = {"type": "number"}
TYPES: Final[Mapping[str, Any]] = {
    "any": {},
    "text": TEXT,
    "number": NUMBER,
    "truth": {"type": "boolean"},
    "texts": {"type": "array", "items": TEXT},
    "facts": {"type": "object"},
    **{
        f"{type_}?": {"anyOf": [{"type": type_}, {"const": "unknown"}]}
        for type_ in ("number", "boolean", "string")
    },
}
DESCRIPTOR: Final = record(
    "text: description",
    optional="description metadata",
    type={"enum": ["integer", "float", "string", "boolean", "datetime", "set", "object"]},
    metadata=record("text: key", optional="key"),
)
SOURCE: Final = record(
    "text: id title description cadence createdAt updatedAt version",
    "any: lifecycle timeout entityFilter",
    "truth: draft",
    optional="description cadence lifecycle createdAt updatedAt handlerDefinition timeout draft "
    "version entityFilter schema",
    handlerDefinition=record(
        "text: type", config=record("text: id builtinId", optional="builtinId")
    ),
    schema={"type": "object", "additionalProperties": DESCRIPTOR},
)
ENTRY: Final = record("text: entityRef timestamp", "facts: facts", optional="timestamp")
RESULTS: Final[Mapping[str, Any]] = {
    "get-data-source-discovery": record(
        "number: totalCount builtinCount customCount",
        dataSources={"type": "array", "items": SOURCE},
    ),
    "get-entity-facts": record(
        "text: dataSourceId dataSourceTitle entityRef timestamp",
        "facts: facts",
        optional="dataSourceTitle timestamp",
    ),
    "get-all-entities-facts": record(
        "text: dataSourceId dataSourceTitle",
        optional="dataSourceTitle",
        entities={"type": "array", "items": ENTRY},
    ),
    "get-codehost-metrics": record(
        pullRequests=record("number?: total merged open mergedPercentage mergedLastMonth"),
        mergeTime=record(
            "number?: avgHours avgLastMonthHours minHours maxHours minLastMonthHours "
            "maxLastMonthHours"
        ),
        issues=record("number?: total open closed closedLastMonth"),
        latestMergedPR=record("string?: title author"),
        collaboration=record("texts: languages collaborators", "number?: collaboratorCount"),
        branchProtection=record(
            "boolean?: enabled enforceAdmins allowDeletions requiredLinearHistory allowForcePushes "
            "blockCreations requiredSignatures"
        ),
        codeReview=record(
            "boolean?: dismissStaleReviews requireCodeOwnerReviews requireLastPushApproval "
            "strictRequiredStatusChecks usesCodeowners codeownersHasErrors",
            "number?: requiredApprovingReviewCount codeownersErrorCount",
        ),
    ),
    "get-security-metrics": record(
        "truth: branchProtection",
        optional="scannerIssues dependencyAlerts branchProtection",
        scannerIssues=record("number: total critical high medium low"),
        dependencyAlerts=record("number: open dismissed fixed"),
    ),
    "get-incident-metrics": record(
        optional="incidentMetrics serviceInfo",
        incidentMetrics=record(
            "number: totalIncidents monthlyIncidents quarterlyIncidents meanTimeToResolve "
            "meanTimeToFirstAck upTimePercentage",
            optional="meanTimeToResolve meanTimeToFirstAck upTimePercentage",
        ),
        serviceInfo=record(
            "truth: hasEscalationPolicy hasTeamsAssigned hasDescription",
            "text: alertCreationType",
            optional="alertCreationType",
        ),
    ),
    "get-observability-metrics": record("number: sloCount monitorCount"),
    "get-entity-compliance": record(
        metadata=record("boolean?: hasTitle hasDescription hasTags hasOwner"),
        techdocs=record("boolean?: hasTechdocsRef"),
        ownership=record("boolean?: hasOwner hasGroupOwner hasRelationships"),
    ),
    "get-repository-info": record(
        "texts: filePaths",
        "number: totalFiles",
        "truth: inCatalog",
        optional="inCatalog",
        fileTypes=record("number: docker yaml javascript python docs config"),
    ),
}


@pytest.mark.slow
@pytest.mark.spec("endpoint.strict-answers")
async def test_strict_answers_are_those_of_the_seed(
    filled: Service, subtests: pytest.Subtests
) -> None:
    plain, strict = await answers(filled), await answers(filled, "?read=seed")
    seen = set()
    for case, (status, _, text) in strict.items():
        tool = case.removeprefix("modern ").partition(" ")[0]
        if tool not in RESULTS:
            assert strict[case] == plain[case], case
            continue
        assert status == 200, case
        result = json.loads(text)["result"]
        if result["isError"]:
            assert strict[case] == plain[case], case
            continue
        with subtests.test(case):
            jsonschema.Draft202012Validator(RESULTS[tool]).validate(result["structuredContent"])
            assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
            seen.add(tool)
    assert seen == set(NINE)
