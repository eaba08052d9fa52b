"""A name that nothing has is refused with those that are like it, wherever it is given."""

import pytest

from factbook.auth.permissions import CHECK_WRITE, FACT_WRITE, SCORECARD_WRITE, SOURCE_RUN
from factbook.errors import ConfigurationError
from factbook.importers import registry
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


FIND = "find-entities"
ENTITY = {"source": "entity", "operator": "equal", "value": "a"}
LEAF = {"source": "coverage", "fact": "lines", "value": 1}


async def test_tools_suggest_what_an_argument_may_mean(
    service: Service, subtests: pytest.Subtests
) -> None:
    system = {**component("shop"), "kind": "System", "spec": {"owner": "platform"}}
    group = {**component("platform"), "kind": "Group", "spec": {"type": "team", "children": []}}
    await service.push("systems", system, group)
    await _filled(service)
    cases: list[tuple[str, dict[str, object], str]] = [
        (
            FIND,
            {"query": {"kind": "components"}},
            "mean component? There are: component, group",
        ),
        (FIND, {"query": {"kind": {"$in": ["components"]}}}, "Did you mean component?"),
        (FIND, {"query": {"$any": [{"kindd": "component"}]}}, "Did you mean kind? There are: "),
        (FIND, {"query": {"spec.typ": "service"}}, "the field spec.typ. Did you mean spec.type"),
        (
            FIND,
            {"query": {"spec.type": "servise"}},
            "mean service? There are: service, team.",
        ),
        (FIND, {"query": {"spec.type": {"$exist": True}}}, "(did you mean $exists?)"),
        (FIND, {"query": {"$al": []}}, "(did you mean $all"),
        (FIND, {"where": {**ENTITY, "fact": "spec.typ"}}, "Did you mean spec.type"),
        (FIND, {"where": {**ENTITY, "fact": "metadata.titel"}}, "the field metadata.titel."),
        (FIND, {"where": {**LEAF, "operator": "equals"}}, "(did you mean equal?)"),
        (
            FIND,
            {"where": {**LEAF, "operator": "equal", "path": "a", "fcat": 1}},
            "mean fact",
        ),
        (FIND, {"owner": "paymnets"}, "There are: group:default/platform, group:default/team-a."),
        (FIND, {"owner": "platfrom"}, "Did you mean group:default/platform? There are: "),
        (FIND, {"system": "shpo"}, "Did you mean system:default/shop? There are: system:default/s"),
        (FIND, {"groupBy": "ownr"}, "owner, system, tag, type (did you mean owner?)."),
        (FIND, {"ownership": "mising"}, "has to be one of missing, none (did you mean missing?)"),
        (FIND, {"limt": 3}, "Object contains unknown field `limt` (did you mean limit?)"),
        ("get-entity", {"name": "payment"}, "Did you mean component:default/payments?"),
        ("get-entity", {"name": "payment", "kind": "componet"}, "Did you mean component:default/"),
    ]
    for tool, arguments, said in cases:
        with subtests.test(tool, arguments=arguments):
            assert said in await service.refusal(tool, **arguments)


async def test_a_field_that_an_entity_lacks_is_no_mistake(service: Service) -> None:
    await _filled(service)
    queries: list[dict[str, object]] = [
        {"query": {"kind": "api"}},
        {"query": {"$not": {"spec.typ": {"$exists": False}}}},
        {"query": {"kind": "component", "metadata.name": "other"}},
        {"query": {"spec.type": {"$in": ["library", "website"]}}},
        {"where": {**ENTITY, "fact": "spec.type"}},
    ]
    for query in queries:
        assert (await service.facts(FIND, **query))["total"] == 0
    unknown = {"source": "entity", "fact": "metadata.title", "operator": "isUnknown"}
    assert (await service.facts(FIND, where=unknown))["total"] == 1


async def test_rest_suggests_what_a_name_in_a_path_or_body_may_mean(
    service: Service, subtests: pytest.Subtests
) -> None:
    await _filled(service)
    await service.state.database.write(
        lambda tx: tx.run(
            "INSERT INTO import_parts (importer, part, state, read_at, items, problem_count, "
            "problems, held, reason, spared, rights, seen_rights) "
            "VALUES ('github', 'acme', 'complete', 0, 0, 0, '[]', '[]', '', '[]', '[]', '[]')",
            (),
        )
    )
    entity = "There is no entity component:default/payment in the catalog. Did you mean component:d"
    event, digests = "/api/events", f"{SOURCES}/digests"
    rule = {"source": "coverage", "fact": "lines", "operator": "equals", "value": 1}
    hook = {"url": "https://hooks.example/x", "types": ["check.change"]}
    digest = {"url": "https://hooks.slack.example/x", "form": "slak"}
    card = checking.scorecard()
    cases: list[tuple[str, str, object, int, str]] = [
        ("GET", f"{PUSH}/entities/by-ref/component:payment", None, 404, entity),
        ("GET", f"{RESULTS}?entity=component:payment", None, 404, entity),
        ("GET", f"{RESULTS}/covered/component:default/payment/history", None, 404, entity),
        ("POST", "/api/catalog/refresh", {"entityRef": "component:payment"}, 404, entity),
        ("POST", EXEMPTIONS, checking.wish(entity="component:payment"), 404, entity),
        ("GET", f"{RESULTS}?state=fails", None, 400, "not-applicable (did you mean fail?), not"),
        ("GET", f"{event}?type=check.change", None, 400, "(did you mean check.changed?)"),
        ("POST", f"{event}/webhooks", hook, 400, "(did you mean check.changed?)"),
        ("POST", f"{event}/webhooks", {"ur": "x"}, 400, "(did you mean url?)"),
        ("POST", digests, digest, 400, "has to be one of slack, teams (did you mean slack?)"),
        ("POST", digests, {"ower": "x"}, 400, "`ower` (did you mean owner"),
        ("GET", "/api/importers/v1/parts/github/acm", None, 404, "Did you mean github/acme? There"),
        (
            "POST",
            "/api/access/v1/tokens",
            {"name": "x", "permissions": ["catalog.entity.raed"]},
            400,
            "There is no permission catalog.entity.raed (did you mean catalog.entity.read",
        ),
        ("PUT", f"{CHECKS}/c", checking.check("c", rule=rule), 400, "(did you mean equal?)"),
        (
            "PUT",
            f"{CHECKS}/c",
            checking.check("c", severty="x"),
            400,
            "mean severity?)",
        ),
        ("PUT", f"{CHECKS}/c", checking.check("c", severity="advisry"), 400, "mean advisory?)"),
        ("PUT", f"{SCORECARDS}/r", {**card, "id": "r", "titel": ""}, 400, "(did you mean title?)"),
        (
            "PUT",
            f"{SCORECARDS}/r",
            {**card, "id": "r", "entries": ["coverd"]},
            400,
            'there is no check \\"coverd\\" (did you mean covered?)',
        ),
    ]
    for method, path, body, status, said in cases:
        with subtests.test(f"{method} {path}", body=body):
            answer = await service.http.request(method, path, json=body)
            assert answer.status_code == status, answer.text
            assert said in answer.text


def test_settings_suggest_the_kind_and_the_option_of_an_importer() -> None:
    for tables, said in (
        ({"githb": {"default": {}}}, "There is no importer 'githb'. Did you mean github"),
        ({"ldif": {"default": {"pth": "x"}}}, "unknown field `pth` (did you mean path?)"),
    ):
        with pytest.raises(ConfigurationError) as caught:
            registry.configure_importers(tables, {})
        assert said in caught.value.message


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
