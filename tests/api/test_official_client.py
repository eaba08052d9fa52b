"""The official Python client, in its legacy and modern modes, against a real server on loopback."""

import asyncio
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
import uvicorn
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

from factbook.auth.permissions import CATALOG_READ
from factbook.tools import TOOLS
from tests.sample_catalog import entities
from tests.service import PUSH, Service, component
from tests.service import TOOLS as TOOLS_PATH
from tests.tools.checks import TIME

MODES = {"legacy": "2025-11-25", "2026-07-28": "2026-07-28", "auto": "2026-07-28"}
SOURCES = ["entity-metadata", "entity-ownership", "techdocs"]
BILLING = "billing"
CHECKOUT = "component:default/checkout"

every_mode = pytest.mark.parametrize("mode", MODES)


@pytest.fixture
async def url(service: Service) -> AsyncIterator[str]:
    """Where the service listens on loopback."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        config = uvicorn.Config(service.application, lifespan="off", log_config=None)
        server = uvicorn.Server(config)
        running = asyncio.create_task(server.serve([listening]))
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        await running


@asynccontextmanager
async def connected(url: str, token: str, mode: str) -> AsyncIterator[Client]:
    """The client, its handshake or discovery done."""
    headers = {"authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
        transport = streamable_http_client(f"{url}{TOOLS_PATH}", http_client=http)
        async with Client(transport, mode=mode) as client:
            yield client


async def push(url: str, token: str, items: list[dict[str, Any]]) -> dict[str, Any]:
    headers = {"authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
        answer = await http.put(f"{url}{PUSH}/sets/shop", json={"items": items})
    assert answer.status_code == 200, answer.text
    pushed: dict[str, Any] = answer.json()
    return pushed


async def ask(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The structured content, which the client has held against the tool's output schema."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text_of(result)
    value: dict[str, Any] = result.structured_content
    return value


def text_of(result: CallToolResult) -> str:
    [content] = result.content
    assert isinstance(content, TextContent)
    return content.text


async def refusal(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    assert result.structured_content is None
    return text_of(result)


@pytest.mark.slow
@every_mode
@pytest.mark.spec(
    "endpoint.revisions-kept-while-spoken",
    "endpoint.legacy-revisions",
    "endpoint.modern-revision",
    "endpoint.lists-nine-tools",
    "auth.bearer-token-on-both-interfaces",
)
async def test_the_official_client_pushes_and_asks_about_a_catalog(
    service: Service, url: str, mode: str
) -> None:
    token = await service.token()
    items = entities()
    assert (await push(url, token, items))["changes"]["added"] == 9
    async with connected(url, token, mode) as client:
        assert client.protocol_version == MODES[mode]
        assert [tool.name for tool in (await client.list_tools()).tools] == [t.name for t in TOOLS]
        await discovers(client)
        await asks_for_one(client)
        await asks_for_all(client, items)
        await asks_for_compliance(client)


async def discovers(client: Client) -> None:
    found = await ask(client, "get-data-source-discovery")
    assert [source["id"] for source in found["dataSources"]] == SOURCES
    assert (found["totalCount"], found["builtinCount"], found["customCount"]) == (3, 3, 0)


async def asks_for_one(client: Client) -> None:
    expected = {
        "entity-metadata": {
            "hasTitle": True,
            "hasDescription": True,
            "hasTags": True,
            "hasOwner": True,
        },
        "entity-ownership": {
            "hasOwner": True,
            "hasGroupOwner": True,
            "hasRelationships": False,
            "ownerExists": False,
        },
        "techdocs": {"hasTechdocsRef": False},
    }
    for source, facts in expected.items():
        found = await ask(client, "get-entity-facts", dataSourceId=source, name=BILLING)
        assert found["entityRef"] == f"component:default/{BILLING}"
        assert found["facts"] == facts
        assert re.fullmatch(TIME, found["timestamp"])


async def asks_for_all(client: Client, items: list[dict[str, Any]]) -> None:
    tool = "get-all-entities-facts"
    found = await ask(client, tool, dataSourceId="techdocs")
    documented = {entity["entityRef"]: entity["facts"] for entity in found["entities"]}
    assert documented == {
        f"component:default/{item['metadata']['name']}": {
            "hasTechdocsRef": "backstage.io/techdocs-ref" in item["metadata"].get("annotations", {})
        }
        for item in items
        if item["kind"] == "Component"
    }
    assert len(documented) == 8
    assert sum(facts["hasTechdocsRef"] for facts in documented.values()) == 4
    every = await ask(client, tool, dataSourceId="entity-metadata", kind="*", limit=5)
    assert (len(every["entities"]), every["totalCount"]) == (5, 9)
    assert every["entities"][0] == {
        "entityRef": "component:default/billing",
        "facts": {"hasTitle": True, "hasDescription": True, "hasTags": True, "hasOwner": True},
        "timestamp": every["entities"][0]["timestamp"],
    }


async def asks_for_compliance(client: Client) -> None:
    found = await ask(client, "get-entity-compliance", name=CHECKOUT)
    assert found["metadata"] == {
        "hasTitle": False,
        "hasDescription": True,
        "hasTags": True,
        "hasOwner": True,
    }
    assert found["techdocs"] == {"hasTechdocsRef": True}
    assert found["ownership"] == {
        "hasOwner": True,
        "hasGroupOwner": True,
        "hasRelationships": False,
        "ownerExists": False,
    }
    assert found["unknownReasons"] == {}
    found = await ask(client, "get-entity-compliance", name="shop", kind="location")
    assert not any({**found["metadata"], **found["techdocs"], **found["ownership"]}.values())


@pytest.mark.slow
@every_mode
async def test_the_official_client_calls_every_tool_and_understands_its_errors(
    service: Service, url: str, mode: str
) -> None:
    token = await service.token()
    await push(url, token, [component("Zahlung äöü")])
    async with connected(url, token, mode) as client:
        # The client checks what it gets against the schemas that it was listed.
        await client.list_tools()
        named = {"name": "zahlung äöü"}
        codehost = await ask(client, "get-codehost-metrics", **named)
        assert codehost["pullRequests"]["total"] == "unknown"
        for tool in ("get-security-metrics", "get-incident-metrics"):
            assert set((await ask(client, tool, **named))["unknownReasons"].values()) == {
                "not-configured"
            }
        for tool in ("get-observability-metrics", "get-repository-info"):
            assert "administrator can configure" in await refusal(client, tool, **named)
        assert "Did you mean" in await refusal(client, "get-entity-compliance", name="zahlun")
        assert "takes name (string, required)" in await refusal(client, "get-entity-compliance")
        source = {"dataSourceId": "github"}
        assert SOURCES[0] in await refusal(client, "get-all-entities-facts", **source)
        with pytest.raises(MCPError) as unknown:
            await client.call_tool("get-everything", {})
        assert unknown.value.code == -32602
        # None of these ended the connection.
        await ask(client, "get-data-source-discovery")


@pytest.mark.slow
@every_mode
async def test_a_token_that_is_not_good_is_an_error_of_the_official_client(
    service: Service, url: str, mode: str
) -> None:
    reader = await service.token(CATALOG_READ)
    for bad in ("fbk_nothing", reader):
        with pytest.raises(BaseExceptionGroup) as failure:
            async with connected(url, bad, mode) as client:
                await client.call_tool("get-data-source-discovery", {})
        assert failure.group_contains(MCPError)
