"""Accounts and tokens of people whom the identity provider deactivates."""

import pytest

from factbook.auth import permissions, users
from tests.auth.accounts import add, add_session, add_token, grant
from tests.conftest import StartService
from tests.scim.provisioning import (
    USERS,
    Json,
    Provider,
    directory,
    person,
    place_of,
    problem,
    report,
)
from tests.service import NOON, Service
from tests.web.openid_provider import OpenIDProvider, at
from tests.web.visiting import browser

KIM, LOU = "user:default/kim", "user:default/lou"
OFF = {"op": "replace", "path": "active", "value": "False"}
ON = {"op": "replace", "path": "active", "value": "True"}
ISSUER = "https://id.example.com"


@pytest.fixture
async def provider(service: Service) -> Provider:
    return await Provider.at(service)


async def is_enabled(service: Service, ref: str) -> bool:
    person = await users.find_user(service.state.database, ref)
    assert person is not None
    return person.disabled_at is None


async def audited(service: Service) -> Json:
    """The last record of the audit."""
    answer = await service.http.get("/api/access/v1/audit", params={"limit": 1})
    [record] = answer.json()["records"]
    found: Json = record
    return found


@pytest.mark.parametrize("how", ["patch", "put", "delete"])
async def test_a_local_account_of_the_whole_name_is_disabled_with_its_tokens(
    service: Service, provider: Provider, how: str
) -> None:
    database = service.state.database
    await add(database, LOU)
    await add(database, KIM, role=permissions.VIEWER)
    await add_token(database, "of kim", KIM)
    await add_token(database, "of lou", LOU)
    kim = await provider.user("Kim")
    if how == "patch":
        await provider.patched(kim, OFF)
    elif how == "put":
        body = {"userName": "Kim", "active": False}
        assert (await provider.http.put(place_of(kim), json=body)).status_code == 200
    else:
        await provider.delete(kim)
    assert not await is_enabled(service, KIM)
    assert await is_enabled(service, LOU)
    assert (await grant(database, "of kim")).revoked_at is not None
    assert (await grant(database, "of lou")).revoked_at is None
    record = await audited(service)
    assert record["actor"] == "user:default/okta"
    assert record["detail"]["disabled"] == KIM


async def test_the_reported_deactivation_beside_a_title_is_done(provider: Provider) -> None:
    made, patched, _ = report("51-names-of-the-core-schema")
    user = await provider.make(USERS, **made["body"])
    answer = await provider.http.patch(place_of(user), json=patched["body"])
    assert (answer.status_code, answer.json()["active"]) == (200, False)


@pytest.mark.slow
async def test_a_person_loses_access_though_the_rest_of_the_call_cannot_be_done(
    service: Service, provider: Provider, subtests: pytest.Subtests
) -> None:
    await provider.user("taken")
    neighbors: list[Json] = [
        {"op": "replace", "path": "name.honorificPrefix", "value": "Dr"},
        {"op": "replace", "path": "title", "value": 7},
        {"op": "replace", "path": "id", "value": "7"},
        {"op": "remove", "path": "userName"},
        {"op": "replace", "path": "userName", "value": "taken"},
        {"op": "replace", "path": "emails[", "value": "7"},
        {"op": "move", "path": "title"},
        {"op": "replace", "path": 7},
    ]
    calls = [
        given
        for neighbor in neighbors
        for given in ([neighbor, OFF], [OFF, neighbor], [neighbor, {**OFF, "value": [False]}])
    ]
    for number, given in enumerate(calls):
        with subtests.test(given=given):
            ref = f"user:default/leaver-{number}"
            await add(service.state.database, ref, role=permissions.VIEWER)
            leaver = await provider.user(f"leaver-{number}")
            assert (await provider.patched(leaver, *given))["active"] is False
            assert not await is_enabled(service, ref)


