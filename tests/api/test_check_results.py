"""Results of checks over HTTP: lists, figures, one with what it rests on, its history, CSV."""

from typing import Any

import pytest

from tests.api.checking import CHECKS, COVERED, OWNED, RESULTS, check, evaluated, put, with_source
from tests.api.defining import item, problems, push, refusal
from tests.conftest import StartService
from tests.events.feed import events
from tests.service import PUSH, Service, component

WEB, API, OLD = (f"component:default/{name}" for name in ("web", "api", "old"))


@pytest.fixture
async def service(start: StartService) -> Service:
    """Two entities with facts, one without."""
    service = await start()
    await with_source(service)
    entities = [component("web", owner="team-b"), component("api"), component("old")]
    assert (await service.push("shop", *entities)).status_code == 200
    await push(service, item(WEB, lines=90), item(API, lines=10))
    messages = {"fail": "{{ metadata.name }} covers {{ facts.coverage['lines'] }}"}
    fix = {"link": "https://ci.test/{{ metadata.name }}"}
    await put(service, check(messages=messages, fix=fix), publish=True)
    await put(service, check("owned", rule=OWNED), publish=True)
    await evaluated(service)
    return service


async def found(service: Service, **query: Any) -> dict[str, str]:
    """The states by reference and check, through all pages."""
    states: dict[str, str] = {}
    while True:
        answer = await service.http.get(RESULTS, params=query)
        assert answer.status_code == 200, answer.text
        for one in answer.json()["results"]:
            states[f"{one['checkId']} {one['entityRef']}"] = one["state"]
        if "nextCursor" not in answer.json():
            return states
        query["cursor"] = answer.json()["nextCursor"]


async def test_results_are_listed_by_check_and_entity_page_by_page(service: Service) -> None:
    wanted = {
        f"covered {API}": "fail",
        f"covered {OLD}": "unknown",
        f"covered {WEB}": "pass",
        f"owned {API}": "pass",
        f"owned {OLD}": "pass",
        f"owned {WEB}": "pass",
    }
    assert await found(service) == wanted
    assert await found(service, limit=1) == wanted
    assert await found(service, limit=4) == wanted


async def test_results_are_narrowed_by_state_owner_kind_entity_and_time(service: Service) -> None:
    assert await found(service, state="fail", checkIds="covered") == {f"covered {API}": "fail"}
    assert await found(service, checkIds="covered", owner="team-b") == {f"covered {WEB}": "pass"}
    assert set(await found(service, checkIds="covered", owner="team-a")) == {
        f"covered {API}",
        f"covered {OLD}",
    }
    for unowned in ("", "-"):
        assert await found(service, owner=unowned) == {}
    assert await found(service, kind="api") == {}
    assert await found(service, entity=OLD, checkIds="covered") == {f"covered {OLD}": "unknown"}
    assert await found(service, entity=OLD, state="fail", checkIds="covered") == {}
    service.time.advance(60_000)
    await push(service, item(OLD, lines=5))
    since = "2026-11-21T12:01:00Z"
    assert await found(service, changedSince=since) == {f"covered {OLD}": "fail"}
    assert (await service.http.get(RESULTS, params={"entity": "component:none"})).status_code == 404


async def test_an_overview_counts_as_results_change(service: Service) -> None:
    answer = (await service.http.get(f"{RESULTS}/covered")).json()
    figures = ("passing", "failing", "unknown", "exempt", "notApplicable", "total")
    assert [answer[name] for name in figures] == [1, 1, 1, 0, 0, 3]
    assert (answer["percentage"], answer["version"]) == (50.0, "1.0.0")
    await push(service, item(OLD, lines=99))
    answer = (await service.http.get(f"{RESULTS}/covered")).json()
    assert [answer[name] for name in figures] == [2, 1, 0, 0, 0, 3]
    assert answer["percentage"] == 66.7
    assert (await service.http.get(f"{RESULTS}/none")).status_code == 404


async def test_a_result_says_what_it_rests_on_and_how_to_mend_it(service: Service) -> None:
    answer = await service.http.get(f"{RESULTS}/covered/{API}")
    shown = answer.json()
    assert (shown["state"], shown["message"]) == ("fail", "api covers 10")
    assert shown["fix"] == {"link": "https://ci.test/api"}
    [seen] = shown["because"]
    assert seen["collectedAt"]
    del seen["collectedAt"]
    assert seen == {"path": "rule", **COVERED, "state": "fail", "value": 10, "wanted": 80} | {
        "value": 10
    }
    unknown = (await service.http.get(f"{RESULTS}/covered/{OLD}")).json()
    assert (unknown["state"], unknown["because"][0]["reason"]) == ("unknown", "never-collected")
    encoded = await service.http.get(f"{RESULTS}/covered/component%3Adefault%2Fapi")
    assert encoded.json()["state"] == "fail"
    assert (await service.http.get(f"{RESULTS}/covered/component:default/none")).status_code == 404
    await put(service, check("draft"))
    assert "not published" in refusal(await service.http.get(f"{RESULTS}/draft/{API}"), 404)


