"""People and groups of SCIM in the catalog."""

import asyncio
import uuid
from urllib.parse import quote

import pytest

from factbook.scim import directory
from tests.conftest import StartService
from tests.scim.provisioning import (
    GROUPS,
    USERS,
    Json,
    Provider,
    crew,
    ids,
    members_of,
    person,
    problem,
    report,
    values,
)
from tests.service import PUSH, Service
from tests.web.visiting import signed_in

PART = "/api/importers/v1/parts/scim/people"
SET = f"{PUSH}/sets/import/scim/people"
KIM = "user:default/kim"
TEAM = "group:default/platform team"


@pytest.fixture
async def provider(service: Service) -> Provider:
    return await Provider.at(service)


async def problems(service: Service) -> list[str]:
    answer = await service.http.get(PART)
    assert answer.status_code == 200, answer.text
    return [one["message"] for one in answer.json()["problems"]]


async def uid(service: Service, ref: str) -> str:
    entity = await service.catalog(ref)
    assert entity is not None
    return str(entity["metadata"]["uid"])


async def test_a_person_and_a_group_are_in_the_catalog_at_once(
    service: Service, provider: Provider
) -> None:
    mails = [{"value": "k@home.example"}, {"value": "kim@example.com", "primary": True}]
    kim = await provider.user("kim@example.com", displayName="Kim \u200bL", emails=mails)
    inner = await provider.group("Inner")
    await provider.group("Platform Team", kim, inner)
    entity = await service.catalog(KIM)
    assert entity is not None
    assert entity["spec"] == {
        "profile": {"displayName": "Kim L", "email": "kim@example.com"},
        "memberOf": [TEAM],
    }
    annotations = entity["metadata"]["annotations"]
    assert annotations["factbook/entity-set"] == "import/scim/people"
    assert annotations["factbook/external-id"] == f"scim/user/{kim['id']}"
    group = await service.catalog(TEAM)
    assert group is not None
    assert group["spec"]["children"] == ["group:default/inner"]
    assert await members_of(service, TEAM) == {KIM}


async def test_who_is_not_active_or_deleted_is_not_in_the_catalog(
    service: Service, provider: Provider
) -> None:
    kim = await provider.user("kim@example.com", active=False)
    team = await provider.group("Platform Team", kim)
    assert await service.catalog(KIM) is None
    await provider.patched(kim, {"op": "replace", "path": "active", "value": True})
    assert await members_of(service, TEAM) == {KIM}
    before = await uid(service, KIM)
    await provider.patched(kim, {"op": "replace", "path": "active", "value": False})
    assert await members_of(service, TEAM) == set()
    await provider.patched(kim, {"op": "replace", "path": "active", "value": True})
    assert await uid(service, KIM) == before
    await provider.delete(kim)
    assert await service.catalog(KIM) is None
    await provider.delete(team)
    assert await service.catalog(TEAM) is None


async def test_a_new_name_keeps_the_entity_and_leads_its_members_along(
    service: Service, provider: Provider
) -> None:
    kim = await provider.user("kim@example.com")
    inner = await provider.group("Inner", kim)
    await provider.group("Platform Team", inner)
    before = await uid(service, KIM), await uid(service, "group:default/inner")
    await provider.patched(kim, {"op": "replace", "path": "userName", "value": "kl@example.com"})
    await provider.patched(inner, {"op": "replace", "path": "displayName", "value": "Core"})
    after = await uid(service, "user:default/kl"), await uid(service, "group:default/core")
    assert after == before
    assert await service.catalog(KIM) is None
    assert await members_of(service, "group:default/core") == {"user:default/kl"}
    outer = await service.catalog(TEAM)
    assert outer is not None
    assert outer["spec"]["children"] == ["group:default/core"]


async def test_of_two_with_one_name_the_first_has_it_until_it_is_free(
    service: Service, provider: Provider
) -> None:
    first = await provider.user("kim@one.example")
    await provider.user("kim@two.example")
    assert await service.catalog("user:default/kim@two.example")
    [told] = await problems(service)
    assert "kim@two.example" in told
    assert KIM in told
    team, other = await provider.group("Platform Team"), await provider.group("platform team")
    assert len(await problems(service)) == 2
    await provider.delete(team)
    group = await service.catalog(TEAM)
    assert group is not None
    assert group["metadata"]["annotations"]["factbook/external-id"].endswith(other["id"])
    await provider.delete(first)
    # Whoever has found a name keeps it, so that references stay good.
    assert await service.catalog("user:default/kim@two.example")


