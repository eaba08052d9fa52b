"""Tools about checks and scorecards, on the endpoint of their own."""

import json
from collections.abc import Mapping
from typing import Any

import jsonschema
import pytest

from factbook.auth.permissions import (
    CATALOG_READ,
    CHECK_READ,
    EXEMPTION_REQUEST,
    SET_WRITE,
    SOURCE_READ,
)
from factbook.clock import DAY
from tests.api.checking import (
    COVERED,
    EXEMPTIONS,
    OWNED,
    SCORECARDS,
    check,
    evaluated,
    put,
    scorecard,
    wish,
    with_source,
)
from tests.api.defining import item, push
from tests.api.messages import Json, expect_error, expect_result, message, tool_call
from tests.conftest import StartService
from tests.service import Service, component

CHECKS = "/api/mcp/v1/tech-insights-checks"
MANAGE = f"{CHECKS}-manage"
WEB, API, OLD = (f"component:default/{name}" for name in ("web", "api", "old"))
# A token estimate, of the six tools without the schemas of their results.
MOST_TOKENS = 2_500
AUDIT = "/api/access/v1/audit"


def group(name: str, parent: str | None = None) -> Json:
    above = {} if parent is None else {"parent": parent}
    spec = {"type": "team", "children": [], **above}
    version = "backstage.io/v1alpha1"
    return {"apiVersion": version, "kind": "Group", "metadata": {"name": name}, "spec": spec}


@pytest.fixture
async def service(start: StartService) -> Service:
    """Two entities with facts, one without, two checks and a scorecard."""
    service = await start(agent_writes=True)
    await with_source(service)
    groups = (group("shop"), group("team-a", "shop"), group("team-b", "shop"))
    entities = [component("web", owner="team-b"), component("api"), component("old")]
    assert (await service.push("shop", *groups, *entities)).status_code == 200
    await push(service, item(WEB, lines=90), item(API, lines=10))
    messages = {"fail": "{{ metadata.name }} covers {{ facts.coverage['lines'] }}"}
    fix = {"link": "https://ci.test/{{ metadata.name }}"}
    applies = {"kind": "component"}
    covered = check(messages=messages, fix=fix, appliesTo=applies)
    await put(service, covered, publish=True)
    await put(service, check("owned", rule=OWNED, appliesTo=applies), publish=True)
    card = scorecard(appliesTo=applies)
    card["entries"] = [
        {"check": "owned", "level": "bronze"},
        {"check": "covered", "level": "silver"},
    ]
    answer = await service.http.put(f"{SCORECARDS}/readiness?publish=true", json=card)
    assert answer.status_code == 200, answer.text
    await evaluated(service)
    return service


async def ask(service: Service, tool: str, /, path: str = CHECKS, **arguments: Any) -> Json:
    """The structured answer of a tool, which fits the schema that it is listed with."""
    answer = await service.http.post(path, json=message("tools/call", tool_call(tool, arguments)))
    result = expect_result(answer)
    assert result["isError"] is False, result
    found: Json = result["structuredContent"]
    assert json.loads(result["content"][0]["text"]) == found
    jsonschema.validate(found, (await schemas(service, path))[tool]["outputSchema"])
    return found


async def schemas(service: Service, path: str = CHECKS) -> Mapping[str, Json]:
    answer = await service.http.post(path, json=message("tools/list"))
    return {tool["name"]: tool for tool in expect_result(answer)["tools"]}


async def refused(service: Service, tool: str, /, path: str = CHECKS, **arguments: Any) -> str:
    answer = await service.http.post(path, json=message("tools/call", tool_call(tool, arguments)))
    result = expect_result(answer)
    assert result["isError"] is True, result
    text: str = result["content"][0]["text"]
    return text


# Listing


@pytest.mark.spec("checks.agents-read-them")
async def test_the_six_tools_only_read_and_are_few_tokens(service: Service) -> None:
    listed = await schemas(service)
    assert list(listed) == [
        "get-scorecard-discovery",
        "get-entity-check-results",
        "get-check-results",
        "get-scorecard-rollup",
        "get-changed-check-results",
        "get-check-preview",
    ]
    assert all(tool["annotations"]["readOnlyHint"] for tool in listed.values())
    lean = [{k: v for k, v in tool.items() if k != "outputSchema"} for tool in listed.values()]
    assert len(json.dumps(lean, separators=(",", ":"))) / 4 < MOST_TOKENS


# Answers


