"""Connections and the groups that may use them: what an editor reaches with one, and what not."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from factbook.clock import MINUTE, SECOND
from tests.api.defining import CONNECTIONS, FACTS, SOURCES, latest, problems, shown
from tests.api.owning import (
    OUR_WEB,
    OURS,
    SECRET,
    THEIR_API,
    THEIRS,
    asking,
    connect,
    editing,
    made,
    populated,
)
from tests.collection.test_stored_connections import LOOPBACK, Host, collector_of, hosting
from tests.conftest import StartService
from tests.service import Service, component
from tests.web.scoring import group, person

PATH = "handlerDefinition.config.connection"
NOT_SHARED = f"the connection 'ci' is not shared with {OURS}"


@pytest.fixture
async def host() -> AsyncIterator[Host]:
    async with hosting() as host:
        yield host


@pytest.fixture
async def calling(start: StartService) -> Service:
    """A service that may call the host, with two groups and an entity of each."""
    service = await start(outgoing_networks=LOOPBACK)
    await populated(service)
    return service


@pytest.fixture
async def kim(calling: Service) -> AsyncIterator[httpx2.AsyncClient]:
    """A client with the token of an editor who is in the first group."""
    async with editing(calling) as http:
        yield http


async def collected(service: Service) -> None:
    """Let what is due be collected."""
    collector = collector_of(service)
    await collector.drain()
    await collector.stop()


async def last_run(service: Service) -> dict[str, Any]:
    """The run of the source that began last."""
    answer = await service.http.get(f"{SOURCES}/ours/runs")
    found: dict[str, Any] = answer.json()["runs"][0]
    return found


async def reasons(service: Service, ref: str = OUR_WEB) -> dict[str, str]:
    """Why facts of an entity are missing."""
    answer = await service.http.get(f"{FACTS}/ours", params={"entity": ref})
    found: dict[str, str] = answer.json()["entities"][0]["reasons"]
    return found


@pytest.mark.spec("connections.used-by-owners-they-are-shared-with")
async def test_a_source_of_a_group_asks_the_connection_that_is_shared_with_it(
    calling: Service, kim: httpx2.AsyncClient, host: Host
) -> None:
    await connect(calling, OURS, baseUrl=host.url)
    await made(kim, asking())
    tried = await kim.post(f"{SOURCES}/ours/test", json={"entity": OUR_WEB})
    assert tried.json()["facts"] == {"ok": True}, tried.text
    await collected(calling)
    assert await latest(calling, "ours") == {OUR_WEB: {"ok": True}}
    assert host.proofs == [SECRET.lower()] * 2


@pytest.mark.spec("connections.used-by-owners-they-are-shared-with")
@pytest.mark.parametrize("owners", [(), (THEIRS,)], ids=["nobody", "another group"])
async def test_a_connection_that_is_not_shared_with_the_owner_is_refused_with_its_path(
    subtests: pytest.Subtests,
    calling: Service,
    kim: httpx2.AsyncClient,
    host: Host,
    owners: tuple[str, ...],
) -> None:
    await connect(calling, *owners, baseUrl=host.url)
    told = f"is not shared with {OURS}; an operator can share it"
    # It is the same for one that is not there, so that it tells of none.
    for name in ("ci", "none-such"):
        with subtests.test(name=name):
            document = asking(connection=name)
            for method, path in (("POST", SOURCES), ("PUT", f"{SOURCES}/ours")):
                answer = await kim.request(method, path, json=document)
                assert answer.status_code == 400, answer.text
                assert problems(answer) == {PATH: told}
            body = {"entity": OUR_WEB, "definition": document}
            tried = await kim.post(f"{SOURCES}/ours/test", json=body)
            assert tried.status_code == 400, tried.text
            assert f"the connection '{name}' is not shared with {OURS}" in tried.text
            assert (await calling.http.get(f"{SOURCES}/ours")).status_code == 404
    assert host.heads == []


async def test_a_member_of_two_groups_uses_no_connection_of_the_other_one(
    calling: Service, kim: httpx2.AsyncClient, host: Host
) -> None:
    both = person("kim", "team-a", "team-b")
    await calling.push("people", group("team-a"), group("team-b"), both)
    await connect(calling, THEIRS, baseUrl=host.url)
    answer = await kim.post(SOURCES, json=asking())
    assert problems(answer).keys() == {PATH}
    await made(kim, asking(owner=THEIRS), publish=False)
    # Nor by handing the source to the group that may not use it.
    answer = await kim.put(f"{SOURCES}/ours", json=asking())
    assert problems(answer).keys() == {PATH}
    tried = await kim.post(f"{SOURCES}/ours/test", json={"entity": THEIR_API})
    assert tried.json()["facts"] == {"ok": True}


@pytest.mark.spec("connections.used-by-owners-they-are-shared-with")
async def test_when_sharing_is_withdrawn_nothing_is_called_and_the_run_says_why(
    calling: Service, kim: httpx2.AsyncClient, host: Host
) -> None:
    await connect(calling, OURS, baseUrl=host.url)
    await made(kim, asking())
    await collected(calling)
    await connect(calling, THEIRS, baseUrl=host.url)
    calling.time.advance(10 * MINUTE)
    await collected(calling)
    assert len(host.heads) == 1
    run = await last_run(calling)
    assert (run["state"], run["calls"]) == ("failed", 0)
    assert NOT_SHARED in run["error"]
    assert await latest(calling, "ours") == {}
    assert await reasons(calling) == {"": f"forbidden: {NOT_SHARED}"}
    assert NOT_SHARED in (await shown(calling, "ours"))["problem"]
    # Nor by a trial, a run that is asked for, or a publication.
    tried = await kim.post(f"{SOURCES}/ours/test", json={"entity": OUR_WEB})
    assert (tried.status_code, NOT_SHARED in tried.text) == (400, True)
    assert (await kim.post(f"{SOURCES}/ours/run")).status_code == 202
    await collected(calling)
    changed = await kim.put(f"{SOURCES}/ours", json=asking(title="Other"))
    assert problems(changed).keys() == {PATH}
    assert len(host.heads) == 1
    # What is shared again is asked again.
    await connect(calling, OURS, baseUrl=host.url)
    calling.time.advance(10 * MINUTE)
    await collected(calling)
    assert await latest(calling, "ours") == {OUR_WEB: {"ok": True}}


async def test_a_member_publishes_no_draft_whose_connection_is_shared_no_more_and_deletes_it(
    calling: Service, kim: httpx2.AsyncClient
) -> None:
    await connect(calling, OURS)
    await made(kim, asking())
    assert (await kim.put(f"{SOURCES}/ours", json=asking(title="Draft"))).status_code == 200
    await connect(calling)
    refused = await kim.post(f"{SOURCES}/ours/publish", json={"force": True})
    assert problems(refused).keys() == {PATH}
    assert (await shown(calling, "ours"))["version"] == "1.0.0"
    assert (await kim.delete(f"{SOURCES}/ours")).status_code == 204


async def test_another_process_stops_calling_a_second_after_sharing_is_withdrawn(
    start: StartService, calling: Service, kim: httpx2.AsyncClient, host: Host
) -> None:
    await connect(calling, OURS, baseUrl=host.url)
    await made(kim, asking())
    elsewhere = await start(outgoing_networks=LOOPBACK)
    collector = collector_of(elsewhere)
    await collector.drain()
    await connect(calling, baseUrl=host.url)
    elsewhere.time.advance(SECOND)
    assert "ours" in (await elsewhere.state.registry.current()).problems
    elsewhere.time.advance(10 * MINUTE)
    await collector.drain()
    await collector.stop()
    assert len(host.heads) == 1


async def test_what_goes_to_another_owner_during_a_call_is_not_stored(
    calling: Service, kim: httpx2.AsyncClient, host: Host
) -> None:
    await connect(calling, OURS, baseUrl=host.url)
    await made(kim, asking())
    host.held = asyncio.Event()
    collecting = asyncio.ensure_future(collected(calling))
    await host.asked.acquire()
    await calling.push("all", component("web", owner="team-b"), component("api", owner="team-b"))
    host.held.set()
    await collecting
    assert (await last_run(calling))["state"] == "done"
    assert await reasons(calling) == {}
    found = await calling.http.get(f"{FACTS}/ours", params={"entity": OUR_WEB})
    assert found.json()["entities"][0]["facts"] == {}


async def test_a_source_without_an_owner_asks_every_connection(
    calling: Service, host: Host
) -> None:
    await connect(calling, baseUrl=host.url)
    await made(calling.http, {k: v for k, v in asking().items() if k != "owner"})
    await collected(calling)
    assert set(await latest(calling, "ours")) > {OUR_WEB, THEIR_API}


async def test_an_owner_that_an_operator_gives_may_use_what_is_shared_with_it_alone(
    calling: Service, host: Host
) -> None:
    await connect(calling, baseUrl=host.url)
    await made(calling.http, asking())
    await collected(calling)
    assert host.heads == []
    assert NOT_SHARED in str((await last_run(calling))["error"])


async def test_connections_of_the_settings_name_their_owners_too(
    start: StartService, host: Host
) -> None:
    table = {"base_url": host.url, "headers": {"Authorization": SECRET}}
    shared = await start(
        outgoing_networks=LOOPBACK,
        connections={"ci": {**table, "shared_with": ["team-a"]}, "other": table},
    )
    await populated(shared)
    async with editing(shared) as kim:
        refused = await kim.post(SOURCES, json=asking(connection="other"))
        assert problems(refused).keys() == {PATH}
        await made(kim, asking())
        listed = (await kim.get(CONNECTIONS)).json()["connections"]
    assert [one["name"] for one in listed] == ["ci"]
    assert listed[0]["sharedWith"] == [OURS]
    await collected(shared)
    assert await latest(shared, "ours") == {OUR_WEB: {"ok": True}}


@pytest.mark.spec("connections.used-by-owners-they-are-shared-with")
async def test_an_editor_is_shown_connections_of_the_own_groups_and_changes_none(
    calling: Service, kim: httpx2.AsyncClient
) -> None:
    await connect(calling, OURS, "team-c")
    await connect(calling, THEIRS, name="theirs")
    [found] = (await kim.get(CONNECTIONS)).json()["connections"]
    assert (found["name"], found["sharedWith"]) == ("ci", [OURS, "group:default/team-c"])
    assert (await kim.get(f"{CONNECTIONS}/ci")).json() == found
    assert SECRET not in str(found)
    assert (await kim.get(f"{CONNECTIONS}/theirs")).status_code == 404
    body = {"baseUrl": "https://evil.test", "headers": {"authorization": None}, "sharedWith": []}
    for method in ("PUT", "DELETE"):
        answer = await kim.request(method, f"{CONNECTIONS}/ci", json=body)
        assert answer.status_code == 403


async def test_the_audit_says_with_whom_a_connection_was_shared(calling: Service) -> None:
    await connect(calling, OURS, THEIRS)
    await connect(calling, OURS)
    answer = await calling.http.get("/api/access/v1/audit", params={"actor": "user:default/tester"})
    records = answer.json()["records"]
    details = [one["detail"] for one in records if one["action"].startswith("connection.")]
    assert [one.get("sharedWith") for one in details] == [[OURS], [OURS, THEIRS]]


async def test_who_may_use_a_connection_is_told_by_the_path_of_what_is_wrong(
    calling: Service,
) -> None:
    for owners, path in (
        ([f"g{n}" for n in range(501)], "sharedWith"),
        (["group:"], "sharedWith"),
    ):
        body = {"baseUrl": "https://ci.test", "sharedWith": owners}
        answer = await calling.http.put(f"{CONNECTIONS}/ci", json=body)
        assert answer.status_code == 400, answer.text
        assert path in answer.text
