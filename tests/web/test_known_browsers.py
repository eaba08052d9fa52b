"""Whoever guesses the password of somebody keeps nobody out who has signed in before."""

import httpx2
import pytest

from factbook import clock
from factbook.clock import DAY, MINUTE
from factbook.operations import commands
from tests.conftest import StartService
from tests.service import Service
from tests.web.sessions import cookie, is_in
from tests.web.visiting import PASSWORD, Browser, add_person, browser, with_password

ACCOUNT = "/administration/account"
NEW = "another horse battery"
KNOWN = "factbook-known-"
# Nothing of it is stored.
pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


async def guess(service: Service, name: str = "ada", times: int = 11) -> None:
    """Wrong passwords of a name, each from another address, until the name has to wait."""
    for number in range(times):
        answer = await browser(service, address=f"192.0.2.{number}").sign_in(name, "wrong guess")
    assert answer.status_code == 429


async def signed_out(visitor: Browser) -> Browser:
    await visitor.open(ACCOUNT)
    assert (await visitor.send("/sign-out")).status_code == 303
    return visitor


def mark(visitor: Browser) -> tuple[str, str]:
    """The cookie by which the browser is known."""
    [found] = [(key, value) for key, value in visitor.http.cookies.items() if KNOWN in key]
    return found


@pytest.mark.spec("people.nobody-is-locked-out-by-guesses")
async def test_a_browser_that_has_signed_in_gets_in_while_others_guess(service: Service) -> None:
    visitor = await signed_out(await with_password(service))
    await guess(service)
    stranger = browser(service, address="198.51.100.1")
    assert (await stranger.sign_in("ada")).status_code == 429
    assert (await visitor.sign_in("ada", "a typing error")).status_code == 403
    assert (await visitor.sign_in("ada")).status_code == 303
    assert await is_in(visitor)


@pytest.mark.spec("people.nobody-is-locked-out-by-guesses")
async def test_a_link_of_the_command_lets_in_while_others_guess(start: StartService) -> None:
    service = await start(failed_logins=3)
    service.time.now = clock.now()  # by which the command goes
    await add_person(service, "ada")
    await guess(service)
    link = await commands.make_reset_link(service.application, "ada", None)
    path = link[link.index("/welcome/") :]
    # From an address that has failed too often, too.
    visitor = browser(service)
    for _ in range(4):
        limited = await visitor.sign_in("nobody", "wrong guess")
    assert limited.status_code == 429
    await visitor.open(path)
    assert (await visitor.send(path, password=NEW, again=NEW)).status_code == 303
    assert await is_in(visitor)
    assert (await (await signed_out(visitor)).sign_in("ada", NEW)).status_code == 303


async def test_people_behind_one_address_do_not_keep_each_other_out(start: StartService) -> None:
    service = await start(failed_logins=3)
    visitor = await signed_out(await with_password(service))
    guesser = browser(service)
    for name in ("one", "two", "three"):
        assert (await guesser.sign_in(name, "wrong guess")).status_code == 403
    assert (await guesser.sign_in("ada")).status_code == 429
    assert (await visitor.sign_in("ada")).status_code == 303
    await signed_out(visitor)
    # What a known browser gets wrong does not count against the others either.
    service.time.advance(MINUTE)
    for _ in range(4):
        assert (await visitor.sign_in("ada", "a typing error")).status_code == 403
    assert (await browser(service).sign_in("nobody", "wrong")).status_code == 403


async def test_a_stolen_mark_lets_guess_no_faster_and_opens_nothing(service: Service) -> None:
    visitor = await with_password(service)
    thief = browser(service, address="198.51.100.1")
    thief.http.cookies.set(*mark(visitor))
    assert not await is_in(thief)
    seen = [(await thief.sign_in("ada", "wrong guess")).status_code for _ in range(12)]
    assert seen == [403] * 10 + [429] * 2
    assert (await thief.sign_in("ada")).status_code == 429
    # It keeps nobody else out.
    assert (await browser(service, address="198.51.100.2").sign_in("ada")).status_code == 303


async def test_whoever_is_not_known_is_slowed_down_by_the_name(service: Service) -> None:
    await with_password(service)
    tried = 0
    for number in range(30):
        answer = await browser(service, address=f"10.0.{number}.1").sign_in("ada", "wrong guess")
        tried += answer.status_code == 403
        service.time.advance(MINUTE // 20)
    assert tried <= 10 + 30 // 2


async def test_a_mark_is_of_one_person_and_one_password(service: Service) -> None:
    visitor = await with_password(service)
    before = mark(visitor)
    await add_person(service, "bob")
    await guess(service, "bob")
    await signed_out(visitor)
    assert (await visitor.sign_in("bob")).status_code == 429
    assert (await visitor.sign_in("ada")).status_code == 303
    await visitor.open(ACCOUNT)
    fields = {"current": PASSWORD, "password": NEW, "again": NEW}
    assert (await visitor.send(f"{ACCOUNT}/password", **fields)).status_code == 303
    await guess(service)
    old = browser(service, address="198.51.100.1")
    old.http.cookies.set(*before)
    assert (await old.sign_in("ada", NEW)).status_code == 429
    # The browser in which it was changed goes on being known.
    assert (await (await signed_out(visitor)).sign_in("ada", NEW)).status_code == 303


async def test_a_mark_ends(service: Service) -> None:
    visitor = await signed_out(await with_password(service))
    service.time.advance(181 * DAY)
    await guess(service)
    assert (await visitor.sign_in("ada")).status_code == 429


async def test_a_mark_is_out_of_reach_of_scripts_and_of_other_sites(start: StartService) -> None:
    service = await start(public_url="https://facts.example.com")
    await add_person(service, "olga")
    visitor = browser(service)
    visitor.http.base_url = httpx2.URL("https://facts.example.com")
    answer = await visitor.sign_in("olga")
    name, _ = mark(visitor)
    assert name.startswith(f"__Host-{KNOWN}")
    sent = cookie(answer, name)
    for attribute in ("HttpOnly", "SameSite=Lax", "Secure", "Path=/", "Max-Age=15552000"):
        assert attribute in sent
    assert "olga" not in sent  # which no hexadecimal digits spell


async def test_no_one_becomes_known_without_the_password(service: Service) -> None:
    await add_person(service, "ada")
    for name, password in (("ada", "wrong guess"), ("nobody", PASSWORD), ("a b", PASSWORD)):
        visitor = browser(service)
        answer = await visitor.sign_in(name, password)
        assert answer.status_code == 403
        assert not [key for key in visitor.http.cookies if KNOWN in key]


async def test_guesses_elsewhere_do_not_keep_from_changing_the_password(service: Service) -> None:
    visitor = await with_password(service)
    await guess(service)
    await visitor.open(ACCOUNT)
    fields = {"current": PASSWORD, "password": NEW, "again": NEW}
    assert (await visitor.send(f"{ACCOUNT}/password", **fields)).status_code == 303
