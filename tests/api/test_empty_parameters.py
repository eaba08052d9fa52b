"""Empty parameters: of a read they are the same as none, and no write goes on without its guard."""

from itertools import product
from typing import Any

import pytest

from factbook.api.routes import ROUTES
from factbook.tools import TOOLS, toolsets
from tests.api import checking
from tests.api.checking import CHECKS, EXEMPTIONS, SCORECARDS
from tests.api.messages import message, tool_call
from tests.conftest import StartService
from tests.service import PUSH, Service, component

SET = f"{PUSH}/sets/all"
USER = "/scim/v2/Users/1"
CATALOG = "/api/catalog"
SOURCES = "/api/tech-insights/v1"
# What a tool needs although its schema can't say so, and tools that lack figures here.
_ONE_OF = {
    "get-codehost-metrics": ["name"],
    "get-security-metrics": ["name"],
    "get-fact-history": ["name"],
    "get-entity-check-results": ["name"],
    "get-check-results": ["checkId"],
    "get-check-preview": ["checkId"],
    "request-check-exemption": ["checkId", "until"],
}
_LACKING = ("get-repository-info", "get-observability-metrics")
_EMPTY = "is empty. Give it a value, or leave it out."


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    """A SQLite file: what is tested here stands before the database."""
    return sqlite_url


async def test_a_write_with_an_empty_guard_is_refused_and_writes_nothing(
    service: Service, subtests: pytest.Subtests
) -> None:
    await service.push("all", component("payments"), component("ledger"))
    await checking.with_source(service)
    await checking.put(service, checking.check())
    restore, check = f"{SET}/revisions/1/restore", f"{CHECKS}/covered"
    bodies: dict[tuple[str, str], Any] = {
        ("PUT", SET): {"items": [component("other")]},
        ("POST", SET): component("other"),
        ("POST", f"{PUSH}/entities"): component("other"),
        ("PUT", check): checking.check(),
        ("PUT", USER): {"schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"], "userName": "k"},
        ("PATCH", USER): {
            "schemas": ["urn:ietf:params:scim:api:messages:2.0:PatchOp"],
            "Operations": [{"op": "replace", "path": "active", "value": False}],
        },
    }
    writes: list[tuple[str, str, str]] = [
        *(("PUT", SET, name) for name in ("maxRemovals", "onConflict", "dryRun", "checks")),
        *(("DELETE", SET, name) for name in ("maxRemovals", "onConflict", "dryRun")),
        *(("POST", restore, name) for name in ("maxRemovals", "onConflict")),
        ("POST", SET, "onConflict"),
        ("POST", f"{PUSH}/entities", "onConflict"),
        ("PUT", check, "publish"),
        *(("PUT", SET, "If-Match"), ("POST", SET, "If-Match"), ("DELETE", SET, "If-Match")),
        ("POST", restore, "If-Match"),
        *((method, check, "If-Match") for method in ("PUT", "DELETE")),
        ("POST", f"{check}/publish", "If-Match"),
        ("POST", "/api/importers/v1/parts/github/acme/apply", "If-Match"),
        *((method, USER, "If-Match") for method in ("PUT", "PATCH", "DELETE")),
    ]
    before = (await service.http.get(SET)).json()
    for method, path, name in writes:
        for value in ("", " ") if name == "If-Match" else ("",):
            given: dict[str, Any] = {"headers" if name == "If-Match" else "params": {name: value}}
            with subtests.test(f"{method} {path}", name=name, value=value):
                given["json"] = bodies.get((method, path))
                answer = await service.http.request(method, path, **given)
                assert answer.status_code == 400, answer.text
                assert f"{name} {_EMPTY}" in answer.text
    assert (await service.http.get(SET)).json() == before


