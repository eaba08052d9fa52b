"""Users and groups over SCIM: made, read, listed, replaced, changed and deleted."""

from typing import Any

import pytest

from factbook.auth.permissions import PERMISSION_NAMES
from tests.conftest import StartService
from tests.scim.provisioning import GROUPS, MEDIA, USERS, Provider, place_of, problem, values
from tests.service import Service

ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
CONFIG = "/scim/v2/ServiceProviderConfig"


@pytest.fixture
async def provider(service: Service) -> Provider:
    return await Provider.at(service)


async def test_a_user_is_read_back_as_it_was_made(provider: Provider) -> None:
    given = {
        "externalId": "00u1",
        "displayName": "Kim Ĺ",
        "name": {"givenName": "Kim", "familyName": "Ĺ"},
        "emails": [{"value": "kim@example.com", "type": "work", "primary": True}],
    }
    made = await provider.user("kim@example.com", **given, password="secret", surprise=1)
    assert made.items() >= {**given, "userName": "kim@example.com", "active": True}.items()
    assert "password" not in made
    assert "surprise" not in made
    assert made["meta"]["location"] == f"http://127.0.0.1:8000{place_of(made)}"
    answer = await provider.http.get(place_of(made))
    assert answer.json() == made
    assert answer.headers["content-type"].startswith(MEDIA)
    assert answer.headers["etag"] == made["meta"]["version"]


async def test_a_group_has_its_members_and_they_their_groups(provider: Provider) -> None:
    kim = await provider.user("kim")
    inner = await provider.group("Inner", kim)
    outer = await provider.group("Outer", kim, inner)
    types = {one["value"]: one["type"] for one in outer["members"]}
    assert types == {kim["id"]: "User", inner["id"]: "Group"}
    groups = (await provider.read(kim))["groups"]
    assert {one["display"] for one in groups} == {"Inner", "Outer"}
    await provider.delete(inner)
    assert await provider.read(outer) == {
        **outer,
        "members": [one for one in outer["members"] if one["type"] == "User"],
    }


async def test_a_replacement_forgets_what_it_leaves_out_but_for_who_is_active(
    provider: Provider,
) -> None:
    kim = await provider.user("kim", title="Boss", active=False)
    answer = await provider.http.put(place_of(kim), json={"userName": "kim", "displayName": "Kim"})
    assert answer.status_code == 200
    assert "title" not in answer.json()
    assert answer.json()["active"] is False


@ON_SQLITE
async def test_what_is_no_user_is_refused_with_its_type(
    provider: Provider, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[Any, str]] = [
        ({}, "invalidValue"),
        ({"userName": " "}, "invalidValue"),
        ({"userName": 7}, "invalidValue"),
        ({"userName": "k", "active": "perhaps"}, "invalidValue"),
        ({"userName": "k", "name": "Kim"}, "invalidValue"),
        ({"userName": "k" * 401}, "invalidValue"),
        (
            {"userName": "k", "emails": [{"primary": True, "value": c} for c in "ab"]},
            "invalidValue",
        ),
        ([], "invalidSyntax"),
    ]
    for body, kind in cases:
        with subtests.test(body=body):
            assert problem(await provider.http.post(USERS, json=body))[:2] == (400, kind)
            assert (await provider.http.get(USERS)).json()["totalResults"] == 0


@ON_SQLITE
async def test_what_is_no_json_is_refused(provider: Provider) -> None:
    for body in ("{", "[" * 5000, "\udcff".encode("utf-8", "surrogateescape")):
        answer = await provider.http.post(USERS, content=body)
        assert problem(answer)[:2] == (400, "invalidSyntax")
    large = b'{"userName": "' + b"k" * 17 * 1024 * 1024 + b'"}'
    assert problem(await provider.http.post(USERS, content=large))[0] == 413
    plain = {"content-type": "text/html"}
    assert problem(await provider.http.post(USERS, content="{}", headers=plain))[0] == 415


@pytest.mark.both_databases
async def test_a_name_is_anothers_in_any_case(provider: Provider) -> None:
    await provider.user("kim@example.com")
    lee = await provider.user("lee@example.com")
    for answer in (
        await provider.http.post(USERS, json={"userName": "KIM@example.com"}),
        await provider.http.put(place_of(lee), json={"userName": "Kim@Example.com"}),
    ):
        status, kind, told = problem(answer)
        assert (status, kind) == (409, "uniqueness")
        assert "im@" in told.lower()
    assert (await provider.read(lee))["userName"] == "lee@example.com"


