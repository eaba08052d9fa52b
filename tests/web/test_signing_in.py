"""Signing in and out: the form, the session, and the links that make accounts."""

import asyncio
import re
from typing import Any

import httpx2
import pytest

from factbook.auth import invitations, people
from factbook.auth.sessions import IDLE, LIFETIME
from factbook.clock import DAY, MINUTE
from tests.conftest import StartService
from tests.service import Service
from tests.web.visiting import (
    PASSWORD,
    Browser,
    add_person,
    browser,
    signed_in,
    with_password,
    words,
)

HOME = "/administration/account"
SESSION = "factbook"
WRONG = "The name or the password is wrong."
ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


async def is_in(visitor: Browser) -> bool:
    """Whether the browser is somebody's."""
    answer = await visitor.http.get(HOME)
    assert answer.status_code in {200, 303}
    return answer.status_code == 200


def cookie(answer: httpx2.Response, name: str = SESSION) -> str:
    """What an answer sets the cookie of the session to, with its attributes."""
    sent = answer.headers.get_list("set-cookie")
    # A browser goes by the last of one name.
    return str([text for text in sent if text.startswith(f"{name}=")][-1])


async def notes(service: Service) -> None:
    """Wait for what is written beside the answers."""
    await asyncio.gather(*service.application._tasks)


# The form


async def test_who_is_not_signed_in_is_led_to_the_form_and_back(service: Service) -> None:
    await add_person(service, "ada")
    visitor = browser(service)
    answer = await visitor.open("/administration/account")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/sign-in?next=%2Fadministration%2Faccount"
    answer = await visitor.sign_in("ada", next="/administration/account")
    assert answer.headers["location"] == "/administration/account"
    assert "Ada" in await visitor.text("/administration/account")


@ON_SQLITE
@pytest.mark.spec("people.local-account")
@pytest.mark.parametrize("name", ["ada", "ADA", " ada "])
async def test_a_name_is_the_same_in_any_case(service: Service, name: str) -> None:
    await add_person(service, "ada")
    assert (await browser(service).sign_in(name)).status_code == 303


@ON_SQLITE
async def test_a_password_counts_as_it_was_typed(service: Service) -> None:
    await add_person(service, "ada")
    for password in (f" {PASSWORD}", f"{PASSWORD} ", PASSWORD.upper(), PASSWORD[:-1], ""):
        assert (await browser(service).sign_in("ada", password)).status_code == 403
    assert (await browser(service).sign_in("ada")).status_code == 303


@ON_SQLITE
@pytest.mark.spec("people.no-default-password")
async def test_where_there_is_nobody_the_form_says_how_to_begin(service: Service) -> None:
    visitor = browser(service)
    assert "Nobody has an account yet" in await visitor.text("/sign-in")
    for name in ("admin", "factbook"):
        for password in ("", "password", name):
            answer = await browser(service, address=f"{name}{password}").sign_in(name, password)
            assert answer.status_code == 403
    await add_person(service, "ada")
    assert "Nobody has an account yet" not in await visitor.text("/sign-in")


@ON_SQLITE
async def test_nobody_learns_who_has_an_account(service: Service) -> None:
    """OWASP WSTG-IDNT-04: the answer is the same, whoever it is that does not get in."""
    await add_person(service, "ada")
    await add_person(service, "gone", "viewer")
    await signed_in(service, "elsewhere", "viewer")
    now = service.time()
    await service.state.database.write(lambda tx: people.disable(tx, "user:default/gone", now))
    answers = {}
    for name, password in (
        ("ada", "a wrong password"),
        ("nobody", PASSWORD),
        ("gone", PASSWORD),
        ("gone", "a wrong password"),
        ("elsewhere", PASSWORD),
        ("not a name!", PASSWORD),
        ("", PASSWORD),
        ("x" * 5000, PASSWORD),
    ):
        answer = await browser(service).sign_in(name, password)
        text = re.sub(r'value="[^"]*"', "", answer.text)
        assert WRONG in text
        answers[name[:20], password] = (answer.status_code, text, sorted(answer.headers))
    assert len({str(each) for each in answers.values()}) == 1


async def test_a_name_is_not_echoed_as_anything_but_text(service: Service) -> None:
    answer = await browser(service).sign_in('"><script>alert(1)</script>', "x")
    assert "<script>alert" not in answer.text


# How often


@ON_SQLITE
async def test_too_many_wrong_passwords_of_a_name_have_to_wait(service: Service) -> None:
    """OWASP WSTG-ATHN-03; the waiting ends by itself, so that nobody is kept out for good."""
    await add_person(service, "ada")
    for number in range(10):
        answer = await browser(service, address=f"192.0.2.{number}").sign_in("ada", "wrong")
        assert answer.status_code == 403
    stranger = browser(service, address="198.51.100.1")
    answer = await stranger.sign_in("Ada")
    assert answer.status_code == 429
    assert "Too many attempts. Try again in" in answer.text
    assert not await is_in(stranger)
    await add_person(service, "bob")
    assert (await browser(service, address="192.0.2.1").sign_in("bob")).status_code == 303
    service.time.advance(MINUTE)
    assert (await stranger.sign_in("ada")).status_code == 303