@pytest.mark.spec("checks.agents-read-them")
async def test_discovery_has_scorecards_by_level_and_checks_in_words_with_counts(
    service: Service,
) -> None:
    found = await ask(service, "get-scorecard-discovery")
    [card] = found["scorecards"]
    assert card["levels"] == [
        {"id": "bronze", "checks": ["owned"]},
        {"id": "silver", "checks": ["covered"]},
    ]
    assert card["entities"] == {"bronze": 2, "silver": 1, "none": 0}
    by_id = {one["id"]: one for one in found["checks"]}
    assert by_id["covered"]["counts"] == {"pass": 1, "fail": 1, "unknown": 1}
    assert "80" in by_id["covered"]["rule"]
    assert (found["totalScorecards"], found["totalChecks"]) == (1, 2)
    one = await ask(service, "get-scorecard-discovery", scorecardId="readiness", limit=1)
    assert [each["id"] for each in one["checks"]] == ["covered"]
    assert one["totalChecks"] == 2


@pytest.mark.spec("checks.agents-read-them")
async def test_an_entity_is_told_with_its_levels_and_why_a_check_fails(service: Service) -> None:
    found = await ask(service, "get-entity-check-results", name="api")
    assert found["scorecards"] == [
        {
            "id": "readiness",
            "level": "bronze",
            "levelIfKnown": "bronze",
            "score": 50,
            "coverage": 100,
        }
    ]
    assert found["counts"] == {"pass": 1, "fail": 1}
    [failing] = found["results"]
    assert (failing["check"], failing["state"]) == ("covered", "fail")
    assert failing["since"]
    assert failing["message"] == "api covers 10"
    assert failing["fix"] == {"link": "https://ci.test/api"}
    [seen] = failing["because"]
    assert (seen["fact"], seen["value"], seen["wanted"]) == ("coverage:lines", 10, 80)


@pytest.mark.spec("checks.agents-are-told-unknowns")
async def test_what_is_unknown_is_told_with_its_reason_and_never_as_a_fail(
    service: Service,
) -> None:
    found = await ask(service, "get-entity-check-results", entityRef=OLD)
    assert found["scorecards"][0]["level"] == "bronze"
    assert found["scorecards"][0]["levelIfKnown"] == "silver"
    assert found["counts"] == {"pass": 1, "unknown": 1}
    [unknown] = found["results"]
    assert (unknown["check"], unknown["state"]) == ("covered", "unknown")
    assert unknown["because"][0]["reason"]
    assert "value" not in unknown["because"][0]
    rows = await ask(service, "get-check-results", checkId="covered", states=["unknown"])
    [row] = rows["entities"]
    assert (row["entityRef"], row["state"]) == (OLD, "unknown")
    assert row["reasons"] == [unknown["because"][0]["reason"]]


async def test_one_scorecard_of_an_entity_comes_with_the_steps_to_its_next_level(
    service: Service,
) -> None:
    given = {"name": "api", "scorecardId": "readiness"}
    found = await ask(service, "get-entity-check-results", **given)
    assert found["nextSteps"] == [{"check": "covered", "level": "silver"}]
    every = await ask(service, "get-entity-check-results", **given, states=["pass", "fail"])
    assert [one["check"] for one in every["results"]] == ["covered", "owned"]
    short = await ask(
        service, "get-entity-check-results", **given, states=["pass", "fail"], limit=1
    )
    assert (len(short["results"]), short["totalCount"]) == (1, 2)


async def test_the_entities_of_a_check_come_page_by_page_with_counts_of_all(
    service: Service,
) -> None:
    states = ["pass", "fail", "unknown"]
    first = await ask(service, "get-check-results", checkId="covered", states=states, limit=2)
    assert first["counts"] == {"pass": 1, "fail": 1, "unknown": 1}
    assert [one["entityRef"] for one in first["entities"]] == [API, OLD]
    more = await ask(
        service,
        "get-check-results",
        checkId="covered",
        states=states,
        cursor=first["nextCursor"],
    )
    assert [one["entityRef"] for one in more["entities"]] == [WEB]
    assert "nextCursor" not in more


async def test_an_owner_stands_for_all_groups_below_it(service: Service) -> None:
    for owner, refs in (("shop", [API]), ("group:team-b", []), ("team-a", [API])):
        found = await ask(service, "get-check-results", checkId="covered", owner=owner)
        assert [one["entityRef"] for one in found["entities"]] == refs


