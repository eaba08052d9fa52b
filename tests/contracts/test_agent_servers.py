"""The official Python client at the address of all tools, and at that of checks, in each mode."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import jsonschema
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ResourceTemplateReference

from tests.contracts.test_clients import MODES, Server, plain
from tests.processes import serving
from tests.service import PUSH, component
from tests.waiting import until

pytestmark = pytest.mark.system

CHECKS = "/api/mcp/v1/tech-insights-checks"
WEB = "factbook://entities/component/default/web"
OWNED = {"source": "entity", "fact": "spec.owner", "operator": "isKnown"}
EVERY_MODE = pytest.mark.parametrize("mode", MODES)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service with two entities and a check; its address has no path."""
    folder = tmp_path_factory.mktemp("agents")
    with serving(f"sqlite:///{folder / 'factbook.db'}", folder) as process:
        token = process.token()
        with process.client(token) as http:
            items = [component("web"), component("web-shop")]
            assert http.put(f"{PUSH}/sets/all", json={"items": items}).status_code == 200
            check = {"id": "owned", "title": "Owned", "rule": OWNED}
            path = "/api/tech-insights/v1/checks/owned"
            assert http.put(f"{path}?publish=true", json=check).status_code == 200
            until(lambda: is_in_effect(http.get(path).json()))
        narrow = process.token("--permission", "tech-insights.check.read")
        yield Server(process.url, token, narrow)


def is_in_effect(check: dict[str, Any]) -> bool:
    return not check["draft"] and check.get("publication") is None


@asynccontextmanager
async def connected(server: Server, path: str, mode: str) -> AsyncIterator[Client]:
    headers = {"authorization": f"Bearer {server.token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
        transport = streamable_http_client(f"{server.url}{path}", http_client=http)
        async with Client(transport, mode=mode) as client:
            yield client


def valid(tool: dict[str, Any], result: dict[str, Any]) -> None:
    assert result["isError"] is False, result
    value = result["structuredContent"]
    jsonschema.validate(value, tool["outputSchema"], cls=jsonschema.Draft202012Validator)
    assert json.loads(result["content"][0]["text"]) == value


@EVERY_MODE
@pytest.mark.spec("checks.agents-read-them")
def test_it_calls_tools_about_checks_whose_results_fit_their_schemas(
    server: Server, mode: str
) -> None:
    calls: dict[str, dict[str, Any]] = {
        "get-scorecard-discovery": {},
        "get-entity-check-results": {"name": "web", "states": ["pass", "unknown"]},
        "get-check-results": {"checkId": "owned", "states": ["pass", "unknown"]},
        "get-changed-check-results": {"since": "1d"},
        "get-check-preview": {"checkId": "owned", "changes": {"onUnknown": "fail"}},
    }

    async def talk() -> None:
        async with connected(server, CHECKS, mode) as client:
            assert client.protocol_version == MODES[mode]
            tools = {tool.name: plain(tool) for tool in (await client.list_tools()).tools}
            assert tools.keys() == calls.keys() | {"get-scorecard-rollup"}
            for name, given in calls.items():
                valid(tools[name], plain(await client.call_tool(name, given)))
            with pytest.raises(MCPError) as unknown:
                await client.call_tool("get-entity-facts", {})
            assert unknown.value.code == -32602

    asyncio.run(talk())


@EVERY_MODE
@pytest.mark.spec("endpoint.all-toolsets")
def test_it_calls_tools_of_several_servers_at_once_at_one_address(
    server: Server, mode: str
) -> None:
    async def talk() -> None:
        async with connected(server, "/mcp?schemas=output", mode) as client:
            tools = {tool.name: plain(tool) for tool in (await client.list_tools()).tools}
            names = ["get-data-source-discovery", "get-scorecard-discovery"] * 5
            found = [
                plain(result)
                for result in await asyncio.gather(*(client.call_tool(name, {}) for name in names))
            ]
            for name, result in zip(names, found, strict=True):
                valid(tools[name], result)
            # Counts say as of when they are.
            timeless = [re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+", "", str(result)) for result in found]
            assert timeless == timeless[:2] * 5

    asyncio.run(talk())


@EVERY_MODE
@pytest.mark.spec("endpoint.tools-name-permissions")
def test_a_missing_permission_is_told_and_the_session_goes_on(server: Server, mode: str) -> None:
    async def talk() -> None:
        async with connected(server._replace(token=server.narrow), "/mcp", mode) as client:
            listed = [tool.name for tool in (await client.list_tools()).tools]
            assert "get-scorecard-discovery" in listed
            assert "get-data-source-discovery" not in listed
            refused = plain(await client.call_tool("get-data-source-discovery", {}))
            assert refused["isError"] is True
            assert "tech-insights.data-source.read" in refused["content"][0]["text"]
            answered = plain(await client.call_tool("get-scorecard-discovery", {}))
            assert answered["isError"] is False

    asyncio.run(talk())


@EVERY_MODE
@pytest.mark.spec("endpoint.resources-are-read", "endpoint.names-are-completed")
def test_it_lists_reads_and_completes_resources(server: Server, mode: str) -> None:
    async def talk() -> None:
        async with connected(server, "/mcp", mode) as client:
            listed = (await client.list_resources()).resources
            assert WEB in [str(one.uri) for one in listed]
            template, _ = (await client.list_resource_templates()).resource_templates
            [content] = plain(await client.read_resource(WEB))["contents"]
            assert json.loads(content["text"])["entityRef"] == "component:default/web"
            found = await client.complete(
                ResourceTemplateReference(type="ref/resource", uri=template.uri_template),
                {"name": "name", "value": "web-"},
            )
            assert found.completion.values == ["web-shop"]
            with pytest.raises(MCPError) as unknown:
                await client.read_resource(f"{WEB}/none")
            assert unknown.value.code == (-32602 if MODES[mode] == "2026-07-28" else -32002)

    asyncio.run(talk())


@EVERY_MODE
@pytest.mark.spec("endpoint.compact-answers")
def test_it_takes_compact_answers_of_chosen_toolsets(server: Server, mode: str) -> None:
    async def talk() -> None:
        async with connected(server, "/mcp?toolsets=checks&read=compact", mode) as client:
            tools = (await client.list_tools()).tools
            assert len(tools) == 6
            assert all(tool.output_schema is None for tool in tools)
            result = plain(await client.call_tool("get-scorecard-discovery", {}))
            assert json.loads(result["content"][0]["text"])["totalChecks"] == 1

    asyncio.run(talk())
