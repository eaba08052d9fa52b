"""What tools/list says: as it was agreed, as the seed has it, and such that every client takes it.

After a change on purpose, `FACTBOOK_RENEW=1 pytest tests/api/test_mcp_list.py` writes the new list
into `tools-list.json`, whose difference is then read like code.
"""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from factbook.tools import TOOLS
from tests.api.messages import Json, expect_result, message, send, send_modern
from tests.service import Service

SNAPSHOT = Path(__file__).with_name("tools-list.json")
RENEW = "FACTBOOK_RENEW"

ENTITY = {"name": "required", "namespace": "default", "kind": "component"}
EITHER = {"name": "optional", "namespace": "default", "kind": "component", "entityRef": "optional"}
# Source: the seed, section 4.1: each tool, and each argument with its default if it has one.
SEED_ARGUMENTS: dict[str, dict[str, str]] = {
    "get-data-source-discovery": {},
    "get-entity-facts": {"dataSourceId": "required", **ENTITY},
    "get-all-entities-facts": {
        "dataSourceId": "required",
        "kind": "component",
        "namespace": "optional",
    },
    "get-codehost-metrics": EITHER,
    "get-security-metrics": EITHER,
    "get-incident-metrics": ENTITY,
    "get-observability-metrics": ENTITY,
    "get-entity-compliance": ENTITY,
    "get-repository-info": {"name": "required", "namespace": "default"},
}
# Tools that were added behind those of the seed, with their arguments.
ADDED_ARGUMENTS: dict[str, dict[str, str]] = {
    "get-fact-history": {
        **EITHER,
        **dict.fromkeys(["dataSourceId", "facts", "from", "to", "cursor"], "optional"),
        "limit": "20",
    },
    "get-changed-facts": {
        "since": "required",
        **dict.fromkeys(["dataSourceId", "kind", "cursor"], "optional"),
        "limit": "50",
    },
    "get-entity": ENTITY,
    "find-entities": {
        **dict.fromkeys(["text", "kind", "namespace", "type", "lifecycle", "owner"], "optional"),
        **dict.fromkeys(["ownership", "system", "dangling", "tag", "label"], "optional"),
        **dict.fromkeys(["query", "where"], "optional"),
        "unknown": "False",
        "groupBy": "optional",
        "limit": "25",
        "cursor": "optional",
    },
}
# Arguments that were added to tools of the seed.
ADDED_TO_SEED = {"limit", "cursor", "facts", "unknown", "owner", "where", "count", "groupBy"}
# Bytes of the list without output schemas before the tools about entities were added.
LIST_BEFORE = 14_524
# Source: the seed, sections 2.2 to 2.10: the members of each result; `?` marks optional ones.
SEED_RESULTS = {
    "get-data-source-discovery": "dataSources totalCount builtinCount customCount",
    "get-entity-facts": "dataSourceId dataSourceTitle? entityRef facts timestamp?",
    "get-all-entities-facts": "dataSourceId dataSourceTitle? entities",
    "get-codehost-metrics": "pullRequests mergeTime issues latestMergedPR collaboration "
    "branchProtection codeReview",
    "get-security-metrics": "scannerIssues? dependencyAlerts? branchProtection?",
    "get-incident-metrics": "incidentMetrics? serviceInfo?",
    "get-observability-metrics": "sloCount monitorCount",
    "get-entity-compliance": "metadata techdocs ownership",
    "get-repository-info": "filePaths totalFiles inCatalog? fileTypes",
}

SEED_TOOLS = [tool for tool in TOOLS if tool.name in SEED_ARGUMENTS]


def schemas(schema: Any, path: str = "$") -> Iterator[tuple[str, Json]]:
    """Each schema within a schema, itself included, with its path."""
    yield path, schema
    for name, part in schema.get("properties", {}).items():
        yield from schemas(part, f"{path}.{name}")
    for keyword in ("items", "additionalProperties"):
        if isinstance(schema.get(keyword), dict):
            yield from schemas(schema[keyword], f"{path}.{keyword}")
    for part in schema.get("anyOf", ()):
        yield from schemas(part, f"{path}|")