async def test_the_history_of_a_result_goes_back_page_by_page(service: Service) -> None:
    for lines in (10, 90, 10, 90):
        service.time.advance(60_000)
        await push(service, item(WEB, lines=lines))
    path = f"{RESULTS}/covered/{WEB}/history"
    first = (await service.http.get(path, params={"limit": "3"})).json()
    rest = (await service.http.get(path, params={"cursor": first["nextCursor"]})).json()
    changes = [*first["changes"], *rest["changes"]]
    assert [(one["from"], one["to"]) for one in changes[:4]] == [
        ("fail", "pass"),
        ("pass", "fail"),
        ("fail", "pass"),
        ("pass", "fail"),
    ]
    assert changes[0]["why"] == {"sources": ["coverage"]}
    shown = (await service.http.get(f"{RESULTS}/covered/{WEB}")).json()
    assert (shown["flapping"], shown["since"]) == (True, changes[0]["at"])


async def test_csv_has_every_result(service: Service) -> None:
    answer = await service.http.get(f"{RESULTS}.csv", params={"checkIds": "covered"})
    assert answer.headers["content-type"] == "text/csv; charset=utf-8; header=present"
    assert answer.text.split("\r\n") == [
        "check,entity,owner,state,stale",
        f"covered,{API},group:default/team-a,fail,false",
        f"covered,{OLD},group:default/team-a,unknown,false",
        f"covered,{WEB},group:default/team-b,pass,false",
        "",
    ]


async def test_results_need_the_right_to_read_entities_too(service: Service) -> None:
    async with service.client(await service.token("tech-insights.check.read")) as http:
        assert (await http.get(RESULTS)).status_code == 403
        assert (await http.get(f"{RESULTS}/covered")).status_code == 200


async def test_values_of_facts_take_the_right_to_read_data_sources(service: Service) -> None:
    messages = {"pass": "it is {{ facts.coverage['lines'] }}"}
    fix = {"instructions": "Now {{ facts.coverage['lines'] }}"}
    await put(service, check(messages=messages, fix=fix), publish=True)
    rule = {"all": [COVERED, {**COVERED, "operator": "lessThan", "value": 91}]}
    await put(service, check("both", rule=rule), publish=True)
    await evaluated(service)
    token = await service.token("catalog.entity.read", "tech-insights.check.read")
    async with service.client(token) as http:
        for path, value in (
            (f"covered/{WEB}", "90"),
            (f"both/{WEB}", "90"),
            (f"covered/{API}", "10"),
        ):
            whole = (await service.http.get(f"{RESULTS}/{path}")).json()
            shown = (await http.get(f"{RESULTS}/{path}")).json()
            assert value in str(whole)
            del shown["since"]
            assert value not in str(shown)
            assert [one["state"] for one in shown["because"]] == [
                one["state"] for one in whole["because"]
            ]
            assert not shown.keys() & {"message", "fix"}
        answer = await http.post("/api/tech-insights/checks/run/default/component/web")
        assert answer.status_code == 403


async def previewed(service: Service, **asked: Any) -> Any:
    answer = await service.http.post(f"{CHECKS}/preview", json=asked)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_preview_says_who_would_change_and_writes_nothing(service: Service) -> None:
    before = await found(service)
    answer = await previewed(service, checkId="covered", changes={"rule": {**COVERED, "value": 5}})
    assert (answer["now"]["passing"], answer["then"]["passing"], answer["changed"]) == (1, 2, 1)
    [one] = answer["entities"]
    assert (one["entityRef"], one["now"], one["then"]) == (API, "fail", "pass")
    assert (one["because"][0]["value"], one["because"][0]["wanted"]) == (10, 5)
    assert await found(service) == before


async def test_a_preview_explains_what_the_catalog_itself_knows(service: Service) -> None:
    owner = leaf_of("entity-ownership", "ownerExists")
    answer = await previewed(service, definition=check("exists", rule=owner), entities=[WEB])
    [one] = answer["entities"]
    # It is a new check, which has found nothing so far: that isn't the same as unknown.
    assert (one["now"], one["then"], one["because"][0]["value"]) == ("none", "fail", False)
    assert sum(answer["now"].values()) == 0


async def test_a_preview_asks_what_if_of_facts_entities_and_times(service: Service) -> None:
    what_if = {"checkId": "covered", "entities": [OLD], "facts": {"coverage": {"lines": 99}}}
    answer = await previewed(service, **what_if)
    [one] = answer["entities"]
    assert (one["entityRef"], one["now"], one["then"]) == (OLD, "unknown", "pass")
    fresh = {
        "source": "coverage",
        "fact": "lines",
        "operator": "freshWithin",
        "value": {"hours": 1},
    }
    new = {"definition": check("fresh", rule=fresh), "at": "2026-11-21T14:00:00Z"}
    answer = await previewed(service, **new)
    assert (answer["then"]["failing"], answer["then"]["unknown"]) == (2, 1)


