"""The official clients sign in with OAuth, by a person with a real browser."""

import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.shop import PASSWORD, first_link, signed_up
from tests.contracts.node import HERE, MODULES, NODE
from tests.outbound.talking import Authority
from tests.processes import ServerProcess, clean_environment, free_port
from tests.system.test_openid_provider import SECRET, provided

pytestmark = pytest.mark.system

ROOT: Final = Path(__file__).parents[2]
CALLBACK: Final = "http://127.0.0.1/callback"
CLIENTS: Final[dict[str, list[str | Path]]] = {
    "python": [sys.executable, "-m", "tests.contracts.oauth_client"],
    "typescript-1": [NODE, HERE / "oauth-client-1.mjs"],
    "typescript-2": [NODE, HERE / "oauth-client-2.mjs"],
}
SUITE: Final = MODULES / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
ACCOUNT: Final = "/administration/account"
READING: Final = "catalog.entity.read tech-insights.data-source.read"
# Each client introduces itself in each way, and meets pages with and without scripts; so does each
# way. A client can't tell whether the pages have scripts.
SIGN_INS: Final = [
    pytest.param(
        client, how, scripts, id=f"{how}-{client}-{'scripts' if scripts else 'no-scripts'}"
    )
    for scripts, client, how in (
        ((row + column) % 2 == 0, client, how)
        for row, how in enumerate(["document", "settings", "registration"])
        for column, client in enumerate(CLIENTS)
    )
]


@contextmanager
def documented(folder: Path) -> Iterator[tuple[str, Path]]:
    """The address of a client's metadata document, and the authority to believe its host."""
    authority = Authority(folder)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            document = {"client_id": address, "client_name": "Agent", "redirect_uris": [CALLBACK]}
            body = json.dumps(document).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Nobody reads it."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.socket = authority.server("localhost").wrap_socket(server.socket, server_side=True)
        address = f"https://localhost:{server.server_port}/client.json"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield address, authority.file
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    with documented(tmp_path_factory.mktemp("document")) as found:
        yield found


