"""Changes as Entra and Okta send them."""

from typing import Any

import pytest

from tests.scim.provisioning import (
    GROUPS,
    USERS,
    Json,
    Provider,
    ids,
    place_of,
    problem,
    report,
    values,
)
from tests.service import Service

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
ENTERPRISE = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"
WORK = 'emails[type eq "work"]'


@pytest.fixture
async def provider(service: Service) -> Provider:
    return await Provider.at(service)


async def test_entra_changes_a_user(provider: Provider) -> None:
    kim = await provider.user("kim@example.com", displayName="Kim")
    after = await provider.patched(
        kim,
        {"op": "Replace", "path": "displayName", "value": "Kim L"},
        {"op": "Add", "path": f"{WORK}.value", "value": "kim@example.com"},
        {"op": "Add", "path": "name.givenName", "value": "Kim"},
        {"op": "Add", "path": 'addresses[type eq "work"].formatted', "value": "Street 1"},
        {"op": "Add", "path": f"{ENTERPRISE}:department", "value": "Sales"},
        {"op": "Replace", "path": "active", "value": "False"},
    )
    assert after["displayName"] == "Kim L"
    assert after["emails"] == [{"type": "work", "value": "kim@example.com"}]
    assert after["name"] == {"givenName": "Kim"}
    assert after["active"] is False
    after = await provider.patched(
        kim,
        {
            "op": "Add",
            "value": {
                "active": "True",
                "name.familyName": "L",
                f"{WORK}.value": "k@example.com",
                f"{ENTERPRISE}:department": "Sales",
                "nickName": "K",
            },
        },
    )
    assert after["active"] is True
    assert after["name"] == {"givenName": "Kim", "familyName": "L"}
    assert after["emails"] == [{"type": "work", "value": "k@example.com"}]


async def test_okta_takes_access_away_without_a_path(provider: Provider) -> None:
    kim = await provider.user("kim@example.com")
    assert (await provider.patched(kim, {"op": "replace", "value": {"active": False}}))[
        "active"
    ] is False
    team = await provider.group("Team")
    named = {"op": "replace", "value": {"id": team["id"], "displayName": "Crew"}}
    assert (await provider.patched(team, named))["displayName"] == "Crew"


async def test_members_come_and_go_in_every_form(provider: Provider) -> None:
    kim, lee, lou = [await provider.user(name) for name in ("kim", "lee", "lou")]
    team = await provider.group("Team", kim)

    async def after(*operations: Json) -> set[str]:
        found = ids(await provider.patched(team, *operations))
        return {one["userName"] for one in (kim, lee, lou) if one["id"] in found}

    def one(op: str, path: str | None, value: Any = None) -> Json:
        given = {"op": op, "path": path, "value": value}
        return {name: part for name, part in given.items() if part is not None}

    assert await after(one("Add", "members", values(lee, lou))) == {"kim", "lee", "lou"}
    assert await after(one("Remove", "members", values(kim))) == {"lee", "lou"}
    assert await after(one("remove", f'members[value eq "{lee["id"]}"]')) == {"lou"}
    assert await after(one("add", None, {"members": values(kim)})) == {"kim", "lou"}
    assert await after(one("replace", "members", values(lee))) == {"lee"}
    assert await after(
        one("remove", f'members[value eq "{lee["id"]}"]'), one("add", "members", values(kim))
    ) == {"kim"}
    assert await after(one("replace", None, {"members": values(lou, lou)})) == {"lou"}
    assert await after(one("remove", f'members[value eq "{kim["id"]}"]')) == {"lou"}
    assert await after(one("remove", "members")) == set()


async def test_attributes_are_removed(provider: Provider) -> None:
    mails = [{"value": "a@example.com", "type": "work"}, {"value": "b@example.com", "type": "home"}]
    kim = await provider.user("kim", title="Boss", emails=mails, name={"givenName": "Kim"})
    after = await provider.patched(
        kim,
        {"op": "remove", "path": "title"},
        {"op": "remove", "path": WORK},
        {"op": "remove", "path": "name.givenName"},
    )
    assert after["emails"] == mails[1:]
    assert not after.keys() & {"title", "name"}


