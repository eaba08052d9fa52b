"""Clients that register themselves, where a setting lets them."""

from typing import Any

import httpx2
import pytest

from factbook.auth.oauth import clients, protocol
from factbook.clock import DAY, HOUR
from factbook.settings import Settings
from factbook.worker import sweep
from tests.api.agent_hosts import HOSTS, LISTED, AgentHost
from tests.api.authorizing import (
    CALLBACK,
    READING,
    RESOURCE,
    Documents,
    at_mcp,
    code_for,
    exchanged,
    refreshed,
    tokens_for,
    wish,
)
from tests.conftest import StartService
from tests.service import Service
from tests.web.visiting import signed_in

CLIENT = {"client_name": "Desk", "redirect_uris": [CALLBACK], "software_id": "x"}


@pytest.fixture
async def service(start: StartService) -> Service:
    return await start(oauth={"registration": True})


async def register(service: Service, **changed: Any) -> httpx2.Response:
    async with service.client(None) as http:
        return await http.post(protocol.REGISTER_PATH, json={**CLIENT, **changed})


async def swept(service: Service) -> list[Any]:
    settings: Settings = service.state.settings
    await sweep(service.state.database, settings, (), service.time())
    return await service.state.database.all("SELECT id FROM oauth_clients")


async def test_a_client_that_registered_is_let_in_by_a_person(service: Service) -> None:
    answer = await register(service)
    assert answer.status_code == 201
    found = answer.json()
    assert found["token_endpoint_auth_method"] == "none"
    assert "client_secret" not in found
    ada = await signed_in(service)
    page = await ada.open(protocol.AUTHORIZE_PATH, **wish(client_id=found["client_id"]))
    assert "Nobody has checked who this is." in page.text
    tokens = await tokens_for(service, ada, client_id=found["client_id"])
    assert (await at_mcp(service, tokens["access_token"])).status_code == 200
    async with service.client(None) as http:
        metadata = (await http.get(protocol.SERVER_METADATA_PATH)).json()
    assert metadata["registration_endpoint"].endswith(protocol.REGISTER_PATH)
    audit = await service.http.get("/api/access/v1/audit", params={"action": "client.register"})
    [record] = audit.json()["records"]
    assert record["detail"] == {"name": "Desk", "hosts": ["agent.example.com"]}


@pytest.mark.parametrize("host", HOSTS, ids=[host.id for host in HOSTS])
async def test_a_host_is_let_in_as_it_introduces_itself(
    start: StartService, host: AgentHost
) -> None:
    documents = Documents()
    service = await start(oauth={"registration": True}, fetch_document=documents)
    if host.has_document:
        id_ = host.client["client_id"]
        documents.put(**{"client": id_, **host.client})
    else:
        answer = await register(service, **host.client)
        assert answer.status_code == 201, answer.text
        assert answer.json()["redirect_uris"] == host.client["redirect_uris"]
        id_ = answer.json()["client_id"]
    scope = " ".join(READING) if host.scope == LISTED else host.scope
    sent = {"client_id": id_, "scope": scope, "resource": f"{RESOURCE}{host.after}"}
    ada = await signed_in(service)
    for uri in {*host.client["redirect_uris"], host.redirect_uri}:
        asked = wish(**sent, redirect_uri=uri)
        page = (await ada.open(protocol.AUTHORIZE_PATH, **asked)).text
        on_computer = not uri.startswith("https:")
        assert ("goes to a program on this computer" in page) is on_computer
        code = await code_for(ada, **sent, redirect_uri=uri)
        answer = await exchanged(service, code, **(sent | {"redirect_uri": uri}))
        assert answer.json()["scope"].split() == sorted(READING)
        answer = await refreshed(service, answer.json()["refresh_token"], **sent)
        assert answer.json()["scope"].split() == sorted(READING)
        assert (await at_mcp(service, answer.json()["access_token"])).status_code == 200
        other = asked | {"redirect_uri": f"{uri}x"}
        assert (await ada.open(protocol.AUTHORIZE_PATH, **other)).status_code == 400


