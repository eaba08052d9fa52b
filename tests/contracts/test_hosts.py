"""Agents' hosts at the address of all tools: their clients, and their converters of tools.

Every client lists every tool, calls each in one session, and goes on after a call that its token
may not make. Every converter takes every tool. The Python environments are locked in
`hosts-*.lock`, the npm packages in `package-lock.json`.
"""

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import httpx2
import jsonschema
import pytest

from tests.api.messages import message
from tests.api.test_host_rules import ADDRESSES
from tests.contracts import hosts, node
from tests.contracts.test_clients import (
    CALLS,
    NAMED,
    REFUSING,
    SOURCE,
    Report,
    Server,
    inspect,
    python,
)
from tests.processes import serving
from tests.service import PUSH, component
from tests.waiting import until

pytestmark = pytest.mark.system

Json = dict[str, Any]
Calls = list[tuple[str, Json]]

ALL = "/mcp?schemas=output"
OWNED = {"source": "entity", "fact": "spec.owner", "operator": "isKnown"}
CHECK: Json = {"id": "owned", "title": "Owned", "rule": OWNED}
SCORECARD: Json = {
    "id": "readiness",
    "title": "Readiness",
    "levels": ["bronze"],
    "entries": [{"check": "owned", "level": "bronze"}],
    "exemptions": {"permanent": True},
}
REFUSED = "get-data-source-discovery"
ALLOWED = "get-scorecard-discovery"


class Sessions(NamedTuple):
    """What a client found in two sessions: with every tool, and with a token that reads checks."""

    wide: Report
    narrow: Report


Ask = Callable[[Server, Calls], Report]


def typescript(program: str, mode: str) -> Ask:
    def ask(server: Server, calls: Calls) -> Report:
        return Report(**node.ask(program, server.url, server.token, mode, question=calls))

    return ask


ASKING: dict[str, Ask] = {
    "TypeScript SDK 1": typescript("client-1.mjs", "legacy"),
    "TypeScript SDK 2, legacy": typescript("client-2.mjs", "legacy"),
    "TypeScript SDK 2": typescript("client-2.mjs", "auto"),
    "Python SDK 2": lambda server, calls: asyncio.run(python("auto", server, calls)),
}
# Importing a client takes seconds, so all clients of an environment share a process.
IN_ENVIRONMENTS = {
    "hosts-1": {"Python SDK 1": "mcp", "FastMCP 2": "fastmcp"},
    "hosts-2": {"FastMCP 3": "fastmcp"},
    "hosts-3": {"FastMCP 4": "fastmcp", "OpenAI Agents SDK": "agents"},
}
CLIENTS = [*ASKING, *(client for clients in IN_ENVIRONMENTS.values() for client in clients)]
EVERY_CLIENT = pytest.mark.parametrize("client", CLIENTS)


def entity_of(client: str) -> str:
    """An entity for which this client alone requests an exemption."""
    return f"web-{CLIENTS.index(client)}"


def calls_of(client: str) -> Calls:
    """A call of every tool."""
    return [
        *CALLS,
        ("get-scorecard-discovery", {}),
        ("get-entity-check-results", {**NAMED, "states": ["pass", "unknown"]}),
        ("get-check-results", {"checkId": "owned", "states": ["pass", "unknown"]}),
        ("get-scorecard-rollup", {"scorecardId": "readiness"}),
        ("get-changed-check-results", {"since": "1d"}),
        ("get-check-preview", {"checkId": "owned", "changes": {"onUnknown": "fail"}}),
        (
            "request-check-exemption",
            {
                "entityRef": f"component:default/{entity_of(client)}",
                "checkId": "owned",
                "reason": "Shut down",
            },
        ),
    ]


def questions(client: str, server: Server) -> list[tuple[Server, Calls]]:
    """What a client asks, and of whom, in the order of `Sessions`."""
    return [
        (server._replace(url=f"{server.url}{ALL}"), calls_of(client)),
        (Server(f"{server.url}/mcp", server.narrow), [(REFUSED, {}), (ALLOWED, {})]),
    ]


