"""Administration → Account → API access: generating tokens with a browser."""

from html import unescape

import pytest

from factbook.auth import tokens, users
from factbook.auth.permissions import (
    CATALOG_READ,
    CHECK_READ,
    PERMISSION_NAMES,
    SET_WRITE,
    SOURCE_READ,
    TITLES,
)
from factbook.clock import DAY, HOUR
from tests.service import Service
from tests.web.generating import PATH, VALUE, generate, made, status, the_token
from tests.web.visiting import add_person, browser, signed_in, words

ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.mark.spec("token.made-in-the-account-page", "token.value-shown-once", "token.has-a-name")
async def test_a_token_is_generated_shown_once_and_works(service: Service) -> None:
    ada = await signed_in(service)
    answer = await generate(ada, name="my agent")
    assert answer.status_code == 201
    assert answer.headers["cache-control"] == "no-store"
    value = VALUE.findall(answer.text)[0]
    assert await status(service, value) == 200
    token = await the_token(service, "my agent")
    assert token.owner == token.created_by == "user:default/ada"
    assert token.permissions == {CATALOG_READ, SOURCE_READ}
    for path in (PATH, f"{PATH}?all=1", "/administration/account", "/administration/audit"):
        page = await ada.text(path)
        assert value[4:20] not in page
    listed = words(await ada.text(PATH))
    assert "my agent" in listed
    assert TITLES[CATALOG_READ] in listed


async def test_a_form_that_is_sent_again_makes_no_second_token(service: Service) -> None:
    ada = await signed_in(service)
    request = "the form of one page"
    first = await generate(ada, request=request)
    again = await generate(ada, request=request)
    assert (first.status_code, again.status_code) == (201, 409)
    assert "This form was already sent" in again.text
    assert not VALUE.search(again.text)
    value = VALUE.findall(first.text)[0]
    await ada.done(f"{PATH}/revoke", token=(await the_token(service)).id)
    assert (await generate(ada, request=request)).status_code == 409
    assert await status(service, value) == 401


async def test_two_people_may_send_the_same_form_key(service: Service) -> None:
    ada = await signed_in(service)
    kim = await signed_in(service, "kim", "viewer")
    assert (await generate(ada, request="same")).status_code == 201
    assert (await generate(kim, request="same")).status_code == 201


@ON_SQLITE
@pytest.mark.spec("token.expires-after-90-days", "token.expiry-can-be-chosen")
@pytest.mark.parametrize(
    ("fields", "lifetime"),
    [
        ({}, 90 * DAY),
        ({"expires": "30d"}, 30 * DAY),
        ({"expires": "365d"}, 365 * DAY),
        ({"expires": "never"}, None),
        ({"expires": "other", "other": "12h"}, 12 * HOUR),
    ],
    ids=str,
)
async def test_a_token_expires_when_its_maker_says(
    service: Service, fields: dict[str, str], lifetime: int | None
) -> None:
    ada = await signed_in(service)
    await made(ada, **fields)
    token = await the_token(service)
    assert token.expires_at == (None if lifetime is None else service.time() + lifetime)


@ON_SQLITE
async def test_what_cannot_be_a_token_is_said_beside_the_form_which_keeps_what_was_typed(
    service: Service, subtests: pytest.Subtests
) -> None:
    ada = await signed_in(service)
    cases: list[tuple[dict[str, str], str]] = [
        ({"name": "  "}, "A name has 1 to 200 printable characters"),
        ({"name": "x" * 201}, "A name has 1 to 200 printable characters"),
        ({"name": "a\x1bb"}, "A name has 1 to 200 printable characters"),
        ({"preset": "chosen"}, "at least one permission"),
        ({"preset": "everything at all"}, "at least one permission"),
        ({"preset": "chosen", "permission": "do.anything"}, "There is no permission do.anything"),
        ({"expires": "other", "other": ""}, "is not a lifetime"),
        ({"expires": "other", "other": "-1d"}, "is not a lifetime"),
        ({"expires": "soon"}, "is not a lifetime"),
    ]
    for fields, wrong in cases:
        with subtests.test(fields=fields, wrong=wrong):
            answer = await generate(ada, **{"name": "kept name", **fields})
            assert answer.status_code == 400
            assert wrong in unescape(answer.text)
            if "name" not in fields:
                assert 'value="kept name"' in answer.text
            assert "kept name" not in {
                one.name for one in await tokens.list_tokens(service.state.database)
            }


async def test_permissions_are_chosen_one_by_one_too(service: Service) -> None:
    ada = await signed_in(service)
    await made(ada, preset="chosen", permission=[CATALOG_READ, "audit.read"])
    assert (await the_token(service)).permissions == {CATALOG_READ, "audit.read"}
    await made(ada, name="all", preset="all")
    assert (await the_token(service, "all")).permissions == PERMISSION_NAMES
    await made(ada, name="push", preset="push")
    assert (await the_token(service, "push")).permissions == {SET_WRITE}


@pytest.mark.spec("token.never-exceeds-its-creator")
async def test_a_viewer_cannot_make_a_token_that_may_more(service: Service) -> None:
    vic = await signed_in(service, "vic", "viewer")
    page = await vic.text(PATH)
    assert SET_WRITE not in page
    assert 'value="push"' not in page
    answer = await generate(vic, preset="chosen", permission=[CATALOG_READ, SET_WRITE])
    assert answer.status_code == 403
    assert f'may not "{TITLES[SET_WRITE]}"' in unescape(answer.text)
    await made(vic, name="all", preset="all")
    assert (await the_token(service, "all")).permissions == {CATALOG_READ, SOURCE_READ, CHECK_READ}


@pytest.mark.spec("token.never-exceeds-its-creator")
async def test_a_role_that_is_lost_between_page_and_form_counts(service: Service) -> None:
    ada = await signed_in(service)
    await add_person(service, "bob")
    await ada.text(PATH)
    now = service.time()
    await service.state.database.write(
        lambda tx: users.change_user_role(tx, "user:default/ada", "viewer", now)
    )
    answer = await ada.send(f"{PATH}/tokens", name="late", preset="push", request="r")
    assert answer.status_code == 400
    await made(ada, name="late", preset="all")
    assert (await the_token(service, "late")).permissions == {CATALOG_READ, SOURCE_READ, CHECK_READ}


@pytest.mark.spec("token.dies-with-the-account")
async def test_a_token_made_on_the_page_dies_with_the_account(service: Service) -> None:
    vic = await signed_in(service, "vic", "viewer")
    value = await made(vic)
    assert await status(service, value) == 200
    ada = await signed_in(service)
    await ada.text("/administration/people/vic")
    await ada.done("/administration/people/vic/disable")
    assert await status(service, value) == 401


async def test_who_is_not_signed_in_makes_nothing(service: Service) -> None:
    visitor = browser(service)
    answer = await visitor.open(PATH)
    assert answer.headers["location"].startswith("/sign-in?next=")
    await visitor.open("/sign-in")
    answer = await visitor.send(f"{PATH}/tokens", name="x", preset="ask")
    assert answer.status_code == 303
    assert await tokens.list_tokens(service.state.database) != []
    assert "x" not in {one.name for one in await tokens.list_tokens(service.state.database)}