async def test_the_entities_of_a_scorecard_come_by_level(service: Service) -> None:
    found = await ask(service, "get-check-results", scorecardId="readiness", level="silver")
    assert found["counts"] == {"bronze": 2, "silver": 1, "none": 0}
    assert [one["entityRef"] for one in found["entities"]] == [WEB]
    first = await ask(service, "get-check-results", scorecardId="readiness", limit=2)
    more = await ask(
        service, "get-check-results", scorecardId="readiness", cursor=first["nextCursor"]
    )
    refs = [one["entityRef"] for one in (*first["entities"], *more["entities"])]
    assert sorted(refs) == [API, OLD, WEB]


async def test_a_scorecard_is_rolled_up_by_team_the_lowest_score_first(service: Service) -> None:
    found = await ask(service, "get-scorecard-rollup", scorecardId="readiness", since="7d")
    [shop] = found["groups"]
    assert (shop["name"], shop["total"]) == ("group:default/shop", 3)
    assert [one["name"] for one in shop["children"]] == [
        "group:default/team-a",
        "group:default/team-b",
    ]
    # The first day of which figures are known.
    assert found["then"]["date"] == "2026-11-21"
    less = await ask(service, "get-scorecard-rollup", scorecardId="readiness", limit=2)
    assert less["leftOut"] == 1
    kinds = await ask(service, "get-scorecard-rollup", scorecardId="readiness", by="kind")
    assert [one["name"] for one in kinds["groups"]] == ["component"]


async def test_what_became_other_is_told_newest_first_page_by_page(service: Service) -> None:
    service.time.advance(DAY)
    await push(service, item(OLD, lines=5), item(API, lines=95))
    found = await ask(service, "get-changed-check-results", since="1h")
    told = {(one["entityRef"], one["from"], one["to"]) for one in found["changes"]}
    assert told == {(OLD, "unknown", "fail"), (API, "fail", "pass")}
    first = await ask(service, "get-changed-check-results", since="1h", limit=1)
    rest = await ask(service, "get-changed-check-results", since="1h", cursor=first["nextCursor"])
    assert first["changes"] + rest["changes"] == found["changes"]
    one = await ask(
        service,
        "get-changed-check-results",
        since="1h",
        entityRef=OLD,
        checkId="covered",
        scorecardId="readiness",
    )
    assert [change["entityRef"] for change in one["changes"]] == [OLD]
    none = await ask(service, "get-changed-check-results", since="1h", checkId="owned")
    assert none["changes"] == []


async def test_a_preview_tells_what_a_check_would_change_and_stores_nothing(
    service: Service,
) -> None:
    strict = COVERED | {"value": 95}
    found = await ask(service, "get-check-preview", checkId="covered", changes={"rule": strict})
    assert (found["now"], found["then"]) == (
        {"pass": 1, "fail": 1, "unknown": 1},
        {"fail": 2, "unknown": 1},
    )
    assert found["entities"] == [{"entityRef": WEB, "from": "pass", "to": "fail"}]
    one = await ask(
        service, "get-check-preview", definition=check("new", rule=strict), entityRef="web"
    )
    assert one["result"]["state"] == "fail"
    assert one["result"]["because"][0]["value"] == 90
    listed = await ask(service, "get-scorecard-discovery")
    assert "new" not in [each["id"] for each in listed["checks"]]


# Refusals


async def test_what_cannot_be_answered_is_told_with_what_to_do(
    service: Service, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str, Json, str]] = [
        ("get-entity-check-results", {}, "Neither name nor entityRef"),
        ("get-entity-check-results", {"name": "wib"}, "Did you mean component:default/web"),
        ("get-entity-check-results", {"name": "web", "states": ["good"]}, 'no state "good"'),
        ("get-entity-check-results", {"name": "web", "scorecardId": "x"}, "get-scorecard-disc"),
        ("get-scorecard-discovery", {"scorecardId": "none"}, "no published scorecard"),
        ("get-check-results", {}, "exactly one of checkId and scorecardId"),
        ("get-check-results", {"checkId": "covered", "scorecardId": "x"}, "exactly one of"),
        ("get-check-results", {"checkId": "none"}, "get-scorecard-discovery"),
        ("get-check-results", {"checkId": "covered", "cursor": "2"}, "not the nextCursor"),
        ("get-check-results", {"checkId": "covered", "owner": ":"}, "owner"),
        ("get-check-results", {"scorecardId": "readiness", "cursor": "x"}, "not the nextCursor"),
        ("get-check-results", {"scorecardId": "readiness", "level": "gold"}, "bronze"),
        ("get-check-results", {"checkId": "covered", "limit": 10_000}, "limit"),
        ("get-check-results", {"checkId": "a\0b"}, "NUL"),
        ("get-scorecard-rollup", {"scorecardId": "readiness", "by": "mood"}, "owner"),
        ("get-scorecard-rollup", {"scorecardId": "readiness", "since": "soon"}, "since"),
        ("get-changed-check-results", {"since": "2100-01-01"}, "future"),
        ("get-changed-check-results", {"since": "1d", "cursor": "1"}, "not the nextCursor"),
        ("get-changed-check-results", {"since": "1d", "entityRef": "none"}, "no entity"),
        ("get-check-preview", {}, "exactly one of definition and checkId"),
        ("get-check-preview", {"definition": {"id": "x"}}, "cannot be taken"),
        ("get-check-preview", {"checkId": "covered", "changes": {"rule": 7}}, "cannot be taken"),
    ]
    for tool, arguments, text in cases:
        with subtests.test(tool=tool, arguments=arguments):
            assert text in await refused(service, tool, **arguments)


