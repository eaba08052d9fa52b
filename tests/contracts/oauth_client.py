"""The official Python client signs in with OAuth: `python -m tests.contracts.oauth_client URL HOW`.

HOW is `registration`, the id of a client that the service knows, or the address of a metadata
document. It prints the address for a browser, then the number of tools and the scope of its token.
"""

import asyncio
import json
import sys
from urllib.parse import parse_qsl, urlsplit

import httpx2
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider, TokenStorage
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl


class Memory(TokenStorage):
    """Keeps what the client gets until it ends."""

    def __init__(self, client: OAuthClientInformationFull | None) -> None:
        self.tokens: OAuthToken | None = None
        self._client = client

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info


async def main(url: str, how: str) -> None:
    answer: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()

    async def called_back(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        target = (await reader.readuntil(b"\r\n\r\n")).split()[1].decode()
        if target.startswith("/callback?") and not answer.done():
            answer.set_result(dict(parse_qsl(urlsplit(target).query)))
        body = b"<title>Connected</title><h1>Connected</h1>"
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n"
        writer.write(head + b"content-length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()
        writer.close()

    listener = await asyncio.start_server(called_back, "127.0.0.1", 0)
    callback = AnyUrl(f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/callback")

    async def show(address: str) -> None:
        print(address, flush=True)  # noqa: T201 - what it is for

    async def wait() -> AuthorizationCodeResult:
        found = await asyncio.wait_for(answer, 60)
        return AuthorizationCodeResult(
            code=found["code"], state=found.get("state"), iss=found.get("iss")
        )

    known = None
    if how != "registration" and not how.startswith("https://"):
        known = OAuthClientInformationFull(
            client_id=how, redirect_uris=[callback], token_endpoint_auth_method="none"
        )
    storage = Memory(known)
    metadata = OAuthClientMetadata(
        client_name="Python client", redirect_uris=[callback], token_endpoint_auth_method="none"
    )
    document = how if how.startswith("https://") else None
    auth = OAuthClientProvider(url, metadata, storage, show, wait, document)
    async with (
        httpx2.AsyncClient(auth=auth, timeout=60) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        tools = (await client.list_tools()).tools
        called = await client.call_tool("get-data-source-discovery", {})
    assert storage.tokens is not None
    assert not called.is_error
    report = {"tools": len(tools), "scope": storage.tokens.scope}
    print(json.dumps(report), flush=True)  # noqa: T201 - what it is for


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:3]))
