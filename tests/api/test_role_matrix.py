"""Every role, also with narrowed tokens, at every route and tool: cells told from the tables."""

import httpx2
import pytest

from factbook.api.endpoint import Route
from factbook.auth.permissions import ROLES, suffices_when_owned
from factbook.auth.tokens import DIMENSIONS, TOOLS, Narrowing
from factbook.tools.tool import Tool
from factbook.tools.toolsets import list_toolsets
from tests.api.messages import message, tool_call
from tests.api.test_access_routes import name_of
from tests.api.test_narrowed_routes import ROUTES, address, is_refused, query
from tests.conftest import StartService
from tests.service import Service

# On PostgreSQL with the system tests: that takes 23 s of CPU, SQLite 8.
EITHER = ("sqlite", pytest.param("postgresql", marks=pytest.mark.system))
NARROWED = (None, *DIMENSIONS)
EVERY_TOOL = [tool for toolset in list_toolsets(with_writing=True) for tool in toolset.tools]

CELLS = [(role, dimension) for role in ROLES for dimension in NARROWED]

pytestmark = pytest.mark.parametrize("database_url", EITHER, indirect=True)


@pytest.fixture
async def service(start: StartService) -> Service:
    return await start(push_aliases=["other"], agent_writes=True, token_rate=100_000)


async def token_of(service: Service, role: str, dimension: str | None) -> str:
    """A token with all that the role allows, narrowed to all names of a dimension."""
    narrowing = Narrowing(**{dimension: ("*",)}) if dimension else None
    return await service.token(*ROLES[role], narrowing=narrowing)


def outcome(answer: httpx2.Response) -> str:
    if answer.status_code == 403 and "This needs the permission" in answer.text:
        return "permission"
    if answer.status_code == 403 and "narrowed to" in answer.text:
        return "narrowed"
    return "let in"


def expected_at(route: Route, role: str, dimension: str | None) -> str:
    """The cell of the table: what the role has, what the route needs, and its reach."""
    held, needed = ROLES[role], route.permissions or ()
    # Its handler looks whose it is.
    if not held.issuperset(needed) and not (route.owned and suffices_when_owned(held, needed)):
        return "permission"
    narrowed = dimension is not None and is_refused(route, frozenset({dimension}))
    return "narrowed" if narrowed else "let in"


def expected_of(tool: Tool, role: str, dimension: str | None) -> str:
    if dimension in {"sets", "sources"}:
        return "narrowed"
    if not ROLES[role].issuperset(tool.permissions):
        return "permission"
    narrowed = dimension not in {None, TOOLS} and tool.writes
    return "narrowed" if narrowed else "let in"


@pytest.mark.slow
@pytest.mark.spec("roles.each-does-what-its-permissions-allow")
async def test_a_role_gets_in_where_the_tables_say_so_and_nowhere_else(
    service: Service, subtests: pytest.Subtests
) -> None:
    assert ROUTES
    for role, dimension in CELLS:
        with subtests.test(role=role, dimension=dimension):
            wrong = []
            async with service.client(await token_of(service, role, dimension)) as http:
                for route in ROUTES:
                    answer = await http.request(route.method, address(route), params=query(route))
                    if outcome(answer) != expected_at(route, role, dimension):
                        wrong.append(f"{name_of(route)}: {answer.status_code} {answer.text}")
            assert wrong == []


@pytest.mark.slow
@pytest.mark.spec("roles.each-does-what-its-permissions-allow")
async def test_a_role_calls_the_tools_whose_permissions_it_has(
    service: Service, subtests: pytest.Subtests
) -> None:
    assert EVERY_TOOL
    for role, dimension in CELLS:
        with subtests.test(role=role, dimension=dimension):
            wrong = []
            async with service.client(await token_of(service, role, dimension)) as http:
                for tool in EVERY_TOOL:
                    path = "/api/mcp/v1/tech-insights-checks-manage" if tool.writes else "/mcp"
                    answer = await http.post(path, json=message("tools/call", tool_call(tool.name)))
                    if outcome(answer) != expected_of(tool, role, dimension):
                        wrong.append(f"{tool.name}: {answer.status_code} {answer.text}")
            assert wrong == []