async def test_a_person_loses_access_though_the_rest_of_a_replacement_is_wrong(
    service: Service, provider: Provider
) -> None:
    await add(service.state.database, KIM, role=permissions.VIEWER)
    kim = await provider.user("kim", title="Boss")
    body = {"userName": "kim", "active": "False", "title": 7}
    answer = await provider.http.put(place_of(kim), json=body)
    assert answer.status_code == 200, answer.text
    assert (answer.json()["active"], answer.json()["title"]) == (False, "Boss")
    assert not await is_enabled(service, KIM)


async def test_a_call_that_keeps_somebody_active_is_refused_as_a_whole(
    service: Service, provider: Provider
) -> None:
    await add(service.state.database, KIM)
    kim = await provider.user("kim")
    wrong = {"op": "replace", "path": "title", "value": 7}
    for given in ([wrong], [wrong, ON], [OFF, wrong, ON]):
        assert (await provider.patch(kim, *given)).status_code == 400
        assert await provider.read(kim) == kim
    assert await is_enabled(service, KIM)


async def test_who_is_made_inactive_has_no_access_either(
    service: Service, provider: Provider
) -> None:
    await add(service.state.database, LOU)
    await add(service.state.database, KIM)
    await provider.user("kim", active=False)
    assert not await is_enabled(service, KIM)


@pytest.mark.parametrize(
    ("given", "user_name", "external_id"),
    [
        ({"subject": "00u1", "login": "kl@example.com"}, "someone@example.com", "00u1"),
        ({"subject": "7", "login": "Kim@example.com"}, "kim@EXAMPLE.com", ""),
    ],
)
async def test_an_account_of_the_provider_is_known_by_its_subject_or_its_name_there(
    service: Service, given: Json, user_name: str, external_id: str
) -> None:
    database = service.state.database
    await add(database, LOU)
    await add(database, KIM, issuer=ISSUER, subject=given["subject"])
    await note(service, KIM, given["login"])
    await directory(service, ISSUER).create(
        "User", {"userName": user_name, "externalId": external_id, "active": False}
    )
    assert not await is_enabled(service, KIM)
    assert await is_enabled(service, LOU)


async def note(service: Service, ref: str, login: str) -> None:
    """Record the name of an account, as the sign-in does."""
    await service.state.database.write(lambda tx: users.record_login(tx, ref, login))


async def test_an_account_that_is_not_proved_to_be_theirs_is_left_alone(service: Service) -> None:
    database = service.state.database
    accounts = {
        # Their name begins alike; other people sign in so.
        "user:default/kim": {},
        "user:default/kim2": {"issuer": ISSUER, "subject": "1"},
        # Another provider's subject, and no subject at all.
        "user:default/kim3": {"issuer": "https://other.example.com", "subject": "00u1"},
        "user:default/kim4": {"issuer": ISSUER, "subject": ""},
    }
    for ref, given in accounts.items():
        await add(database, ref, **given)
    await note(service, "user:default/kim2", "kim@other.example.com")
    for number, external_id in enumerate(("00u1", "")):
        name = f"kim@example{number}.com"
        resource = {"userName": name, "active": False, "externalId": external_id}
        done = await directory(service, ISSUER).create("User", resource)
        assert done.disabled == ""
    assert [await is_enabled(service, ref) for ref in accounts] == [True] * len(accounts)


async def test_two_accounts_of_one_name_prove_nothing(service: Service) -> None:
    for number, ref in enumerate((KIM, LOU)):
        await add(service.state.database, ref, issuer=ISSUER, subject=str(number))
        await note(service, ref, "shared@example.com")
    resource = {"userName": "shared@example.com", "active": False}
    await directory(service, ISSUER).create("User", resource)
    assert await is_enabled(service, KIM)
    assert await is_enabled(service, LOU)