@cache
def sessions_of(client: str, server: Server) -> Sessions:
    """What a client found."""
    if client in ASKING:
        return Sessions(*(ASKING[client](*each) for each in questions(client, server)))
    [environment] = [name for name, clients in IN_ENVIRONMENTS.items() if client in clients]
    return sessions_in(environment, server)[client]


@cache
def sessions_in(environment: str, server: Server) -> dict[str, Sessions]:
    """What each client of an environment found."""
    clients = IN_ENVIRONMENTS[environment]
    asked = [
        (kind, given.url, given.token, calls)
        for client, kind in clients.items()
        for given, calls in questions(client, server)
    ]
    said = hosts.run(environment, "host_client.py", stdin=json.dumps(asked))
    reports = iter([Report(**each) for each in json.loads(said)])
    return {client: Sessions(next(reports), next(reports)) for client in clients}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service with every tool, a check and a scorecard; its address has no path."""
    folder = tmp_path_factory.mktemp("hosts")
    with serving(
        f"sqlite:///{folder / 'factbook.db'}", folder, FACTBOOK_AGENT_WRITES="true"
    ) as process:
        token = process.token()
        names = ["Zahlung äöü", *map(entity_of, CLIENTS)]
        with process.client(token) as http:
            items = [component(name) for name in names]
            http.put(f"{PUSH}/sets/all", json={"items": items}).raise_for_status()
            for path, document in [("checks/owned", CHECK), ("scorecards/readiness", SCORECARD)]:
                address = f"/api/tech-insights/v1/{path}"
                http.put(f"{address}?publish=true", json=document).raise_for_status()
                until(partial(_is_in_effect, http, address))
        yield Server(process.url, token, process.token("--permission", "tech-insights.check.read"))


def _is_in_effect(http: httpx2.Client, address: str) -> bool:
    definition = http.get(address).json()
    return not definition["draft"] and definition.get("publication") is None


# Clients


@EVERY_CLIENT
@pytest.mark.spec("endpoint.all-toolsets")
def test_a_client_lists_and_calls_every_tool(server: Server, client: str) -> None:
    calls = calls_of(client)
    found = sessions_of(client, server).wide
    listed = {tool["name"]: tool for tool in found.tools}
    assert list(listed) == [name for name, _ in calls]
    assert found.refused == -32602
    problems = []
    for (name, _), result in zip(calls, found.results, strict=True):
        text = result["content"][0]["text"]
        if result["isError"] or name in REFUSING:
            if not (result["isError"] and "administrator can configure" in text):
                problems.append((name, result))
            continue
        value = result["structuredContent"]
        jsonschema.validate(
            value, listed[name]["outputSchema"], cls=jsonschema.Draft202012Validator
        )
        if json.loads(text) != value:
            problems.append((name, result))
    assert problems == []


@EVERY_CLIENT
@pytest.mark.spec("endpoint.tools-name-permissions")
def test_a_missing_permission_is_an_error_of_the_tool_and_the_session_goes_on(
    server: Server, client: str
) -> None:
    found = sessions_of(client, server).narrow
    names = {tool["name"] for tool in found.tools}
    assert ALLOWED in names
    assert REFUSED not in names
    refused, answered = found.results
    assert refused["isError"] is True
    assert "tech-insights.data-source.read" in refused["content"][0]["text"]
    assert answered["isError"] is False
    assert answered["structuredContent"]["totalChecks"] == 1


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.spec("endpoint.all-toolsets")
def test_the_inspector_lists_and_calls_tools_at_the_address_of_all(
    server: Server, era: str
) -> None:
    wide = server._replace(url=f"{server.url}{ALL}")
    tools = inspect(wide, era, "tools/list", "--strict")["tools"]
    assert [tool["name"] for tool in tools] == [name for name, _ in calls_of("Python SDK 2")]
    given = [f"{name}={value}" for name, value in {**SOURCE, **NAMED}.items()]
    found = inspect(
        wide, era, "tools/call", "--tool-name", "get-entity-facts",
        *(word for each in given for word in ("--tool-arg", each)),
    )  # fmt: skip
    assert found["structuredContent"]["entityRef"] == "component:default/zahlung äöü"


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.spec("endpoint.tools-name-permissions")
def test_the_inspector_has_the_tools_that_its_token_may_call(server: Server, era: str) -> None:
    """It asks for no tool that it isn't listed; every command is a session of its own."""
    narrow = Server(f"{server.url}/mcp", server.narrow)
    names = {tool["name"] for tool in inspect(narrow, era, "tools/list")["tools"]}
    assert ALLOWED in names
    assert REFUSED not in names
    answered = inspect(narrow, era, "tools/call", "--tool-name", ALLOWED)
    assert answered["structuredContent"]["totalChecks"] == 1


