"""The envelope of every tool's results and refusals, and what each refusal tells to do next."""

from typing import Any

import pytest

from factbook.tools import TOOLS
from tests.service import Service, component
from tests.tools.checks import refusal, structured

SOURCE = {"dataSourceId": "entity-metadata"}
PAYMENTS = {"name": "payments"}
NOBODY = {"name": "nobody"}

GOOD: list[tuple[str, dict[str, Any]]] = [
    ("get-data-source-discovery", {}),
    ("get-data-source-discovery", {"limit": 1}),
    ("get-entity-facts", {**SOURCE, **PAYMENTS}),
    ("get-all-entities-facts", SOURCE),
    ("get-all-entities-facts", {**SOURCE, "kind": "*", "limit": 1, "facts": ["hasOwner"]}),
    ("get-codehost-metrics", PAYMENTS),
    ("get-codehost-metrics", {"entityRef": "component:default/zahlung äöü"}),
    ("get-security-metrics", PAYMENTS),
    ("get-incident-metrics", PAYMENTS),
    ("get-entity-compliance", PAYMENTS),
    ("get-fact-history", PAYMENTS),
    ("get-fact-history", {"entityRef": "component:default/zahlung äöü", **SOURCE, "limit": 1}),
    ("get-changed-facts", {"since": "7d"}),
    ("get-changed-facts", {"since": "2026-11-01", **SOURCE, "kind": "component", "limit": 1}),
    ("get-entity", PAYMENTS),
    ("find-entities", {}),
    ("find-entities", {"text": "pay", "limit": 1, "groupBy": "owner"}),
]
# What these say is in the tests of the metric tools.
WITHOUT_RESULT = ("get-observability-metrics", "get-repository-info")
REQUIRED = {tool.name: tool.input_schema["required"] for tool in TOOLS}
NAMING = [tool.name for tool in TOOLS if "name" in tool.input_schema["properties"]]


@pytest.fixture
async def filled(service: Service) -> Service:
    answer = await service.push("first", component("payments"), component("Zahlung äöü"))
    assert answer.status_code == 200, answer.text
    return service


@pytest.mark.spec(
    "result.envelope",
    "result.both-copies-agree",
    "result.matches-output-schema",
    "protocol.tool-answers-are-200",
)
async def test_every_good_result_has_its_value_twice_and_fits_its_schema(filled: Service) -> None:
    assert {tool for tool, _ in GOOD} == {tool.name for tool in TOOLS} - {*WITHOUT_RESULT}
    for tool, arguments in GOOD:
        structured(tool, await filled.ask(tool, **arguments))


@pytest.mark.slow
async def test_a_result_that_is_sent_in_pieces_is_the_same(service: Service) -> None:
    count = 4_000
    await service.push("many", *(component(f"größe-{number:04}") for number in range(count)))
    answer = await service.ask("get-all-entities-facts", dataSourceId="entity-metadata")
    found = structured("get-all-entities-facts", answer)
    assert len(found["entities"]) == count
    assert found["entities"][-1]["entityRef"] == "component:default/größe-3999"


# Refusals

WRONG_ARGUMENTS: dict[str, tuple[str, dict[str, Any], str]] = {
    "one too many": ("get-data-source-discovery", {"verbose": True}, "verbose"),
    "no source": ("get-entity-facts", PAYMENTS, "dataSourceId"),
    "no source for all": ("get-all-entities-facts", {}, "dataSourceId"),
    "no name": ("get-entity-facts", SOURCE, "name"),
    "a name that is no text": ("get-entity-compliance", {"name": 7}, "name"),
    "an empty name": ("get-entity-compliance", {"name": ""}, "name"),
    "a name that is null": ("get-entity-compliance", {"name": None}, "name"),
    "a kind for repositories": ("get-repository-info", {**PAYMENTS, "kind": "api"}, "kind"),
    "no entities": ("get-all-entities-facts", {**SOURCE, "limit": 0}, "limit"),
    "half an entity": ("get-all-entities-facts", {**SOURCE, "limit": 1.5}, "limit"),
    "a limit in words": ("get-all-entities-facts", {**SOURCE, "limit": "all"}, "limit"),
    "facts as text": ("get-all-entities-facts", {**SOURCE, "facts": "hasOwner"}, "facts"),
    "NUL in a name": ("get-entity-compliance", {"name": "a\0"}, "NUL"),
    "a fact as text": ("get-fact-history", {**PAYMENTS, "facts": "hasOwner"}, "facts"),
    "too many rows": ("get-fact-history", {**PAYMENTS, "limit": 201}, "limit"),
    "too many entities": ("find-entities", {"limit": 201}, "limit"),
    "a group that is none": ("find-entities", {"groupBy": "color"}, "groupBy"),
    "a condition as text": ("find-entities", {"where": "a = b"}, "where"),
    "no time": ("get-changed-facts", {}, "since"),
    "NUL in a filter": ("get-all-entities-facts", {**SOURCE, "namespace": "\0"}, "NUL"),
}


