"""Which hosts the service answers for, and which browser origins may call it."""

import httpx2
import pytest

from factbook.auth.oauth import protocol
from tests.conftest import StartService
from tests.service import TOOLS, Service, call

ENTITIES = "/api/catalog/entities"
EVERY_ADDRESS = "0.0.0.0"  # noqa: S104 - never bound

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
    service = await start(allowed_hosts=["Facts.example.com"], host=EVERY_ADDRESS)
    for path in (ENTITIES, "/sign-in", "/nowhere"):
        assert (await ask(service, path, host="127.0.0.1:8000")).status_code == 421, path
        assert (await ask(service, path, host="facts.example.com:81")).status_code != 421, path
    body = call("get-data-source-discovery", {})
    refused = await service.http.post(TOOLS, json=body, headers={"host": "evil.com"})
    assert refused.status_code == 421
    assert "allowed_hosts" in refused.json()["error"]["message"]


@pytest.mark.spec("network.allowed-hosts")
async def test_bound_to_every_address_any_address_and_no_name_is_answered_for(
    start: StartService,
) -> None:
    """A page can make a name lead here (DNS rebinding), and no address."""
    service = await start(host=EVERY_ADDRESS)
    for host in ("192.0.2.7:8000", "10.1.2.3", "[2001:db8::7]:8000", "[::1]", "localhost:8000"):
        assert (await ask(service, host=host)).status_code == 200, host
    for host in (
        "anything.example.com",
        "factbook",
        "192.0.2.7.example.com",
        "2130706433",
        "127.1",
        "192.0.2.7:8000.example.com",
        "192.0.2.7:80:80",
        "user@192.0.2.7",
        "2001:db8::7",
        "[fe80::1%25eth0]",
        "[",
        "[]",
        ":8000",
        "",
    ):
        answer = await ask(service, host=host)
        assert answer.status_code == 421, host
        message = answer.json()["error"]["message"]
        assert "public_url" in message
        assert "allowed_hosts" in message
    page = await service.http.get("/sign-in", headers={"host": "a.example.com"})
    assert (page.status_code, "allowed_hosts" in page.text) == (421, True)


@pytest.mark.spec("network.public-url", "network.allowed-hosts")
async def test_bound_to_every_address_the_public_urls_host_is_the_one_name(
    start: StartService,
) -> None:
    service = await start(host=EVERY_ADDRESS, public_url="https://Facts.example.com:8443/base")
    for host in ("facts.example.com", "FACTS.example.com:8443", "10.1.2.3:8000", "127.0.0.1:8000"):
        assert (await ask(service, host=host)).status_code == 200, host
    for path in (ENTITIES, "/sign-in", "/healthz", "/metrics"):
        for host in ("evil.example.com", "facts.example.com.evil.example", "example.com"):
            assert (await ask(service, path, host=host)).status_code == 421, (path, host)


@pytest.mark.spec("network.allowed-hosts")
async def test_whoever_looks_for_health_may_know_the_address_alone(
    start: StartService, subtests: pytest.Subtests
) -> None:
    """As kubelet and the image's own check do, whatever names the settings list."""
    service = await start(host=EVERY_ADDRESS, allowed_hosts=["facts.example.com"])
    for path in ["/healthz", "/readyz", "/metrics"]:
        with subtests.test(path=path):
            for host in ("10.1.2.3:8000", "127.0.0.1:8000", "localhost", "facts.example.com"):
                assert (await ask(service, path, host=host)).status_code == 200, host
            assert (await ask(service, path, host="evil.example.com")).status_code == 421


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


@pytest.mark.spec("network.allowed-origins")
async def test_a_page_of_an_allowed_origin_may_read_the_answers(
    start: StartService, subtests: pytest.Subtests
) -> None:
    portal = "https://portal.example.com"
    service = await start(allowed_origins=[portal], oauth={"registration": True})
    sent = {"access-control-request-method": "POST"}
    token = await service.token()
    for method, path, body in (
        ("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
        ("POST", TOOLS, {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
        ("GET", protocol.RESOURCE_METADATA_PATH, None),
        ("GET", protocol.SERVER_METADATA_PATH, None),
        ("POST", protocol.TOKEN_PATH, None),
        ("POST", protocol.REGISTER_PATH, {"redirect_uris": ["http://127.0.0.1/"]}),
        ("GET", "/api/catalog/entities", None),
    ):
        with subtests.test(path=path):
            for value in (token, None):
                async with service.client(value) as http:
                    asked = http.build_request(method, path, json=body, headers={"origin": portal})
                    answer = await http.send(asked)
                assert answer.headers["access-control-allow-origin"] == portal
                assert "Origin" in answer.headers["vary"]
                assert "WWW-Authenticate" in answer.headers["access-control-expose-headers"]
                assert "access-control-allow-credentials" not in answer.headers
            async with service.client(None) as http:
                answer = await http.options(path, headers={"origin": portal, **sent})
                assert (answer.status_code, answer.content) == (204, b"")
                assert method in answer.headers["access-control-allow-methods"]
                allowed = answer.headers["access-control-allow-headers"].lower()
                assert {"authorization", "content-type", "mcp-protocol-version"} <= set(
                    allowed.split(", ")
                )
                own = "http://127.0.0.1:8000"
                for origin in ("https://evil.example.com", own):
                    answer = await http.options(path, headers={"origin": origin, **sent})
                    assert answer.status_code in {401, 403, 405}
                    assert "access-control-allow-origin" not in answer.headers


async def test_pages_are_shared_with_no_other_origin(start: StartService) -> None:
    portal = "https://portal.example.com"
    service = await start(allowed_origins=[portal])
    async with service.client(None) as http:
        for path in ("/", "/sign-in", protocol.AUTHORIZE_PATH):
            answer = await http.get(path, headers={"origin": portal})
            assert "access-control-allow-origin" not in answer.headers


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
