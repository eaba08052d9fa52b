"""Every route of the table: who gets in, and what the others are told."""

import httpx2
import pytest

from factbook.api.endpoint import Route
from factbook.api.routes import ALL_TOOLS, list_routes
from factbook.auth.oauth import protocol
from factbook.auth.permissions import (
    AUDIT_READ,
    CATALOG_READ,
    CHECK_READ,
    CHECK_WRITE,
    EVENTS_READ,
    FACT_WRITE,
    OPERATIONS_MANAGE,
    OWN_WRITE,
    PERMISSION_NAMES,
    SCIM_WRITE,
    SCORECARD_WRITE,
    SET_WRITE,
    SOURCE_READ,
    SOURCE_RUN,
    SOURCE_WRITE,
    TITLES,
    add_included,
)
from factbook.auth.permissions import TOKEN_MANAGE as MANAGE
from factbook.settings import Settings
from tests.conftest import StartService
from tests.service import Service

BADGE = "/api/tech-insights/v1/badges/{id}/{kind}:{namespace}/{name}"
BADGES = {("GET", f"{BADGE}.svg"), ("GET", f"{BADGE}.json")}
# A route that is open to everyone has to be named here on purpose.
OPEN = {
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("GET", "/metrics"),
    ("GET", "/api/catalog/openapi.json"),
    ("GET", "/api/access/v1/openapi.json"),
    ("GET", "/api/tech-insights/v1/openapi.json"),
    ("GET", "/api/events/openapi.json"),
    ("GET", "/api/importers/v1/openapi.json"),
    # Of public scorecards alone: tests/api/test_badges.py.
    *BADGES,
    # How clients of OAuth find their way: tests/api/test_oauth_at_mcp.py.
    ("GET", protocol.RESOURCE_METADATA_PATH),
    ("GET", protocol.SERVER_METADATA_PATH),
}
# Callers prove who they are by a signature: tests/importers/test_events.py; or by a code or a
# refresh token: tests/api/test_oauth_tokens.py. Who registers is believed nothing.
SIGNED = {
    ("POST", "/api/importers/v1/importers/{importer}/events"),
    *(
        ("POST", path)
        for path in (protocol.TOKEN_PATH, protocol.REVOKE_PATH, protocol.REGISTER_PATH)
    ),
}
ROUTES = list_routes(Settings(push_aliases=["other"]))
GUARDED = [route for route in ROUTES if (route.method, route.path) not in OPEN | SIGNED]
FEEDS = {
    "/api/access/v1/audit": {AUDIT_READ},
    "/api/access/v1/audit/export": {AUDIT_READ},
    "/api/events": {EVENTS_READ},
}
OF_STARTER = {CHECK_WRITE, SCORECARD_WRITE}
OF_OTHERS = {
    "/digests": {CATALOG_READ, CHECK_READ, OPERATIONS_MANAGE},
    # Who may ask and decide: tests/api/test_exemptions.py.
    "/exemptions": {CHECK_READ},
}
OF_CHECKS = {"checks": {CHECK_WRITE}, "scorecards": {SCORECARD_WRITE}}
READING_POSTS = {"by-refs", "by-query", "entity-facets", "validate-entity", "analyze-location"}
# Each tool of it names its own.
OF_ANY_TOKEN = {("POST", path) for path in ("/mcp", "/api/mcp/v1/tech-insights-checks")}
UID = "6e1f3f0c-0000-4000-8000-000000000000"

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


def name_of(route: Route) -> str:
    return f"{route.method} {route.path}"


def expected(route: Route) -> set[str]:
    """The permissions that the decisions ask for, told from method and path alone."""
    if route.path in FEEDS or route.path.startswith("/scim/"):
        return FEEDS.get(route.path, {SCIM_WRITE})
    if route.path.startswith(("/api/access/", "/api/events/webhooks")):
        return {EVENTS_READ, OPERATIONS_MANAGE} if "webhooks" in route.path else {MANAGE}
    if route.path.startswith(("/api/mcp/", "/mcp")):
        of_any = (route.method, route.path) in OF_ANY_TOKEN
        return set() if of_any else {CATALOG_READ, SOURCE_READ}
    if route.path.startswith("/api/tech-insights/"):
        return expected_of_sources_and_facts(route)
    if route.path == "/api/catalog/refresh":
        return {SOURCE_RUN}
    reads = route.method == "GET" or route.path.rstrip("/").rpartition("/")[2] in READING_POSTS
    decides = route.path.startswith("/api/importers/") and not reads
    return {CATALOG_READ if reads else SET_WRITE} | ({CATALOG_READ} if decides else set())


def expected_of_checks(route: Route) -> set[str] | None:
    """Those of checks, scorecards, results and exemptions; None for other routes."""
    if route.path.endswith(("/checks/preview", "/check-results/preview")):
        return {CATALOG_READ, SOURCE_READ}
    for part, needed in OF_OTHERS.items():
        if part in route.path:
            return needed
    if "-results" in route.path:
        overviews = ("/check-results/{id}", "/scorecard-results")
        return {CHECK_READ} | (set() if route.path.endswith(overviews) else {CATALOG_READ})
    if route.path.endswith("/starter-scorecard"):
        return {SOURCE_READ} | (OF_STARTER if route.method == "POST" else set())
    for part, needed in OF_CHECKS.items():
        if route.path.startswith(f"/api/tech-insights/v1/{part}"):
            return {CHECK_READ} if route.method == "GET" else needed
    return None


