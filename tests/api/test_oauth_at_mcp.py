"""Access to `/mcp`, what those without it are told, and endpoints that know no OAuth."""

import re
from typing import Any

import pytest
from starlette.types import Message

from factbook.api import oauth
from factbook.api.routes import TOOL_CALLS
from factbook.auth import users
from factbook.auth.oauth import protocol
from factbook.auth.permissions import CATALOG_READ, CHECK_READ, EXEMPTION_REQUEST, SOURCE_READ
from factbook.auth.tokens import Grant
from factbook.errors import NotAllowedError
from factbook.http.requests import Request
from tests.api.authorizing import (
    ISSUER,
    READING,
    RESOURCE,
    SERVER,
    TOOL,
    Documents,
    at_mcp,
    sent,
    tokens_for,
)
from tests.api.checking import check, put, with_source
from tests.conftest import StartService
from tests.service import Service, call, component
from tests.web.visiting import signed_in

METADATA = f"{SERVER}{protocol.RESOURCE_METADATA_PATH}"
ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
WRITE = "tech-insights.check.write"


@pytest.fixture
async def service(start: StartService) -> Service:
    return await start(fetch_document=Documents())


def challenge(header: str) -> dict[str, str]:
    """The parameters of a challenge."""
    assert header.startswith("Bearer ")
    return dict(re.findall(r'(\w+)="([^"]*)"', header))


