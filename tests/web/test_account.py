"""Administration → Account: name, password, sessions and appearance."""

import pytest

from factbook.auth import users
from tests.service import Service
from tests.web.visiting import PASSWORD, Browser, add_person, browser, signed_in, words

ACCOUNT = "/administration/account"
NEW = "another long password"


async def with_password(service: Service, name: str = "ada", role: str = "viewer") -> Browser:
    await add_person(service, name, role)
    found = browser(service)
    assert (await found.sign_in(name)).status_code == 303
    return found


async def test_the_full_name_can_be_changed(service: Service) -> None:
    visitor = await signed_in(service, role="viewer")
    page = await visitor.done(f"{ACCOUNT}/name", display_name="Ada <Countess> Lovelace")
    assert "Your name was changed." in page
    assert "Ada &lt;Countess&gt; Lovelace" in page
    assert "<Countess>" not in page


async def test_a_name_that_nobody_could_read_is_refused(
    service: Service, subtests: pytest.Subtests
) -> None:
    visitor = await signed_in(service)
    for name in ["", " ", "x" * 201, "a\x07b"]:
        with subtests.test(name=name):
            answer = await visitor.send(f"{ACCOUNT}/name", display_name=name)
            assert answer.status_code == 400
            assert "A display name has 1 to 200 characters" in answer.text


async def test_a_new_password_ends_the_other_sessions_and_the_old_password(
    service: Service,
) -> None:
    visitor, elsewhere = await with_password(service), browser(service)
    await elsewhere.sign_in("ada")
    page = await visitor.done(f"{ACCOUNT}/password", current=PASSWORD, password=NEW, again=NEW)
    assert "Your password was changed" in page
    assert (await elsewhere.open(ACCOUNT)).status_code == 303
    assert (await browser(service).sign_in("ada", PASSWORD)).status_code == 403
    assert (await browser(service).sign_in("ada", NEW)).status_code == 303


async def test_a_password_is_changed_only_by_who_knows_the_old_one(
    service: Service, subtests: pytest.Subtests
) -> None:
    visitor = await with_password(service)
    for current, password, again, said in [
        ("wrong password here", NEW, NEW, "The current password is wrong."),
        (PASSWORD, NEW, f"{NEW}!", "The two new passwords differ."),
        (PASSWORD, "hunter2", "hunter2", "12"),
        (PASSWORD, "", "", "12"),
    ]:
        with subtests.test(current=current, password=password, again=again):
            answer = await visitor.send(
                f"{ACCOUNT}/password", current=current, password=password, again=again
            )
            assert answer.status_code == 400
            assert said in answer.text
            assert password not in answer.text or not password
            assert (await browser(service).sign_in("ada")).status_code == 303


async def test_guessing_the_current_password_ends_soon(service: Service) -> None:
    visitor = await with_password(service)
    said = ""
    for _ in range(11):
        answer = await visitor.send(
            f"{ACCOUNT}/password", current="wrong password", password=NEW, again=NEW
        )
        said = answer.text
    assert "Too many attempts" in said
    answer = await visitor.send(f"{ACCOUNT}/password", current=PASSWORD, password=NEW, again=NEW)
    assert answer.status_code == 429


async def test_sessions_are_listed_and_ended_one_by_one(service: Service) -> None:
    visitor, elsewhere = await with_password(service), browser(service, address="192.0.2.7")
    await elsewhere.sign_in("ada")
    page = await visitor.text(ACCOUNT)
    assert "192.0.2.7" in page
    assert "this one" in page
    other = page.split('name="session" value="')[-1].split('"')[0]
    page = await visitor.done(f"{ACCOUNT}/sessions", session=other)
    assert "192.0.2.7" not in page
    assert (await elsewhere.open(ACCOUNT)).status_code == 303
    assert (await visitor.send(f"{ACCOUNT}/sessions", session=other)).status_code == 404


async def test_all_other_sessions_end_at_once(service: Service) -> None:
    visitor = await with_password(service)
    others = [browser(service) for _ in range(3)]
    for other in others:
        await other.sign_in("ada")
    await visitor.done(f"{ACCOUNT}/sessions", session="others")
    assert [(await other.open(ACCOUNT)).status_code for other in others] == [303] * 3
    assert (await visitor.open(ACCOUNT)).status_code == 200


async def test_nobody_ends_the_session_of_somebody_else(service: Service) -> None:
    ada, bob = await with_password(service), await with_password(service, "bob")
    page = await bob.text(ACCOUNT)
    assert 'name="session"' not in page
    hers = await service.state.database.one(
        "SELECT hash FROM sessions WHERE person = 'user:default/ada'"
    )
    assert hers is not None
    answer = await bob.send(f"{ACCOUNT}/sessions", session=hers[0][:16])
    assert answer.status_code == 404
    assert (await ada.open(ACCOUNT)).status_code == 200


async def test_the_theme_is_kept_by_the_browser(
    service: Service, subtests: pytest.Subtests
) -> None:
    visitor = await signed_in(service)
    for theme, expected in [("dark", True), ("light", True), ("system", False)]:
        with subtests.test(theme=theme):
            page = await visitor.done(f"{ACCOUNT}/theme", theme=theme)
            assert (f'data-theme="{theme}"' in page) is expected


async def test_there_are_no_other_themes(service: Service) -> None:
    visitor = await signed_in(service)
    answer = await visitor.send(f"{ACCOUNT}/theme", theme='"><script>')
    assert answer.status_code == 400
    assert "<script>" not in answer.text.replace('<script src="/static/', "")


async def test_whoever_has_no_password_is_not_asked_for_it(service: Service) -> None:
    visitor = await signed_in(service)
    assert "Current password" not in await visitor.text(ACCOUNT)
    answer = await visitor.send(f"{ACCOUNT}/password", current="", password=NEW, again=NEW)
    assert answer.status_code == 400
    assert await users.get_password_hash(service.state.database, "user:default/ada") is None


async def test_what_a_person_changes_is_in_the_audit(service: Service) -> None:
    visitor = await with_password(service)
    await visitor.done(f"{ACCOUNT}/name", display_name="Ada L.")
    await visitor.done(f"{ACCOUNT}/password", current=PASSWORD, password=NEW, again=NEW)
    answer = await service.http.get("/api/access/v1/audit?actor=user:default/ada")
    found = [(each["action"], each["detail"].get("changed")) for each in answer.json()["records"]]
    assert found == [
        ("person.change", "password"),
        ("person.change", "display name"),
        ("session.start", None),
    ]
    assert NEW not in answer.text
    assert PASSWORD not in answer.text


async def test_a_viewer_is_told_what_the_role_allows(service: Service) -> None:
    visitor = await signed_in(service, role="viewer")
    page = words(await visitor.text(ACCOUNT))
    assert "Catalog entity read (*)" in page
    assert "Access token manage" not in page
    assert "People" not in page.split("Administration")[1].split("Sign out")[0]