@pytest.fixture(scope="module")
def server(
    browser: Browser, document: tuple[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    """A service with an administrator, and a provider of identities for everybody else."""
    folder = tmp_path_factory.mktemp("agents")
    server = ServerProcess(f"sqlite:///{folder / 'facts.db'}", folder)
    with provided(f"{server.url}/sign-in/openid/callback") as issuer:
        server.environment |= {
            "FACTBOOK_OPENID__ISSUER": issuer,
            "FACTBOOK_OPENID__CLIENT_ID": "confidential",
            "FACTBOOK_OPENID__CLIENT_SECRET": SECRET,
            "FACTBOOK_OPENID__TITLE": "Example ID",
            "FACTBOOK_OUTGOING_NETWORKS": "127.0.0.0/8,::1/128",
            "FACTBOOK_OUTGOING_CA_FILE": str(document[1]),
            "FACTBOOK_OAUTH__CLIENTS": json.dumps({"desk": [CALLBACK]}),
            "FACTBOOK_OAUTH__REGISTRATION": "true",
        }
        server.start()
        signed_up(browser, first_link(server), "ada")
        yield server
        server.stop()


def locally(page: Page) -> None:
    page.get_by_label("Name", exact=True).fill("ada")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()


def elsewhere(page: Page) -> None:
    page.get_by_role("link", name="Continue with Example ID").click()
    page.locator("[name=login]").fill("jane")
    page.locator("[name=password]").fill("any")
    page.get_by_role("button", name="Sign-in").click()
    page.get_by_role("button", name="Continue").click()


@contextmanager
def started(program: list[str | Path], *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A client that prints what it wants and what it got."""
    with subprocess.Popen(
        [*program, *arguments],
        cwd=ROOT,
        env=clean_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def address_of(process: subprocess.Popen[str], start: str) -> str:
    """The first address of this service that a program prints."""
    assert process.stdout is not None
    assert process.stderr is not None
    for line in process.stdout:
        if line.startswith(start):
            return line.strip()
    raise AssertionError(process.stderr.read())


def reported(process: subprocess.Popen[str]) -> Any:
    out, told = process.communicate(timeout=60)
    assert process.returncode == 0, told
    return json.loads(out)


@pytest.mark.parametrize(("client", "how", "scripts"), SIGN_INS)
def test_an_official_client_is_let_in_by_a_person_with_a_local_account(
    browser: Browser,
    server: ServerProcess,
    document: tuple[str, Path],
    client: str,
    how: str,
    scripts: bool,
) -> None:
    given = {"document": document[0], "settings": "desk"}.get(how, how)
    with (
        started(CLIENTS[client], f"{server.url}/mcp", given) as process,
        browser.new_context(java_script_enabled=scripts) as context,
    ):
        page = context.new_page()
        page.goto(address_of(process, f"{server.url}/oauth/authorize?"))
        locally(page)
        expect(page.locator("h1")).to_contain_text("use Factbook?")
        expect(page.locator("main")).to_contain_text("Answer goes to127.0.0.1")
        page.get_by_role("button", name="Allow", exact=True).click()
        expect(page.locator("h1")).to_have_text("Connected")
        found = reported(process)
        assert found["tools"] > 8
        assert found["scope"] == READING
        page.goto(f"{server.url}{ACCOUNT}")
        clients = page.get_by_role("region", name="Clients that act for you")
        expect(clients).to_be_visible()
        while (ends := clients.get_by_role("button")).count():
            ends.first.click()
            expect(page.get_by_role("status")).to_contain_text("no longer has access")


@pytest.mark.parametrize("client", CLIENTS)
def test_a_person_of_a_provider_comes_back_to_the_question(
    browser: Browser, server: ServerProcess, client: str
) -> None:
    with (
        started(CLIENTS[client], f"{server.url}/mcp", "desk") as process,
        browser.new_context() as context,
    ):
        page = context.new_page()
        page.goto(address_of(process, f"{server.url}/oauth/authorize?"))
        elsewhere(page)
        expect(page.locator("main")).to_contain_text("user:default/jane")
        page.get_by_role("button", name="Allow", exact=True).click()
        expect(page.locator("h1")).to_have_text("Connected")
        assert reported(process)["scope"] == READING


def test_who_does_not_allow_it_lets_no_client_in(browser: Browser, server: ServerProcess) -> None:
    with (
        started(CLIENTS["python"], f"{server.url}/mcp", "desk") as process,
        browser.new_context() as context,
    ):
        page = context.new_page()
        page.goto(address_of(process, f"{server.url}/oauth/authorize?"))
        locally(page)
        page.get_by_role("button", name="Do not allow").click()
        expect(page).to_have_url(
            re.compile(r"^http://127\.0\.0\.1:\d+/callback\?error=access_denied")
        )
        assert process.wait(timeout=60) != 0


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25", "2026-07-28"])
def test_the_conformance_suite_finds_no_fault_with_the_authorization_server(
    browser: Browser, server: ServerProcess, tmp_path: Path, revision: str
) -> None:
    arguments = (
        "authorization", "--url", f"{server.url}/oauth", "--client-id", "desk",
        "--resource", f"{server.url}/mcp", "--port", str(free_port()),
        "--spec-version", revision, "--output-dir", str(tmp_path),
    )  # fmt: skip
    with (
        started([NODE, SUITE], *arguments) as process,
        browser.new_context() as context,
    ):
        page = context.new_page()
        page.goto(address_of(process, f"{server.url}/oauth/authorize?"))
        locally(page)
        page.get_by_role("button", name="Allow", exact=True).click()
        # A browser that is closed while it goes there may never end.
        expect(page.locator("body")).to_have_text("OK. You can close this page.")
        out, told = process.communicate(timeout=60)
    assert process.returncode == 0, out + told
    checks = [
        check
        for file in tmp_path.rglob("checks.json")
        for check in json.loads(file.read_text("utf-8"))
    ]
    assert {check["status"] for check in checks} == {"SUCCESS"}, checks
    assert len(checks) >= 2
