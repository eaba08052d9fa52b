"""A name that nothing has is refused with those that are like it, wherever it is given."""

import pytest

from factbook.auth.permissions import CHECK_WRITE, FACT_WRITE, SCORECARD_WRITE, SOURCE_RUN
from tests.api import checking
from tests.api.checking import CARDS, CHECKS, EXEMPTIONS, RESULTS, SCORECARDS
from tests.api.messages import expect_result, message, tool_call
from tests.service import PUSH, Service, component

SOURCES = "/api/tech-insights/v1"


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    """A SQLite file: what is tested here are texts."""
    return sqlite_url


async def _filled(service: Service) -> None:
    await service.push("services", component("payments"))
    await checking.with_source(service)
    await checking.put(service, checking.check(), publish=True)
    card = checking.scorecard()
    await service.http.put(f"{SCORECARDS}/readiness", json=card, params={"publish": "true"})


async def test_rest_refuses_an_unknown_name_with_those_that_there_are(
    service: Service, subtests: pytest.Subtests
) -> None:
    await _filled(service)
    scorecard = 'There is no scorecard "readines". Did you mean readiness? There are: readiness.'
    check = 'There is no check "coverd". Did you mean covered? There are: covered.'
    source = 'There is no data source "coverag". Did you mean coverage? There are: '
    fact = 'The data source coverage has no fact "line". Did you mean lines? There are: lines'
    cases = [
        ("GET", f"{SCORECARDS}/readines", scorecard),
        ("DELETE", f"{SCORECARDS}/readines", scorecard),
        ("POST", f"{SCORECARDS}/readines/publish", scorecard),
        ("GET", f"{CARDS}/readines", scorecard),
        ("GET", f"{CHECKS}/coverd", check),
        ("DELETE", f"{CHECKS}/coverd", check),
        ("GET", f"{RESULTS}/coverd/component:default/payments/history", check),
        ("GET", f"{SOURCES}/data-sources/coverag", source),
        ("DELETE", f"{SOURCES}/data-sources/coverag", 'There is no data source "coverag".'),
        ("POST", f"{SOURCES}/data-sources/coverag/run", source),
        ("GET", f"{SOURCES}/facts/coverag", source),
        ("GET", f"{SOURCES}/facts/coverage/distribution?fact=line", fact),
        ("GET", f"{SOURCES}/connections/ci", 'There is no connection "ci".'),
        ("GET", f"{PUSH}/sets/service", 'There is no set "service". Did you mean services? There'),
        ("GET", f"{PUSH}/sets/service/revisions", 'There is no set "service". Did you mean serv'),
    ]
    for method, path, said in cases:
        with subtests.test(f"{method} {path}"):
            answer = await service.http.request(method, path)
            assert answer.status_code == 404
            assert answer.json()["error"]["message"].startswith(said), answer.text
    wish = checking.wish(check="coverd", entity="component:payments")
    answer = await service.http.post(EXEMPTIONS, json=wish)
    assert answer.json()["error"]["message"] == check


async def test_tools_refuse_an_unknown_name_with_those_that_are_like_it(
    service: Service, subtests: pytest.Subtests
) -> None:
    await _filled(service)
    leaf = {"fact": "line", "operator": "isKnown"}
    cases: list[tuple[str, dict[str, object], str]] = [
        ("get-scorecard-rollup", {"scorecardId": "readines"}, "Did you mean readiness?"),
        ("get-check-results", {"checkId": "coverd"}, "Did you mean covered?"),
        ("get-check-results", {"scorecardId": "readines"}, "Did you mean readiness?"),
        ("get-all-entities-facts", {"dataSourceId": "coverag"}, "Did you mean coverage?"),
        (
            "get-all-entities-facts",
            {"dataSourceId": "coverage", "facts": ["line"]},
            "Did you mean lines?",
        ),
        ("find-entities", {"where": leaf}, "Did you mean lines"),
        ("find-entities", {"where": {**leaf, "source": "coverage"}}, "Did you mean lines?"),
        ("find-entities", {"where": {**leaf, "source": "coverag"}}, "Did you mean coverage"),
        (
            "get-fact-history",
            {"entityRef": "component:payments", "facts": ["line"]},
            "Did you mean lines",
        ),
    ]
    for tool, arguments, said in cases:
        with subtests.test(tool, arguments=arguments):
            body = message("tools/call", tool_call(tool, arguments))
            found = expect_result(await service.http.post("/mcp", json=body))
            assert (found["isError"], said in found["content"][0]["text"]) == (True, True), found


async def test_a_tool_that_there_is_not_is_refused_with_those_that_are_like_it(
    service: Service,
) -> None:
    body = message("tools/call", tool_call("find-entity", {}))
    error = (await service.http.post("/mcp", json=body)).json()["error"]
    assert error["message"].startswith('There is no tool "find-entity". Did you mean find-entities')


async def test_who_may_only_write_is_not_told_what_others_hold(service: Service) -> None:
    await _filled(service)
    writes = [
        (FACT_WRITE, "POST", f"{SOURCES}/facts/coverag", 'There is no data source "coverag".'),
        (SOURCE_RUN, "POST", f"{SOURCES}/data-sources/x/run", 'There is no data source "x".'),
        (CHECK_WRITE, "DELETE", f"{CHECKS}/coverd", 'There is no check "coverd".'),
        (SCORECARD_WRITE, "DELETE", f"{SCORECARDS}/x", 'There is no scorecard "x".'),
    ]
    for permission, method, path, said in writes:
        async with service.client(await service.token(permission)) as http:
            answer = await http.request(
                method, path, json={"items": []} if "facts" in path else None
            )
            assert (answer.status_code, answer.json()["error"]["message"]) == (404, said)


async def test_arguments_of_tools_with_few_values_list_them(service: Service) -> None:
    listed = expect_result(await service.http.post("/mcp", json=message("tools/list")))["tools"]
    schemas = {tool["name"]: tool["inputSchema"]["properties"] for tool in listed}
    states = ["pass", "fail", "unknown", "exempt", "not-applicable"]
    for tool in ("get-check-results", "get-entity-check-results"):
        assert schemas[tool]["states"]["items"]["enum"] == states
    assert "owner" in schemas["find-entities"]["groupBy"]["enum"]
    assert schemas["find-entities"]["ownership"]["enum"] == ["missing", "none"]
    assert "owner|system" in schemas["get-scorecard-rollup"]["by"]["pattern"]


async def test_messages_name_types_in_words(service: Service, subtests: pytest.Subtests) -> None:
    put, post = ("PUT", f"{CHECKS}/covered"), ("POST", "/api/access/v1/tokens")
    cases: list[tuple[tuple[str, str], object, str]] = [
        (("POST", EXEMPTIONS), [], "an object"),
        (put, 1, "an object"),
        (post, {"name": 1}, "Expected text, got a whole number"),
        (("POST", "/api/catalog/entities/by-query"), {"limit": "x"}, "Expected a whole number"),
        (("PUT", f"{PUSH}/sets/all"), [], "Expected an object, got a list"),
    ]
    for (method, path), body, said in cases:
        with subtests.test(f"{method} {path}"):
            answer = await service.http.request(method, path, json=body)
            assert answer.status_code == 400
            text = answer.json()["error"]["message"]
            assert said in text, text
            assert "`" not in text.partition(" - at ")[0], text
    text = await service.refusal("find-entities", limit="many")
    assert text.startswith("Expected a whole number, got text - at `$.limit`")