@pytest.mark.spec(
    "tool-error.bad-argument",
    "tool-error.says-what-to-do-next",
    "result.error-has-text-alone",
    "tools.facts.name-required",
    "tools.repository.no-kind-argument",
    "tools.all-facts.arguments",
    "tools.entities-facts.arguments",
)
async def test_a_wrong_argument_is_refused_with_what_the_tool_takes(filled: Service) -> None:
    for case, (tool, arguments, named) in WRONG_ARGUMENTS.items():
        text = refusal(await filled.ask(tool, **arguments))
        problem, takes, usage = text.partition(f"{tool} takes ")
        assert takes, f"{case}: {text}"
        assert named in problem, f"{case}: {text}"
        if "name" in REQUIRED[tool]:
            assert "name (string, required)" in usage, f"{case}: {text}"


async def test_every_tool_that_needs_a_name_refuses_to_go_without(filled: Service) -> None:
    for tool, required in REQUIRED.items():
        if "name" in required:
            given = SOURCE if "dataSourceId" in required else {}
            assert "missing required field `name`" in refusal(await filled.ask(tool, **given))


@pytest.mark.spec("tool-error.unknown-data-source", "tool-error.says-what-to-do-next")
async def test_an_unknown_data_source_is_told_the_known_ones(filled: Service) -> None:
    needed = {
        "get-entity-facts": PAYMENTS,
        "get-all-entities-facts": {},
        "get-fact-history": PAYMENTS,
        "get-changed-facts": {"since": "7d"},
    }
    for tool, named in needed.items():
        for source in ("github", "Entity-Metadata"):
            text = refusal(await filled.ask(tool, dataSourceId=source, **named))
            assert text.startswith(f'There is no data source "{source}".')
            assert "entity-metadata, entity-ownership, techdocs" in text
            assert "Call get-data-source-discovery" in text


@pytest.mark.spec("tool-error.unknown-entity", "tool-error.says-what-to-do-next")
async def test_an_unknown_entity_is_told_the_nearest_names(filled: Service) -> None:
    for tool in NAMING:
        source = SOURCE if tool == "get-entity-facts" else {}
        text = refusal(await filled.ask(tool, name="paymnts", **source))
        assert text.startswith("There is no entity component:default/paymnts in the catalog.")
        assert "Did you mean component:default/payments?" in text
        assert "Give the name as the catalog has it" in text


@pytest.mark.spec("tool-error.unknown-entity")
async def test_an_unknown_entity_of_an_empty_catalog_is_told_no_names(service: Service) -> None:
    text = refusal(await service.ask("get-entity-compliance", **NOBODY))
    assert "Did you mean" not in text
    assert "Give the name as the catalog has it" in text


@pytest.mark.spec("tool-error.bad-reference", "tool-error.says-what-to-do-next")
async def test_a_malformed_reference_is_told_the_form(filled: Service) -> None:
    malformed = ("component:default/", ":default/payments", "component:/payments", "/", ":", " ")
    for tool in ("get-codehost-metrics", "get-security-metrics", "get-fact-history"):
        for ref in malformed:
            text = refusal(await filled.ask(tool, entityRef=ref))
            assert "kind:namespace/name, such as component:default/payments-api" in text, ref
    for tool in NAMING:
        source = SOURCE if tool == "get-entity-facts" else {}
        for ref in malformed:
            text = refusal(await filled.ask(tool, name=ref, **source))
            assert "kind:namespace/name, such as component:default/payments-api" in text, ref


@pytest.mark.spec("tool-error.says-what-to-do-next")
async def test_an_unknown_fact_and_a_made_up_cursor_are_told_what_there_is(filled: Service) -> None:
    tool = "get-all-entities-facts"
    text = refusal(await filled.ask(tool, **SOURCE, facts=["hasOwner", "hasWings", "hasFins"]))
    assert "no fact hasFins, hasWings" in text
    assert "There are: hasTitle, hasDescription, hasTags, hasOwner." in text
    for cursor in ("2", "eyJwYWdlIjoyfQ=="):
        text = refusal(await filled.ask(tool, **SOURCE, cursor=cursor))
        assert "Leave it out to start over" in text