# Converters


class Line(NamedTuple):
    """What a converter made of a tool at an address."""

    environment: str
    address: str
    tool: str
    converter: str
    problem: str = ""
    arguments: Sequence[str] = ()
    required: Sequence[str] = ()
    strict: bool = False


class Conversion(NamedTuple):
    """The tools of every address by name, and what every converter made of them."""

    tools: dict[str, dict[str, Json]]
    lines: list[Line]

    def schema(self, line: Line) -> Json:
        found: Json = self.tools[line.address][line.tool]["inputSchema"]
        return found


@pytest.fixture(scope="module")
def conversion(server: Server) -> Conversion:
    headers = {"authorization": f"Bearer {server.token}"}
    with httpx2.Client(base_url=server.url, headers=headers, timeout=60) as http:
        answers = {address: http.post(address, json=message("tools/list")) for address in ADDRESSES}
    lists = {address: answer.json()["result"]["tools"] for address, answer in answers.items()}
    lines = [
        Line(environment, **json.loads(line))
        for environment in sorted(hosts.ENVIRONMENTS)
        for line in hosts.run(
            environment, "host_converters.py", stdin=json.dumps(lists)
        ).splitlines()
    ]
    named = {address: {tool["name"]: tool for tool in tools} for address, tools in lists.items()}
    return Conversion(named, lines)


CONVERTERS = [
    ("hosts-1", "google_tool"),
    ("hosts-1", "google_declaration"),
    ("hosts-2", "google_tool"),
    ("hosts-2", "google_declaration"),
    ("hosts-3", "google_tool"),
    ("hosts-3", "google_declaration"),
    ("hosts-3", "openai"),
    ("hosts-3", "openai_strict"),
    ("hosts-3", "openai_schema"),
]


@pytest.mark.parametrize(("environment", "converter"), CONVERTERS)
@pytest.mark.spec("endpoint.hosts-convert-tools")
def test_a_converter_takes_every_tool_of_every_address_with_all_arguments(
    conversion: Conversion, environment: str, converter: str
) -> None:
    lines = [
        line
        for line in conversion.lines
        if (line.environment, line.converter) == (environment, converter)
    ]
    expected = [(address, name) for address, tools in conversion.tools.items() for name in tools]
    assert [(line.address, line.tool) for line in lines] == expected
    assert [line for line in lines if line.problem] == []
    for line in lines:
        schema = conversion.schema(line)
        assert line.arguments == sorted(schema["properties"]), line
        # A strict schema requires every argument, and takes null for those that can be left out.
        assert line.required == sorted(schema["properties" if line.strict else "required"]), line


@pytest.mark.spec("endpoint.hosts-convert-tools")
def test_only_arguments_that_are_whole_documents_keep_a_tool_from_a_strict_schema(
    conversion: Conversion,
) -> None:
    """A strict schema names every member; conditions and checks have members of the caller's."""
    lines = [line for line in conversion.lines if line.converter == "openai_strict"]
    assert lines
    for line in lines:
        arguments = conversion.schema(line)["properties"].values()
        is_open = any(part.get("type") == "object" for part in arguments)
        assert line.strict is not is_open, line