@pytest.mark.both_databases
async def test_lists_are_read_page_by_page_in_the_order_of_creation(
    service: Service, provider: Provider
) -> None:
    made = []
    for number in range(5):
        service.time.advance(1)
        made.append((await provider.user(f"user-{number}"))["id"])
    pages: list[str] = []
    for start in (1, 3, 5, 7):
        answer = await provider.http.get(USERS, params={"startIndex": start, "count": 2})
        page = answer.json()
        assert (page["totalResults"], page["startIndex"]) == (5, start)
        assert page["itemsPerPage"] == len(page["Resources"])
        pages += [one["id"] for one in page["Resources"]]
    assert pages == made
    for query in ({"startIndex": -7}, {"count": 9999}, {"surprise": "1"}):
        assert len((await provider.http.get(USERS, params=query)).json()["Resources"]) == 5
    empty = (await provider.http.get(USERS, params={"count": 0})).json()
    assert (empty["totalResults"], empty["Resources"]) == (5, [])
    assert problem(await provider.http.get(USERS, params={"count": "x"}))[:2] == (
        400,
        "invalidValue",
    )


@ON_SQLITE
async def test_only_the_attributes_asked_for_are_shown(provider: Provider) -> None:
    kim = await provider.user("kim", title="Boss")
    await provider.group("All", kim)
    for query, there, absent in (
        ({"attributes": "title"}, {"title"}, {"userName", "groups"}),
        ({"excludedAttributes": "groups, title"}, {"userName"}, {"groups", "title"}),
    ):
        found = (await provider.http.get(place_of(kim), params=query)).json()
        assert found.keys() >= there | {"id", "schemas", "meta"}
        assert not found.keys() & absent
    query = {"excludedAttributes": "members"}
    [group] = (await provider.http.get(GROUPS, params=query)).json()["Resources"]
    assert "members" not in group


@pytest.mark.both_databases
async def test_a_version_that_was_not_seen_is_not_overwritten(provider: Provider) -> None:
    kim = await provider.user("kim")
    seen = kim["meta"]["version"]
    change = {"op": "replace", "path": "title", "value": "Boss"}
    first = await provider.patch(kim, change, **{"if-match": seen})
    assert first.headers["etag"] != seen
    for answer in (
        await provider.patch(kim, change, **{"if-match": seen}),
        await provider.http.put(place_of(kim), json=kim, headers={"if-match": seen}),
        await provider.http.delete(place_of(kim), headers={"if-match": '"x"'}),
    ):
        assert problem(answer)[0] == 412
    unchanged = {"if-none-match": first.headers["etag"]}
    assert (await provider.http.get(place_of(kim), headers=unchanged)).status_code == 304
    assert (await provider.http.delete(place_of(kim), headers={"if-match": "*"})).is_success


async def test_a_change_that_changes_nothing_keeps_the_version(provider: Provider) -> None:
    kim = await provider.user("kim")
    team = await provider.group("Team", kim)
    again = await provider.patched(team, {"op": "add", "path": "members", "value": values(kim)})
    assert again["meta"] == team["meta"]


@ON_SQLITE
async def test_what_is_not_there_is_404_and_what_is_not_offered_501(provider: Provider) -> None:
    team = await provider.group("Team")
    for method in ("GET", "PUT", "DELETE"):
        answer = await provider.http.request(
            method, f"{USERS}/{team['id']}", json={"userName": "kim"}
        )
        assert problem(answer)[0] == 404
    assert problem(await provider.http.get("/scim/v2/Devices"))[0] == 404
    assert problem(await provider.http.get("/scim/v2/Me"))[0] == 501
    assert problem(await provider.http.post("/scim/v2/Bulk", json={}))[0] == 501
    assert problem(await provider.http.post(CONFIG, json={}))[0] == 405
    assert problem(await provider.http.get("/scim/v2/Schemas?filter=id"))[0] == 403
    assert (await provider.http.get("/scim/v2/ResourceTypes/User")).json()["endpoint"] == "/Users"


@ON_SQLITE
async def test_a_token_of_another_kind_is_refused_in_the_same_form(service: Service) -> None:
    async with service.client(None) as http:
        assert problem(await http.get(USERS))[0] == 401
    async with service.client(await service.token(*(PERMISSION_NAMES - {"scim.write"}))) as http:
        assert "scim.write" in problem(await http.post(USERS, json={"userName": "k"}))[2]
    async with service.client(await service.token("scim.write")) as http:
        assert (await http.get("/api/catalog/entities")).status_code == 403


@ON_SQLITE
async def test_addresses_are_those_of_the_public_url(start: StartService) -> None:
    provider = await Provider.at(await start(public_url="https://factbook.example.com/"))
    kim = await provider.user("kim")
    assert kim["meta"]["location"].startswith("https://factbook.example.com/scim/v2/Users/")
