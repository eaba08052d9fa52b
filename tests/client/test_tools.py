"""The client's calls of tools."""

from typing import Any

import pytest

from factbook.client import (
    Client,
    ProtocolError,
    ToolCallError,
    UnexpectedAnswer,
)
from tests.cli.fake_server import TOOLS, FakeServer, result, unable


def test_a_handshake_tells_who_answers(server: FakeServer, client: Client) -> None:
    found = client.initialize()
    assert (found.server_info.name, found.server_info.version) == ("factbook", "1.2.3")
    assert (found.protocol_version, found.instructions) == ("2025-11-25", None)
    assert server.sent()["params"]["clientInfo"]["name"] == "factbook-client"


def test_tools_are_listed(server: FakeServer, client: Client) -> None:
    schema = {"type": "object", "properties": {}}
    server.on_tool("get-things", result, schema)
    (tool,) = client.tools()
    assert (tool.name, tool.input_schema, tool.title) == ("get-things", schema, None)


def test_a_tool_gives_its_structured_content(server: FakeServer, client: Client) -> None:
    server.on_tool("echo", result)
    assert client.call("echo", {"name": "a"}) == {"name": "a"}
    assert client.call("echo") == {}


def test_a_tool_that_cannot_answer_says_why(server: FakeServer, client: Client) -> None:
    server.on_tool("fail", lambda _: unable("No entity a. Try b."))
    with pytest.raises(ToolCallError, match=r"No entity a\. Try b\."):
        client.call("fail")


@pytest.mark.parametrize("status", [200, 400])
def test_a_json_rpc_error_keeps_its_code(server: FakeServer, client: Client, status: int) -> None:
    error = {"code": -32602, "message": "Unknown tool.", "data": {"tool": "x"}}
    server.on("POST", TOOLS, {"jsonrpc": "2.0", "id": 1, "error": error}, status)
    with pytest.raises(ProtocolError, match="Unknown tool") as caught:
        client.call("x")
    assert (caught.value.code, caught.value.data) == (-32602, {"tool": "x"})


def test_a_result_of_another_shape_is_unexpected(
    server: FakeServer, client: Client, subtests: pytest.Subtests
) -> None:
    cases: list[Any] = [{"content": []}, {"structuredContent": {}}, None]
    for answer in cases:
        with subtests.test(answer=answer):
            server.on("POST", TOOLS, {"jsonrpc": "2.0", "id": 1, "result": answer})
            with pytest.raises(UnexpectedAnswer):
                client.call("x")