async def test_the_name_at_the_provider_is_learnt_at_the_sign_in(start: StartService) -> None:
    signing_in = OpenIDProvider()
    signing_in.claims["preferred_username"] = "Jane@example.com"
    service = await start(openid=at(signing_in))
    visitor = browser(service)
    begun = await visitor.open("/sign-in/openid")
    query = signing_in.signed_in(begun.headers["location"])
    assert (await visitor.open("/sign-in/openid/callback", **query)).status_code == 303
    resource = {"userName": "jane@example.com", "active": False}
    done = await directory(service, signing_in.issuer).create("User", resource)
    assert done.disabled == "user:default/jane"
    gone = await visitor.open("/administration/account")
    assert gone.status_code == 303
    assert "/sign-in" in gone.headers["location"]


async def test_tokens_in_the_name_of_the_entity_are_revoked_where_nobody_else_has_it(
    service: Service, provider: Provider
) -> None:
    database = service.state.database
    kim, lou = await provider.user("kim@example.com"), await provider.user("lou@example.com")
    await add_token(database, "of kim", KIM)
    await add(database, LOU)
    await add_token(database, "of lou", LOU)
    await provider.patched(kim, OFF)
    assert (await grant(database, "of kim")).revoked_at is not None
    await provider.patched(lou, OFF)
    assert (await grant(database, "of lou")).revoked_at is None
    assert (await audited(service))["detail"]["left"] == LOU


async def test_the_only_administrator_keeps_access_and_the_call_is_refused(
    service: Service, provider: Provider
) -> None:
    await add(service.state.database, KIM)
    kim = await provider.user("kim")
    for answer in (
        await provider.patch(kim, OFF),
        await provider.http.delete(place_of(kim)),
    ):
        status, _, told = problem(answer)
        assert status == 409
        assert "only administrator" in told
        record = await audited(service)
        assert (record["outcome"], record["status"]) == ("refused", 409)
    assert await is_enabled(service, KIM)
    assert await service.catalog(KIM) is not None
    await add(service.state.database, LOU)
    await provider.patched(kim, OFF)
    assert not await is_enabled(service, KIM)


async def test_who_comes_back_gets_the_account_again_but_not_the_tokens(
    service: Service, provider: Provider
) -> None:
    database = service.state.database
    await add(database, LOU)
    await add(database, KIM)
    await add_token(database, "of kim", KIM)
    await add_session(database, "session of kim", KIM)
    kim = await provider.user("kim")
    await provider.patched(kim, OFF)
    await provider.patched(kim, ON)
    assert await is_enabled(service, KIM)
    assert (await grant(database, "of kim")).revoked_at is not None
    assert (await audited(service))["detail"]["enabled"] == KIM


async def test_what_an_administrator_disabled_stays_disabled(
    service: Service, provider: Provider
) -> None:
    database = service.state.database
    await add(database, LOU)
    await add(database, KIM)
    kim = await provider.user("kim")
    await database.write(lambda tx: users.disable_user(tx, KIM, NOON + 1))
    await provider.patched(kim, OFF)
    await provider.patched(kim, ON)
    assert not await is_enabled(service, KIM)


MACHINE = "user:default/ci"


@pytest.mark.parametrize("how", ["made inactive", "deactivated", "deleted", "renamed"])
async def test_tokens_of_an_entity_that_others_own_are_not_revoked(
    service: Service, provider: Provider, how: str
) -> None:
    await service.push("theirs", person("ci"))
    await add_token(service.state.database, "of a machine", MACHINE)
    if how == "made inactive":
        await provider.user("ci@example.com", active=False)
    elif how == "renamed":
        other = await provider.user("other@example.com")
        rename = {"op": "replace", "path": "userName", "value": "ci@example.com"}
        await provider.patched(other, rename, OFF)
    else:
        made = await provider.user("ci@example.com")
        await (provider.patched(made, OFF) if how == "deactivated" else provider.delete(made))
    assert (await grant(service.state.database, "of a machine")).revoked_at is None