async def test_a_preview_of_a_check_that_cannot_work_is_refused(service: Service) -> None:
    wrong = {"definition": check(rule={**COVERED, "fact": "line"})}
    answer = await service.http.post(f"{CHECKS}/preview", json=wrong)
    assert "rule.fact" in problems(answer)
    both = {"definition": check(), "checkId": "covered"}
    answer = await service.http.post(f"{CHECKS}/preview", json=both)
    assert answer.status_code == 400
    token = await service.token("catalog.entity.read", "tech-insights.check.read")
    async with service.client(token) as http:
        asked = await http.post(f"{CHECKS}/preview", json={"definition": check()})
        assert asked.status_code == 403


async def test_the_catalogs_own_facts_are_read_and_followed(service: Service) -> None:
    group = leaf_of("entity-ownership", "hasGroupOwner")
    related = leaf_of("entity-ownership", "hasRelationships")
    await put(service, check("group", rule=group), publish=True)
    await put(service, check("related", rule=related), publish=True)
    await evaluated(service)
    assert await found(service, checkIds="group,related") == {
        f"group {API}": "pass",
        f"group {OLD}": "pass",
        f"group {WEB}": "pass",
        f"related {API}": "fail",
        f"related {OLD}": "fail",
        f"related {WEB}": "fail",
    }
    shown = (await service.http.get(f"{RESULTS}/related/{API}")).json()
    assert shown["because"][0]["value"] is False
    uses = component("uses", owner="user:alice", dependsOn=["component:web"])
    assert (await service.push("other", uses)).status_code == 200
    assert (await found(service, checkIds="related"))[f"related {WEB}"] == "pass"
    assert (await found(service, checkIds="group"))["group component:default/uses"] == "fail"
    assert (await service.push("other")).status_code == 200
    assert (await found(service, checkIds="related"))[f"related {WEB}"] == "fail"


def leaf_of(source: str, fact: str) -> dict[str, Any]:
    """A condition on a fact of the catalog's own."""
    return {"source": source, "fact": fact, "operator": "equal", "value": True}


async def test_results_that_change_are_told_until_they_flap(service: Service) -> None:
    [one] = await events(service, type=["check.published"], check="covered")
    assert one["data"] == {"check": "covered", "version": "1.0.0"}
    assert await events(service, type=["check.changed"]) == []
    for lines in (10, 90, 10, 90):
        service.time.advance(60_000)
        await push(service, item(WEB, lines=lines))
    told = await events(service, type=["check.changed"], entity=WEB)
    assert [(one["data"]["from"], one["data"]["to"]) for one in told] == [
        ("pass", "fail"),
        ("fail", "pass"),
    ]
    assert told[0]["subject"] == WEB
    assert told[0]["data"]["why"] == {"sources": ["coverage"]}


async def tried(service: Service, *entities: dict[str, Any], **query: str) -> Any:
    address, body = f"{PUSH}/sets/shop", {"items": entities}
    answer = await service.http.put(address, json=body, params={"dryRun": "true", **query})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_dry_run_says_what_would_change_in_results_and_writes_nothing(
    service: Service,
) -> None:
    team = {**OWNED, "operator": "equal", "value": "team-b"}
    await put(service, check("team", rule=team), publish=True)
    await evaluated(service)
    before = await found(service)
    entities = [
        component("web", owner="team-a"),
        component("api", owner="team-b"),
        component("new"),
    ]
    answer = await tried(service, *entities, checks="true")
    assert answer["changes"] == {"added": 1, "updated": 2, "removed": 1, "unchanged": 0}
    results = {
        f"{one['checkId']} {one['entityRef']}": (one.get("from"), one["to"])
        for one in answer["checks"]["results"]
    }
    new = "component:default/new"
    assert results == {
        f"team {WEB}": ("pass", "fail"),
        f"team {API}": ("fail", "pass"),
        f"team {new}": (None, "fail"),
        f"owned {new}": (None, "pass"),
        f"covered {new}": (None, "unknown"),
    }
    assert (answer["checks"]["changed"], answer["checks"]["failing"]) == (5, 2)
    assert await found(service) == before
    assert "checks" not in await tried(service, *entities)
    assert (await service.push("shop", *entities)).status_code == 200
    assert (await found(service))[f"team {WEB}"] == "fail"


async def test_a_trial_that_conflicts_or_may_not_be_seen_is_refused(service: Service) -> None:
    address, body = f"{PUSH}/sets/shop", {"items": [component("web")]}
    query = {"checks": "true"}
    answer = await service.http.put(address, json=body, params=query)
    assert "dryRun=true" in refusal(answer, 400)
    query = {"checks": "true", "dryRun": "true"}
    answer = await service.http.put(f"{PUSH}/sets/other", json=body, params=query)
    assert answer.status_code == 409
    async with service.client(await service.token("catalog.entity-set.write")) as http:
        answer = await http.put(address, json=body, params=query)
        assert "tech-insights.check.read" in refusal(answer, 403)