async def test_a_change_that_cannot_be_made_changes_nothing(
    provider: Provider, subtests: pytest.Subtests
) -> None:
    kim = await provider.user("kim", title="Boss")
    first = {"op": "replace", "path": "title", "value": "Chief"}
    cases: list[tuple[Json, str]] = [
        ({"op": "move", "path": "title"}, "invalidSyntax"),
        ({"op": "remove"}, "noTarget"),
        ({"op": "add", "value": "Boss"}, "invalidValue"),
        ({"op": "replace", "path": "id", "value": "7"}, "mutability"),
        ({"op": "replace", "path": "groups", "value": []}, "mutability"),
        ({"op": "replace", "path": "emails[", "value": "7"}, "invalidPath"),
        ({"op": "replace", "path": 'title[type eq "x"]', "value": "7"}, "invalidPath"),
        ({"op": "replace", "path": 'emails[type sw "x"].value', "value": "7"}, "invalidFilter"),
        ({"op": "remove", "path": "userName"}, "invalidValue"),
        ({"op": "replace", "path": "active", "value": "no"}, "invalidValue"),
        ({"op": "replace", "path": 7}, "invalidPath"),
    ]
    for operation, kind in cases:
        with subtests.test(operation=operation):
            assert problem(await provider.patch(kim, first, operation))[:2] == (400, kind)
            assert await provider.read(kim) == kim


@pytest.mark.slow
async def test_attributes_that_are_not_kept_are_passed_over_however_they_are_sent(
    provider: Provider, subtests: pytest.Subtests
) -> None:
    named: dict[str, object] = {
        "name.honorificPrefix": "Dr",
        "name.middleName": "Q",
        f"{WORK}.display": "Kim",
        "surprise": "7",
        "surprise.part": "7",
        "nickName": "K",
        f"{ENTERPRISE}:department": "Sales",
    }
    for number, (path, value) in enumerate(named.items()):
        kim = await provider.user(f"kim-{number}", name={"givenName": "Kim"})
        for given in (
            {"op": "add", "path": path, "value": value},
            {"op": "replace", "path": path, "value": value},
            {"op": "remove", "path": path},
            {"op": "replace", "value": {path: value}},
        ):
            with subtests.test(given=given):
                title = f"Chief {given['op']} {'path' in given}"
                after = await provider.patched(
                    kim, given, {"op": "replace", "path": "title", "value": title}
                )
                assert (after["title"], after["name"]) == (title, {"givenName": "Kim"})


async def test_too_many_changes_in_one_call_are_refused(provider: Provider) -> None:
    kim = await provider.user("kim")
    change = {"op": "replace", "path": "title", "value": "Chief"}
    assert problem(await provider.patch(kim, *[change] * 1001))[:2] == (400, "tooMany")
    assert problem(await provider.patch(kim))[:2] == (400, "invalidSyntax")


@pytest.mark.slow
async def test_changes_that_look_at_every_value_are_few(provider: Provider) -> None:
    mails = [{"value": f"{number}@example.com", "type": "home"} for number in range(100)]
    kim = await provider.user("kim", emails=mails)
    for path in (f"{WORK}.type", "emails.primary", WORK):
        change = {"op": "remove", "path": path}
        assert (await provider.patched(kim, *[change] * 100))["id"] == kim["id"]
        assert problem(await provider.patch(kim, *[change] * 101))[:2] == (400, "tooMany")
    comparison = 'type eq "work"'
    for count, status in ((10, 200), (11, 400)):
        several = f"emails[{' or '.join([comparison] * count)}]"
        answer = await provider.patch(kim, {"op": "remove", "path": several})
        assert answer.status_code == status
    assert problem(answer)[1] == "invalidFilter"
    assert (await provider.read(kim))["emails"] == mails


async def test_values_are_limited_together_over_changes_and_calls(provider: Provider) -> None:
    def more(first: int) -> Json:
        mails = [{"value": f"{number}@example.com"} for number in range(first, first + 60)]
        return {"op": "add", "path": "emails", "value": mails}

    kim = await provider.user("kim")
    assert problem(await provider.patch(kim, more(0), more(100)))[:2] == (400, "invalidValue")
    await provider.patched(kim, more(0))
    status, kind, told = problem(await provider.patch(kim, more(100)))
    assert (status, kind, told) == (400, "invalidValue", "emails has more than 100 values.")
    assert len((await provider.read(kim))["emails"]) == 60


