"""A server that gives prepared answers and remembers what it was asked."""

from collections.abc import Callable
from typing import Any

import httpx2
import msgspec

TOOLS = "/api/mcp/v1/tech-insights-facts"
ALL_TOOLS = "/mcp"
Tool = Callable[[dict[str, Any]], dict[str, Any]]


class FakeServer:
    """Answers by method and path (without the query); anything else is 404."""

    def __init__(self) -> None:
        self.requests: list[httpx2.Request] = []
        self.tools: list[dict[str, Any]] = []
        self.further: list[dict[str, Any]] = []
        self._answers: dict[tuple[str, str], list[httpx2.Response]] = {}
        self._tools: dict[str, Tool] = {}

    def on(self, method: str, path: str, body: Any, status: int = 200, **headers: str) -> None:
        """Prepare an answer; of several for one address, each is given once, the last for ever."""
        answer = httpx2.Response(status, json=body, headers=headers)
        self._answers.setdefault((method, path), []).append(answer)

    def on_tool(
        self, name: str, tool: Tool, schema: dict[str, Any] | None = None, path: str = TOOLS
    ) -> None:
        """Prepare a tool: a function from arguments to a result. All are at ALL_TOOLS too."""
        described = {"name": name, "inputSchema": schema or {"type": "object"}}
        (self.tools if path == TOOLS else self.further).append(described)
        self._tools[name] = tool

    def refuse(self, method: str, path: str, status: int, message: str, **details: Any) -> None:
        """Prepare an error in the form that the REST interfaces give it."""
        error = {"name": "SomeError", "message": message, **details}
        self.on(method, path, {"error": error, "response": {"statusCode": status}}, status)

    @property
    def last(self) -> httpx2.Request:
        """The latest request."""
        return self.requests[-1]

    def sent(self) -> Any:
        """The body of the latest request."""
        return msgspec.json.decode(self.last.content)

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        """The transport's handler."""
        self.requests.append(request)
        path = request.url.raw_path.decode().partition("?")[0]
        if prepared := self._answers.get((request.method, path)):
            return prepared.pop(0) if len(prepared) > 1 else prepared[0]
        if path in {TOOLS, ALL_TOOLS}:
            return httpx2.Response(200, json=self._rpc(path, msgspec.json.decode(request.content)))
        error = {"name": "NotFoundError", "message": f"There is nothing at {path}."}
        return httpx2.Response(404, json={"error": error})

    def _rpc(self, path: str, message: dict[str, Any]) -> dict[str, Any]:
        envelope = {"jsonrpc": "2.0", "id": message["id"]}
        if message["method"] == "initialize":
            server = {"name": "factbook", "title": "Factbook", "version": "1.2.3"}
            return {**envelope, "result": {"protocolVersion": "2025-11-25", "serverInfo": server}}
        if message["method"] == "tools/list":
            further = self.further if path == ALL_TOOLS else []
            return {**envelope, "result": {"tools": self.tools + further}}
        params = message["params"]
        if params["name"] not in self._tools:
            return {**envelope, "error": {"code": -32602, "message": "Unknown tool."}}
        return {**envelope, "result": self._tools[params["name"]](params["arguments"])}


def result(value: dict[str, Any]) -> dict[str, Any]:
    """A tool's good result."""
    text = msgspec.json.encode(value).decode()
    content = [{"type": "text", "text": text}]
    return {"content": content, "structuredContent": value, "isError": False}


def unable(text: str) -> dict[str, Any]:
    """A tool's answer that it cannot answer."""
    return {"content": [{"type": "text", "text": text}], "isError": True}


def component(name: str, **spec: str) -> dict[str, Any]:
    """A small entity."""
    return {
        "apiVersion": "backstage.io/v1alpha1",
        "kind": "Component",
        "metadata": {"name": name},
        "spec": {"type": "service", "owner": "team-a", **spec},
    }


def pushed(*names: str, **more: Any) -> dict[str, Any]:
    """A server's answer to a push of components with these names."""
    counts = {"added": len(names), "updated": 0, "removed": 0, "unchanged": 0}
    items = [
        {
            "id": f"id-of-{name}",
            "entity": component(name),
            "entityRef": f"component:default/{name}",
            "rawData": component(name),
            "set": "services",
            "updatedBy": "user:default/admin",
            "source": "api-entity",
            "updatedAt": "2026-11-21T06:00:00.000+00:00",
        }
        for name in names
    ]
    answer = {"set": "services", "items": items, "revision": 1, "changes": counts, "warnings": []}
    return {**answer, **more}


def rehearsed(*names: str, **more: Any) -> dict[str, Any]:
    """A server's answer to a dry run that would add components with these names."""
    answer = pushed(*names)
    del answer["items"]
    difference = [{"entityRef": f"component:default/{name}", "change": "added"} for name in names]
    return {**answer, "dryRun": True, "difference": difference, **more}
