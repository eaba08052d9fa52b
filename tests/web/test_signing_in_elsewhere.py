"""Signing in with the account of an OpenID Connect provider, page by page."""

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from factbook.auth import users
from factbook.clock import MINUTE
from tests.conftest import StartService
from tests.service import Service
from tests.web.openid_provider import OpenIDProvider, at
from tests.web.visiting import Browser, add_person, browser, signed_in, words

CALLBACK = "/sign-in/openid/callback"


@pytest.fixture
def provider() -> OpenIDProvider:
    return OpenIDProvider()


async def served(start: StartService, provider: OpenIDProvider, **options: Any) -> Service:
    return await start(openid=at(provider, **options))


async def come_back(
    visitor: Browser, provider: OpenIDProvider, next: str = "/", **query: str
) -> Any:
    """The answer to the person who comes back from the provider."""
    begun = await visitor.open("/sign-in/openid", next=next)
    assert begun.status_code == 303
    return await visitor.open(
        CALLBACK, **{**provider.signed_in(begun.headers["location"]), **query}
    )


@pytest.mark.spec("people.openid-connect")
async def test_a_new_person_comes_in_as_viewer(
    start: StartService, provider: OpenIDProvider
) -> None:
    service = await served(start, provider, title="Example ID")
    visitor = browser(service)
    assert "Continue with Example ID" in await visitor.text("/sign-in")
    answer = await come_back(visitor, provider, next="/administration/account")
    assert answer.headers["location"] == "/administration/account"
    page = words(await visitor.text("/administration/account"))
    assert "user:default/jane" in page
    assert "Viewer" in page
    assert "https://id.example.com" in page


async def test_who_comes_again_is_the_same_person(
    start: StartService, provider: OpenIDProvider
) -> None:
    service = await served(start, provider)
    for _ in range(2):
        assert (await come_back(browser(service), provider)).status_code == 303
    assert [one.ref for one in await users.list_users(service.state.database)] == [
        "user:default/jane"
    ]


async def test_members_of_the_administrators_group_are_administrators(
    start: StartService, provider: OpenIDProvider
) -> None:
    service = await served(start, provider, administrator_groups=["platform"])
    visitor = browser(service)
    await come_back(visitor, provider)
    assert "Viewer" in await visitor.text("/administration/account")
    provider.claims = {"groups": ["platform"]}
    await come_back(visitor, provider)
    assert "Administrator" in await visitor.text("/administration/account")


async def test_only_known_people_come_in_where_the_settings_say_so(
    start: StartService, provider: OpenIDProvider
) -> None:
    service = await served(start, provider, role="none")
    answer = await come_back(browser(service), provider)
    assert answer.status_code == 403
    assert "not known here" in answer.text
    assert await users.list_users(service.state.database) == []


async def test_an_account_never_takes_the_name_of_somebody_else(
    start: StartService, provider: OpenIDProvider
) -> None:
    service = await served(start, provider)
    await add_person(service, "jane")
    visitor = browser(service)
    answer = await come_back(visitor, provider)
    assert answer.status_code == 403
    assert "Someone else is called jane here" in answer.text
    assert (await visitor.open("/administration/account")).status_code == 303


async def test_a_disabled_person_does_not_come_in(
    start: StartService, provider: OpenIDProvider
) -> None:
    service = await served(start, provider)
    await come_back(browser(service), provider)
    await service.state.database.write(
        lambda tx: users.disable_user(tx, "user:default/jane", service.time())
    )
    answer = await come_back(browser(service), provider)
    assert answer.status_code == 403
    assert "may not sign in" in answer.text


async def test_an_answer_that_nobody_asked_for_signs_nobody_in(
    start: StartService, provider: OpenIDProvider
) -> None:
    service = await served(start, provider)
    begun = await browser(service).open("/sign-in/openid")
    stolen = provider.signed_in(begun.headers["location"])
    answer = await browser(service).open(CALLBACK, **stolen)
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers or "factbook=" not in answer.headers["set-cookie"]


async def test_an_answer_that_does_not_fit_is_refused_in_a_sentence(
    start: StartService, provider: OpenIDProvider, subtests: pytest.Subtests
) -> None:
    service = await served(start, provider)
    cases: list[dict[str, str]] = [
        {"state": "another"},
        {"iss": "https://evil.example.com"},
        {"error": "access_denied"},
    ]
    for bent in cases:
        with subtests.test(bent=bent):
            visitor = browser(service)
            answer = await come_back(visitor, provider, **bent)
            assert answer.status_code == 403
            assert "You are not signed in" in answer.text
            assert (await visitor.open("/administration/account")).status_code == 303


async def test_an_attempt_counts_once_and_for_ten_minutes(
    start: StartService, provider: OpenIDProvider
) -> None:
    service = await served(start, provider)
    visitor = browser(service)
    begun = await visitor.open("/sign-in/openid")
    answer = provider.signed_in(begun.headers["location"])
    service.time.advance(11 * MINUTE)
    assert (await visitor.open(CALLBACK, **answer)).status_code == 403


async def test_coming_back_leads_nowhere_else(
    start: StartService, provider: OpenIDProvider, subtests: pytest.Subtests
) -> None:
    service = await served(start, provider)
    for next in ["//evil.example.com", "https://evil.example.com", "/\\evil"]:
        with subtests.test(next=next):
            answer = await come_back(browser(service), provider, next=next)
            assert answer.headers["location"] == "/"


async def test_the_session_of_before_ends_with_the_sign_in(
    start: StartService, provider: OpenIDProvider
) -> None:
    service = await served(start, provider)
    visitor = await signed_in(service)
    before = dict(visitor.http.cookies)
    await come_back(visitor, provider)
    stale = browser(service)
    stale.http.cookies.update(before)
    assert (await stale.open("/administration/account")).status_code == 303


async def test_the_provider_sends_people_back_to_the_public_address(
    start: StartService, provider: OpenIDProvider
) -> None:
    service = await start(openid=at(provider), public_url="https://facts.example.com")
    begun = await browser(service).open("/sign-in/openid")
    [back] = parse_qs(urlsplit(begun.headers["location"]).query)["redirect_uri"]
    assert back == "https://facts.example.com/sign-in/openid/callback"
    assert "Secure" in begun.headers["set-cookie"]


async def test_without_a_provider_there_is_no_such_page(service: Service) -> None:
    assert "Continue with" not in await browser(service).text("/sign-in")
    for path in ("/sign-in/openid", CALLBACK):
        assert (await browser(service).open(path)).status_code == 404


async def test_whoever_fails_at_an_address_keeps_nobody_out_who_came_before(
    start: StartService, provider: OpenIDProvider
) -> None:
    service = await start(openid=at(provider), failed_logins=3)
    visitor = browser(service)
    await come_back(visitor, provider)
    await visitor.open("/administration/account")
    assert (await visitor.send("/sign-out")).status_code == 303
    for _ in range(3):
        assert (await browser(service).open(CALLBACK)).status_code == 403
    assert (await browser(service).open("/sign-in/openid")).status_code == 429
    assert (await come_back(visitor, provider)).status_code == 303