async def test_the_list_is_the_one_that_was_agreed(service: Service) -> None:
    tools = expect_result(await send(service, message("tools/list")))["tools"]
    text = json.dumps(tools, indent=1, ensure_ascii=False) + "\n"
    if os.environ.get(RENEW):
        SNAPSHOT.write_text(text, "utf-8")
    assert text == SNAPSHOT.read_text("utf-8"), f"if on purpose, renew it with {RENEW}=1"


@pytest.mark.spec("endpoint.lists-nine-tools")
async def test_the_nine_tools_come_first_in_the_seeds_order_in_both_eras(service: Service) -> None:
    old = expect_result(await send(service, message("tools/list")))
    new = expect_result(await send_modern(service, "tools/list"))
    for listed in (old, new):
        names = [tool["name"] for tool in listed["tools"]]
        assert names == [*SEED_ARGUMENTS, *ADDED_ARGUMENTS]
        assert "nextCursor" not in listed


@pytest.mark.spec("endpoint.list-grows-little")
async def test_the_tools_about_entities_made_the_list_longer_by_fewer_than_1500_tokens(
    service: Service,
) -> None:
    tools = expect_result(await send(service, message("tools/list")))["tools"]
    told = [{name: one[name] for name in one if name != "outputSchema"} for one in tools]
    size = len(json.dumps(told, separators=(",", ":"), ensure_ascii=False).encode())
    assert (size - LIST_BEFORE) / 4 < 1_500


async def test_each_listed_tool_says_that_it_only_reads(service: Service) -> None:
    for tool in expect_result(await send(service, message("tools/list")))["tools"]:
        keys = {"name", "title", "description", "inputSchema", "outputSchema", "annotations"}
        assert tool.keys() == keys
        assert tool["annotations"] == {
            "title": tool["title"],
            "readOnlyHint": True,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": False,
        }


@pytest.mark.spec(
    "endpoint.v1-only-grows",
    "tools.entities-facts.arguments",
    "tools.entities-facts.defaults",
    "tools.all-facts.arguments",
    "tools.facts.defaults",
    "tools.facts.name-required",
)
def test_every_argument_of_the_seed_is_there_and_nothing_else_is_required(
    subtests: pytest.Subtests,
) -> None:
    assert SEED_TOOLS
    for tool in SEED_TOOLS:
        with subtests.test(tool.name):
            schema = tool.input_schema
            seed = SEED_ARGUMENTS[tool.name]
            assert set(schema["required"]) == {
                name for name, rule in seed.items() if rule == "required"
            }
            for name, rule in seed.items():
                part = schema["properties"][name]
                assert part["type"] == "string"
                assert part.get("default") == (None if rule in {"required", "optional"} else rule)
            assert schema["properties"].keys() - seed <= ADDED_TO_SEED


@pytest.mark.spec("endpoint.v1-only-grows", "result.additions-leave-seed-fields-alone")
def test_every_field_of_the_seed_is_there_and_required_where_it_is(
    subtests: pytest.Subtests,
) -> None:
    assert SEED_TOOLS
    for tool in SEED_TOOLS:
        with subtests.test(tool.name):
            fields = SEED_RESULTS[tool.name].split()
            names = {field.rstrip("?") for field in fields}
            assert names <= tool.output_schema["properties"].keys()
            required = {field for field in fields if not field.endswith("?")}
            assert set(tool.output_schema["required"]) & names == required
            additions = {"unknownReasons", "collectedAt", "draft", "nextCursor", "totalCount"}
            additions |= {
                "unknownEntities",
                "unknown",
                "examined",
                "groups",
                "otherGroups",
                "leftOut",
            }
            additions |= {"timestamp", "unknownDetails", "stale", "staleFacts", "staleCount"}
            additions |= {"asOf", "staleSources"}
            assert tool.output_schema["properties"].keys() - names <= additions


def test_an_added_tool_has_the_arguments_that_it_was_added_with(subtests: pytest.Subtests) -> None:
    for name, added in ADDED_ARGUMENTS.items():
        with subtests.test(name=name):
            [schema] = [tool.input_schema for tool in TOOLS if tool.name == name]
            assert schema["properties"].keys() == added.keys()
            assert set(schema["required"]) == {
                key for key, rule in added.items() if rule == "required"
            }
            for key, rule in added.items():
                default = schema["properties"][key].get("default", rule)
                assert str(default) == rule


