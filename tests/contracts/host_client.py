"""Python clients list the tools of a server and make calls in one session, as calling.mjs does.

    python host_client.py < SESSIONS

SESSIONS is a JSON list of [client, URL, token, calls]; a client is mcp (of generation 1), fastmcp
or agents. It runs in an environment of its own, and prints a JSON list with a report of each.
"""

import asyncio
import importlib
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any


@asynccontextmanager
async def mcp(url: str, token: str) -> AsyncIterator[Any]:
    """The official client."""
    connect = importlib.import_module("mcp.client.streamable_http").streamable_http_client
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        importlib.import_module("httpx").AsyncClient(headers=headers, timeout=60) as http,
        connect(url, http_client=http) as (incoming, outgoing, _),
        importlib.import_module("mcp").ClientSession(incoming, outgoing) as session,
    ):
        await session.initialize()
        yield session


@asynccontextmanager
async def fastmcp(url: str, token: str) -> AsyncIterator[Any]:
    """FastMCP's client, of any generation."""
    async with importlib.import_module("fastmcp").Client(url, auth=token) as client:
        yield client


@asynccontextmanager
async def agents(url: str, token: str) -> AsyncIterator[Any]:
    """The client inside the OpenAI Agents SDK."""
    params = {"url": url, "headers": {"Authorization": f"Bearer {token}"}}
    connect = importlib.import_module("agents.mcp").MCPServerStreamableHttp
    async with connect(params, client_session_timeout_seconds=60) as server:
        yield server


async def report(session: Any, calls: list[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    """List the tools, make each call, then call a tool that doesn't exist."""
    call = getattr(session, "call_tool_mcp", session.call_tool)
    listed = await session.list_tools()
    results = [await call(name, given) for name, given in calls]
    refused = None
    try:
        await call("get-everything", {})
    except Exception as error:  # noqa: BLE001  (each client has a class of its own)
        refused = getattr(getattr(error, "error", error), "code", str(error))
    return {
        "version": "",
        "tools": [plain(tool) for tool in getattr(listed, "tools", listed)],
        "results": [plain(result) for result in results],
        "refused": refused,
    }


def plain(value: Any) -> Any:
    """A value as it came over the wire."""
    return value.model_dump(mode="json", by_alias=True, exclude_unset=True)


async def main() -> None:
    """Print the reports."""
    reports = []
    for client, url, token, calls in json.load(sys.stdin):
        connect = {"mcp": mcp, "fastmcp": fastmcp, "agents": agents}[client]
        async with connect(url, token) as session:
            reports.append(await report(session, calls))
    sys.stdout.write(json.dumps(reports))


if __name__ == "__main__":
    asyncio.run(main())
