"""A client of OAuth, and the person who lets it use the tools."""

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from html import unescape
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2

from factbook.auth.oauth import protocol
from factbook.auth.permissions import CATALOG_READ, SOURCE_READ
from factbook.outbound.outcomes import HostReply
from tests.service import Service, call
from tests.web.visiting import Browser

SERVER = "http://127.0.0.1:8000"
RESOURCE = f"{SERVER}/mcp"
ISSUER = f"{SERVER}/oauth"
CLIENT = "https://agent.example.com/oauth/client.json"
CALLBACK = "https://agent.example.com/callback"
VERIFIER = "verifier-" * 6
READING = (CATALOG_READ, SOURCE_READ)
TOOL = call("get-data-source-discovery", {})


class Documents:
    """Metadata documents by their addresses, in place of the network; `bent` replaces an answer."""

    def __init__(self, *clients: str) -> None:
        self.replies: dict[str, HostReply] = {}
        self.asked: Counter[str] = Counter()
        for client in clients or (CLIENT,):
            self.put(client)

    def put(self, client: str = CLIENT, **changed: Any) -> None:
        """A document like that of a client, with members changed."""
        callback = f"https://{urlsplit(client).netloc}/callback"
        document = {"client_id": client, "client_name": "Agent", "redirect_uris": [callback]}
        self.replies[client] = HostReply(200, body=json.dumps(document | changed).encode())

    async def __call__(self, url: str, headers: Mapping[str, str]) -> HostReply:
        self.asked[url] += 1
        return self.replies.get(url, HostReply(404))


def challenge(verifier: str = VERIFIER) -> str:
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def wish(**changed: str | None) -> dict[str, str]:
    """Parameters of a request for consent; None leaves one out."""
    right: dict[str, str | None] = {
        "response_type": "code",
        "client_id": CLIENT,
        "redirect_uri": CALLBACK,
        "scope": " ".join(READING),
        "state": "a state & more",
        "resource": RESOURCE,
        "code_challenge": challenge(),
        "code_challenge_method": "S256",
    }
    return {name: value for name, value in (right | changed).items() if value is not None}


async def decided(
    visitor: Browser, decision: str = "allow", **changed: str | None
) -> httpx2.Response:
    """The answer to the form of consent, pressed on the page that asks for it."""
    asked = await visitor.open(protocol.AUTHORIZE_PATH, **wish(**changed))
    assert asked.status_code == 200, asked.text
    return await visitor.send(protocol.AUTHORIZE_PATH, **wish(**changed), decision=decision)


def led_to(answer: httpx2.Response) -> str:
    """The address that a browser is led to."""
    seconds, _, address = answer.headers["refresh"].partition("; url=")
    assert seconds == "0"
    return str(address)


def told(address: str) -> dict[str, str]:
    """The parameters that a client is told at its address."""
    return dict(parse_qsl(urlsplit(address).query, strict_parsing=True))


def link_back(page: str) -> str:
    """The link to the client on a page that says what is wrong; empty without one."""
    found = page.partition('<a class="button" href="')[2].partition('"')[0]
    return unescape(found) if found.startswith("http") else ""


async def code_for(visitor: Browser, **changed: str | None) -> str:
    """A code, as the client gets it."""
    answer = await decided(visitor, "allow", **changed)
    assert answer.status_code == 201, answer.text
    return told(led_to(answer))["code"]


async def exchanged(service: Service, code: str, **changed: str | None) -> httpx2.Response:
    """The answer to the client that exchanges a code."""
    right: dict[str, str | None] = {
        "grant_type": "authorization_code",
        "code": code,
        "client_id": CLIENT,
        "redirect_uri": CALLBACK,
        "code_verifier": VERIFIER,
        "resource": RESOURCE,
    }
    return await sent(service, protocol.TOKEN_PATH, right | changed)


async def refreshed(service: Service, token: str, **changed: str | None) -> httpx2.Response:
    """The answer to the client that exchanges a refresh token."""
    right: dict[str, str | None] = {
        "grant_type": "refresh_token",
        "refresh_token": token,
        "client_id": CLIENT,
        "resource": RESOURCE,
    }
    return await sent(service, protocol.TOKEN_PATH, right | changed)


async def sent(service: Service, path: str, form: Mapping[str, str | None]) -> httpx2.Response:
    """The answer to a client that sends a form."""
    async with service.client(None) as http:
        data = {name: value for name, value in form.items() if value is not None}
        return await http.post(path, data=data)


async def tokens_for(service: Service, visitor: Browser, **changed: str | None) -> dict[str, Any]:
    """The tokens of a client that a person has let in."""
    sent = {"client_id": changed.get("client_id", CLIENT)}
    if "redirect_uri" in changed:
        sent["redirect_uri"] = changed["redirect_uri"]
    answer = await exchanged(service, await code_for(visitor, **changed), **sent)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def at_mcp(
    service: Service,
    token: str | None,
    *,
    server: str = SERVER,
    message: Any = TOOL,
    path: str = protocol.RESOURCE_PATH,
) -> httpx2.Response:
    """The answer to a tool call at `/mcp`, which takes the permissions to read."""
    async with service.client(token) as http:
        http.base_url = server
        return await http.post(path, json=message)
