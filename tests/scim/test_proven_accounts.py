"""Roles and groups are for accounts that are proven to be somebody's, never for a chosen name."""

from typing import Any

import pytest

from factbook.auth import invitations, permissions, users
from factbook.clock import DAY
from factbook.settings import Settings
from tests.api.checking import CHECKS, check, with_source
from tests.conftest import StartService
from tests.processes import TOKEN_KEY
from tests.scim.provisioning import Provider, crew, person
from tests.service import Service, started
from tests.web.openid_provider import CLIENT, ISSUER, OpenIDProvider, at
from tests.web.test_signing_in_elsewhere import come_back
from tests.web.visiting import PASSWORD, Browser, add_person, browser, signed_in, words

ACCOUNT = "/administration/account"
PEOPLE = "/administration/people"
INVITE = f"{PEOPLE}/-/invitations"
GROUP_ROLES = {"administrator": ["platform"], "editor": ["security"]}
NINA, SECURITY = "user:default/nina", "group:default/security"


@pytest.fixture
def signing_in() -> OpenIDProvider:
    return OpenIDProvider()


def settings(database_url: str) -> Settings:
    return Settings(
        database_url=database_url,
        token_key=TOKEN_KEY,
        group_roles=GROUP_ROLES,
        openid={"issuer": ISSUER, "client_id": CLIENT},
    )


def appear(signing_in: OpenIDProvider, subject: str, login: str) -> None:
    """Who signs in at the provider from now on."""
    signing_in.claims = {"sub": subject, "preferred_username": login}
    signing_in.user_info = {"sub": subject}


async def role_of(service: Service, ref: str) -> str | None:
    found = await users.find_user(service.state.database, ref)
    return found and found.role


async def old_link(service: Service) -> str:
    """An invitation without a name, as releases before this check made them."""
    secret, now = invitations.generate_invitation_secret(), service.time()
    digest = invitations.hash_invitation_secret(secret, service.state.token_key)
    await service.state.database.write(
        lambda tx: invitations.create_invitation(
            tx, digest=digest, role="viewer", made_by="user:default/ada", now=now, lifetime=DAY
        )
    )
    return f"/welcome/{secret}"


async def accepted(visitor: Browser, path: str, **fields: str) -> int:
    await visitor.text(path)
    answer = await visitor.send(path, password=PASSWORD, again=PASSWORD, **fields)
    return answer.status_code


def link_in(page: str) -> str:
    """The path of the link that a page shows."""
    return "/welcome/" + page.partition("/welcome/")[2].partition("<")[0].partition('"')[0].strip()


async def invited(ada: Browser, name: str, **fields: str) -> str:
    """The path of an invitation that an administrator makes."""
    await ada.open(PEOPLE)
    answer = await ada.send(INVITE, role="viewer", name=name, **fields)
    assert answer.status_code == 201, words(answer.text)
    return link_in(answer.text)


@pytest.mark.spec("people.roles-need-a-proven-account")
async def test_whoever_chooses_the_name_of_a_scim_user_gets_neither_the_name_nor_the_role(
    start: StartService, subtests: pytest.Subtests
) -> None:
    service = await start(group_roles=GROUP_ROLES)
    provider = await Provider.at(service)
    users_ = [await provider.user("nina"), await provider.user("omar@example.com")]
    await provider.group("platform", *users_)
    for name in ("nina", "NINA", "omar"):
        with subtests.test(name=name):
            assert await accepted(browser(service), await old_link(service), name=name) == 409
            assert await role_of(service, f"user:default/{name.lower()}") is None
    # Nor if somebody else has the name already, or the user is pushed after the account.
    visitor, link = browser(service), await old_link(service)
    assert await accepted(visitor, link, name="pat") == 303
    await provider.group("platform", *users_, await provider.user("pat"))
    await visitor.text(ACCOUNT)
    assert await role_of(service, "user:default/pat") == permissions.VIEWER
    await visitor.text("/administration/people", 403)