async def test_what_people_wrote_is_cut_where_it_is_long(service: Service) -> None:
    long = check("wordy", title="Wordy", rule=OWNED | {"operator": "isUnknown"})
    long["messages"] = {"fail": "x" * 5_000}
    await put(service, long | {"appliesTo": {"kind": "component"}}, publish=True)
    await evaluated(service)
    found = await ask(service, "get-entity-check-results", name="web")
    [wordy] = [one for one in found["results"] if one["check"] == "wordy"]
    assert len(wordy["message"]) < 400


# Permissions


@pytest.mark.spec("checks.tools-name-permissions")
async def test_each_tool_needs_its_permissions_and_names_those_that_lack(
    service: Service, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str, set[str]]] = [
        ("get-scorecard-discovery", {CHECK_READ}),
        ("get-entity-check-results", {CATALOG_READ, CHECK_READ}),
        ("get-check-results", {CATALOG_READ, CHECK_READ}),
        ("get-scorecard-rollup", {CATALOG_READ, CHECK_READ}),
        ("get-changed-check-results", {CATALOG_READ, CHECK_READ}),
        ("get-check-preview", {CATALOG_READ, SOURCE_READ}),
        ("request-check-exemption", {CATALOG_READ, CHECK_READ}),
    ]
    for tool, needed in cases:
        with subtests.test(tool=tool, needed=needed):
            path = MANAGE if tool.startswith("request") else CHECKS
            body = message("tools/call", tool_call(tool))
            for lacking in needed:
                held = needed - {lacking} or {SET_WRITE}
                async with service.client(await service.token(*held)) as client:
                    answer = await client.post(path, json=body)
                    assert answer.status_code == 403, lacking
                    assert f'scope="{lacking}"' in answer.headers["www-authenticate"]
            async with service.client(await service.token(*needed)) as client:
                assert (await client.post(path, json=body)).status_code == 200


@pytest.mark.spec("checks.tools-name-permissions")
async def test_who_may_not_read_facts_is_shown_states_and_no_values(service: Service) -> None:
    arguments = {"name": "api"}
    body = message("tools/call", tool_call("get-entity-check-results", arguments))
    async with service.client(await service.token(CATALOG_READ, CHECK_READ)) as client:
        answer = expect_result(await client.post(CHECKS, json=body))["structuredContent"]
        rows = message("tools/call", tool_call("get-check-results", {"checkId": "covered"}))
        listed = expect_result(await client.post(CHECKS, json=rows))["structuredContent"]
    [failing] = answer["results"]
    assert failing["state"] == "fail"
    assert not {"message", "fix"} & failing.keys()
    assert not {"value", "wanted"} & failing["because"][0].keys()
    assert "message" not in listed["entities"][0]


# Writing


@pytest.mark.spec("checks.agents-write-by-a-setting")
async def test_without_the_setting_there_is_nothing_that_writes(start: StartService) -> None:
    service = await start()
    answer = await service.http.post(MANAGE, json=message("tools/list"))
    assert answer.status_code == 404
    answer = await service.http.post("/mcp?toolsets=checks-manage", json=message("tools/list"))
    assert "no toolset" in expect_error(answer, 400, -32600)
    listed = expect_result(await service.http.post("/mcp", json=message("tools/list")))["tools"]
    assert all(tool["annotations"]["readOnlyHint"] for tool in listed)


