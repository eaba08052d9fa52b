"""An agent, in the form of the official client."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.service import TOOLS


def asked(url: str, token: str, tool: str, **arguments: Any) -> dict[str, Any]:
    """What a tool tells an agent that has this token."""
    # Not here: the browser's own event loop runs on this thread.
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, _ask(url, token, tool, arguments)).result()


async def _ask(url: str, token: str, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    headers = {"authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
        transport = streamable_http_client(f"{url}{TOOLS}", http_client=http)
        async with Client(transport) as client:
            result = await client.call_tool(tool, arguments)
    assert not result.is_error, result
    found: dict[str, Any] = result.structured_content
    return found