@pytest.mark.spec("people.roles-need-a-proven-account")
async def test_an_openid_person_with_another_subject_and_the_same_name_has_no_role(
    database_url: str, signing_in: OpenIDProvider, subtests: pytest.Subtests
) -> None:
    async with started(settings(database_url), openid=at(signing_in)) as service:
        provider = await Provider.at(service)
        nina = await provider.user("nina@example.com", externalId="subject-of-nina")
        group = await provider.group("platform", nina)
        for login in ("nina@example.com", "nina", "Nina@partner.example"):
            with subtests.test(login=login):
                appear(signing_in, f"another {login}", login)
                answer = await come_back(browser(service), signing_in)
                assert answer.status_code == 403
                assert "is reserved, and nothing proves that it is yours" in answer.text
                assert await role_of(service, NINA) is None
        # With an account of another name, the login proves nothing either.
        appear(signing_in, "mallory", "mallory")
        await come_back(browser(service), signing_in)
        signing_in.claims["preferred_username"] = "nina@example.com"
        await come_back(browser(service), signing_in)
        await provider.delete(group)
        await provider.group("platform", nina)
        assert await role_of(service, "user:default/mallory") == permissions.VIEWER
        # Nina herself gets her own name and role.
        appear(signing_in, "subject-of-nina", "nina@example.com")
        assert (await come_back(browser(service), signing_in)).status_code == 303
        assert await role_of(service, NINA) == permissions.ADMINISTRATOR


async def test_a_partner_never_inherits_the_groups_of_a_catalog_user(
    start: StartService, signing_in: OpenIDProvider
) -> None:
    service = await start(openid=at(signing_in, role="editor"))
    await with_source(service)
    nina = {**person("nina"), "spec": {"memberOf": ["security"]}}
    await service.push("people", crew("security"), nina)
    appear(signing_in, "p", "nina@partner.example")
    assert (await come_back(browser(service), signing_in)).status_code == 403
    # Nor if the account comes first, and the user of its name later.
    appear(signing_in, "q", "otto@partner.example")
    assert (await come_back(browser(service), signing_in)).status_code == 303
    otto = {**person("otto"), "spec": {"memberOf": ["security"]}}
    await service.push("people", crew("security"), nina, otto)
    assert (await defined(service, "otto")).status_code == 403
    # An administrator can confirm that it is the same person.
    ada = await signed_in(service)
    assert "has no groups of the catalog" in await ada.text(f"{PEOPLE}/otto")
    await ada.done(f"{PEOPLE}/otto/confirm", user_name="")
    assert (await defined(service, "otto")).status_code == 201


async def defined(service: Service, who: str) -> Any:
    """The answer to an editor who defines a check for the group."""
    token = await service.token(*permissions.ROLES[permissions.EDITOR], owner=f"user:default/{who}")
    async with service.client(token) as http:
        return await http.post(CHECKS, json=check(f"of-{who}", owner=SECURITY))


async def test_names_of_a_domain_that_the_settings_trust_are_those_of_the_catalog(
    start: StartService, signing_in: OpenIDProvider, subtests: pytest.Subtests
) -> None:
    service = await start(
        openid=at(signing_in, role="editor", proven_names=["*@Example.com"]),
    )
    await with_source(service)
    names = ("nina", "otto")
    members = [{**person(name), "spec": {"memberOf": ["security"]}} for name in names]
    await service.push("people", crew("security"), *members)
    cases = [("otto", 403), ("otto@partner.example", 403), ("otto@sub.example.com", 403)]
    for login, status in [*cases, ("Otto@example.COM", 303)]:
        with subtests.test(login=login):
            appear(signing_in, login, login)
            assert (await come_back(browser(service), signing_in)).status_code == status
    assert (await defined(service, "otto")).status_code == 201


async def test_an_invitation_is_for_one_name(start: StartService) -> None:
    service = await start(group_roles=GROUP_ROLES)
    provider = await Provider.at(service)
    await provider.group("platform", await provider.user("nina"))
    ada = await signed_in(service)
    refused = await ada.send(INVITE, role="viewer", name="")
    assert "A name has 1 to 63 characters" in words(refused.text)
    link = await invited(ada, "pat")
    visitor = browser(service)
    assert 'name="name"' not in await visitor.text(link)
    assert await accepted(visitor, link, name="nina") == 303
    assert await role_of(service, NINA) is None
    assert await role_of(service, "user:default/pat") == permissions.VIEWER
    # The name of somebody else needs a confirmation, which also gives the role.
    await ada.open(PEOPLE)
    unsure = await ada.send(INVITE, role="viewer", name="nina")
    assert unsure.status_code == 409
    assert "user:default/nina is the SCIM user nina" in words(unsure.text)
    await accepted(browser(service), await invited(ada, "nina", confirmed="true"))
    assert await role_of(service, NINA) == permissions.ADMINISTRATOR


async def test_a_name_that_gets_an_owner_after_the_invitation_is_not_given_away(
    service: Service,
) -> None:
    ada = await signed_in(service)
    link = await invited(ada, "nina")
    await service.push("people", crew("security"), person("nina"))
    visitor = browser(service)
    assert await accepted(visitor, link) == 409
    assert await role_of(service, NINA) is None