@pytest.mark.spec("checks.agents-write-by-a-setting")
async def test_an_exemption_is_asked_for_and_somebody_else_decides(service: Service) -> None:
    tool = "request-check-exemption"
    given = {"entityRef": API, "checkId": "covered", "reason": "Shut down", "until": "2027-03-31"}
    found = await ask(service, tool, MANAGE, **given)
    assert (found["state"], found["check"], found["entity"]) == ("requested", "covered", API)
    stored = (await service.http.get(EXEMPTIONS)).json()["exemptions"]
    assert [one["id"] for one in stored] == [found["id"]]
    records = (await service.http.get(AUDIT)).json()["records"]
    [record] = [one for one in records if one["action"] == "exemption.request"]
    assert record["object"] == found["id"]
    # Nothing is exempt before it is approved.
    assert (await ask(service, "get-entity-check-results", name="api"))["counts"]["fail"] == 1
    assert not (await schemas(service, MANAGE))[tool]["annotations"]["readOnlyHint"]


async def test_an_exemption_that_holds_is_told_with_its_reason_and_end(service: Service) -> None:
    made = (await service.http.post(EXEMPTIONS, json=wish(entity=API))).json()
    token = await service.token(owner="user:default/boss")
    async with service.client(token) as boss:
        answer = await boss.post(f"{EXEMPTIONS}/{made['id']}/approve", json={})
        assert answer.status_code == 200, answer.text
    found = await ask(service, "get-entity-check-results", name="api", states=["exempt"])
    [one] = found["results"]
    assert one["exemption"]["reason"] == "Shut down soon"
    assert one["exemption"]["until"].startswith("2027-04-01")
    lenient = {"rule": {"source": "coverage", "fact": "lines", "operator": "isKnown"}}
    preview = await ask(service, "get-check-preview", checkId="covered", changes=lenient)
    assert preview["now"]["exempt"] == preview["then"]["exempt"] == 1
    assert API not in {each["entityRef"] for each in preview["entities"]}


async def test_a_request_that_cannot_be_taken_is_told_why(
    service: Service, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[Json, str]] = [
        ({"checkId": "covered", "scorecardId": "readiness"}, "cannot be taken"),
        ({"checkId": "covered"}, "until"),
        # It must not be for ever by mistake.
        ({"checkId": "covered", "until": ""}, "until"),
        ({"checkId": "covered", "until": None}, "until"),
        ({"checkId": "none", "until": "2027-03-31"}, "get-scorecard-discovery"),
        ({"checkId": "covered", "until": "2020-01-01"}, "cannot be taken"),
    ]
    for arguments, text in cases:
        with subtests.test(arguments=arguments):
            given = {"entityRef": API, "reason": "Shut down", **arguments}
            assert text in await refused(service, "request-check-exemption", MANAGE, **given)
            assert (await service.http.get(EXEMPTIONS)).json()["exemptions"] == []


async def test_who_neither_owns_an_entity_nor_has_the_permission_may_not_ask(
    service: Service,
) -> None:
    given = {"entityRef": API, "checkId": "covered", "reason": "Why", "until": "2027-03-31"}
    body = message("tools/call", tool_call("request-check-exemption", given))
    async with service.client(await service.token(CATALOG_READ, CHECK_READ)) as client:
        assert (await client.post(MANAGE, json=body)).status_code == 403
    held = (CATALOG_READ, CHECK_READ, EXEMPTION_REQUEST)
    async with service.client(await service.token(*held)) as client:
        assert (await client.post(MANAGE, json=body)).status_code == 200


async def test_an_owner_that_nobody_is_called_is_refused_with_near_ones(
    service: Service, subtests: pytest.Subtests
) -> None:
    for tool, arguments in (
        ("get-check-results", {"checkId": "owned", "owner": "team-c"}),
        ("get-check-results", {"scorecardId": "readiness", "owner": "team-c"}),
        ("get-scorecard-rollup", {"scorecardId": "readiness", "group": "team-c"}),
    ):
        with subtests.test(tool=tool, arguments=arguments):
            said = await refused(service, tool, **arguments)
            assert (
                "No entity is owned by group:default/team-c, which is not in the catalog." in said
            )
            assert "group:default/team-b" in said
    # A group of the catalog may own nothing.
    await service.push("more", group("team-d"))
    found = await ask(service, "get-check-results", checkId="owned", owner="team-d")
    assert (found["counts"], found["entities"]) == ({}, [])
