"""What an editor tries with a connection that is shared: other hosts, methods, and its secret."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
import structlog

from tests.api.defining import SOURCES, latest, shown
from tests.api.owning import OUR_WEB, OURS, SECRET, asking, connect, editing, made, populated
from tests.collection.test_connecting import proof
from tests.collection.test_shared_connections import collected, last_run, reasons
from tests.collection.test_stored_connections import LOOPBACK, Host, hosting
from tests.conftest import StartService
from tests.service import Service

pytestmark = pytest.mark.spec("sources.credential-stays-with-its-host")


@pytest.fixture
async def calling(start: StartService) -> Service:
    """A service that may call hosts of this machine, with two groups and an entity of each."""
    service = await start(outgoing_networks=LOOPBACK)
    await populated(service)
    return service


@pytest.fixture
async def kim(calling: Service) -> AsyncIterator[httpx2.AsyncClient]:
    """A client with the token of an editor who is in the first group."""
    async with editing(calling) as http:
        yield http


async def test_no_request_of_an_editor_takes_a_connection_elsewhere_or_further(
    subtests: pytest.Subtests, calling: Service, kim: httpx2.AsyncClient
) -> None:
    configs: list[dict[str, Any]] = [
        {"path": "//evil.test/x"},
        {"path": "https://evil.test/x"},
        {"path": "/../admin"},
        {"path": "/%2e%2e/admin"},
        {"path": "@evil.test"},
        {"headers": {"Host": "evil.test"}},
        {"headers": {"X-Forwarded-Host": "evil.test"}},
        {"headers": {"Authorization": "mine"}},
        {"headers": {"X-HTTP-Method-Override": "DELETE"}},
        {"headers": {"Range": "bytes=0-6"}},
        {"method": "POST"},
        {"method": "DELETE"},
    ]
    async with hosting() as host:
        await connect(calling, OURS, baseUrl=f"{host.url}/api")
        for config in configs:
            with subtests.test(config=config):
                document = asking()
                document["handlerDefinition"]["config"] |= config
                body = {"entity": OUR_WEB, "definition": document}
                tried = await kim.post(f"{SOURCES}/ours/test", json=body)
                assert tried.status_code == 400, tried.text
                assert SECRET not in tried.text
    assert host.heads == []


class RepeatingHost(Host):
    """A host that answers with the proof that it was sent; in a redirect if it is asked for one."""

    def answer(self, head: str) -> bytes:
        """The answer to a request with this head."""
        value = proof(head)
        moved = f"location: {self.url}/other?proof={value}\r\n" if "/moved" in head else ""
        status = "302 Found" if moved else "500 Oops" if "/broken" in head else "200 OK"
        body = f'{{"ok": true, "proof": "{value}"}}'
        top = f"HTTP/1.1 {status}\r\n{moved}content-length: {len(body)}\r\n\r\n"
        return f"{top}{body}".encode()


@pytest.mark.parametrize("path", ["/x", "/moved", "/broken"])
async def test_an_editor_gets_no_secret_from_a_host_that_repeats_it(
    calling: Service, kim: httpx2.AsyncClient, path: str
) -> None:
    async with hosting(RepeatingHost) as host:
        await connect(calling, OURS, baseUrl=host.url)
        document = asking()
        document["handlerDefinition"]["config"]["path"] = path
        document["schema"]["proof"] = {"type": "string", "extract": {"regex": "(.*)"}}
        with structlog.testing.capture_logs() as logs:
            await made(kim, document)
            tried = await kim.post(f"{SOURCES}/ours/test", json={"entity": OUR_WEB})
            await collected(calling)
        told = [tried.text, str(logs), str(await last_run(calling)), str(await reasons(calling))]
        told += [str(await latest(calling, "ours")), str(await shown(calling, "ours"))]
        assert host.proofs
        assert set(map(path_of, host.heads)) == {path}
    assert not any(SECRET.partition(" ")[2] in text for text in told)


def path_of(head: str) -> str:
    """The path that a request asks for."""
    return head.split(" ", 2)[1]