async def test_an_exemption_and_its_rules_are_refused_with_an_empty_end_or_nobody_to_approve(
    service: Service, subtests: pytest.Subtests
) -> None:
    await service.push("all", component("payments"))
    await checking.with_source(service)
    await checking.put(service, checking.check())
    rules = {"permanent": True}
    await service.http.put(f"{SCORECARDS}/readiness", json=checking.scorecard(exemptions=rules))
    empty = "is empty; give it a value, or leave it out"
    for until, words in (
        (None, empty),
        ("", empty),
        ("tomorrow", "has to be a date from 1970 on, such as 2027-03-31"),
        ("1970-01-01", "has to be in the future, and after the start"),
    ):
        with subtests.test(until=until):
            answer = await service.http.post(EXEMPTIONS, json=checking.wish(until=until))
            assert answer.status_code == 400
            assert answer.json()["error"]["problems"] == [{"path": "until", "message": words}]
    nothings: tuple[Any, ...] = (None, "", [], {}, 0)
    members = (".approvers", ".maxDays", ".enabled", ".permanent", "")
    for member, value in product(members, nothings):
        with subtests.test(member=member, value=value):
            wrong = {**rules, member[1:]: value} if member else value
            answer = await service.http.put(
                f"{SCORECARDS}/readiness", json=checking.scorecard(exemptions=wrong)
            )
            assert answer.status_code == 400
            [problem] = answer.json()["error"]["problems"]
            assert problem["path"] == f"exemptions{member}"


@pytest.mark.slow
async def test_an_empty_parameter_of_a_read_is_the_same_as_none(
    service: Service, subtests: pytest.Subtests
) -> None:
    await service.push("all", component("payments"), component("ledger"))
    await checking.with_source(service)
    await checking.put(service, checking.check(), publish=True)
    await service.http.put(
        f"{SCORECARDS}/readiness", json=checking.scorecard(), params={"publish": "true"}
    )
    await checking.evaluated(service)
    values = {"facet": "kind", "entity": "component:payments", "fact": "lines"}
    ids = {"facts": "coverage", "checks": "covered", "check-results": "covered"}
    for route in ROUTES:
        names = [one.name for one in route.parameters or () if one.place == "query"]
        if route.method != "GET" or not names:
            continue
        id_ = ids.get(route.path.split("/")[4], "readiness") if "{" in route.path else ""
        path = route.path.format(id=id_, kind="component", namespace="default", name="payments")
        needed = {
            one.name: values[one.name]
            for one in route.parameters or ()
            if one.place == "query" and one.required
        }
        plain = await service.http.get(path, params=needed)
        assert plain.status_code == 200, (path, plain.text)
        narrowing = {one.name for one in route.parameters or () if one.may_be_empty}
        for name in set(names) - set(needed) - narrowing:
            with subtests.test(path, name=name):
                answer = await service.http.get(path, params={**needed, name: ""})
                assert (answer.status_code, answer.text) == (200, plain.text)
        for name in needed:
            with subtests.test(path, name=name):
                answer = await service.http.get(path, params={**needed, name: ""})
                assert answer.status_code == 400
                assert f"{name} is required" in answer.text


@pytest.mark.slow
async def test_each_empty_argument_of_a_reading_tool_is_none_and_a_guard_is_refused(
    start: StartService, subtests: pytest.Subtests
) -> None:
    service = await start(agent_writes=True)
    await service.push("all", component("payments"), component("ledger"))
    await checking.with_source(service)
    await checking.put(service, checking.check(), publish=True)
    await service.http.put(
        f"{SCORECARDS}/readiness", json=checking.scorecard(), params={"publish": "true"}
    )
    await checking.evaluated(service)
    known: dict[str, Any] = {
        "name": "payments",
        "entityRef": "component:default/payments",
        "checkId": "covered",
        "scorecardId": "readiness",
        "dataSourceId": "coverage",
        "reason": "Shut down soon",
        "until": "2027-01-31",
        "since": "1d",
        "rule": checking.COVERED,
    }

    async def said(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        body = message("tools/call", tool_call(tool, arguments))
        result: dict[str, Any] = (await service.http.post("/mcp", json=body)).json()["result"]
        return result

    for tool in (*TOOLS, *toolsets.READING_CHECK_TOOLS, *toolsets.WRITING_CHECK_TOOLS):
        properties = tool.input_schema["properties"]
        required = [*tool.input_schema["required"], *_ONE_OF.get(tool.name, ())]
        needed = {name: known[name] for name in required}
        plain = None if tool.writes else await said(tool.name, needed)
        assert plain is None or plain["isError"] is (tool.name in _LACKING), (tool.name, plain)
        for name in properties.keys() - (() if tool.writes else needed.keys()):
            for empty in (None, ""):
                with subtests.test(tool.name, name=name, empty=empty):
                    answer = await said(tool.name, {**needed, name: empty})
                    assert answer == plain if plain else answer["isError"], answer
        assert plain or not (await said(tool.name, needed))["isError"]
