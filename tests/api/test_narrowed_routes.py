"""Tokens that are narrowed, at every route of the table."""

from itertools import combinations

import pytest

from factbook.api.endpoint import Route
from factbook.api.routes import list_routes
from factbook.auth.permissions import SET_WRITE
from factbook.auth.tokens import DIMENSIONS, NAMESPACES, NO_REACH, Narrowing
from factbook.settings import Settings
from tests.api.test_access_routes import GUARDED, UID, name_of
from tests.api.test_access_routes import address as plain_address
from tests.conftest import StartService
from tests.service import Service

ASKED = [frozenset(some) for size in range(1, 5) for some in combinations(DIMENSIONS, size)]
ROUTES = [
    route
    for route in list_routes(Settings(push_aliases=["other"], agent_writes=True))
    if route.permissions is not None and not route.signed
]

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


def address(route: Route) -> str:
    """The path with something in place of its parameters, which leads to this very route."""
    return plain_address(route._replace(path=route.path.replace("{set_id:path}", "a/b")))


def query(route: Route) -> dict[str, str]:
    """The set that a query may name."""
    return {one.name: UID for one in route.parameters or () if one.name == "set"}


def is_refused(route: Route, narrowed: frozenset[str]) -> bool:
    """What the table says of a token that is narrowed so, to all names of each dimension."""
    aims = narrowed - {NAMESPACES}
    missing = aims - route.reach.bounds - route.reach.apart
    elsewhere = bool(aims) and aims.isdisjoint(route.reach.bounds)
    writes_anywhere = route.writes and not narrowed - aims <= route.reach.bounds
    return bool(missing) or elsewhere or writes_anywhere


@pytest.fixture
async def service(start: StartService) -> Service:
    return await start(push_aliases=["other"], agent_writes=True, token_rate=100_000)


def test_the_matrix_has_the_routes_that_need_a_token(database_url: str) -> None:
    assert {name_of(route) for route in GUARDED} <= {name_of(route) for route in ROUTES}


@pytest.mark.slow
@pytest.mark.spec("token.narrowed-is-kept-within")
@pytest.mark.parametrize("narrowed", ASKED, ids=lambda names: "+".join(sorted(names)))
async def test_a_narrowed_token_gets_in_where_the_table_says_so_and_nowhere_else(
    service: Service, narrowed: frozenset[str]
) -> None:
    everything = Narrowing(**dict.fromkeys(narrowed, ("*",)))
    nothing = Narrowing(**dict.fromkeys(narrowed, ("nothing",)))
    wrong = []
    # In a narrowing of nothing that there is, what a path names is refused besides.
    for narrowing in (everything, nothing):
        token = await service.token(narrowing=narrowing)
        async with service.client(token) as http:
            for route in ROUTES:
                answer = await http.request(route.method, address(route), params=query(route))
                named = narrowing is nothing and names_more(route, narrowed)
                expected = is_refused(route, narrowed) or named
                told = answer.status_code == 403 and "narrowed to" in answer.text
                if told != expected:
                    wrong.append(f"{name_of(route)}: {answer.status_code} {answer.text}")
    assert wrong == []


def names_more(route: Route, narrowed: frozenset[str]) -> bool:
    """True if path or query name something of a dimension that the route keeps tokens within."""
    bound = route.reach.bounds & narrowed
    in_path = {"sets": "{set_id}", "sources": "{id}"}
    return any(in_path.get(name, "\0") in route.path for name in bound) or (
        "sets" in bound and bool(query(route))
    )


def test_a_route_that_says_nothing_refuses_tokens_that_are_narrowed(database_url: str) -> None:
    new = Route("PUT", "/new", GUARDED[0].handler, (SET_WRITE,))
    assert new.reach == NO_REACH
    assert all(is_refused(new, narrowed) for narrowed in ASKED)


def test_a_reach_bounds_whatever_the_path_names(database_url: str) -> None:
    for route in ROUTES:
        if "{set_id}" in route.path:
            assert route.reach.bounds >= {"sets", NAMESPACES}, route.path
        if route.reach.bounds and "{id}" in route.path:
            assert "sources" in route.reach.bounds, route.path