# What some client or other trips over


def test_names_are_such_as_every_client_takes(subtests: pytest.Subtests) -> None:
    assert TOOLS
    for tool in TOOLS:
        with subtests.test(tool.name):
            assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", tool.name)
            for schema in (tool.input_schema, tool.output_schema):
                for path, part in schemas(schema):
                    for name in part.get("properties", ()):
                        assert re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", name), path


@pytest.mark.spec("endpoint.no-root-composition")
def test_the_root_of_every_schema_is_an_object_and_composes_nothing(
    subtests: pytest.Subtests,
) -> None:
    assert TOOLS
    for tool in TOOLS:
        with subtests.test(tool.name):
            for schema in (tool.input_schema, tool.output_schema):
                assert schema["type"] == "object"
                composing = {"anyOf", "oneOf", "allOf", "not", "if", "enum", "const"}
                assert not composing & schema.keys()


@pytest.mark.slow
def test_schemas_are_sound_inline_and_of_single_types(subtests: pytest.Subtests) -> None:
    assert TOOLS
    for tool in TOOLS:
        with subtests.test(tool.name):
            for schema in (tool.input_schema, tool.output_schema):
                jsonschema.Draft202012Validator.check_schema(schema)
                text = json.dumps(schema)
                assert "$ref" not in text
                assert "$defs" not in text
                for path, part in schemas(schema):
                    assert isinstance(part.get("type"), str) or "anyOf" in part, path
                    assert not {"oneOf", "allOf"} & part.keys(), path


def test_neither_inputs_nor_results_say_that_other_members_are_refused(
    subtests: pytest.Subtests,
) -> None:
    assert TOOLS
    for tool in TOOLS:
        with subtests.test(tool.name):
            # Google's converter, for one, refuses a schema with the member.
            for schema in (tool.input_schema, tool.output_schema):
                for path, part in schemas(schema):
                    assert part.get("additionalProperties") is not False, path


def test_each_argument_is_explained_with_an_example_that_fits(subtests: pytest.Subtests) -> None:
    assert TOOLS
    for tool in TOOLS:
        with subtests.test(tool.name):
            for name, part in tool.input_schema["properties"].items():
                assert part["description"].endswith("."), name
                assert part["examples"], name
                for example in part["examples"]:
                    jsonschema.validate(example, part, cls=jsonschema.Draft202012Validator)
                if name not in tool.input_schema["required"] and "default" not in part:
                    assert re.search(
                        "when left out|give this or|page before", part["description"]
                    ), name


def test_each_tool_is_described_with_its_neighbours_defaults_and_unknowns(
    subtests: pytest.Subtests,
) -> None:
    assert TOOLS
    for tool in TOOLS:
        with subtests.test(tool.name):
            text = tool.description
            assert tool.title
            assert 80 < len(text) < 700
            properties = tool.input_schema["properties"]
            if "dataSourceId" in properties:
                assert "get-data-source-discovery" in text
            if "name" in properties:
                assert "namespace" in text
                assert "default" in text
            if "unknownReasons" in tool.output_schema["properties"]:
                assert "unknown" in text
            if "entityRef" in properties:
                assert "exactly one of name and entityRef" in text


@pytest.mark.spec("endpoint.descriptions-warn-of-size")
def test_a_tool_whose_result_may_be_long_warns_of_it_and_names_the_remedy(
    subtests: pytest.Subtests,
) -> None:
    assert TOOLS
    for tool in TOOLS:
        with subtests.test(tool.name):
            if "limit" in tool.input_schema["properties"]:
                assert "25,000 tokens" in tool.description
                assert "`limit`" in tool.description
            fields = tool.input_schema["properties"] | tool.output_schema["properties"]
            known = {*fields, "unknown"}
            for named in re.findall(r"`(\w+)`", tool.description):
                assert named in known, f"{named} is neither an argument nor a field"
