"""Requests through real proxies: one ends at the same place for the proxy and for the service."""

import itertools
import json
import socket
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import NamedTuple

import httpx2
import pytest

from tests.processes import ServerProcess, serving
from tests.service import PUSH, component
from tests.system.proxies import PROXIES

pytestmark = pytest.mark.system

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
EACH = list(itertools.product(METHODS, ("1.0", "1.1"), ("h2c", "websocket", "other")))
SETS = f"{PUSH}/sets"
# More than a proxy writes at once, and blank lines before a request are skipped by all.
PADDING = b"\r\n" * 4096


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("proxies")
    with serving(f"sqlite:///{folder}/facts.db", folder, FACTBOOK_FAILED_LOGINS="1000000") as found:
        yield found


@pytest.fixture(scope="module")
def token(server: ServerProcess) -> str:
    """A token of an administrator."""
    return server.token()


class Proxy(NamedTuple):
    """A running proxy in front of the server, and an administrator who uses it."""

    port: int
    administrator: httpx2.Client

    def ask(
        self, method: str, path: str, version: str, upgrade: str, *lines: str, body: list[bytes]
    ) -> tuple[int, bytes]:
        """The status and body that come to a request whose body is sent in pieces."""
        asking = (f"Host: 127.0.0.1:{self.port}", "Connection: Upgrade", f"Upgrade: {upgrade}")
        length = f"Content-Length: {sum(map(len, body))}"
        head = [f"{method} {path} HTTP/{version}", *asking, length, *lines, "", ""]
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.sendall("\r\n".join(head).encode() + body[0])
            for piece in body[1:]:
                connection.sendall(piece)
            with HTTPResponse(connection, method=method) as answer:
                answer.begin()
                return answer.status, answer.read()


@pytest.fixture(params=["with the second line", "without it"])
def second_line(request: pytest.FixtureRequest) -> bool:
    """Tell if the proxy drops `Upgrade`, as the one of `deploy/` does."""
    return bool(request.param == "with the second line")


@pytest.fixture(params=PROXIES)
def proxy(
    request: pytest.FixtureRequest,
    server: ServerProcess,
    token: str,
    tmp_path: Path,
    second_line: bool,
) -> Iterator[Proxy]:
    with PROXIES[request.param](server.port, tmp_path, second_line=second_line) as port:
        address, headers = f"http://127.0.0.1:{port}", {"authorization": f"Bearer {token}"}
        with httpx2.Client(base_url=address, headers=headers, timeout=60) as administrator:
            yield Proxy(port, administrator)


@pytest.mark.spec("security.requests-end-in-one-place")
def test_nobody_puts_a_request_into_the_connection_of_another(
    proxy: Proxy, server: ServerProcess, token: str
) -> None:
    """A body that is read as a request would wait for the headers of whoever comes next."""
    hidden = f"DELETE {SETS}/payments HTTP/1.1\r\nX-Rest: ".encode()
    deleted = []
    with server.client(token) as client:
        for method, version, upgrade in EACH:
            client.put(f"{SETS}/payments", json={"items": [component("payments")]})
            with suppress(HTTPException, ConnectionError):
                proxy.ask(method, f"{SETS}/a", version, upgrade, body=[PADDING, hidden])
            proxy.administrator.get(f"{SETS}/payments")
            if client.get(f"{SETS}/payments").status_code != 200:
                deleted.append((method, version, upgrade))
    assert not deleted, f"{len(deleted)} of {len(EACH)}"


def test_a_body_in_two_segments_arrives_with_its_request(proxy: Proxy) -> None:
    for method, version, upgrade in EACH:
        name = f"{proxy.port}-{upgrade}-{version}"
        body = json.dumps({"items": [component(name)]}).encode().ljust(20_000)
        status, answered = proxy.ask(
            *(method, f"{SETS}/{name}" if method == "PUT" else "/api/nowhere", version, upgrade),
            f"Authorization: {proxy.administrator.headers['authorization']}",
            body=[body[:9], body[9:]],
        )
        if method == "PUT":
            assert (status, json.loads(answered)["set"]) == (200, name)
        # HAProxy does not pass such a body on where it is of HTTP/1.0.
        assert status in {200, 404, 413}, (method, version, upgrade, answered)


def test_curl_pushes_by_http_2_to_the_service_itself(server: ServerProcess, token: str) -> None:
    body = json.dumps({"items": [component("web", description="x" * 100_000)]})
    answered = subprocess.run(
        [
            *("curl", "--silent", "--show-error", "--fail-with-body", "--http2", "-X", "PUT"),
            *("-H", "Content-Type: application/json", "-H", f"Authorization: Bearer {token}"),
            *("--data-binary", "@-", f"{server.url}{SETS}/by-curl"),
        ],
        input=body,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert json.loads(answered.stdout)["changes"]["added"] == 1