async def test_what_somebody_else_pushed_stays_theirs_until_they_give_it_up(
    service: Service, provider: Provider
) -> None:
    await service.push("theirs", person("kim"))
    kim = await provider.user("kim@example.com")
    team = await provider.group("Platform Team", kim)
    [told] = await problems(service)
    assert "owned by theirs" in told
    assert ids(await provider.read(team)) == {kim["id"]}
    theirs = await service.catalog(KIM)
    assert theirs is not None
    assert theirs["metadata"]["annotations"]["factbook/entity-set"] == "theirs"
    await provider.delete(await provider.user("lou"))
    await service.push("theirs")
    await provider.user("lee")
    assert await problems(service) == []
    assert await members_of(service, TEAM) == {KIM}


async def test_what_a_push_takes_is_told_and_left(service: Service, provider: Provider) -> None:
    kim = await provider.user("kim@example.com")
    await service.push("theirs", person("kim"), onConflict="take")
    await provider.patched(kim, {"op": "replace", "path": "title", "value": "Boss"})
    assert len(await problems(service)) == 1
    await provider.delete(kim)
    assert await service.catalog(KIM) is not None


async def test_a_group_that_a_push_takes_does_not_hold_up_its_members(
    service: Service, provider: Provider
) -> None:
    kim = await provider.user("kim@example.com")
    inner = await provider.group("Inner", kim)
    await provider.group("Crew", kim, inner)
    await service.push("theirs", crew("crew"), crew("inner"), onConflict="take")
    await provider.patched(kim, {"op": "replace", "path": "userName", "value": "kl@example.com"})
    entity = await service.catalog("user:default/kl")
    assert entity is not None
    assert entity["spec"]["memberOf"] == []
    assert sorted(told.partition(":")[0] for told in await problems(service)) == [
        'Group "Crew"',
        'Group "Inner"',
    ]


async def test_a_taken_group_with_a_person_who_comes_back_holds_up_nobody(
    service: Service, provider: Provider
) -> None:
    await service.push("people", person("kim"))
    kim = await provider.user("kim@example.com")
    bob = await provider.user("bob@example.com")
    await provider.group("Crew", kim)
    await service.push("theirs", crew("crew"), onConflict="take")
    await service.push("people")
    await provider.patched(bob, {"op": "replace", "path": "active", "value": False})
    assert await service.catalog("user:default/bob") is None
    assert await service.catalog(KIM) is not None
    [told] = await problems(service)
    assert "owned by theirs" in told


async def test_people_whose_set_was_deleted_come_back_with_the_next_change(
    service: Service, provider: Provider
) -> None:
    kim, lou = await provider.user("kim@example.com"), await provider.user("lou@example.com")
    await provider.group("Platform Team", kim)
    before = await uid(service, KIM)
    deleted = await service.http.delete(f"{PUSH}/sets/import%2Fscim%2Fpeople")
    assert deleted.status_code == 200, deleted.text
    assert await service.catalog(KIM) is None
    await provider.delete(lou)
    assert await uid(service, KIM) == before
    assert await members_of(service, TEAM) == {KIM}
    assert await service.catalog("user:default/lou") is None


async def test_somebody_whom_a_push_took_and_gave_up_comes_back(
    service: Service, provider: Provider
) -> None:
    await provider.user("kim@example.com")
    await service.push("theirs", person("kim"), onConflict="take")
    await service.push("theirs")
    assert await service.catalog(KIM) is None
    await provider.user("lou@example.com")
    assert await service.catalog(KIM)


async def test_many_in_lasting_trouble_keep_nobody_from_their_turn(
    service: Service, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory, "_TRIED_AGAIN", 10)
    await service.push("theirs", *(person(f"free-{number}") for number in range(5)))
    for number in range(5):
        await provider.user(f"free-{number}@one.example")
    for number in range(6):
        await provider.user(f"one-{number}@one.example")
        await provider.user(f"one-{number}@two.example")
        await provider.group(f"crew {number}")
        await provider.group(f"Crew {number}")
    await service.push("theirs")
    kim = await provider.user("kim@one.example")
    while any("free" in told for told in await problems(service)):
        replace = {"op": "replace", "path": "title", "value": str(uuid.uuid4())}
        await provider.patched(kim, replace)
    for number in range(5):
        assert await service.catalog(f"user:default/free-{number}")