async def test_an_administrator_confirms_an_account_and_the_user_takes_it_along(
    start: StartService,
) -> None:
    service = await start(group_roles=GROUP_ROLES)
    provider = await Provider.at(service)
    await add_person(service, "kim", permissions.VIEWER)
    nina, other = await provider.user("nina@example.com"), await provider.user("kim@example.com")
    group = await provider.group("platform", nina)
    ada = await signed_in(service)
    await ada.open(f"{PEOPLE}/kim")
    unknown = await ada.send(f"{PEOPLE}/kim/confirm", user_name="nobody@example.com")
    assert unknown.status_code == 404
    await ada.done(f"{PEOPLE}/kim/confirm", user_name="Nina@example.com")
    assert await role_of(service, "user:default/kim") == permissions.ADMINISTRATOR
    # Who is called so is another user, and disables nothing.
    await provider.patched(other, {"op": "replace", "path": "active", "value": "False"})
    kim = await users.find_user(service.state.database, "user:default/kim")
    assert kim is not None
    assert kim.disabled_at is None
    await provider.patched(group, {"op": "remove", "path": "members"})
    assert await role_of(service, "user:default/kim") == permissions.VIEWER
    await provider.patched(nina, {"op": "replace", "path": "active", "value": "False"})
    kim = await users.find_user(service.state.database, "user:default/kim")
    assert kim is not None
    assert kim.disabled_at is not None
    await provider.patched(nina, {"op": "replace", "path": "active", "value": "True"})
    kim = await users.find_user(service.state.database, "user:default/kim")
    assert kim is not None
    assert kim.disabled_at is None
    await provider.delete(nina)
    left = await service.state.database.all("SELECT ref FROM account_links")
    assert left == []


async def test_an_administrator_adds_somebody_whose_name_is_reserved(
    database_url: str, signing_in: OpenIDProvider
) -> None:
    async with started(settings(database_url), openid=at(signing_in)) as service:
        provider = await Provider.at(service)
        await provider.group("platform", await provider.user("jane"))
        assert (await come_back(browser(service), signing_in)).status_code == 403
        ada = await signed_in(service)
        fields = {"new_name": "jane", "role": "viewer", "subject": "subject-7"}
        await ada.open(PEOPLE)
        wrong = await ada.send(f"{PEOPLE}/-/accounts", **{**fields, "subject": ""})
        assert "A subject has 1 to 255 characters" in words(wrong.text)
        await ada.done(f"{PEOPLE}/-/accounts", **fields)
        assert (await come_back(browser(service), signing_in)).status_code == 303
        assert await role_of(service, "user:default/jane") == permissions.ADMINISTRATOR


async def test_an_account_that_a_subject_proves_is_not_confirmed_for_somebody_else(
    database_url: str, signing_in: OpenIDProvider
) -> None:
    async with started(settings(database_url), openid=at(signing_in)) as service:
        provider = await Provider.at(service)
        await provider.user("jane", externalId="subject-7")
        await come_back(browser(service), signing_in)
        await add_person(service, "kim", permissions.VIEWER)
        ada = await signed_in(service)
        await ada.open(f"{PEOPLE}/kim")
        refused = await ada.send(f"{PEOPLE}/kim/confirm", user_name="jane")
        assert refused.status_code == 409
        assert "is user:default/jane, by its external id" in words(refused.text)


async def test_accounts_of_earlier_releases_keep_their_groups_and_no_role_by_a_name(
    start: StartService,
) -> None:
    service = await start(group_roles=GROUP_ROLES)
    await with_source(service)
    nina = {**person("nina"), "spec": {"memberOf": ["security"]}}
    await service.push("people", crew("security"), nina)
    await add_person(service, "nina", permissions.EDITOR)
    await service.state.database.write(
        lambda tx: tx.run("UPDATE people SET proof = NULL WHERE ref = ?", (NINA,))
    )
    provider = await Provider.at(service)
    await provider.group("platform", await provider.user("nina"))
    assert (await defined(service, "nina")).status_code == 201
    assert await role_of(service, NINA) == permissions.EDITOR


async def test_a_link_to_an_account_that_there_is_not_gives_nothing(service: Service) -> None:
    provider = await Provider.at(service)
    nina = await provider.user("nina")
    await service.state.database.write(
        lambda tx: users.link_account(tx, nina["id"], NINA, "user:default/ada", 0)
    )
    await provider.group("platform", nina)
    await provider.delete(nina)
    assert await role_of(service, NINA) is None