async def test_names_in_a_value_are_counted_as_changes(provider: Provider) -> None:
    kim = await provider.user("kim")
    named = {"op": "add", "value": {f"a{number}": 1 for number in range(600)}}
    assert (await provider.patched(kim, named))["id"] == kim["id"]
    assert problem(await provider.patch(kim, named, named, named))[:2] == (400, "tooMany")


async def test_members_are_chosen_by_nothing_but_one_id(
    provider: Provider, subtests: pytest.Subtests
) -> None:
    team = await provider.group("Team", await provider.user("kim"))
    for op, path, kind in [
        ("remove", 'members[type eq "User"]', "invalidFilter"),
        ("remove", 'members[value eq "1" or value eq "2"]', "invalidFilter"),
        ("add", 'members[value eq "1"]', "invalidPath"),
        ("replace", 'members[value eq "1"].value', "mutability"),
    ]:
        with subtests.test(op=op, path=path):
            change = {"op": op, "path": path, "value": "x"}
            assert problem(await provider.patch(team, change))[:2] == (400, kind)
            assert len((await provider.read(team))["members"]) == 1


async def test_a_flag_in_the_tenant_address_is_passed_over_in_every_call(
    provider: Provider,
) -> None:
    [flagged] = report("54-flag-in-the-tenant-address")
    path = f"/scim/v2{flagged['path']}"
    for place in (path, path.replace("aadOptscim062020", "aadOptscim062020=")):
        assert (await provider.http.get(place)).json()["totalResults"] == 0
    for flag in ("?aadOptscim062020", "?aadOptscim062020="):
        made = await provider.make(f"{USERS}{flag}", userName="x")
        assert (await provider.http.get(path)).json()["totalResults"] == 1
        change = {"Operations": [{"op": "replace", "path": "title", "value": "Boss"}]}
        answer = await provider.http.patch(f"{place_of(made)}{flag}", json=change)
        assert answer.json()["title"] == "Boss"
        answer = await provider.http.put(f"{place_of(made)}{flag}", json={"userName": "x"})
        assert "title" not in answer.json()
        assert (await provider.http.delete(f"{place_of(made)}{flag}")).status_code == 204


async def test_members_have_a_display_that_is_null_and_names_of_their_own(
    provider: Provider, subtests: pytest.Subtests
) -> None:
    person, group = report("55-members-with-display-null")
    kim, lee = await provider.make(USERS, **person["body"]), await provider.user("lee")
    group["body"]["members"][0]["value"] = kim["id"]
    team = await provider.make(GROUPS, **group["body"])
    assert ids(team) == {kim["id"]}
    named = {"name": "addMember", "displayName": "Lee", "display": None, "$ref": None, "type": None}
    both = [{"value": kim["id"]}, {"value": lee["id"], **named}]
    bodies: list[tuple[object, set[str]]] = [
        (group["body"]["members"], {kim["id"]}),
        (both, {kim["id"], lee["id"]}),
        (None, set()),
    ]
    for members, wanted in bodies:
        with subtests.test(members=members):
            body = {"displayName": "Platform", "members": members}
            answer = await provider.http.put(place_of(team), json=body)
            assert (answer.status_code, ids(answer.json())) == (200, wanted)
    whole = {"id": team["id"], "displayName": "Web", "members": both}
    after = await provider.patched(team, {"op": "replace", "value": whole})
    assert (after["displayName"], ids(after)) == ("Web", {kim["id"], lee["id"]})
    for _ in range(2):
        gone = {"op": "remove", "path": "members", "value": [{"value": lee["id"], "display": None}]}
        assert ids(await provider.patched(team, gone)) == {kim["id"]}
    gone = {"op": "remove", "path": f'members[value eq "{lee["id"]}"]'}
    assert ids(await provider.patched(team, gone)) == {kim["id"]}
    after = await provider.patched(team, {"op": "replace", "path": "members", "value": None})
    assert ids(after) == set()
