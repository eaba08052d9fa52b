"""`?read=seed`: answers with exactly the members that the seed gives the nine tools."""

import json
import re
from typing import Any

import pytest

from factbook.facts import schema
from factbook.facts.datasource import DataSource
from factbook.facts.schema import Fact
from factbook.integrations import SOURCES
from tests.api.test_mcp_list import SEED_RESULTS
from tests.conftest import StartService
from tests.facts.shapes import everything
from tests.service import TOOLS, Service, call, component
from tests.tools.sources import record

_TYPES: dict[type, Any] = {bool: "boolean", int: "integer", list: "set", str: "string"}
_FACTS = {
    f"{shape.name}.{path}": value
    for shape in schema.SHAPES
    if shape is not schema.COMPLIANCE
    for path, value in everything(shape).items()
}
_VENDOR = DataSource(
    id="vendor",
    title="Vendor",
    schema=tuple(Fact(name, _TYPES[type(value)]) for name, value in _FACTS.items()),
)
_NAMED = {"name": "payments"}
CALLS: dict[str, dict[str, Any]] = {
    "get-data-source-discovery": {},
    "get-entity-facts": {"dataSourceId": "vendor", **_NAMED},
    "get-all-entities-facts": {"dataSourceId": "vendor"},
    **{
        name: _NAMED for name in SEED_RESULTS if name.endswith(("-metrics", "-info", "-compliance"))
    },
}


@pytest.fixture
async def filled(start: StartService) -> Service:
    service = await start(sources=[*SOURCES, _VENDOR])
    await service.push("all", component("payments"), component("orders"))
    await record(service, "component:default/payments", _FACTS, _VENDOR)
    return service


async def ask(service: Service, tool: str, query: str = "") -> dict[str, Any]:
    answer = await service.http.post(TOOLS + query, json=call(tool, CALLS[tool]))
    result: dict[str, Any] = answer.json()["result"]
    assert result["isError"] is False, result
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
    found: dict[str, Any] = result["structuredContent"]
    return found


def members(value: Any, path: str = "") -> set[str]:
    """The paths of all members but those that are named by users."""
    if isinstance(value, list):
        return {one for item in value for one in members(item, path)}
    if not isinstance(value, dict) or path in {"facts", "entities.facts", "dataSources.schema"}:
        return set()
    found = set()
    for name, part in value.items():
        here = f"{path}.{name}".lstrip(".")
        found |= {here} | members(part, here)
    return found


@pytest.mark.spec("endpoint.strict-answers")
async def test_a_strict_answer_has_the_members_of_the_seed_and_no_other(
    filled: Service, subtests: pytest.Subtests
) -> None:
    assert CALLS.keys() == SEED_RESULTS.keys()
    for tool, fields in SEED_RESULTS.items():
        with subtests.test(tool):
            whole, strict = await ask(filled, tool), await ask(filled, tool, "?read=seed")
            names = {field.rstrip("?") for field in fields.split()}
            assert {field for field in fields.split() if not field.endswith("?")} <= strict.keys()
            assert strict.keys() <= names
            assert members(strict) <= members(whole)
            # What is left out is what was added, and nothing of the seed.
            left_out = {one.rpartition(".")[2] for one in members(whole) - members(strict)}
            assert left_out <= ADDED | members_of_reasons(whole)


ADDED = {"unknownReasons", "unknownDetails", "collectedAt", "unknownEntities", "ownerExists"}


def members_of_reasons(whole: dict[str, Any]) -> set[str]:
    """Members within additions."""
    return {
        path.rpartition(".")[2]
        for path in members(whole)
        if re.match(rf"(entities\.)?({'|'.join(ADDED)})\.", path)
    }


@pytest.mark.spec("endpoint.strict-answers")
async def test_every_member_that_the_seed_names_is_in_a_strict_answer(filled: Service) -> None:
    for tool, shape in (
        ("get-codehost-metrics", schema.CODEHOST),
        ("get-security-metrics", schema.SECURITY),
        ("get-incident-metrics", schema.INCIDENT),
        ("get-observability-metrics", schema.OBSERVABILITY),
        ("get-repository-info", schema.REPOSITORY),
    ):
        found = members(await ask(filled, tool, "?read=seed"))
        assert {path for member in shape.members for path, _ in member.paths} <= found


async def test_other_tools_and_other_queries_answer_as_ever(filled: Service) -> None:
    asked = call("get-entity", {"name": "payments"})
    plain = await filled.http.post(TOOLS, json=asked)
    for query in ("?read=seed", "?read=full", "?read=seed2", "?x=1"):
        assert (await filled.http.post(TOOLS + query, json=asked)).json() == plain.json()
    facts = call("get-entity-facts", CALLS["get-entity-facts"])
    plain = await filled.http.post(TOOLS, json=facts)
    assert (await filled.http.post(f"{TOOLS}?read=full", json=facts)).json() == plain.json()
