"""Administration → People: inviting, changing and keeping out who signs in."""

import re
from html import unescape

import pytest

from factbook.auth import invitations, users
from factbook.clock import DAY
from factbook.storage import Transaction
from factbook.web.admin import PEOPLE_PATH
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

_LINK = re.compile(r"<code>(http[^<]*/welcome/[-\w]+)</code>")
ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


async def invited(ada: Browser, role: str = "viewer", name: str = "kim") -> str:
    """The path of a new invitation's link."""
    await ada.text(PEOPLE_PATH)
    answer = await ada.send(f"{PEOPLE_PATH}/-/invitations", role=role, name=name)
    assert answer.status_code == 201, words(answer.text)
    return path_of(answer.text)


def path_of(page: str) -> str:
    found = _LINK.search(page)
    assert found, words(page)
    link = unescape(found[1])
    assert link.startswith("http://127.0.0.1:8000/")
    return link.removeprefix("http://127.0.0.1:8000")


async def accept(service: Service, path: str, **fields: str) -> Browser:
    """Somebody who opens the link and fills in the form."""
    visitor = browser(service)
    await visitor.text(path)
    answer = await visitor.send(path, password=PASSWORD, again=PASSWORD, **fields)
    assert answer.status_code == 303, words(answer.text)
    return visitor


async def actions(service: Service, object: str) -> list[str]:
    found = await service.http.get("/api/access/v1/audit", params={"object": object})
    assert found.status_code == 200, found.text
    return [record["action"] for record in found.json()["records"]]


async def test_people_are_listed_with_what_matters(service: Service) -> None:
    ada = await signed_in(service)
    await add_person(service, "vic", "viewer")
    await service.token(owner="user:default/vic")
    page = await ada.text(PEOPLE_PATH)
    rows = re.findall(r"<tr>.*?</tr>", page, re.S)
    [vic] = [words(row) for row in rows if "/people/vic" in row]
    assert vic == "vic Vic Viewer Password never 1 active"


@pytest.mark.spec("people.local-account")
async def test_an_invitation_makes_one_account_of_its_role(service: Service) -> None:
    ada = await signed_in(service)
    path = await invited(ada)
    assert path.removeprefix("/welcome/") not in await ada.text(PEOPLE_PATH)
    kim = await accept(service, path, name="kim", display_name="Kim Example")
    assert (await kim.open("/administration/account")).status_code == 200
    assert (await kim.open(PEOPLE_PATH)).status_code == 403
    found = await users.find_user(service.state.database, "user:default/kim")
    assert found is not None
    assert (found.role, found.created_by) == ("viewer", "user:default/ada")
    assert (await browser(service).open(path)).status_code == 404
    assert "person.create" in await actions(service, "user:default/kim")


async def test_an_invitation_ends_after_three_days(service: Service) -> None:
    ada = await signed_in(service)
    path = await invited(ada)
    service.time.advance(3 * DAY - 1)
    assert (await browser(service).open(path)).status_code == 200
    service.time.advance(1)
    assert (await browser(service).open(path)).status_code == 404


async def test_an_invitation_is_withdrawn_by_its_row(service: Service) -> None:
    ada = await signed_in(service)
    path = await invited(ada, "administrator")
    page = await ada.text(PEOPLE_PATH)
    assert "user:kim, administrator" in words(page)
    [id_] = re.findall(r'name="invitation" value="([^"]+)"', page)
    done = await ada.done(f"{PEOPLE_PATH}/-/withdraw", invitation=id_)
    assert "its link no longer works" in done
    assert (await browser(service).open(path)).status_code == 404
    again = await ada.send(f"{PEOPLE_PATH}/-/withdraw", invitation=id_)
    assert again.status_code == 404
    assert "has been used or has expired" in again.text
    assert await actions(service, id_) == ["person.withdraw", "person.invite"]


@ON_SQLITE
async def test_the_link_begins_with_the_address_that_the_settings_say(start: StartService) -> None:
    service = await start(public_url="http://127.0.0.1:8000/")
    ada = await signed_in(service)
    assert (await invited(ada)).startswith("/welcome/")


@ON_SQLITE
async def test_an_invitation_needs_a_role_that_there_is(service: Service) -> None:
    ada = await signed_in(service)
    answer = await ada.send(f"{PEOPLE_PATH}/-/invitations", role="owner", name="kim")
    assert answer.status_code == 400
    assert 'There is no role "owner"' in unescape(answer.text)
    assert await invitations.list_invitations(service.state.database, service.time()) == []


async def test_a_role_that_is_changed_counts_from_the_next_request_on(service: Service) -> None:
    ada = await signed_in(service)
    vic = await signed_in(service, "vic", "viewer")
    assert (await vic.open(PEOPLE_PATH)).status_code == 403
    await ada.text(f"{PEOPLE_PATH}/vic")
    done = await ada.done(f"{PEOPLE_PATH}/vic/role", role="administrator")
    assert "user:default/vic now has the role Administrator" in done
    assert (await vic.open(PEOPLE_PATH)).status_code == 200
    await ada.done(f"{PEOPLE_PATH}/vic/role", role="viewer")
    assert (await vic.open(PEOPLE_PATH)).status_code == 403
    assert (await actions(service, "user:default/vic"))[:2] == ["person.change", "person.change"]