@ON_SQLITE
async def test_too_many_wrong_passwords_from_an_address_have_to_wait(start: StartService) -> None:
    service = await start(failed_logins=3)
    await add_person(service, "ada")
    for name in ("one", "two", "three"):
        assert (await browser(service).sign_in(name, "wrong")).status_code == 403
    assert (await browser(service).sign_in("ada")).status_code == 429
    assert (await browser(service, address="192.0.2.9").sign_in("ada")).status_code == 303
    service.time.advance(MINUTE)
    assert (await browser(service).sign_in("ada")).status_code == 303


@ON_SQLITE
async def test_a_name_is_limited_whether_it_is_anybodys_or_not(service: Service) -> None:
    seen = []
    for name in ("ada", "nobody"):
        if name == "ada":
            await add_person(service, name)
        for number in range(11):
            address = f"{name}-{number}"
            answer = await browser(service, address=address).sign_in(name, "wrong")
        seen.append(answer.status_code)
    assert seen == [429, 429]


@ON_SQLITE
async def test_links_cannot_be_guessed_for_long(start: StartService) -> None:
    service = await start(failed_logins=3)
    await add_person(service, "ada")
    for number in range(3):
        assert (await browser(service).open(f"/welcome/guess-{number}")).status_code == 404
    assert (await browser(service).sign_in("ada")).status_code == 429


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
    service.time.advance(IDLE - 1)
    copied = browser(service)
    copied.http.cookies.set(SESSION, ada.http.cookies[SESSION])
    assert await is_in(copied)
    await notes(service)
    service.time.advance(IDLE - 1)
    assert await is_in(ada)
    await notes(service)
    service.time.advance(IDLE)
    assert not await is_in(ada)


