"""Messages of both eras of the protocol, as clients send them."""

from typing import Any

import httpx2

from tests.service import TOOLS, Service

LEGACY = ("2025-03-26", "2025-06-18", "2025-11-25")
MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"

Json = dict[str, Any]


def message(method: str, params: object = None, id: object = 1) -> Json:
    """A request without metadata; with params when some are given."""
    given = {} if params is None else {"params": params}
    return {"jsonrpc": "2.0", "id": id, "method": method, **given}


def tool_call(name: str, arguments: object = None) -> Json:
    """The params of tools/call."""
    return {"name": name, "arguments": {} if arguments is None else arguments}


def metadata(version: str = MODERN) -> Json:
    """What every modern request carries about itself."""
    return {
        f"{META}protocolVersion": version,
        f"{META}clientCapabilities": {},
        f"{META}clientInfo": {"name": "test", "version": "1"},
    }


def modern_message(method: str, params: Json | None = None) -> Json:
    """A request of the modern era."""
    return message(method, {**(params or {}), "_meta": metadata()})


def modern_headers(method: str, name: str | None = None) -> dict[str, str]:
    """The headers that go with it."""
    named = {} if name is None else {"mcp-name": name}
    return {"mcp-protocol-version": MODERN, "mcp-method": method, **named}


async def send(
    service: Service, body: object, headers: dict[str, str] | None = None
) -> httpx2.Response:
    """POST a message; bytes go as they are."""
    given = {"content-type": "application/json", **(headers or {})}
    if isinstance(body, bytes):
        return await service.http.post(TOOLS, content=body, headers=given)
    return await service.http.post(TOOLS, json=body, headers=given)


async def send_modern(
    service: Service, method: str, params: Json | None = None, **headers: str
) -> httpx2.Response:
    """POST a modern message with fitting headers, or the ones given instead."""
    name = params.get("name") if params and method == "tools/call" else None
    fitting = modern_headers(method, name)
    changed = {key.replace("_", "-"): value for key, value in headers.items()}
    return await send(service, modern_message(method, params), fitting | changed)


def expect_error(answer: httpx2.Response, status: int, code: int, id: object = None) -> str:
    """The message of a JSON-RPC error, after checking that it is one, and which."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"].startswith("application/json")
    body = answer.json()
    assert body.keys() == {"jsonrpc", "id", "error"}, body
    assert (body["jsonrpc"], body["id"], body["error"]["code"]) == ("2.0", id, code), body
    text: str = body["error"]["message"]
    assert text
    assert "Traceback" not in text
    return text


def expect_result(answer: httpx2.Response, id: object = 1) -> Json:
    """The result of an answer that is one."""
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("application/json")
    body = answer.json()
    assert body.keys() == {"jsonrpc", "id", "result"}, body
    assert (body["jsonrpc"], body["id"]) == ("2.0", id)
    found: Json = body["result"]
    return found
