"""Who may call tools, from where, and what a client that probes for OAuth finds.

What the database holds makes no difference here, so there is one of SQLite alone.
"""

import httpx2
import pytest

from factbook.auth.permissions import CATALOG_READ, SET_WRITE, SOURCE_READ
from factbook.clock import DAY
from tests.api.messages import expect_error, message, modern_headers, modern_message, tool_call
from tests.conftest import StartService
from tests.service import TOOLS, Service

CALL = message("tools/call", tool_call("get-data-source-discovery"))
BOTH = f"{CATALOG_READ} {SOURCE_READ}"


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    """A SQLite file: what is tested here is the protocol."""
    return sqlite_url


async def call(service: Service, authorization: str | None) -> httpx2.Response:
    headers = {} if authorization is None else {"authorization": authorization}
    async with service.client(None) as client:
        return await client.post(TOOLS, json=CALL, headers=headers)


# The token


@pytest.mark.spec("auth.missing-token-is-401")
async def test_a_call_without_a_bearer_token_is_401_with_a_challenge(
    service: Service, subtests: pytest.Subtests
) -> None:
    cases: list[str | None] = [None, "", "Basic YTpi", "fbk_alone"]
    for authorization in cases:
        with subtests.test(authorization=authorization):
            answer = await call(service, authorization)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == 'Bearer realm="factbook"'
            assert answer.json().keys() == {"error", "error_description"}
            assert answer.json()["error"] == "invalid_token"


@pytest.mark.spec("auth.bad-token-is-401")
async def test_a_token_that_is_not_good_is_401_invalid_token(service: Service) -> None:
    good = await service.token()
    short = await service.token(lifetime=DAY)
    service.time.advance(DAY)
    for bad in ("fbk_nothing", good[:-1] + ("a" if good[-1] != "a" else "b"), short):
        answer = await call(service, f"Bearer {bad}")
        assert answer.status_code == 401, bad
        challenge = answer.headers["www-authenticate"]
        assert challenge == 'Bearer realm="factbook", error="invalid_token"'
        assert answer.json()["error"] == "invalid_token"
        assert bad not in answer.text
    assert (await call(service, f"Bearer {good}")).status_code == 200


@pytest.mark.spec("auth.scheme-word-in-any-case")
async def test_the_scheme_word_is_taken_in_any_case(
    service: Service, subtests: pytest.Subtests
) -> None:
    token = await service.token()
    for scheme in ["Bearer", "bearer", "BEARER"]:
        with subtests.test(scheme=scheme):
            assert (await call(service, f"{scheme} {token}")).status_code == 200


@pytest.mark.spec(
    "auth.missing-permission-is-403",
    "permissions.tools-need-entity-read",
    "permissions.tools-need-data-source-read",
)
async def test_a_token_without_both_permissions_is_403_and_told_the_ones_it_lacks(
    service: Service, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[tuple[str, ...], str]] = [
        ((SOURCE_READ,), CATALOG_READ),
        ((CATALOG_READ,), SOURCE_READ),
        ((SET_WRITE,), BOTH),
    ]
    for held, scope in cases:
        with subtests.test(held=held, scope=scope):
            answer = await call(service, f"Bearer {await service.token(*held)}")
            assert answer.status_code == 403
            challenge = 'Bearer realm="factbook", error="insufficient_scope", scope="{}"'
            assert answer.headers["www-authenticate"] == challenge.format(scope)
            assert answer.json()["error"] == "insufficient_scope"
            for name in scope.split():
                assert name in answer.json()["error_description"]


async def test_the_two_permissions_are_enough_for_every_method_of_both_eras(
    service: Service,
) -> None:
    async with service.client(await service.token(CATALOG_READ, SOURCE_READ)) as client:
        for body in (CALL, message("initialize", {}), message("ping"), message("tools/list")):
            assert (await client.post(TOOLS, json=body)).status_code == 200
        listing = modern_message("tools/list")
        headers = modern_headers("tools/list")
        assert (await client.post(TOOLS, json=listing, headers=headers)).status_code == 200


async def test_who_may_not_call_learns_nothing_of_what_was_wrong_besides(service: Service) -> None:
    async with service.client(None) as client:
        for body in (b"", b"[]", b'{"jsonrpc":"2.0","method":"x"}', b" " * (2 * 1024 * 1024)):
            assert (await client.post(TOOLS, content=body)).status_code == 401


# Where it comes from


@pytest.mark.spec("network.allowed-origins")
async def test_an_origin_that_is_not_allowed_is_403_without_a_request_id(
    start: StartService,
) -> None:
    service = await start(allowed_origins=["https://ide.example.com"])
    for origin in ("https://evil.example.com", "null", "http://ide.example.com"):
        answer = await service.http.post(TOOLS, json=CALL, headers={"origin": origin})
        assert "allowed_origins" in expect_error(answer, 403, -32600)
    for origin in ("https://ide.example.com", "http://127.0.0.1:8000"):
        answer = await service.http.post(TOOLS, json=CALL, headers={"origin": origin})
        assert answer.status_code == 200, answer.text


@pytest.mark.spec("network.allowed-hosts")
async def test_on_loopback_only_loopback_names_are_answered(service: Service) -> None:
    for host in ("evil.example.com", "evil.example.com:8000", "localhost.evil.example.com"):
        answer = await service.http.post(TOOLS, json=CALL, headers={"host": host})
        assert "allowed_hosts" in expect_error(answer, 421, -32600)
    for host in ("localhost", "localhost:8000", "127.0.0.1:9", "LOCALHOST", "[::1]:8000"):
        answer = await service.http.post(TOOLS, json=CALL, headers={"host": host})
        assert answer.status_code == 200, answer.text


@pytest.mark.spec("network.allowed-hosts")
async def test_a_list_of_hosts_decides_wherever_the_server_is_bound(start: StartService) -> None:
    service = await start(host="0.0.0.0", allowed_hosts=["facts.example.com"])  # noqa: S104 - never bound
    good = {"host": "facts.example.com"}
    assert (await service.http.post(TOOLS, json=CALL, headers=good)).status_code == 200
    assert (await service.http.post(TOOLS, json=CALL)).status_code == 421


# Probing


async def test_a_client_that_probes_for_oauth_gets_404_and_json(
    service: Service, subtests: pytest.Subtests
) -> None:
    for path in [
        "/.well-known/oauth-protected-resource",
        f"/.well-known/oauth-protected-resource{TOOLS}",
        "/.well-known/oauth-authorization-server",
        "/.well-known/openid-configuration",
        f"{TOOLS}/.well-known/openid-configuration",
        "/register",
    ]:
        with subtests.test(path=path):
            async with service.client(None) as stranger:
                answer = await (stranger.post if path == "/register" else stranger.get)(path)
            assert answer.status_code == 404
            assert answer.headers["content-type"].startswith("application/json")
            assert answer.json()["error"]["name"] == "NotFoundError"
            assert "www-authenticate" not in answer.headers


async def test_a_path_with_a_slash_at_its_end_is_not_redirected(service: Service) -> None:
    answer = await service.http.post(f"{TOOLS}/", json=CALL)
    assert answer.status_code == 404
