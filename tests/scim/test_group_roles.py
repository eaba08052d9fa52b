"""Roles by groups that an identity provider pushes, and what is lost with them."""

from functools import partial
from typing import Any

import httpx2
import pytest

from factbook.auth import permissions, users
from factbook.settings import Settings
from tests.auth.accounts import add, add_token, grant
from tests.conftest import StartService
from tests.scim.provisioning import Json, Provider, crew, person, place_of, values
from tests.service import NOON, Service, started
from tests.web.visiting import Browser, add_person, browser, signed_in, words

KIM, LOU, MIA = (f"user:default/{name}" for name in ("kim", "lou", "mia"))
GROUP_ROLES = {"administrator": ["platform"], "operator": ["ops"], "editor": ["ops", "staff"]}
RUN = frozenset({permissions.SOURCE_RUN})


@pytest.fixture
async def service(start: StartService) -> Service:
    """A service whose groups give roles, with an administrator and a viewer."""
    found = await start(group_roles=GROUP_ROLES)
    await add(found.state.database, LOU)
    await add_person(found, "kim", permissions.VIEWER)
    return found


@pytest.fixture
async def provider(service: Service) -> Provider:
    return await Provider.at(service)


async def kim_signed_in(service: Service) -> Browser:
    kim = browser(service)
    assert (await kim.sign_in("kim")).status_code == 303
    return kim


async def confirmed(service: Service, provider: Provider, user_name: str, ref: str = KIM) -> Json:
    """A user of the provider whose account an administrator has confirmed."""
    user = await provider.user(user_name)
    link = partial(users.link_account, scim_id=user["id"], ref=ref, by=LOU, now=NOON)
    await service.state.database.write(link)
    return user


async def role_of(service: Service, ref: str = KIM) -> str:
    query = "SELECT role FROM people WHERE ref = ?"
    row = await service.state.database.one(query, (ref,))
    assert row is not None
    return str(row[0])


def members(op: str, *who: Json) -> Json:
    return {"op": op, "path": "members", "value": values(*who)}


@pytest.mark.spec("roles.by-groups")
async def test_who_comes_to_a_group_has_its_role_in_the_same_session_and_who_leaves_loses_it(
    service: Service, provider: Provider
) -> None:
    kim = await kim_signed_in(service)
    await kim.text("/status", 403)
    user = await confirmed(service, provider, "Kim")
    ops = await provider.group("ops", user)
    assert "Status" in words(await kim.text("/status"))
    await add_token(service.state.database, "all", KIM, permissions.ROLES[permissions.OPERATOR])
    await add_token(service.state.database, "run", KIM, RUN)
    await provider.patched(ops, members("remove", user))
    await kim.text("/status", 403)
    left = await grant(service.state.database, "all")
    assert left.permissions == permissions.ROLES[permissions.VIEWER]
    assert (await grant(service.state.database, "run")).revoked_at is not None


async def removed(provider: Provider, group: Json, user: Json) -> None:
    await provider.patched(group, members("remove", user))


async def group_deleted(provider: Provider, group: Json, user: Json) -> None:
    await provider.delete(group)


async def group_renamed(provider: Provider, group: Json, user: Json) -> None:
    await provider.patched(group, {"op": "replace", "path": "displayName", "value": "others"})


async def members_replaced(provider: Provider, group: Json, user: Json) -> None:
    body = {"displayName": "ops", "members": []}
    answer: httpx2.Response = await provider.http.put(place_of(group), json=body)
    assert answer.status_code == 200


async def user_deleted(provider: Provider, group: Json, user: Json) -> None:
    await provider.delete(user)


@pytest.mark.spec("roles.by-groups")
@pytest.mark.parametrize(
    "lose", [removed, group_deleted, group_renamed, members_replaced, user_deleted]
)
async def test_however_a_membership_ends_the_role_ends_with_it(
    service: Service, provider: Provider, lose: Any
) -> None:
    user = await confirmed(service, provider, "kim")
    group = await provider.group("ops", user)
    assert await role_of(service) == permissions.OPERATOR
    await lose(provider, group, user)
    assert await role_of(service) == permissions.VIEWER


async def test_a_group_that_gets_the_name_gives_the_role_to_those_who_are_in_it(
    service: Service, provider: Provider
) -> None:
    group = await provider.group("others", await confirmed(service, provider, "kim"))
    assert await role_of(service) == permissions.VIEWER
    await provider.patched(group, {"op": "replace", "path": "displayName", "value": "ops"})
    assert await role_of(service) == permissions.OPERATOR


async def test_the_highest_of_several_roles_counts(service: Service, provider: Provider) -> None:
    user = await confirmed(service, provider, "kim")
    platform = await provider.group("platform", user)
    await provider.group("staff", user)
    assert await role_of(service) == permissions.ADMINISTRATOR
    await provider.delete(platform)
    assert await role_of(service) == permissions.EDITOR


