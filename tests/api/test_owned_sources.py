"""Data sources that members of a group write because the group owns them."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from factbook.auth import permissions
from factbook.auth.tokens import Narrowing
from tests.api.defining import FACTS, SOURCES, define, item, latest, of_entities, pushed, shown
from tests.api.owning import (
    KIM,
    OUR_WEB,
    OURS,
    THEIR_API,
    THEIRS,
    asking,
    connect,
    editing,
    is_of_others,
    made,
    populated,
)
from tests.service import Service, component
from tests.web.scoring import group, person

pytestmark = pytest.mark.spec("roles.groups-write-what-they-own")


@pytest.fixture
async def kim(service: Service) -> AsyncIterator[httpx2.AsyncClient]:
    """A client with the token of an editor who is a member of one of two groups."""
    await populated(service)
    async with editing(service) as http:
        yield http


async def grants(service: Service) -> dict[str, str]:
    """What allowed each kind of write of the editor, as the audit says."""
    query = {"actor": KIM, "outcome": "done"}
    answer = await service.http.get("/api/access/v1/audit", params=query)
    return {one["action"]: one["grant"] for one in answer.json()["records"]}


async def test_a_member_makes_changes_publishes_tries_runs_and_deletes_what_the_group_owns(
    service: Service, kim: httpx2.AsyncClient
) -> None:
    path = f"{SOURCES}/ours"
    await made(kim, of_entities("ours", owner=OURS))
    changed = of_entities("ours", owner="team-a", title="Another")
    assert (await kim.put(path, json=changed)).status_code == 200
    assert (await kim.post(f"{path}/publish")).status_code == 200
    tried = await kim.post(f"{path}/test", json={"entity": OUR_WEB})
    assert tried.json()["facts"] == {"owner": "team-a"}, tried.text
    for body in ({}, {"entity": OUR_WEB}):
        run = await kim.post(f"{path}/run", json=body)
        assert (run.status_code, run.json()["entities"]) == (202, 1), run.text
    assert (await kim.delete(path)).status_code == 204
    found = await grants(service)
    assert set(found.values()) == {f"group {OURS}"}
    assert set(found) == {
        f"data-source.{verb}" for verb in ("create", "replace", "publish", "run", "delete")
    }


async def test_the_owner_is_shown_wherever_the_source_is(
    service: Service, kim: httpx2.AsyncClient
) -> None:
    await made(kim, of_entities("ours", owner="Group:Team-A"))
    found = await shown(service, "ours")
    assert found["owner"] == OURS
    listed = (await service.http.get(SOURCES)).json()["dataSources"]
    assert [one.get("owner") for one in listed if one["id"] == "ours"] == [OURS]
    tools = (await service.facts("get-data-source-discovery"))["dataSources"]
    assert [one.get("owner") for one in tools if one["id"] == "ours"] == [OURS]
    assert all("owner" not in one for one in tools if one["id"] != "ours")


@pytest.mark.parametrize(
    "owner", [{"owner": THEIRS}, {"owner": KIM}, {}], ids=["another group", "a user", "nobody"]
)
async def test_what_no_group_of_theirs_owns_members_neither_define_nor_change_nor_run(
    service: Service, kim: httpx2.AsyncClient, owner: dict[str, str]
) -> None:
    assert is_of_others(await kim.post(SOURCES, json=of_entities("new", **owner)))
    assert (await service.http.get(f"{SOURCES}/new")).status_code == 404
    there = f"{SOURCES}/there"
    await define(service, of_entities("there", **owner))
    # Not by making it their own either.
    for body in (of_entities("there", **owner), of_entities("there", owner=OURS)):
        assert is_of_others(await kim.put(there, json=body))
        test = {"entity": OUR_WEB, "definition": body}
        assert is_of_others(await kim.post(f"{there}/test", json=test))
    assert is_of_others(await kim.post(f"{there}/publish"))
    assert is_of_others(await kim.post(f"{there}/test", json={"entity": OUR_WEB}))
    assert is_of_others(await kim.post(f"{there}/run"))
    assert is_of_others(await kim.post(SOURCES, json=of_entities("there", owner=OURS)))
    assert is_of_others(await kim.delete(there))
    assert (await shown(service, "there")).get("owner") == owner.get("owner")


async def test_members_give_no_source_away(service: Service, kim: httpx2.AsyncClient) -> None:
    await made(kim, of_entities("ours", owner=OURS))
    path = f"{SOURCES}/ours"
    for owner in ({"owner": THEIRS}, {"owner": None}, {}):
        assert (await kim.put(path, json=of_entities("ours", **owner))).status_code in {400, 403}
    # A draft of somebody else that hands it over is theirs to publish, try and delete.
    await define(service, of_entities("ours", owner=THEIRS), publish=False)
    assert is_of_others(await kim.post(f"{path}/publish"))
    assert is_of_others(await kim.post(f"{path}/test", json={"entity": OUR_WEB}))
    assert is_of_others(await kim.delete(path))
    # What is in effect is still of the group.
    assert (await kim.post(f"{path}/run")).status_code == 202


async def test_who_leaves_the_group_writes_its_sources_no_more(
    service: Service, kim: httpx2.AsyncClient
) -> None:
    await made(kim, pushed("ours", owner=OURS))
    await service.push("people", group("team-a"), group("team-b"), person("kim", "team-b"))
    assert is_of_others(await kim.post(f"{SOURCES}/ours/publish"))
    assert is_of_others(await kim.delete(f"{SOURCES}/ours"))
    assert is_of_others(await kim.post(f"{FACTS}/ours", json={"items": [item(lines=1)]}))


async def test_a_viewer_in_the_group_writes_nothing(
    service: Service, kim: httpx2.AsyncClient
) -> None:
    await made(kim, of_entities("ours", owner=OURS))
    viewer = await service.token(*permissions.ROLES["viewer"], owner=KIM)
    async with service.client(viewer) as http:
        answer = await http.post(f"{SOURCES}/ours/run")
        assert answer.status_code == 403
        assert "Tech Insights Source Run" in answer.text


async def test_a_member_pushes_facts_of_entities_of_the_group_and_of_no_others(
    service: Service, kim: httpx2.AsyncClient
) -> None:
    await made(kim, pushed("ours", owner=OURS))
    items = [item(OUR_WEB, lines=1), item(THEIR_API, lines=2), item(OURS, lines=3)]
    answer = await kim.post(f"{FACTS}/ours", json={"items": items})
    assert answer.status_code == 200, answer.text
    [web, api, team] = answer.json()["items"]
    assert (web["accepted"], web["problems"]) == (True, [])
    for position, refused in ((1, api), (2, team)):
        assert not refused["accepted"]
        [problem] = refused["problems"]
        assert problem["path"] == f"items[{position}].entity"
        assert f"only about entities of {OURS}" in problem["message"]
        assert f"leaves {refused['entity']} out" in problem["message"]
    assert await latest(service, "ours") == {OUR_WEB: {"lines": 1}}
    assert (await grants(service))["facts.push"] == f"group {OURS}"


@pytest.mark.parametrize("owner", [{"owner": THEIRS}, {}], ids=["another group", "nobody"])
async def test_a_member_pushes_nothing_to_a_source_of_others(
    service: Service, kim: httpx2.AsyncClient, owner: dict[str, str]
) -> None:
    await define(service, pushed("there", **owner))
    body = {"items": [item(OUR_WEB, lines=1)]}
    assert is_of_others(await kim.post(f"{FACTS}/there", json=body))
    assert await latest(service, "there") == {}


@pytest.mark.parametrize(
    "wide",
    [
        [{"relations.ownedBy": THEIRS}],
        [{"kind": "component"}, {"RELATIONS.OWNEDBY": THEIRS}],
        [{"relations.ownedby": [OURS, THEIRS], "Relations.ownedBy": THEIRS}],
    ],
    ids=["another owner", "an alternative", "two spellings"],
)
async def test_no_filter_of_a_source_leads_beyond_the_entities_of_its_owner(
    service: Service, kim: httpx2.AsyncClient, wide: list[dict[str, Any]]
) -> None:
    await made(kim, of_entities("ours", owner=OURS, entityFilter=wide))
    path = f"{SOURCES}/ours"
    for where in ("run", "test"):
        answer = await kim.post(f"{path}/{where}", json={"entity": THEIR_API})
        assert answer.status_code in {400, 409}, answer.text
        assert f"leaves {THEIR_API} out" in answer.text


async def test_collection_asks_about_entities_of_the_owner_alone(
    service: Service, kim: httpx2.AsyncClient
) -> None:
    await made(kim, of_entities("ours", owner=OURS))
    run = await kim.post(f"{SOURCES}/ours/run")
    assert run.json()["entities"] == 1
    custom = service.state.registry.custom
    collector = service.application.collector(service.state.database, [], custom)
    await collector.drain()
    assert await latest(service, "ours") == {OUR_WEB: {"owner": "team-a"}}
    await collector.stop()


async def test_facts_of_an_entity_that_goes_to_another_owner_go_with_the_next_push(
    service: Service, kim: httpx2.AsyncClient
) -> None:
    await made(kim, pushed("ours", owner=OURS))
    await kim.post(f"{FACTS}/ours", json={"items": [item(OUR_WEB, lines=1)]})
    await service.push("all", component("web", owner="team-b"), component("api", owner="team-b"))
    assert await latest(service, "ours") == {}
    again = await kim.post(f"{FACTS}/ours", json={"items": [item(OUR_WEB, lines=2)]})
    assert again.json()["acceptedItems"] == 0
    assert await latest(service, "ours", entity=OUR_WEB) == {OUR_WEB: {}}


async def test_a_source_of_a_group_overrides_no_figure_of_one_that_an_operator_made(
    service: Service, kim: httpx2.AsyncClient
) -> None:
    names = ("observability.sloCount", "observability.monitorCount")
    schema = {name: {"type": "integer"} for name in names}
    await define(service, pushed("z-everybodys", schema=schema))
    await made(kim, pushed("a-ours", owner=OURS, schema=schema))
    body = {"items": [item(OUR_WEB) | {"facts": dict.fromkeys(names, 9)}]}
    await kim.post(f"{FACTS}/a-ours", json=body)
    assert (await service.facts("get-observability-metrics", name="web"))["sloCount"] == 9
    body["items"][0]["facts"] = dict.fromkeys(names, 2)
    await service.http.post(f"{FACTS}/z-everybodys", json=body)
    assert (await service.facts("get-observability-metrics", name="web"))["sloCount"] == 2
    # About entities of others it says nothing, not even that it knows nothing.
    told = await service.ask("get-observability-metrics", name="api")
    assert "a-ours" not in str(told)
    missing = await service.facts("get-entity-facts", dataSourceId="a-ours", name="api")
    assert f"is only about entities of {OURS}" in str(missing)


async def test_a_source_of_a_group_reads_no_files_with_the_credentials_of_the_service(
    kim: httpx2.AsyncClient,
) -> None:
    config = {"id": "ours", "path": "package.json"}
    for kind in ("repository-file", "repository-directory"):
        document = of_entities(
            "ours", owner=OURS, handlerDefinition={"type": kind, "config": config}
        )
        answer = await kim.post(SOURCES, json=document)
        assert answer.status_code == 400, answer.text
        [problem] = answer.json()["error"]["problems"]
        assert problem == {"path": "owner", "message": f"is not for a source of type {kind}"}


async def test_an_owner_that_is_no_reference_is_told_by_its_path(
    service: Service, kim: httpx2.AsyncClient
) -> None:
    for owner in ("", "group:", 7, ["team-a"]):
        answer = await service.http.post(SOURCES, json=of_entities("new", owner=owner))
        assert answer.status_code == 400, answer.text
        assert "owner" in {one["path"] for one in answer.json()["error"]["problems"]}


async def test_a_token_narrowed_to_sources_writes_facts_of_its_own_alone(
    service: Service, kim: httpx2.AsyncClient
) -> None:
    for id_ in ("ours", "ours-too"):
        await made(kim, pushed(id_, owner=OURS))
    await define(service, pushed("theirs", owner=THEIRS))
    body = {"items": [item(OUR_WEB, lines=1)]}
    async with editing(service, Narrowing(sources=("ours", "theirs"))) as narrow:
        assert (await narrow.post(f"{FACTS}/ours", json=body)).status_code == 200
        assert is_of_others(await narrow.post(f"{FACTS}/theirs", json=body))
        outside = await narrow.post(f"{FACTS}/ours-too", json=body)
        assert (outside.status_code, "narrowed to" in outside.text) == (403, True)
        for method, path in (
            ("PUT", f"{SOURCES}/ours"),
            ("DELETE", f"{SOURCES}/ours"),
            ("POST", f"{SOURCES}/ours/publish"),
            ("POST", f"{SOURCES}/ours/test"),
        ):
            answer = await narrow.request(method, path, json=pushed("ours", owner=OURS))
            assert (answer.status_code, "narrowed to" in answer.text) == (403, True)


async def test_an_operator_writes_sources_of_any_owner_and_of_none(
    service: Service, kim: httpx2.AsyncClient
) -> None:
    await connect(service)
    token = await service.token(*permissions.ROLES["operator"], owner=KIM)
    async with service.client(token) as http:
        await made(http, asking("free", owner=None) | {"owner": THEIRS}, publish=False)
        await made(http, {k: v for k, v in asking("nobodys").items() if k != "owner"})
        answer = await http.put(f"{SOURCES}/free", json=asking("free", owner=OURS))
    assert answer.status_code == 200, answer.text
    assert "problem" not in await shown(service, "nobodys")
    assert "not shared with" in (await shown(service, "free"))["problem"]
