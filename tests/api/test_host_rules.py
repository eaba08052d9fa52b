"""What hosts and models demand of every tool that they are listed, at every address."""

import re
from collections.abc import Iterator

import pytest

from tests.api.messages import Json, expect_result, message
from tests.conftest import StartService
from tests.service import TOOLS

MANAGE = "/api/mcp/v1/tech-insights-checks-manage"
ADDRESSES = (
    "/mcp",
    "/mcp?toolsets=facts",
    "/mcp?toolsets=checks",
    "/mcp?toolsets=checks-manage",
    "/mcp?toolsets=facts,checks",
    "/mcp?read=compact",
    "/mcp?schemas=output",
    TOOLS,
    f"{TOOLS}?read=seed",
    "/api/mcp/v1/tech-insights-checks",
    MANAGE,
)
# The name that `factbook connect` gives the server.
SERVER = "factbook"


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    """A SQLite file: what is tested here is the protocol."""
    return sqlite_url


@pytest.fixture
async def lists(start: StartService) -> dict[str, list[Json]]:
    """The tools of every address, those that write included."""
    service = await start(agent_writes=True)
    found = {}
    for address in ADDRESSES:
        answer = await service.http.post(address, json=message("tools/list"))
        found[address] = expect_result(answer)["tools"]
        assert found[address], address
    return found


def every_tool(lists: dict[str, list[Json]]) -> Iterator[tuple[str, Json]]:
    """Each tool of each address, with a label for messages."""
    for address, tools in lists.items():
        for tool in tools:
            yield f"{tool['name']} at {address}", tool


def nodes(schema: Json) -> Iterator[Json]:
    """Each schema within a schema, itself included."""
    yield schema
    for part in schema.get("properties", {}).values():
        yield from nodes(part)
    if "items" in schema:
        yield from nodes(schema["items"])


@pytest.mark.spec("endpoint.hosts-convert-tools")
async def test_claude_takes_every_name_and_every_input(lists: dict[str, list[Json]]) -> None:
    """Names and arguments match patterns, and the schema is that of an object.

    Sources: the messages of Anthropic's API in issues 147760 of home-assistant/core (names) and
    79418 of anthropics/claude-code (arguments). Claude Code writes `mcp__SERVER__` before a name;
    64 characters are the limit that the API had before 128.
    """
    wrong = [
        label
        for label, tool in every_tool(lists)
        if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", f"mcp__{SERVER}__{tool['name']}")
        or tool["inputSchema"]["type"] != "object"
        or not all(re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", name) for name in argument_names(tool))
    ]
    assert wrong == []


def argument_names(tool: Json) -> list[str]:
    return [name for node in nodes(tool["inputSchema"]) for name in node.get("properties", ())]


@pytest.mark.spec("endpoint.hosts-convert-tools")
async def test_visual_studio_code_takes_every_name(lists: dict[str, list[Json]]) -> None:
    """Lower case, digits, `_` and `-`; with a prefix of up to 18 characters at most 64.

    Sources: the warning in issue 10 of sxhxliang/mcp-access-point, and `McpToolName` in
    src/vs/workbench/contrib/mcp/common/mcpTypes.ts of microsoft/vscode.
    """
    wrong = [
        label
        for label, tool in every_tool(lists)
        if not re.fullmatch(rf"[a-z0-9_-]{{1,{64 - 18}}}", tool["name"])
    ]
    assert wrong == []


@pytest.mark.spec("endpoint.hosts-convert-tools")
async def test_copilot_takes_every_schema_as_it_is(lists: dict[str, list[Json]]) -> None:
    """Arrays have `items`, the root composes nothing, required arguments are there.

    A text of a schema has at most 1,024 characters, and so has a description of a tool. Source:
    src/extension/tools/common/toolSchemaNormalizer.ts of microsoft/vscode-copilot-chat, which
    refuses the first, and cuts or drops the others.
    """
    composing = {"oneOf", "anyOf", "allOf", "not", "if", "then", "else"}
    wrong = []
    for label, tool in every_tool(lists):
        schema = tool["inputSchema"]
        texts = [tool["description"], *(node.get("description", "") for node in nodes(schema))]
        if (
            any(node.get("type") == "array" and not node.get("items") for node in nodes(schema))
            or composing & schema.keys()
            or not set(schema["required"]) <= schema["properties"].keys()
            or not tool["description"]
            or max(map(len, texts)) > 1_024
        ):
            wrong.append(label)
    assert wrong == []


@pytest.mark.spec("endpoint.hosts-convert-tools")
async def test_no_address_has_more_tools_than_copilot_takes_at_once(
    lists: dict[str, list[Json]],
) -> None:
    """128 of all servers together. Source: issue 11653 of microsoft/vscode-copilot-release."""
    counts = {address: len(tools) for address, tools in lists.items()}
    assert max(counts.values()) <= 128 / 4, counts