async def test_a_group_takes_nothing_that_was_given(service: Service, provider: Provider) -> None:
    await provider.group("ops", await confirmed(service, provider, "lou", LOU))
    assert await role_of(service, LOU) == permissions.ADMINISTRATOR


async def test_a_role_that_is_given_by_hand_meanwhile_stays(
    service: Service, provider: Provider
) -> None:
    group = await provider.group("ops", await confirmed(service, provider, "kim"))
    await add_person(service, "ada")
    ada = browser(service)
    await ada.sign_in("ada")
    page = await ada.done("/administration/people/kim/role", role="editor")
    assert "Operator by the group ops" in words(page)
    await provider.delete(group)
    assert await role_of(service) == permissions.EDITOR


async def test_an_administrator_by_a_group_is_not_the_last_one_who_stays(
    service: Service, provider: Provider
) -> None:
    await provider.group("platform", await confirmed(service, provider, "kim"))
    kim = await kim_signed_in(service)
    await kim.open("/administration/people/lou")
    answer = await kim.send("/administration/people/lou/role", role="viewer")
    assert answer.status_code == 409
    assert "only administrator" in answer.text


async def test_a_member_of_a_group_of_the_catalog_that_anybody_may_push_has_no_role_by_it(
    service: Service,
) -> None:
    kim = {**person("kim"), "spec": {"memberOf": ["ops", "platform"]}}
    await service.push("people", crew("ops"), crew("platform"), kim)
    await kim_signed_in(service)
    assert await role_of(service) == permissions.VIEWER


async def test_what_is_pushed_into_the_set_of_the_provider_gives_no_role_either(
    service: Service, provider: Provider
) -> None:
    await confirmed(service, provider, "kim")
    await provider.group("ops")
    sets = (await service.http.get("/api/catalog/factbook-entities/sets")).json()["sets"]
    kim = {**person("kim"), "spec": {"memberOf": ["ops"]}}
    for found in sets:
        await service.push(found["id"], crew("ops"), kim, onConflict="take")
    await kim_signed_in(service)
    assert await role_of(service) == permissions.VIEWER


async def test_an_account_that_is_made_after_its_group_gets_the_role_at_the_sign_in(
    service: Service, provider: Provider
) -> None:
    await provider.group("ops", await confirmed(service, provider, "mia", MIA))
    await add_person(service, "mia", permissions.VIEWER)
    mia = browser(service)
    await mia.sign_in("mia")
    assert await role_of(service, MIA) == permissions.OPERATOR


async def test_the_audit_says_which_group_gave_a_role_and_that_none_does_any_more(
    service: Service, provider: Provider
) -> None:
    group = await provider.group("ops", await confirmed(service, provider, "kim"))
    await provider.delete(group)
    query = {"action": "person.change", "object": KIM}
    answer = await service.http.get("/api/access/v1/audit", params=query)
    found = [one["detail"] for one in answer.json()["records"]]
    assert {"role": "operator", "by": "group ops"} in found
    assert {"role": "viewer", "by": "no group"} in found


@pytest.mark.spec("audit.says-what-allowed-a-write")
async def test_the_audit_says_of_a_write_which_role_allowed_it_and_which_group_gave_that(
    service: Service, provider: Provider
) -> None:
    kim = await kim_signed_in(service)
    await provider.group("ops", await confirmed(service, provider, "kim"))
    await kim.done("/administration/account/name", display_name="Kim K.")
    query = {"actor": KIM, "limit": "1"}
    [record] = (await service.http.get("/api/access/v1/audit", params=query)).json()["records"]
    assert record["grant"] == "role operator of group ops"
    lou = await signed_in(service, "ada")
    page = words(await lou.text("/administration/audit", actor="kim"))
    assert '"grant": "role operator of group ops"' in page


async def test_the_next_start_takes_roles_that_the_setting_gives_no_more(
    service: Service, provider: Provider
) -> None:
    await provider.group("ops", await confirmed(service, provider, "kim"))
    await provider.group("staff", await confirmed(service, provider, "mia", MIA))
    await add_token(service.state.database, "run", KIM, RUN)
    again = Settings(database_url=service.database_url, token_key=service.state.settings.token_key)
    async with started(again) as later:
        assert await role_of(later) == permissions.VIEWER
        assert (await grant(later.state.database, "run")).revoked_at is not None


async def test_a_role_that_there_is_not_and_what_is_no_list_is_refused_at_the_start(
    start: StartService, subtests: pytest.Subtests
) -> None:
    cases: list[Json] = [{"owner": ["staff"]}, {"operator": {"a": 1}}, {"viewer": ["staff"]}]
    for wrong in cases:
        with subtests.test(wrong=wrong), pytest.raises(Exception, match=r"group_roles"):
            await start(group_roles=wrong)