async def test_a_disabled_person_is_out_at_once_and_comes_back_when_enabled(
    service: Service,
) -> None:
    ada = await signed_in(service)
    vic = await with_password(service, "vic", "viewer")
    await ada.text(f"{PEOPLE_PATH}/vic")
    page = await ada.done(f"{PEOPLE_PATH}/vic/disable")
    assert "disabled" in words(page)
    assert (await vic.open("/administration/account")).status_code == 303
    assert (await browser(service).sign_in("vic")).status_code == 403
    await ada.done(f"{PEOPLE_PATH}/vic/enable")
    answer = await browser(service).sign_in("vic")
    assert answer.status_code == 303, words(answer.text)


async def test_a_password_is_reset_with_a_link_that_works_once(service: Service) -> None:
    ada = await signed_in(service)
    vic = await signed_in(service, "vic", "viewer")
    await ada.text(f"{PEOPLE_PATH}/vic")
    answer = await ada.send(f"{PEOPLE_PATH}/vic/password")
    assert answer.status_code == 201
    path = path_of(answer.text)
    assert "New password for user:vic" in words(await ada.text(PEOPLE_PATH))
    assert (await vic.open("/administration/account")).status_code == 200
    visitor = browser(service)
    await visitor.text(path)
    other = "another long password"
    assert (await visitor.send(path, password=other, again=other)).status_code == 303
    assert (await vic.open("/administration/account")).status_code == 303
    assert (await browser(service).sign_in("vic")).status_code == 403
    assert (await browser(service).sign_in("vic", other)).status_code == 303
    assert (await browser(service).open(path)).status_code == 404


async def test_a_disabled_person_gets_no_link_for_a_password(service: Service) -> None:
    ada = await signed_in(service)
    await add_person(service, "vic", "viewer")
    await ada.text(f"{PEOPLE_PATH}/vic")
    await ada.done(f"{PEOPLE_PATH}/vic/disable")
    answer = await ada.send(f"{PEOPLE_PATH}/vic/password")
    assert answer.status_code == 409
    assert "is disabled and cannot sign in" in answer.text
    assert "password" not in words(await ada.text(f"{PEOPLE_PATH}/vic")).partition("Change")[2]


async def test_all_sessions_of_a_person_end(service: Service) -> None:
    ada = await signed_in(service)
    vic = await signed_in(service, "vic", "viewer")
    await ada.text(f"{PEOPLE_PATH}/vic")
    await ada.done(f"{PEOPLE_PATH}/vic/sessions")
    assert (await vic.open("/administration/account")).status_code == 303
    assert (await actions(service, "user:default/vic"))[0] == "session.end"


@pytest.mark.parametrize(
    ("step", "fields"), [("disable", {}), ("role", {"role": "viewer"})], ids=str
)
async def test_the_last_administrator_stays_and_the_page_says_why(
    service: Service, step: str, fields: dict[str, str]
) -> None:
    ada = await signed_in(service)
    await ada.text(f"{PEOPLE_PATH}/ada")
    answer = await ada.send(f"{PEOPLE_PATH}/ada/{step}", **fields)
    assert answer.status_code == 409
    assert "is the only administrator; give someone else the role first." in answer.text
    assert (await ada.open(PEOPLE_PATH)).status_code == 200


async def test_a_viewer_may_nothing_here(service: Service) -> None:
    await signed_in(service)
    vic = await signed_in(service, "vic", "viewer")
    page = await vic.text("/administration/account")
    assert PEOPLE_PATH not in page
    for path in (PEOPLE_PATH, f"{PEOPLE_PATH}/ada"):
        assert (await vic.open(path)).status_code == 403
    await vic.text("/administration/account")
    steps = ("ada/disable", "ada/role", "ada/password", "ada/sessions", "vic/role", "vic/enable")
    for step in (*steps, "-/invitations", "-/withdraw"):
        answer = await vic.send(f"{PEOPLE_PATH}/{step}", role="administrator")
        assert answer.status_code == 403, step
    found = await users.find_user(service.state.database, "user:default/vic")
    assert found is not None
    assert found.role == "viewer"


async def test_nobody_of_this_name_is_not_found(
    service: Service, subtests: pytest.Subtests
) -> None:
    ada = await signed_in(service)
    for name in ["nobody", "..", "a%20b", "%00", "x" * 100]:
        with subtests.test(name=name):
            assert (await ada.open(f"{PEOPLE_PATH}/{name}")).status_code in {404, 303}
            assert (await ada.send(f"{PEOPLE_PATH}/{name}/enable")).status_code in {404, 405}


async def test_full_names_are_text_and_nothing_else(service: Service) -> None:
    ada = await signed_in(service)
    path = await invited(ada)
    evil = "<script>alert(1)</script>"
    await accept(service, path, name="kim", display_name=evil)
    for where in (PEOPLE_PATH, f"{PEOPLE_PATH}/kim"):
        page = await ada.text(where)
        assert "<script>alert" not in page
        assert evil in unescape(page)


async def test_many_people_come_in_pages(service: Service) -> None:
    ada = await signed_in(service)
    now = service.time()

    def work(transaction: Transaction) -> None:
        for number in range(51):
            users.create_user(
                transaction,
                ref=f"user:default/p{number:02}",
                display_name="P",
                role="viewer",
                created_by="test",
                now=now,
            )

    await service.state.database.write(work)
    first = await ada.text(PEOPLE_PATH)
    assert "p48" in first
    assert "p49" not in first
    [following] = re.findall(r'href="([^"]+)" rel="next"', first)
    second = await ada.text(unescape(following))
    assert "p50" in second
    assert "nothing yet" in second
