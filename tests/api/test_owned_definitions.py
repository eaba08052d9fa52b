"""Checks and scorecards that members of a group write because the group owns them."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx2
import pytest

from factbook.auth import permissions
from tests.api.checking import CHECKS, SCORECARDS, check, put, scorecard, shown, with_source
from tests.service import Service
from tests.web.scoring import group, person

KIM = "user:default/kim"
OURS, THEIRS = "group:default/team-a", "group:default/team-b"
Make = Callable[..., dict[str, Any]]
KINDS = pytest.mark.parametrize(
    ("path", "make"), [(CHECKS, check), (SCORECARDS, scorecard)], ids=["check", "scorecard"]
)


@pytest.fixture
async def kim(service: Service) -> AsyncIterator[httpx2.AsyncClient]:
    """A client with the token of an editor who is a member of one of two groups."""
    await with_source(service)
    await service.push("people", group("team-a"), group("team-b"), person("kim", "team-a"))
    await put(service, check("covered", owner=THEIRS), publish=True)
    async with service.client(await service.token(*permissions.ROLES["editor"], owner=KIM)) as http:
        yield http


def is_refused(answer: httpx2.Response) -> bool:
    """Whether the answer is 403 and names what others need."""
    assert answer.status_code == 403, answer.text
    return "A group of yours has to own this" in answer.text


@KINDS
@pytest.mark.spec("roles.groups-write-what-they-own")
async def test_a_member_defines_changes_publishes_and_removes_what_the_group_owns(
    service: Service, kim: httpx2.AsyncClient, path: str, make: Make
) -> None:
    made = await kim.post(path, json=make("ours", owner=OURS))
    assert made.status_code == 201, made.text
    changed = make("ours", owner=OURS, title="Another")
    assert (await kim.put(f"{path}/ours", json=changed)).status_code == 200
    assert (await kim.post(f"{path}/ours/publish")).status_code == 200
    changed["title"] = "A third"
    again = await kim.put(f"{path}/ours", json=changed, params={"publish": "true"})
    assert again.status_code == 200, again.text
    answer = await service.http.get(
        "/api/access/v1/audit", params={"actor": KIM, "outcome": "done"}
    )
    assert {one["grant"] for one in answer.json()["records"]} == {f"group {OURS}"}
    assert (await kim.delete(f"{path}/ours")).status_code == 204


@pytest.mark.slow
@KINDS
@pytest.mark.spec("roles.groups-write-what-they-own")
@pytest.mark.parametrize(
    "owner", [{"owner": THEIRS}, {"owner": KIM}, {}], ids=["another group", "a user", "nobody"]
)
async def test_what_no_group_of_theirs_owns_members_neither_define_nor_change(
    service: Service, kim: httpx2.AsyncClient, path: str, make: Make, owner: dict[str, str]
) -> None:
    assert is_refused(await kim.post(path, json=make("new", **owner)))
    assert (await service.http.get(f"{path}/new")).status_code == 404
    assert (await service.http.post(path, json=make("there", **owner))).status_code == 201
    # Not by making it their own either.
    for body in (make("there", **owner), make("there", owner=OURS)):
        for query in ({}, {"publish": "true"}):
            assert is_refused(await kim.put(f"{path}/there", json=body, params=query))
    assert is_refused(await kim.post(f"{path}/there/publish"))
    assert is_refused(await kim.delete(f"{path}/there"))
    assert is_refused(await kim.post(path, json=make("there", owner=OURS)))
    assert (await service.http.get(f"{path}/there")).json().get("owner") == owner.get("owner")


@KINDS
async def test_members_give_nothing_away(
    service: Service, kim: httpx2.AsyncClient, path: str, make: Make
) -> None:
    await kim.post(path, json=make("ours", owner=OURS))
    assert is_refused(await kim.put(f"{path}/ours", json=make("ours", owner=THEIRS)))
    # A draft of somebody else that hands it over is theirs to publish.
    await service.http.post(f"{path}/ours/publish")
    await service.http.put(f"{path}/ours", json=make("ours", owner=THEIRS))
    assert is_refused(await kim.post(f"{path}/ours/publish"))


async def test_who_leaves_the_group_writes_what_it_owns_no_more(
    service: Service, kim: httpx2.AsyncClient
) -> None:
    await kim.post(CHECKS, json=check("ours", owner=OURS))
    await service.push("people", group("team-a"), group("team-b"), person("kim", "team-b"))
    assert is_refused(await kim.post(f"{CHECKS}/ours/publish"))
    assert (await kim.post(f"{CHECKS}/covered/publish")).status_code == 200


async def test_a_member_without_the_permission_to_write_what_is_owned_writes_nothing(
    service: Service, kim: httpx2.AsyncClient
) -> None:
    viewer = await service.token(*permissions.ROLES["viewer"], owner=KIM)
    async with service.client(viewer) as http:
        answer = await http.post(CHECKS, json=check("ours", owner=OURS))
    assert answer.status_code == 403
    assert "tech-insights.check.write" in answer.text


async def test_who_may_write_every_check_writes_those_of_no_group_too(
    service: Service, kim: httpx2.AsyncClient
) -> None:
    token = await service.token(*permissions.ROLES["administrator"], owner=KIM)
    async with service.client(token) as http:
        answer = await http.put(f"{CHECKS}/covered", json=check("covered", title="Other"))
    assert answer.status_code == 200
    assert (await shown(service))["unpublished"]["title"] == "Other"