async def test_a_guest_is_opened_and_two_people_with_one_name_are_two_users(
    service: Service, provider: Provider
) -> None:
    visitor = await signed_in(service, role="viewer")
    names = ["kim_example.com#ext#", "sam", "sam@b.example"]
    for body, name in zip(report("56-guests"), names, strict=True):
        await provider.make(USERS, **body["body"])
        path = f"user/default/{quote(name)}"
        answer = await service.http.get(f"/api/catalog/entities/by-name/{path}")
        assert answer.status_code == 200, name
        entity = await service.facts("get-entity", name=f"user:default/{name}")
        assert entity["entityRef"] == f"user:default/{name}"
        assert name in await visitor.text(f"/catalog/{path}")
    assert (await service.facts("find-entities", kind="user"))["total"] == 3
    [told] = await problems(service)
    assert told.endswith("this one is user:default/sam@b.example")


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_name_becomes_one_that_references_can_have(
    start: StartService, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str, str, str | None]] = [
        ("o'Brien@example.com", "o'brien", "o-brien"),
        ("Jürgen@example.com", "jürgen", "j-rgen"),
        ("AD/kim", "ad-kim", "ad-kim"),
        ("k" * 80, "k" * 80, "k" * 63),
        ("営業部", "営業部", None),
        ("..", "", None),
        ("..@example.com", "..@example.com", "example.com"),
    ]
    for rule in ("lenient", "strict"):
        service = await start(entity_names=rule)
        provider = await Provider.at(service)
        for name, lenient, strict in cases:
            with subtests.test(name=name, rule=rule):
                expected = lenient if rule == "lenient" else strict
                user = await provider.user(name)
                assert await service.catalog(f"user:default/{expected or 'user-' + user['id'][:8]}")
                assert await problems(service) == []
                await provider.delete(user)


async def test_a_member_that_there_is_not_is_refused_and_nothing_is_written(
    service: Service, provider: Provider
) -> None:
    kim = await provider.user("kim")
    body = {"displayName": "Platform Team", "members": [*values(kim), {"value": "nobody"}]}
    status, kind, told = problem(await provider.http.post(GROUPS, json=body))
    assert (status, kind) == (400, "invalidValue")
    assert '"nobody"' in told
    assert await service.catalog(TEAM) is None
    team = await provider.group("Platform Team")
    for value in ("nobody", team["id"]):
        change = {"op": "add", "path": "members", "value": [*values(kim), {"value": value}]}
        assert problem(await provider.patch(team, change))[:2] == (400, "invalidValue")
    assert await members_of(service, TEAM) == set()


@pytest.mark.slow
@pytest.mark.both_databases
async def test_changes_of_one_group_at_once_are_all_kept(
    service: Service, provider: Provider
) -> None:
    people = [await provider.user(f"person-{number}") for number in range(8)]
    team = await provider.group("Platform Team", *people[:4])
    removals = [f'members[value eq "{one["id"]}"]' for one in people[:4]]
    changes: list[Json] = [{"op": "remove", "path": path} for path in removals]
    changes += [{"op": "add", "path": "members", "value": values(one)} for one in people[4:]]
    answers = await asyncio.gather(*(provider.patch(team, change) for change in changes))
    assert [answer.status_code for answer in answers] == [200] * len(changes)
    assert ids(await provider.read(team)) == {one["id"] for one in people[4:]}
    wanted = {f"user:default/person-{number}" for number in range(4, 8)}
    assert await members_of(service, TEAM) == wanted


@pytest.mark.both_databases
async def test_of_two_who_make_the_same_user_at_once_one_succeeds(
    service: Service, provider: Provider
) -> None:
    body = {"userName": "kim@example.com"}
    answers = await asyncio.gather(*(provider.http.post(USERS, json=body) for _ in range(4)))
    assert sorted(answer.status_code for answer in answers) == [201, 409, 409, 409]


@pytest.mark.both_databases
async def test_a_push_in_between_is_not_lost(service: Service, provider: Provider) -> None:
    kim = await provider.user("kim")
    team = await provider.group("Platform Team", kim)
    pushes = [service.push(f"set-{number}", person(f"p{number}")) for number in range(4)]
    changes = [
        provider.patch(team, {"op": op, "path": "members", "value": values(kim)})
        for op in ("remove", "add") * 2
    ]
    answers = await asyncio.gather(*pushes, *changes)
    assert {answer.status_code for answer in answers} == {200}
    is_member = kim["id"] in ids(await provider.read(team))
    assert await members_of(service, TEAM) == ({KIM} if is_member else set())


async def test_the_set_is_a_page_of_the_imports(service: Service, provider: Provider) -> None:
    await provider.user("kim")
    part = (await service.http.get(PART)).json()
    assert (part["state"], part["entities"], part["problemCount"]) == ("complete", 1, 0)
    assert (await service.http.get(SET)).json()["items"][0]["updatedBy"] == "user:default/okta"
