"""Sets that members of a group write because the group owns every entity of them."""

from collections.abc import AsyncIterator

import httpx2
import pytest

from factbook.auth import permissions
from tests.service import PUSH, Service, component
from tests.web.scoring import group, person

KIM = "user:default/kim"
OURS = f"{PUSH}/sets/ours"


@pytest.fixture
async def kim(service: Service) -> AsyncIterator[httpx2.AsyncClient]:
    """A client with the token of an editor who is a member of one of two groups."""
    people = (group("team-a"), group("team-b"), person("kim", "team-a"))
    assert (await service.push("people", *people)).status_code == 200
    await service.push("theirs", component("api", owner="team-b"))
    await service.push("mixed", component("one"), component("two", owner="team-b"))
    async with service.client(await service.token(*permissions.ROLES["editor"], owner=KIM)) as http:
        yield http


def is_refused(answer: httpx2.Response) -> bool:
    assert answer.status_code == 403, answer.text
    return "catalog.entity-set.write" in answer.text


@pytest.mark.spec("roles.groups-write-what-they-own")
async def test_a_member_pushes_changes_restores_and_deletes_a_set_of_the_group(
    service: Service, kim: httpx2.AsyncClient
) -> None:
    for items in ([component("web")], [component("web", type="website"), component("job")]):
        answer = await kim.put(OURS, json={"items": items})
        assert answer.status_code == 200, answer.text
    assert (await kim.post(OURS, json=component("more"))).status_code == 200
    assert (await kim.post(f"{OURS}/revisions/1/restore")).status_code == 200
    assert (await kim.delete(OURS)).status_code == 200
    query = {"actor": KIM, "outcome": "done"}
    records = (await service.http.get("/api/access/v1/audit", params=query)).json()["records"]
    assert [one["grant"] for one in records] == ["group group:default/team-a"] * 5


@pytest.mark.spec("roles.groups-write-what-they-own")
async def test_a_set_with_anything_of_others_is_not_theirs_to_write(
    service: Service, kim: httpx2.AsyncClient, subtests: pytest.Subtests
) -> None:
    for name in ["theirs", "mixed", "people"]:
        with subtests.test(name=name):
            path = f"{PUSH}/sets/{name}"
            before = (await service.http.get(path)).json()
            for query in ({}, {"dryRun": "true"}, {"dryRun": "true", "checks": "true"}):
                body = {"items": [component("new")]}
                assert is_refused(await kim.put(path, json=body, params=query))
            assert is_refused(await kim.post(path, json=component("new")))
            assert is_refused(await kim.delete(path))
            assert is_refused(await kim.post(f"{path}/revisions/1/restore"))
            assert (await service.http.get(path)).json() == before


@pytest.mark.spec("roles.groups-write-what-they-own")
async def test_nothing_of_others_comes_into_a_set_of_the_group(
    service: Service, kim: httpx2.AsyncClient
) -> None:
    foreign = component("new", owner="team-b")
    # Who is no owner, as a group or a person, would make somebody a member.
    for item in (foreign, group("team-c"), person("kim", "team-a", "team-b")):
        if item["kind"] == "User":
            item["metadata"]["name"] = "kim-too"
        assert is_refused(await kim.put(OURS, json={"items": [component("web"), item]}))
        assert is_refused(await kim.post(OURS, json=item))
    assert (await service.http.get(OURS)).status_code == 404


# An owner that is stated does not make an entity owned whose kind has none.
STATED = {"owner": "team-a", "members": ["kim"], "memberOf": ["team-b"]}


async def test_stating_an_owner_makes_nobody_a_member(
    service: Service, kim: httpx2.AsyncClient, subtests: pytest.Subtests
) -> None:
    spec = STATED | {"type": "team", "children": []}
    for kind in ["Group", "group", "User", "Crew"]:
        with subtests.test(kind=kind):
            item = component("kims") | {"kind": kind, "spec": spec}
            assert is_refused(await kim.put(OURS, json={"items": [item]}))
            assert is_refused(await kim.post(OURS, json=item))
            assert await service.catalog(f"{kind.lower()}:default/kims") is None
            assert is_refused(await kim.delete(f"{PUSH}/sets/theirs"))


async def test_an_owner_without_any_account_in_the_catalog_writes_nothing(service: Service) -> None:
    token = await service.token("own.write", owner="user:default/nobody")
    async with service.client(token) as http:
        assert is_refused(await http.put(OURS, json={"items": []}))
        assert is_refused(await http.delete(OURS))
        assert (await http.get(OURS)).status_code == 403


async def test_members_give_no_entity_away(service: Service, kim: httpx2.AsyncClient) -> None:
    await kim.put(OURS, json={"items": [component("web")]})
    given = {"items": [component("web", owner="team-b")]}
    assert is_refused(await kim.put(OURS, json=given))
    found = await service.catalog("component:default/web")
    assert found is not None
    assert found["spec"]["owner"] == "team-a"


async def test_members_take_nothing_from_another_set(
    service: Service, kim: httpx2.AsyncClient
) -> None:
    body = {"items": [component("api")]}
    assert is_refused(await kim.put(OURS, json=body, params={"onConflict": "take"}))
    assert (await kim.put(OURS, json=body)).status_code == 409
    assert is_refused(await kim.post(f"{PUSH}/entities", json=component("alone")))


async def test_who_is_in_no_group_writes_no_set(service: Service) -> None:
    token = await service.token(*permissions.ROLES["editor"], owner="user:default/eve")
    async with service.client(token) as http:
        assert is_refused(await http.put(OURS, json={"items": []}))
        assert is_refused(await http.put(OURS, json={"items": [component("web")]}))


async def test_what_others_have_added_meanwhile_is_not_removed_by_members(
    service: Service, kim: httpx2.AsyncClient
) -> None:
    await kim.put(OURS, json={"items": [component("web")]})
    await service.http.post(OURS, json=component("theirs", owner="team-b"))
    assert is_refused(await kim.put(OURS, json={"items": []}))
    assert await service.catalog("component:default/theirs") is not None
