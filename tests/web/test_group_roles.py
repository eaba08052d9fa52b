"""Roles by the groups that an OpenID Connect provider names at the sign-in."""

from typing import Any

import pytest

from factbook.auth import permissions
from factbook.settings import Settings
from tests.auth.accounts import add_token, grant
from tests.conftest import StartService
from tests.processes import TOKEN_KEY
from tests.scim.provisioning import Provider
from tests.service import Service, started
from tests.web.openid_provider import CLIENT, ISSUER, OpenIDProvider, at
from tests.web.test_signing_in_elsewhere import come_back
from tests.web.visiting import browser, words

JANE = "user:default/jane"
ACCOUNT = "/administration/account"


@pytest.fixture
def provider() -> OpenIDProvider:
    return OpenIDProvider()


async def served(start: StartService, provider: OpenIDProvider, **settings: Any) -> Service:
    given = {"group_roles": {"operator": ["ops"], "editor": ["staff"]}, **settings}
    return await start(openid=at(provider), **given)


async def sign_in(service: Service, provider: OpenIDProvider, *groups: str) -> str:
    """What the page of the account says after a sign-in with these groups."""
    provider.claims["groups"] = list(groups)
    visitor = browser(service)
    assert (await come_back(visitor, provider)).status_code == 303
    return words(await visitor.text(ACCOUNT))


@pytest.mark.spec("roles.by-groups")
async def test_the_groups_of_the_sign_in_give_the_highest_of_their_roles(
    start: StartService, provider: OpenIDProvider
) -> None:
    service = await served(start, provider)
    assert "Viewer" in await sign_in(service, provider, "others", "OPS")
    assert "Operator" in await sign_in(service, provider, "staff", "ops", "others")


@pytest.mark.spec("roles.by-groups")
async def test_who_signs_in_without_the_group_loses_its_role_in_every_session_and_token(
    start: StartService, provider: OpenIDProvider
) -> None:
    service = await served(start, provider)
    provider.claims["groups"] = ["ops"]
    earlier = browser(service)
    await come_back(earlier, provider)
    assert "Status" in words(await earlier.text("/status"))
    await add_token(service.state.database, "all", JANE, permissions.ROLES[permissions.OPERATOR])
    assert "Viewer" in await sign_in(service, provider)
    await earlier.text("/status", 403)
    left = await grant(service.state.database, "all")
    assert left.permissions == permissions.ROLES[permissions.VIEWER]


async def test_the_subject_of_the_sign_in_finds_the_groups_that_were_pushed(
    database_url: str, provider: OpenIDProvider
) -> None:
    settings = Settings(
        database_url=database_url,
        token_key=TOKEN_KEY,
        group_roles={"operator": ["ops"]},
        openid={"issuer": ISSUER, "client_id": CLIENT},
    )
    async with started(settings, openid=at(provider)) as service:
        directory = await Provider.at(service)
        user = await directory.user("someone@example.com", externalId="subject-7")
        group = await directory.group("ops", user)
        assert "Operator" in await sign_in(service, provider)
        await directory.delete(group)
        assert "Viewer" in await sign_in(service, provider)
