"""Signing in: the form, where it leads, and what is kept of what was typed."""

import re

import pytest

from factbook.auth import users
from tests.service import Service
from tests.web.visiting import PASSWORD, add_person, browser, signed_in, with_password

WRONG = "The name or the password is wrong."
ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


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
async def test_a_name_is_the_same_in_any_case(service: Service, subtests: pytest.Subtests) -> None:
    await add_person(service, "ada")
    for name in ["ada", "ADA", " ada "]:
        with subtests.test(name=name):
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
    await service.state.database.write(lambda tx: users.disable_user(tx, "user:default/gone", now))
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


# Where to go on


@ON_SQLITE
async def test_signing_in_leads_to_no_other_place(
    service: Service, subtests: pytest.Subtests
) -> None:
    """OWASP WSTG-CLNT-04, open redirects: also for who is signed in already."""
    ada = await signed_in(service)
    for target in [
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
    ]:
        with subtests.test(target=target):
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


# What is kept


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
