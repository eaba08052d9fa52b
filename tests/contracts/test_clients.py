"""The clients that others made list every tool and call it, in each of their modes.

The TypeScript and Python clients hold what they get against the schema they were listed; so does
the test. What the database holds makes no difference, so there is one server for all.
"""

import asyncio
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import httpx2
import jsonschema
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from tests.contracts import node
from tests.processes import serving
from tests.service import PUSH, TOOLS, component

pytestmark = pytest.mark.system

Json = dict[str, Any]

INSPECTOR = (
    node.MODULES / "@modelcontextprotocol/inspector" / "clients" / "launcher" / "build" / "index.js"
)
SNAPSHOT = node.HERE.parent / "api" / "tools-list.json"
LISTED: list[Json] = json.loads(SNAPSHOT.read_text("utf-8"))

SOURCE = {"dataSourceId": "entity-metadata"}
NAMED = {"name": "zahlung äöü"}
CALLS: list[tuple[str, Json]] = [
    ("get-data-source-discovery", {"limit": 2}),
    ("get-entity-facts", {**SOURCE, **NAMED}),
    ("get-all-entities-facts", {**SOURCE, "kind": "*", "limit": 1}),
    ("get-codehost-metrics", {"entityRef": "component:default/zahlung äöü"}),
    ("get-security-metrics", NAMED),
    ("get-incident-metrics", NAMED),
    ("get-observability-metrics", NAMED),
    ("get-entity-compliance", NAMED),
    ("get-repository-info", NAMED),
    ("get-fact-history", {**NAMED, "from": "2026-11-01", "limit": 5}),
    ("get-changed-facts", {"since": "7d", "limit": 5}),
    ("get-entity", NAMED),
    ("find-entities", {"text": "zahlung", "limit": 5}),
]
# They have nothing to answer with as long as no integration is configured.
REFUSING = {"get-observability-metrics", "get-repository-info"}
# In legacy mode, the revision of the handshake.
MODES = {"legacy": "2025-11-25", "auto": "2026-07-28", "2026-07-28": "2026-07-28"}

every_mode = pytest.mark.parametrize("mode", MODES)


class Server(NamedTuple):
    """A started service, a token for it, and one that reads checks alone."""

    url: str
    token: str
    narrow: str = ""


class Report(NamedTuple):
    """What a client found: `results` in the order of the calls, `refused` a JSON-RPC code."""

    version: str
    tools: list[Json]
    results: list[Json]
    refused: int


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("clients")
    with serving(f"sqlite:///{folder / 'factbook.db'}", folder) as process:
        token = process.token()
        items = [component("Zahlung äöü"), component("payments")]
        with process.client(token) as http:
            pushed = http.put(f"{PUSH}/sets/contracts", json={"items": items})
        assert pushed.status_code == 200, pushed.text
        yield Server(f"{process.url}{TOOLS}", token)


def expect_all(tools: list[Json], results: list[Json]) -> None:
    """The tools are listed as agreed, and each answers as its schema says."""
    assert tools == LISTED
    assert [name for name, _ in CALLS] == [tool["name"] for tool in tools]
    for tool, result in zip(tools, results, strict=True):
        [content] = result["content"]
        if tool["name"] in REFUSING:
            assert result["isError"] is True
            assert "structuredContent" not in result
            assert "administrator can configure" in content["text"]
        else:
            assert result["isError"] is False
            value = result["structuredContent"]
            jsonschema.validate(value, tool["outputSchema"], cls=jsonschema.Draft202012Validator)
            assert json.loads(content["text"]) == value


def typescript(program: str, mode: str, server: Server) -> Report:
    return Report(**node.ask(program, server.url, server.token, mode, question=CALLS))


async def python(mode: str, server: Server, calls: list[tuple[str, Json]]) -> Report:
    headers = {"authorization": f"Bearer {server.token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
        transport = streamable_http_client(server.url, http_client=http)
        async with Client(transport, mode=mode) as client:
            tools = [plain(tool) for tool in (await client.list_tools()).tools]
            results = [plain(await client.call_tool(name, given)) for name, given in calls]
            with pytest.raises(MCPError) as unknown:
                await client.call_tool("get-everything", {})
            return Report(client.protocol_version, tools, results, unknown.value.code)


def plain(value: Any) -> Json:
    """A value of the Python client as it came."""
    found: Json = value.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return found


def inspect(server: Server, era: str, method: str, *arguments: str, expect: int = 0) -> Json:
    """The result that the inspector's command line prints."""
    said = node.run(
        INSPECTOR, "--cli", server.url, "--transport", "http", "--protocol-era", era,
        "--header", f"Authorization: Bearer {server.token}", "--format", "json",
        "--method", method, *arguments, expect=expect,
    )  # fmt: skip
    result: Json = json.loads(said)["result"]
    return result


def test_the_first_typescript_client_lists_and_calls_every_tool(server: Server) -> None:
    found = typescript("client-1.mjs", "legacy", server)
    expect_all(found.tools, found.results)
    assert (found.version, found.refused) == ("2025-11-25", -32602)


@every_mode
def test_the_second_typescript_client_lists_and_calls_every_tool(server: Server, mode: str) -> None:
    found = typescript("client-2.mjs", mode, server)
    expect_all(found.tools, found.results)
    assert (found.version, found.refused) == (MODES[mode], -32602)


@every_mode
def test_the_python_client_lists_and_calls_every_tool(server: Server, mode: str) -> None:
    found = asyncio.run(python(mode, server, CALLS))
    expect_all(found.tools, found.results)
    assert (found.version, found.refused) == (MODES[mode], -32602)


@pytest.mark.spec("endpoint.no-root-composition")
@pytest.mark.parametrize("era", ["legacy", "auto", "modern"])
def test_the_inspector_finds_no_fault_with_any_schema(server: Server, era: str) -> None:
    # It fails for a schema that some client or other does not take.
    assert inspect(server, era, "tools/list", "--strict")["tools"] == LISTED


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_inspector_calls_every_tool(server: Server, era: str) -> None:
    results = [
        inspect(
            server, era, "tools/call", "--tool-name", name,
            *(word for pair in given.items() for word in ("--tool-arg", "{}={}".format(*pair))),
            expect=5 if name in REFUSING else 0,
        )
        for name, given in CALLS
    ]  # fmt: skip
    expect_all(LISTED, results)