async def test_a_session_ends_however_much_it_is_used(service: Service) -> None:
    ada = await signed_in(service)
    for _ in range(LIFETIME // DAY - 1):
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
    await database.write(lambda tx: people.change_role(tx, ref, "viewer", now))
    assert (await bob.open("/administration/people")).status_code == 403
    assert await is_in(bob)
    await database.write(lambda tx: people.disable(tx, ref, now))
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
@pytest.mark.parametrize(
    "value", ["", "x", "x" * 4000, "../../etc", "%00", '"quoted"', "a=b; c", "\xff"], ids=repr
)
async def test_a_cookie_of_nobody_is_nobodys(service: Service, value: str) -> None:
    await add_person(service, "ada")
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
        f"Max-Age={LIFETIME // 1000}",
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


# Where to go on


@ON_SQLITE
@pytest.mark.parametrize(
    "target",
    [
        "//evil.example",
        "///evil.example",
        "////evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "/\\/evil.example",
        "https://evil.example",
        "HTTPS:evil.example",
        "http:/evil.example",
        "javascript:alert(1)",
        "JavaScript:alert(1)",
        "data:text/html,x",
        "evil.example",
        "@evil.example",
        "/\t/evil.example",
        "/\n/evil.example",
        "\t//evil.example",
        " //evil.example",
        "/\r\nset-cookie: a=b",
        "/a\x00b",
        "/\u2028/evil",
        "/%0d%0aset-cookie:a=b",
        "/%09/evil.example",
        "/%5cevil.example",
        "",
        "[",
        "//[",
        "/" * 3,
    ],
    ids=repr,
)
async def test_signing_in_leads_to_no_other_place(service: Service, target: str) -> None:
    """OWASP WSTG-CLNT-04, open redirects: also for who is signed in already."""
    ada = await signed_in(service)
    answer = await ada.http.get("/sign-in", params={"next": target})
    assert answer.status_code == 303
    location = answer.headers["location"]
    # What stays escaped in a path leads nowhere else.
    assert location == "/" or re.fullmatch(r"/%(0d%0a|09/|5c)[\w.:=-]+", location)
    assert "set-cookie" not in answer.headers


@ON_SQLITE
async def test_the_form_leads_to_a_page_of_this_service_alone(service: Service) -> None:
    await add_person(service, "ada")
    for target, location in (
        ("/catalog?q=a%20b&kind=api", "/catalog?q=a%20b&kind=api"),
        ("/sets/a%2Fb", "/sets/a%2Fb"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("https://evil.example", "/"),
        ("/\r\nset-cookie: a=b", "/"),
        ("//[", "/"),
    ):
        answer = await browser(service).sign_in("ada", next=target)
        assert (answer.status_code, answer.headers["location"]) == (303, location)


# Links that work once


async def link(service: Service, **given: Any) -> str:
    """The path of a new invitation."""
    secret, key, now = invitations.generate(), service.state.token_key, service.time()
    fields = {"role": "viewer", "made_by": "test", "now": now, "lifetime": DAY, **given}
    digest = invitations.digest(secret, key)
    await service.state.database.write(lambda tx: invitations.make(tx, digest=digest, **fields))
    return f"/welcome/{secret}"


async def test_a_link_that_two_use_at_once_lets_in_one(service: Service) -> None:
    path = await link(service)
    visitors = [browser(service), browser(service)]
    for each in visitors:
        await each.text(path)
    answers = await asyncio.gather(
        *(
            each.send(path, name=name, password=PASSWORD, again=PASSWORD)
            for each, name in zip(visitors, ("kim", "lou"), strict=True)
        )
    )
    assert sorted(answer.status_code for answer in answers) == [303, 404]
    assert len(await people.listed(service.state.database)) == 1
    assert (await visitors[0].open(path)).status_code == 404


@ON_SQLITE
@pytest.mark.parametrize(
    ("fields", "status", "wrong"),
    [
        ({"name": "a b"}, 400, "A name has 1 to 63 characters"),
        ({"name": ""}, 400, "A name has 1 to 63 characters"),
        ({"name": "ADA"}, 409, "There is a person user:default/ada already."),
        ({"password": "short", "again": "short"}, 400, "A password has 12 to 256 characters."),
        ({"again": "something else"}, 400, "The two passwords differ."),
        ({"name": "k" * 12, "password": "k" * 12, "again": "k" * 12}, 400, "must not be"),
    ],
    ids=str,
)
async def test_what_makes_no_account_leaves_the_link_as_it_was(
    service: Service, fields: dict[str, str], status: int, wrong: str
) -> None:
    await add_person(service, "ada")
    path = await link(service)
    visitor = browser(service)
    await visitor.text(path)
    answer = await visitor.send(
        path, **{"name": "kim", "password": PASSWORD, "again": PASSWORD, **fields}
    )
    assert answer.status_code == status
    assert wrong in answer.text
    sent = {"name": "kim", "password": PASSWORD, "again": PASSWORD}
    assert (await visitor.send(path, **sent)).status_code == 303


async def test_an_invitation_gives_no_role_but_its_own(service: Service) -> None:
    """OWASP mass assignment: further fields count for nothing."""
    path = await link(service)
    visitor = browser(service)
    await visitor.text(path)
    more = {"role": "administrator", "ref": "user:default/ada", "issuer": "x"}
    await visitor.send(path, name="kim", password=PASSWORD, again=PASSWORD, **more)
    [kim] = await people.listed(service.state.database)
    assert (kim.ref, kim.role, kim.issuer) == ("user:default/kim", "viewer", None)


async def test_the_address_of_a_link_is_told_to_no_other_page_and_recorded_nowhere(
    service: Service,
) -> None:
    path = await link(service)
    visitor = browser(service)
    answer = await visitor.open(path)
    assert answer.headers["referrer-policy"] == "strict-origin"
    assert answer.headers["cache-control"] == "no-store"
    refused = await visitor.send(path, csrf="wrong", name="kim")
    assert refused.status_code == 403
    await service.state.refusals.write()
    rows = str(await service.state.database.all("SELECT * FROM audit"))
    assert "call.refused" in rows
    assert path.removeprefix("/welcome/") not in rows
    metrics = (await service.http.get("/metrics")).text
    assert path.removeprefix("/welcome/") not in metrics


@ON_SQLITE
async def test_what_was_typed_as_a_name_is_not_recorded_unless_it_is_one(service: Service) -> None:
    """Who types the password into the wrong field does not find it in the audit."""
    await add_person(service, "ada")
    for name in ("ada", "my secret words", "mysecretwords"):
        await browser(service).sign_in(name, "wrong password")
    await service.state.refusals.write()
    rows = await service.state.database.all(
        "SELECT object FROM audit WHERE action = 'session.start' ORDER BY object"
    )
    assert [row[0] for row in rows] == ["", "", "user:default/ada"]
    everything = str(await service.state.database.all("SELECT * FROM audit"))
    assert "secret" not in everything
    assert "wrong password" not in everything


async def test_passwords_are_stored_as_hashes_alone(service: Service) -> None:
    await with_password(service)
    rows = await service.state.database.all("SELECT password FROM people")
    assert rows[0][0].startswith("$argon2id$")
    tables = [await service.state.database.all(f"SELECT * FROM {t}") for t in ("people", "audit")]  # noqa: S608
    assert PASSWORD not in str(tables)


async def test_the_welcome_page_says_what_the_link_makes(service: Service) -> None:
    page = words(await browser(service).text(await link(service)))
    assert "This link makes one account, as viewer, and works once." in page
    gone = await browser(service).text("/welcome/gone", 404)
    assert "This link was used already or has ended" in gone
