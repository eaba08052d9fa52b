"""How often one may try to sign in."""

import pytest

from factbook.clock import MINUTE
from tests.conftest import StartService
from tests.service import Service
from tests.web.sessions import is_in
from tests.web.visiting import add_person, browser

ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


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