async def test_tokens_are_left_whose_entity_a_push_has_taken(
    service: Service, provider: Provider
) -> None:
    made = await provider.user("ci@example.com")
    await service.push("theirs", person("ci"), onConflict="take")
    await add_token(service.state.database, "of a machine", MACHINE)
    await provider.patched(made, OFF)
    assert (await grant(service.state.database, "of a machine")).revoked_at is None


async def test_tokens_without_an_entity_are_not_those_of_who_is_made_inactive(
    service: Service, provider: Provider
) -> None:
    await add_token(service.state.database, "of a machine", MACHINE)
    await provider.user("ci@example.com", active=False)
    assert (await grant(service.state.database, "of a machine")).revoked_at is None


def renamed(name: str) -> Json:
    return {"op": "replace", "path": "userName", "value": name}


@pytest.mark.parametrize("calls", [1, 2])
async def test_another_name_does_not_hide_a_local_account(
    service: Service, provider: Provider, calls: int
) -> None:
    database = service.state.database
    await add(database, LOU)
    await add(database, KIM)
    await add_token(database, "of kim", KIM)
    kim = await provider.user("kim")
    if calls == 1:
        await provider.patched(kim, renamed("kim@example.com"), OFF)
    else:
        await provider.patched(kim, renamed("kim@example.com"))
        await provider.patched(kim, OFF)
    assert not await is_enabled(service, KIM)
    assert (await grant(database, "of kim")).revoked_at is not None
    assert (await audited(service))["detail"]["disabled"] == KIM


async def test_another_name_does_not_hide_an_account_of_the_provider(service: Service) -> None:
    database = service.state.database
    await add(database, LOU)
    await add(database, KIM, issuer=ISSUER, subject="7")
    await note(service, KIM, "kim@example.com")
    people = directory(service, ISSUER)
    made = await people.create("User", {"userName": "kim@example.com"})
    await people.replace("User", made.row.id, {"userName": "kl@example.com"}, None)
    gone = {"userName": "kl@example.com", "active": False}
    assert (await people.replace("User", made.row.id, gone, None)).disabled == KIM


@pytest.mark.parametrize("issuer", [None, ISSUER])
async def test_who_gets_the_old_name_of_somebody_does_not_get_the_account(
    service: Service, issuer: str | None
) -> None:
    database = service.state.database
    await add(database, LOU)
    await add(database, KIM, issuer=issuer, subject="7" if issuer else None)
    if issuer:
        await note(service, KIM, "kim")
    people = directory(service, issuer)
    made = await people.create("User", {"userName": "kim"})
    await people.replace("User", made.row.id, {"userName": "kl@example.com"}, None)
    other = await people.create("User", {"userName": "kim"})
    gone = await people.replace("User", other.row.id, {"userName": "kim", "active": False}, None)
    assert (gone.disabled, gone.left) == ("", KIM)
    assert await is_enabled(service, KIM)


async def test_a_new_name_that_is_another_account_too_proves_neither(service: Service) -> None:
    await add(service.state.database, KIM)
    await add(service.state.database, LOU)
    people = directory(service, None)
    made = await people.create("User", {"userName": "kim"})
    await people.replace("User", made.row.id, {"userName": "lou"}, None)
    gone = await people.replace("User", made.row.id, {"userName": "lou", "active": False}, None)
    assert (gone.disabled, gone.left) == ("", LOU)


@pytest.mark.parametrize(
    "change",
    [
        {"op": "remove", "path": "active"},
        {"op": "replace", "path": "active", "value": None},
        {"op": "replace", "value": {"active": None}},
    ],
)
async def test_what_is_not_said_of_access_does_not_give_it_back(
    service: Service, provider: Provider, change: Json
) -> None:
    await add(service.state.database, LOU)
    await add(service.state.database, KIM)
    kim = await provider.user("kim")
    await provider.patched(kim, OFF)
    assert "active" not in await provider.patched(kim, change)
    await provider.patched(kim, {"op": "add", "path": "title", "value": "Boss"})
    assert not await is_enabled(service, KIM)
    assert await service.catalog(KIM) is None
