"""Which hosts the service answers for, and which browser origins may call it."""

import httpx2
import pytest

from tests.conftest import StartService
from tests.service import TOOLS, Service, call

ENTITIES = "/api/catalog/entities"

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


async def ask(service: Service, path: str = ENTITIES, **headers: str) -> httpx2.Response:
    return await service.http.get(path, headers=headers)


@pytest.mark.spec("network.allowed-hosts")
async def test_bound_to_loopback_only_its_names_are_answered_for(service: Service) -> None:
    for host in ("localhost", "localhost:8000", "127.0.0.1:1", "[::1]", "[::1]:8000", "LOCALHOST"):
        assert (await ask(service, host=host)).status_code == 200, host
    for host in ("evil.example.com", "localhost.evil.com", "evil.com:8000", "127.0.0.2", ""):
        answer = await ask(service, host=host)
        assert answer.status_code == 421, host
        assert answer.json()["error"]["name"] == "MisdirectedRequestError"
        assert "allowed_hosts" in answer.json()["error"]["message"]
        assert not host or host not in answer.text


@pytest.mark.spec("network.allowed-hosts")
async def test_the_setting_names_the_hosts_on_every_route(start: StartService) -> None:
    service = await start(allowed_hosts=["Facts.example.com"], host="0.0.0.0")  # noqa: S104
    for path in (ENTITIES, "/healthz", "/nowhere"):
        assert (await ask(service, path, host="127.0.0.1:8000")).status_code == 421, path
        assert (await ask(service, path, host="facts.example.com:81")).status_code != 421, path
    body = call("get-data-source-discovery", {})
    refused = await service.http.post(TOOLS, json=body, headers={"host": "evil.com"})
    assert refused.status_code == 421
    assert "allowed_hosts" in refused.json()["error"]["message"]


@pytest.mark.spec("network.allowed-hosts")
async def test_bound_to_every_address_any_host_is_answered_for(start: StartService) -> None:
    service = await start(host="0.0.0.0")  # noqa: S104
    assert (await ask(service, host="anything.example.com")).status_code == 200


@pytest.mark.spec("network.allowed-origins")
async def test_only_the_hosts_own_origin_and_those_of_the_setting_may_call(
    start: StartService,
) -> None:
    service = await start(allowed_origins=["https://portal.example.com/", "http://localhost:3000"])
    for origin in ("https://portal.example.com", "http://localhost:3000", "http://127.0.0.1:8000"):
        assert (await ask(service, origin=origin)).status_code == 200, origin
    for origin in ("https://evil.example.com", "http://portal.example.com", "null", "x", "://"):
        answer = await ask(service, origin=origin)
        assert answer.status_code == 403, origin
        error = answer.json()["error"]
        assert error["name"] == "NotAllowedError"
        assert "allowed_origins" in error["message"]
        assert origin not in error["message"].split() or len(origin) < 4
    assert (await ask(service)).status_code == 200


@pytest.mark.spec("network.public-url", "network.allowed-origins", "network.allowed-hosts")
async def test_the_public_urls_host_and_origin_are_the_services_own(start: StartService) -> None:
    service = await start(public_url="https://facts.example.com/base")
    assert (await ask(service, host="facts.example.com")).status_code == 200
    assert (await ask(service, origin="https://facts.example.com")).status_code == 200
    assert (await ask(service, origin="http://facts.example.com")).status_code == 403
    assert (await ask(service, host="facts2.example.com")).status_code == 421


@pytest.mark.spec("network.allowed-hosts")
async def test_who_comes_for_a_foreign_host_is_refused_before_the_token_counts(
    start: StartService,
) -> None:
    service = await start(failed_logins=1)
    async with service.client("fbk_wrong") as http:
        for _ in range(5):
            answer = await http.get(ENTITIES, headers={"host": "evil.example.com"})
            assert answer.status_code == 421
        assert (await http.get(ENTITIES)).status_code == 401
