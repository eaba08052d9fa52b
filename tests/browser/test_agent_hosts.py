"""Agent hosts sign in as they introduce themselves, by a person with a real browser."""

import base64
import hashlib
import json
import re
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx2
import pytest
from playwright.sync_api import Browser, Page, Route, expect

from factbook.auth.oauth import clients
from tests.api.agent_hosts import HOSTS, LISTED, AgentHost
from tests.browser.shop import PASSWORD, first_link, signed_up
from tests.outbound.talking import Authority
from tests.processes import ServerProcess
from tests.waiting import LONG

pytestmark = pytest.mark.system

DOCUMENTS: Final = {host.client["client_id"]: host.client for host in HOSTS if host.has_document}
READING: Final = ["catalog.entity.read", "tech-insights.data-source.read"]
CALL: Final = {"name": "get-data-source-discovery", "arguments": {}}


@contextmanager
def internet(folder: Path) -> Iterator[tuple[str, Path]]:
    """A proxy in front of the hosts of metadata documents, and the authority to believe them."""
    authority = Authority(folder)
    names = {str(urlsplit(address).hostname) for address in DOCUMENTS}
    contexts = {name: authority.server(name) for name in names}

    class Handler(BaseHTTPRequestHandler):
        def do_CONNECT(self) -> None:
            name = self.path.partition(":")[0]
            self.send_response(200)
            self.end_headers()
            with (
                contexts[name].wrap_socket(self.connection, server_side=True) as connection,
                connection.makefile("rb") as heard,
            ):
                path = heard.readline().split()[1].decode()
                body = json.dumps(DOCUMENTS[f"https://{name}{path}"]).encode()
                head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n"
                connection.sendall(head + b"content-length: %d\r\n\r\n" % len(body) + body)
            self.close_connection = True

        def log_message(self, *_: Any) -> None:
            """Nobody reads it."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", authority.file
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def server(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("hosts")
    with internet(folder) as (proxy, authority):
        server = ServerProcess(
            f"sqlite:///{folder / 'facts.db'}",
            folder,
            FACTBOOK_OAUTH__REGISTRATION="true",
            FACTBOOK_OUTGOING_PROXY=proxy,
            FACTBOOK_OUTGOING_NETWORKS="127.0.0.0/8",
            FACTBOOK_OUTGOING_CA_FILE=str(authority),
            # All of them come from one address.
            FACTBOOK_TRUSTED_PROXIES="127.0.0.1",
        )
        server.start()
        signed_up(browser, first_link(server), "ada")
        yield server
        server.stop()


class Client:
    """The part of a host that speaks HTTP: it finds its way from the address of the tools alone."""

    def __init__(self, http: httpx2.Client, url: str, host: AgentHost) -> None:
        self.http, self.url, self.host = http, url, host
        self.verifier, self.state = secrets.token_urlsafe(32), secrets.token_urlsafe(16)
        asked = self.post({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": CALL})
        assert asked.status_code == 401
        challenge = dict(re.findall(r'(\w+)="([^"]*)"', asked.headers["www-authenticate"]))
        resource = self.found(challenge["resource_metadata"])
        assert resource["resource"] == url
        issuer = urlsplit(resource["authorization_servers"][0])
        path = f"/.well-known/oauth-authorization-server{issuer.path}"
        self.metadata = self.found(issuer._replace(path=path).geturl())
        assert self.metadata["issuer"] == issuer.geturl()
        assert "S256" in self.metadata["code_challenge_methods_supported"]
        self.id = self.introduced()

    def found(self, address: str) -> Any:
        answer = self.http.get(address)
        assert answer.status_code == 200
        return answer.json()

    def introduced(self) -> str:
        """The client id: of the document, or as the server gives it."""
        if self.host.has_document:
            assert self.metadata["client_id_metadata_document_supported"]
            assert "none" in self.metadata["token_endpoint_auth_methods_supported"]
            return str(self.host.client["client_id"])
        answer = self.http.post(self.metadata["registration_endpoint"], json=self.host.client)
        assert answer.status_code == 201, answer.text
        assert "client_secret" not in answer.json()
        return str(answer.json()["client_id"])

    @property
    def common(self) -> dict[str, str]:
        """Parameters of each of its requests."""
        scope = self.host.scope
        if scope == LISTED:
            scope = " ".join(self.metadata["scopes_supported"])
        common = {"client_id": self.id, "resource": f"{self.url}{self.host.after}"}
        return common if scope is None else common | {"scope": scope}

    @property
    def question(self) -> str:
        """The address that it opens in the person's browser."""
        digest = hashlib.sha256(self.verifier.encode()).digest()
        query = self.common | {
            "response_type": "code",
            "redirect_uri": self.host.redirect_uri,
            "state": self.state,
            "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
        }
        return f"{self.metadata['authorization_endpoint']}?{urlencode(query)}"

    def tokens(self, answer: str) -> dict[str, Any]:
        """Tokens for the code in the answer."""
        address, _, query = answer.partition("?")
        told = dict(parse_qsl(query))
        assert address == self.host.redirect_uri
        assert (told["state"], told["iss"]) == (self.state, self.metadata["issuer"])
        form = {
            "grant_type": "authorization_code",
            "code": told["code"],
            "redirect_uri": self.host.redirect_uri,
            "code_verifier": self.verifier,
        }
        return self.sent(form)

    def refreshed(self, tokens: dict[str, Any]) -> dict[str, Any]:
        """The next tokens."""
        form = {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"]}
        return self.sent(form)

    def sent(self, form: dict[str, str]) -> dict[str, Any]:
        answer = self.http.post(self.metadata["token_endpoint"], data=self.common | form)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def post(self, message: Any, token: str = "") -> httpx2.Response:
        headers = {"accept": "application/json, text/event-stream"}
        if token:
            headers["authorization"] = f"Bearer {token}"
        return self.http.post(self.url, json=message, headers=headers)


def allowed(page: Page, server: str, host: AgentHost, question: str) -> str:
    """The address that the browser is led to after the person has signed in and allowed it."""
    elsewhere: list[str] = []

    def answer(route: Route) -> None:
        elsewhere.append(route.request.url)
        route.fulfill(content_type="text/html", body="<h1>Connected</h1>")

    page.route(lambda url: not url.startswith(server), answer)
    page.goto(question)
    page.get_by_label("Name", exact=True).fill("ada")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    main, name = page.locator("main"), re.sub("\u202e", "", host.client["client_name"])
    expect(page.locator("h1")).to_have_text(f"Let {name} use Factbook?")
    expect(main).to_contain_text(
        f"Answer goes to{clients.extract_redirect_host(host.redirect_uri)}"
    )
    given = page.get_by_role("region", name="It will be able to").get_by_role("listitem")
    expect(given).to_contain_text(READING)
    if host.has_document:
        vouching = urlsplit(host.client["client_id"]).hostname
        expect(main).to_contain_text(f"Vouched for by{vouching}")
    else:
        expect(main).to_contain_text("Nobody has checked who this is.")
    if not host.redirect_uri.startswith("https:"):
        expect(main).to_contain_text("The answer goes to a program on this computer.")
    assert not elsewhere
    with page.expect_response(lambda response: response.request.method == "POST") as done:
        page.get_by_role("button", name="Allow", exact=True).click()
    address = done.value.headers["refresh"].partition("; url=")[2]
    if clients.is_private_use_redirect(host.redirect_uri):
        # No program is there that the browser could open.
        expect(page.get_by_role("link")).to_have_attribute("href", address)
        return address
    expect(page.locator("h1")).to_have_text("Connected")
    assert elsewhere == [address]
    return address


@pytest.mark.parametrize("host", HOSTS, ids=[host.id for host in HOSTS])
def test_a_host_signs_in_refreshes_and_calls_a_tool(
    browser: Browser, server: ServerProcess, host: AgentHost
) -> None:
    with (
        httpx2.Client(
            headers={"x-forwarded-for": f"198.51.100.{HOSTS.index(host)}"}, timeout=LONG
        ) as http,
        browser.new_context() as context,
    ):
        client = Client(http, f"{server.url}/mcp", host)
        tokens = client.tokens(allowed(context.new_page(), server.url, host, client.question))
        assert tokens["scope"].split() == READING
        new = client.refreshed(tokens)
        assert new["scope"].split() == READING
        begun = client.post(
            {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "initialize",
                "params": {
                    "protocolVersion": "2025-06-18",
                    "capabilities": {},
                    "clientInfo": {"name": host.id, "version": "1"},
                },
            },
            new["access_token"],
        )
        assert begun.json()["result"]["serverInfo"]["name"]
        called = client.post(
            {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": CALL},
            new["access_token"],
        )
        assert called.json()["result"]["isError"] is False