def expected_of_plugin(route: Route) -> set[str]:
    """Those of the paths of the community's plugin."""
    if "/facts/" in route.path:
        return {CATALOG_READ, SOURCE_READ}
    if route.path.endswith("/fact-schemas"):
        return {SOURCE_READ}
    return {CATALOG_READ, SOURCE_READ} if "/run" in route.path else {CHECK_READ}


def expected_of_sources_and_facts(route: Route) -> set[str]:
    of_checks = expected_of_checks(route) if "/v1/" in route.path else expected_of_plugin(route)
    if of_checks is not None:
        return of_checks
    if "/facts" in route.path:
        return {CATALOG_READ, SOURCE_READ} if route.method == "GET" else {FACT_WRITE}
    if "/connections" in route.path:
        return {SOURCE_WRITE}
    last = route.path.rpartition("/")[2]
    others = {"run": {SOURCE_RUN}, "test": {CATALOG_READ, SOURCE_WRITE}}
    return others.get(last) or {SOURCE_READ if route.method == "GET" else SOURCE_WRITE}


def address(route: Route) -> str:
    """The path with something in place of its parameters."""
    found = route.path
    for part in (
        "set_id:path",
        "ref:path",
        "rest:path",
        "set_id",
        "uid",
        "id",
        "kind",
        "namespace",
        "name",
    ):
        found = found.replace(f"{{{part}}}", UID)
    return found.replace("{number}", "1")


@pytest.fixture
async def service(start: StartService) -> Service:
    return await start(push_aliases=["other"], failed_logins=10_000)


async def ask(service: Service, route: Route, *permissions: str) -> httpx2.Response:
    """The answer to a request with a token of these permissions."""
    async with service.client(await service.token(*permissions)) as http:
        return await http.request(route.method, address(route))


def test_the_open_routes_are_those_that_are_meant_to_be(database_url: str) -> None:
    found = {(route.method, route.path) for route in ROUTES if not route.permissions}
    assert found == OPEN | SIGNED | OF_ANY_TOKEN
    assert {(route.method, route.path) for route in ROUTES if route.signed} == SIGNED


@pytest.mark.slow
@pytest.mark.spec("auth.missing-token-is-401")
async def test_without_a_token_every_guarded_route_is_401_with_a_challenge(
    service: Service,
) -> None:
    async with service.client(None) as http:
        for route in GUARDED:
            for method in (route.method, *(["HEAD"] if route.method == "GET" else [])):
                answer = await http.request(method, address(route))
                assert answer.status_code == 401, name_of(route)
                challenge = answer.headers["www-authenticate"]
                if route.path == ALL_TOOLS:  # the one that says where to get a token
                    challenge = challenge.partition(", ")[0]
                assert challenge == 'Bearer realm="factbook"'
        for _, path in OPEN - BADGES:
            assert (await http.get(path)).status_code == 200, path


@pytest.mark.slow
@pytest.mark.spec(
    "auth.missing-permission-is-403",
    "catalog.read-denied-is-403",
    "permissions.entity-read-guards-the-catalog",
    "permissions.set-write-guards-the-push",
    "permissions.token-manage-guards-tokens",
    "permissions.tools-need-entity-read",
    "permissions.tools-need-data-source-read",
)
async def test_each_permission_that_a_route_needs_is_missed_by_name(
    service: Service, subtests: pytest.Subtests
) -> None:
    assert GUARDED
    for route in GUARDED:
        with subtests.test(name_of(route)):
            needed = expected(route)
            assert set(route.permissions or ()) == needed
            for lacking in needed:
                giving = {
                    each for each in PERMISSION_NAMES if lacking in add_included(frozenset({each}))
                }
                giving |= {OWN_WRITE} if route.owned else set()
                answer = await ask(service, route, *(PERMISSION_NAMES - giving))
                assert answer.status_code == 403
                assert lacking in answer.text
                assert TITLES[lacking] in answer.text
                challenge = answer.headers["www-authenticate"]
                assert f'error="insufficient_scope", scope="{lacking}"' in challenge
            assert (await ask(service, route, *needed)).status_code not in (401, 403)


@pytest.mark.spec("auth.missing-permission-is-403")
async def test_all_permissions_that_a_call_lacks_are_named_at_once(service: Service) -> None:
    [route] = [route for route in GUARDED if route.path.endswith("/tech-insights-facts")]
    answer = await ask(service, route, MANAGE)
    assert f'scope="{CATALOG_READ} {SOURCE_READ}"' in answer.headers["www-authenticate"]


async def test_who_has_no_token_is_not_told_which_methods_there_are(service: Service) -> None:
    async with service.client(None) as http:
        answer = await http.request("PATCH", "/api/access/v1/tokens")
        assert answer.status_code == 401
        assert "allow" not in answer.headers
        assert (await http.post("/healthz")).headers["allow"] == "GET"


@pytest.mark.slow
async def test_a_path_template_sent_as_it_stands_is_an_address_like_any_other(
    service: Service, subtests: pytest.Subtests
) -> None:
    assert GUARDED
    for route in GUARDED:
        with subtests.test(name_of(route)):
            answer = await service.http.request(route.method, route.path)
            assert answer.status_code < 500 or answer.status_code == 501, answer.text