def of_kind(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    version = "backstage.io/v1alpha1"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


async def get(service: Service, path: str) -> tuple[int, dict[str, Any]]:
    async with service.client(None) as http:
        answer = await http.get(path)
    assert answer.headers["content-type"].startswith("application/json"), path
    return answer.status_code, answer.json()


@pytest.mark.spec("endpoint.oauth-at-mcp")
async def test_who_comes_without_a_token_is_told_where_to_get_one(service: Service) -> None:
    answer = await at_mcp(service, None)
    assert answer.status_code == 401
    found = challenge(answer.headers["www-authenticate"])
    assert found == {
        "realm": "factbook",
        "scope": " ".join(sorted(READING)),
        "resource_metadata": METADATA,
    }
    answer = await at_mcp(service, "fbk_" + "a" * 46)
    assert answer.status_code == 401
    assert challenge(answer.headers["www-authenticate"])["error"] == "invalid_token"
    assert answer.json()["error"] == "invalid_token"


async def test_a_token_made_by_hand_is_good_there_too(service: Service) -> None:
    assert (await at_mcp(service, await service.token(*READING))).status_code == 200
    answer = await at_mcp(service, await service.token(CATALOG_READ))
    # It has no client that could ask for more, and a host would end its session at 403.
    assert answer.status_code == 200
    result = answer.json()["result"]
    assert result["isError"] is True
    assert SOURCE_READ in result["content"][0]["text"]


async def test_the_resource_names_its_authorization_server_which_names_all_else(
    service: Service,
) -> None:
    status, found = await get(service, protocol.RESOURCE_METADATA_PATH)
    assert status == 200
    assert (found["resource"], found["authorization_servers"]) == (RESOURCE, [ISSUER])
    assert found["bearer_methods_supported"] == ["header"]
    assert found["scopes_supported"] == list(READING)
    status, found = await get(service, protocol.SERVER_METADATA_PATH)
    assert status == 200
    assert found["issuer"] == ISSUER
    assert found["code_challenge_methods_supported"] == ["S256"]
    # Cursor and Gemini CLI ask for all of these.
    assert found["scopes_supported"] == list(READING)
    assert found["token_endpoint_auth_methods_supported"] == ["none"]
    assert found["authorization_response_iss_parameter_supported"] is True
    assert found["client_id_metadata_document_supported"] is True
    assert "registration_endpoint" not in found
    for name in ("authorization_endpoint", "token_endpoint", "revocation_endpoint"):
        assert found[name].startswith(f"{ISSUER}/")


@ON_SQLITE
async def test_behind_a_proxy_all_addresses_are_public(start: StartService) -> None:
    service = await start(public_url="https://facts.example.com/", fetch_document=Documents())
    _, found = await get(service, protocol.RESOURCE_METADATA_PATH)
    assert found["resource"] == "https://facts.example.com/mcp"
    _, found = await get(service, protocol.SERVER_METADATA_PATH)
    assert found["issuer"] == "https://facts.example.com/oauth"
    answer = await at_mcp(service, None)
    metadata = challenge(answer.headers["www-authenticate"])["resource_metadata"]
    assert metadata == f"https://facts.example.com{protocol.RESOURCE_METADATA_PATH}"


@ON_SQLITE
@pytest.mark.spec("endpoint.oauth-nowhere-else")
async def test_a_client_with_a_header_finds_no_metadata_elsewhere(service: Service) -> None:
    for path in (
        "/.well-known/oauth-protected-resource",
        f"/.well-known/oauth-protected-resource{TOOL_CALLS}",
        "/.well-known/oauth-authorization-server",
        "/.well-known/openid-configuration",
        f"{TOOL_CALLS}/.well-known/oauth-protected-resource",
    ):
        assert (await get(service, path))[0] == 404, path
    async with service.client(None) as http:
        answer = await http.post(TOOL_CALLS, json=TOOL)
    assert answer.headers["www-authenticate"] == 'Bearer realm="factbook"'
    async with service.client(await service.token(CATALOG_READ)) as http:
        answer = await http.post(TOOL_CALLS, json=TOOL)
    assert "resource_metadata" not in answer.headers["www-authenticate"]


async def test_a_token_of_oauth_is_for_the_tools_alone(service: Service) -> None:
    tokens = await tokens_for(service, await signed_in(service))
    for value in (tokens["access_token"], tokens["refresh_token"]):
        async with service.client(value) as http:
            for method, path in (
                ("POST", TOOL_CALLS),
                ("GET", "/api/catalog/entities"),
                ("GET", "/api/access/v1/tokens"),
            ):
                answer = await http.request(method, path, json=TOOL)
                assert answer.status_code == 401, path
    assert (await at_mcp(service, tokens["refresh_token"])).status_code == 401


async def test_a_token_for_another_address_is_refused(start: StartService) -> None:
    service = await start(fetch_document=Documents(), allowed_hosts=["127.0.0.1", "b.example.com"])
    tokens = await tokens_for(service, await signed_in(service))
    answer = await at_mcp(service, tokens["access_token"], server="http://b.example.com")
    assert answer.status_code == 401
    assert "another address" in answer.json()["error_description"]
    assert (await at_mcp(service, tokens["access_token"])).status_code == 200


async def test_who_needs_more_is_told_all_that_is_to_be_asked_for_at_once(
    service: Service,
) -> None:
    ada = await signed_in(service)
    tokens = await tokens_for(service, ada, scope=CATALOG_READ)
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    batch = await at_mcp(service, tokens["access_token"], message=[ping, TOOL, ping])
    assert ["error" in one for one in batch.json()] == [False, True, False]
    answer = await at_mcp(service, tokens["access_token"])
    assert answer.status_code == 403
    assert answer.json()["error"] == "insufficient_scope"
    found = challenge(answer.headers["www-authenticate"])
    assert (found["error"], found["resource_metadata"]) == ("insufficient_scope", METADATA)
    assert found["scope"].split() == sorted(READING)
    more = await tokens_for(service, ada, scope=found["scope"])
    assert (await at_mcp(service, more["access_token"])).status_code == 200


def test_who_cannot_be_given_more_is_not_sent_to_ask_for_it() -> None:
    request = Request({"method": "POST", "headers": []}, _nothing)
    request.resource_metadata = METADATA
    error = NotAllowedError("This needs more.", missing=(WRITE,))
    for grantable, is_told in ((READING, False), ((*READING, WRITE), True)):
        held = frozenset(READING)
        request.token = Grant("id", "user:default/vic", held, 1, 1, None, frozenset(grantable))
        found = oauth.render_mcp_error(error, request).headers["www-authenticate"]
        assert ("resource_metadata" in found) is is_told


async def _nothing() -> Message:
    return {"type": "http.disconnect"}


async def test_a_client_that_was_let_in_to_read_asks_for_no_exemption(start: StartService) -> None:
    service = await start(fetch_document=Documents(), agent_writes=True)
    await with_source(service)
    await put(service, check(), publish=True)
    people = [
        of_kind("Group", "team-a", type="team", children=[]),
        of_kind("User", "ada", memberOf=["team-a"]),
    ]
    assert (await service.push("shop", component("api"), *people)).status_code == 200
    ada = await signed_in(service)
    given = {"entityRef": "component:default/api", "reason": "Shut down", "until": "2027-03-31"}
    wish = call("request-check-exemption", {**given, "checkId": "covered"})
    read = (await tokens_for(service, ada))["access_token"]
    answer = await at_mcp(service, read, message=wish)
    assert answer.status_code == 403
    told = challenge(answer.headers["www-authenticate"])
    assert told["scope"].split() == sorted([*READING, CHECK_READ, EXEMPTION_REQUEST])
    more = (await tokens_for(service, ada, scope=told["scope"]))["access_token"]
    answer = await at_mcp(service, more, message=wish)
    assert answer.json()["result"]["structuredContent"]["state"] == "requested"


async def test_a_permission_lost_with_a_role_does_not_return_with_it(start: StartService) -> None:
    service = await start(fetch_document=Documents(), agent_writes=True)
    await with_source(service)
    await put(service, check(), publish=True)
    assert (await service.push("shop", component("api"))).status_code == 200
    await signed_in(service, "ada")
    scope = " ".join([*READING, CHECK_READ, EXEMPTION_REQUEST])
    vic = await tokens_for(service, await signed_in(service, "vic"), scope=scope)
    given = {"entityRef": "component:default/api", "reason": "Shut down", "until": "2027-03-31"}
    wish = call("request-check-exemption", {**given, "checkId": "covered"})
    now = service.time()
    ref, write = "user:default/vic", service.state.database.write
    await write(lambda tx: users.change_user_role(tx, ref, "viewer", now))
    await write(lambda tx: users.change_user_role(tx, ref, "administrator", now))
    answer = await at_mcp(service, vic["access_token"], message=wish)
    assert answer.status_code == 403


async def test_the_last_use_is_noted(service: Service) -> None:
    ada = await signed_in(service)
    tokens = await tokens_for(service, ada)
    assert (await at_mcp(service, tokens["access_token"])).status_code == 200
    answer = await service.http.get("/api/access/v1/audit")  # a write after that of the use
    assert answer.status_code == 200
    [[used_at]] = await service.state.database.all("SELECT last_used_at FROM oauth_consents")
    assert used_at in {None, service.time()}
    assert "Agent" in await ada.text("/administration/account")


@ON_SQLITE
async def test_a_client_calls_no_more_often_than_a_token_may(start: StartService) -> None:
    service = await start(fetch_document=Documents(), token_rate=0.001, token_burst=2)
    tokens = await tokens_for(service, await signed_in(service))
    called = [(await at_mcp(service, tokens["access_token"])).status_code for _ in range(3)]
    assert called == [200, 200, 429]


@ON_SQLITE
async def test_where_it_is_switched_off_only_tokens_made_by_hand_are_taken(
    start: StartService,
) -> None:
    service = await start(oauth={"enabled": False})
    for path in (protocol.RESOURCE_METADATA_PATH, protocol.SERVER_METADATA_PATH):
        assert (await get(service, path))[0] == 404
    for path in (protocol.TOKEN_PATH, protocol.REVOKE_PATH, protocol.REGISTER_PATH):
        assert (await sent(service, path, {"a": "b"})).status_code == 404
    answer = await at_mcp(service, None)
    assert answer.headers["www-authenticate"] == 'Bearer realm="factbook"'
    assert (await at_mcp(service, await service.token(*READING))).status_code == 200