async def test_no_client_registers_unless_a_setting_lets_it(start: StartService) -> None:
    service = await start()
    assert (await register(service)).status_code == 404
    assert await service.state.database.all("SELECT id FROM oauth_clients") == []


async def test_what_no_client_needs_is_refused(service: Service, subtests: pytest.Subtests) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"redirect_uris": []}, "invalid_request"),
        ({"redirect_uris": [CALLBACK] * 11}, "invalid_request"),
        ({"redirect_uris": "x"}, "invalid_request"),
        ({"redirect_uris": ["http://agent.example.com/callback"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["javascript:alert(1)"]}, "invalid_redirect_uri"),
        ({"redirect_uris": [CALLBACK, "data:text/html,x"]}, "invalid_redirect_uri"),
        ({"redirect_uris": [f"{CALLBACK}#a"]}, "invalid_redirect_uri"),
        ({"redirect_uris": [f"{CALLBACK}?{'x' * 500}"]}, "invalid_redirect_uri"),
        ({"client_name": "x" * 501}, "invalid_request"),
    ]
    for changed, error in cases:
        with subtests.test(changed=changed):
            answer = await register(service, **changed)
            assert (answer.status_code, answer.json()["error"]) == (400, error)


async def test_an_address_registers_only_so_many(start: StartService) -> None:
    service = await start(oauth={"registration": True}, failed_logins=2)
    statuses = [(await register(service)).status_code for _ in range(12)]
    assert statuses == [201] * 10 + [429] * 2
    # Failures have a limit of their own: the address is not kept from the token endpoint.
    async with service.client(None) as http:
        answer = await http.post(protocol.TOKEN_PATH, data={"grant_type": "x"})
        assert answer.status_code == 400
    service.time.advance(HOUR)
    assert [(await register(service)).status_code for _ in range(11)] == [201] * 10 + [429]


async def test_registrations_that_nobody_uses_keep_no_new_client_out(service: Service) -> None:
    used = (await register(service)).json()["client_id"]
    await tokens_for(service, await signed_in(service), client_id=used)
    number = clients.MOST_CLIENTS - 1
    await service.state.database.write(
        lambda tx: tx.run(
            "INSERT INTO oauth_clients (id, name, redirect_uris, created_at) "
            "WITH RECURSIVE numbers (n) AS "
            "(SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?) "
            "SELECT 'unused ' || n, 'x', '[]', n FROM numbers",
            (number,),
        )
    )
    new = [(await register(service)).json()["client_id"] for _ in range(2)]
    rows = await service.state.database.all("SELECT id FROM oauth_clients ORDER BY created_at, id")
    assert len(rows) == clients.MOST_CLIENTS
    ids = [id_ for (id_,) in rows]
    assert ids[0] == "unused 3"
    assert {used, *new} <= set(ids)


async def test_registrations_fill_no_audit(start: StartService) -> None:
    service = await start(oauth={"registration": True})
    for number in range(103):
        async with service.client(None, address=f"198.51.100.{number}") as http:
            assert (await http.post(protocol.REGISTER_PATH, json=CLIENT)).status_code == 201
    rows = await service.state.database.all("SELECT 1 FROM audit WHERE action = 'client.register'")
    assert len(rows) == 100
    clients = await service.state.database.all("SELECT id FROM oauth_clients")
    assert len(clients) == 103


async def test_registrations_without_use_are_forgotten(service: Service) -> None:
    used = (await register(service)).json()["client_id"]
    await register(service)
    ada = await signed_in(service)
    await tokens_for(service, ada, client_id=used)
    service.time.advance(DAY)
    assert await swept(service) == [(used,)]
    service.time.advance(29 * DAY)
    assert await service.state.database.all("SELECT id FROM oauth_consents")
    assert await swept(service) == [(used,)]
    assert await service.state.database.all("SELECT id FROM oauth_consents") == []
    assert await service.state.database.all("SELECT hash FROM oauth_tokens") == []
    service.time.advance(60 * DAY)
    assert await swept(service) == []


async def test_a_name_without_letters_is_shown_as_none(service: Service) -> None:
    found = (await register(service, client_name="\u200b\n ")).json()
    assert found["client_name"] == "A client without a name"
