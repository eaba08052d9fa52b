"""Sessions of browsers: how they begin and end, and their cookies."""

import asyncio

import httpx2
import pytest

from factbook.auth import users
from factbook.auth.sessions import LONGEST_IDLE, SESSION_LIFETIME
from factbook.clock import DAY
from tests.conftest import StartService
from tests.service import Service
from tests.web.sessions import HOME, SESSION, cookie, is_in
from tests.web.visiting import PASSWORD, add_person, browser, signed_in, with_password

ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


async def notes(service: Service) -> None:
    """Wait for what is written beside the answers."""
    await asyncio.gather(*service.application._tasks)


# The session


async def test_a_value_set_before_signing_in_never_is_the_session(service: Service) -> None:
    """OWASP WSTG-SESS-03, session fixation."""
    await add_person(service, "ada")
    visitor = browser(service)
    planted = "planted-by-somebody-else"
    visitor.http.cookies.set(SESSION, planted)
    visitor.http.cookies.set("factbook-visitor", planted)
    await visitor.open("/sign-in")
    answer = await visitor.sign_in("ada")
    assert answer.status_code == 303
    assert planted not in cookie(answer)
    thief = browser(service)
    thief.http.cookies.set(SESSION, planted)
    assert not await is_in(thief)


@ON_SQLITE
async def test_every_sign_in_has_a_value_of_its_own(service: Service) -> None:
    await add_person(service, "ada")
    values = set()
    for _ in range(3):
        answer = await browser(service).sign_in("ada")
        values.add(cookie(answer).partition(";")[0])
    assert len(values) == 3
    assert min(map(len, values)) >= len(SESSION) + 1 + 43


async def test_signing_in_once_more_ends_the_session_before(service: Service) -> None:
    ada = await with_password(service)
    copied = browser(service)
    copied.http.cookies.set(SESSION, ada.http.cookies[SESSION])
    assert await is_in(copied)
    await ada.open(HOME)
    again = await ada.send("/sign-in", name="ada", password=PASSWORD, next="/")
    assert again.status_code == 303
    assert await is_in(ada)
    assert not await is_in(copied)


async def test_signing_out_ends_the_session_for_a_copied_cookie_too(service: Service) -> None:
    """OWASP WSTG-SESS-06."""
    ada = await signed_in(service)
    copied = browser(service)
    copied.http.cookies.set(SESSION, ada.http.cookies[SESSION])
    assert await is_in(copied)
    answer = await ada.send("/sign-out")
    assert answer.headers["location"] == "/sign-in"
    assert "Max-Age=0" in cookie(answer)
    assert not await is_in(ada)
    assert not await is_in(copied)
    assert "You are signed out." in await ada.text("/sign-in")


async def test_signing_out_takes_a_form(service: Service) -> None:
    ada = await signed_in(service)
    assert (await ada.http.get("/sign-out")).status_code == 405
    assert (await ada.send("/sign-out", csrf="")).status_code == 403
    assert await is_in(ada)


async def test_a_session_that_lies_idle_ends(service: Service) -> None:
    ada = await signed_in(service)
    service.time.advance(LONGEST_IDLE - 1)
    copied = browser(service)
    copied.http.cookies.set(SESSION, ada.http.cookies[SESSION])
    assert await is_in(copied)
    await notes(service)
    service.time.advance(LONGEST_IDLE - 1)
    assert await is_in(ada)
    await notes(service)
    service.time.advance(LONGEST_IDLE)
    assert not await is_in(ada)


async def test_a_session_ends_however_much_it_is_used(service: Service) -> None:
    ada = await signed_in(service)
    for _ in range(SESSION_LIFETIME // DAY - 1):
        service.time.advance(DAY)
        assert await is_in(ada)
        await notes(service)
    service.time.advance(DAY - 1)
    assert await is_in(ada)
    service.time.advance(1)
    assert not await is_in(ada)


async def test_who_is_disabled_or_loses_a_role_notices_at_the_next_request(
    service: Service,
) -> None:
    await signed_in(service)
    bob = await signed_in(service, "bob")
    database, now, ref = service.state.database, service.time(), "user:default/bob"
    assert (await bob.open("/administration/people")).status_code == 200
    await database.write(lambda tx: users.change_user_role(tx, ref, "viewer", now))
    assert (await bob.open("/administration/people")).status_code == 403
    assert await is_in(bob)
    await database.write(lambda tx: users.disable_user(tx, ref, now))
    assert not await is_in(bob)


async def test_another_password_ends_every_other_session(service: Service) -> None:
    ada = await with_password(service)
    elsewhere = browser(service)
    await elsewhere.sign_in("ada")
    new = "another long password"
    await ada.open(HOME)
    await ada.done(f"{HOME}/password", current=PASSWORD, password=new, again=new)
    assert await is_in(ada)
    assert not await is_in(elsewhere)


@ON_SQLITE
async def test_a_cookie_of_nobody_is_nobodys(service: Service, subtests: pytest.Subtests) -> None:
    await add_person(service, "ada")
    for value in ["", "x", "x" * 4000, "../../etc", "%00", '"quoted"', "a=b; c", "\xff"]:
        with subtests.test(value=value):
            headers = {b"cookie": f"{SESSION}={value}".encode("latin-1"), b"accept": b"text/html"}
            answer = await browser(service).http.get(HOME, headers=headers)
            assert answer.status_code == 303


# Cookies


@ON_SQLITE
async def test_a_cookie_is_out_of_reach_of_scripts_and_of_other_sites(service: Service) -> None:
    await add_person(service, "ada")
    text = cookie(await browser(service).sign_in("ada"))
    assert text.split("; ")[1:] == [
        "Path=/",
        "HttpOnly",
        "SameSite=Lax",
        f"Max-Age={SESSION_LIFETIME // 1000}",
    ]


@ON_SQLITE
async def test_over_tls_a_cookie_is_for_this_host_and_tls_alone(start: StartService) -> None:
    service = await start(public_url="https://facts.example.com")
    await add_person(service, "ada")
    visitor = browser(service)
    visitor.http.base_url = httpx2.URL("https://facts.example.com")
    answer = await visitor.sign_in("ada")
    assert answer.status_code == 303
    text = cookie(answer, "__Host-factbook")
    assert text.endswith("; Secure")
    assert "Path=/;" in text
    assert "domain" not in text.lower()
    assert answer.headers["strict-transport-security"] == "max-age=31536000"
    for each in answer.headers.get_list("set-cookie"):
        assert each.startswith("__Host-")
        assert {"HttpOnly", "Secure", "SameSite=Lax"} <= set(each.split("; "))
    plain = browser(service)
    plain.http.base_url = visitor.http.base_url
    plain.http.cookies.set(SESSION, visitor.http.cookies["__Host-factbook"])
    assert not await is_in(plain)
