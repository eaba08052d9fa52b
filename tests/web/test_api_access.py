"""Administration → Account → API access: making, listing and revoking tokens with a browser."""

import json
import re
from html import unescape
from typing import Any

import httpx2
import pytest

from factbook.auth import people, store, tokens
from factbook.auth.permissions import CATALOG_READ, NAMES, SET_WRITE, SOURCE_READ, TITLES
from factbook.clock import DAY, HOUR
from tests.conftest import StartService
from tests.service import Service
from tests.web.visiting import Browser, add_person, browser, signed_in, with_password, words

PATH = "/administration/account/api-access"
_REQUEST = re.compile(r'name="request" value="([^"]+)"')
_VALUE = re.compile(r"fbk_[0-9A-Za-z]{46}")
ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


async def generate(visitor: Browser, **fields: Any) -> httpx2.Response:
    """Fill in the form and send it."""
    found = _REQUEST.search(await visitor.text(PATH))
    assert found
    sent = {"name": "ci", "preset": "ask", "expires": "90d", "request": found[1], **fields}
    return await visitor.send(f"{PATH}/tokens", **sent)


async def made(visitor: Browser, **fields: Any) -> str:
    """The value of a new token."""
    answer = await generate(visitor, **fields)
    assert answer.status_code == 201, words(answer.text)
    found = _VALUE.search(answer.text)
    assert found
    return found[0]


async def the_token(service: Service, name: str = "ci") -> store.Token:
    [found] = [one for one in await store.listed(service.state.database) if one.name == name]
    return found


async def status(service: Service, value: str, path: str = "/api/catalog/entities") -> int:
    async with service.client(value) as http:
        return (await http.get(path)).status_code


# Generating


@pytest.mark.spec("token.made-in-the-account-page", "token.value-shown-once", "token.has-a-name")
async def test_a_token_is_generated_shown_once_and_works(service: Service) -> None:
    ada = await signed_in(service)
    answer = await generate(ada, name="my agent")
    assert answer.status_code == 201
    assert answer.headers["cache-control"] == "no-store"
    value = _VALUE.findall(answer.text)[0]
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
    assert "This form was sent before" in again.text
    assert not _VALUE.search(again.text)
    value = _VALUE.findall(first.text)[0]
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
@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"name": "  "}, "A name has 1 to 200 characters"),
        ({"name": "x" * 201}, "A name has 1 to 200 characters"),
        ({"name": "a\x1bb"}, "A name has 1 to 200 characters"),
        ({"preset": "chosen"}, "one permission at least"),
        ({"preset": "everything at all"}, "one permission at least"),
        ({"preset": "chosen", "permission": "do.anything"}, "There is no permission do.anything"),
        ({"expires": "other", "other": ""}, "is not a lifetime"),
        ({"expires": "other", "other": "-1d"}, "is not a lifetime"),
        ({"expires": "soon"}, "is not a lifetime"),
    ],
    ids=str,
)
async def test_what_cannot_be_a_token_is_said_beside_the_form_which_keeps_what_was_typed(
    service: Service, fields: dict[str, str], wrong: str
) -> None:
    ada = await signed_in(service)
    answer = await generate(ada, **{"name": "kept name", **fields})
    assert answer.status_code == 400
    assert wrong in unescape(answer.text)
    if "name" not in fields:
        assert 'value="kept name"' in answer.text
    assert "kept name" not in {one.name for one in await store.listed(service.state.database)}


async def test_permissions_are_chosen_one_by_one_too(service: Service) -> None:
    ada = await signed_in(service)
    await made(ada, preset="chosen", permission=[CATALOG_READ, "audit.read"])
    assert (await the_token(service)).permissions == {CATALOG_READ, "audit.read"}
    await made(ada, name="all", preset="all")
    assert (await the_token(service, "all")).permissions == NAMES
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
    assert (await the_token(service, "all")).permissions == {CATALOG_READ, SOURCE_READ}


@pytest.mark.spec("token.never-exceeds-its-creator")
async def test_a_role_that_is_lost_between_page_and_form_counts(service: Service) -> None:
    ada = await signed_in(service)
    await add_person(service, "bob")
    await ada.text(PATH)
    now = service.time()
    await service.state.database.write(
        lambda tx: people.change_role(tx, "user:default/ada", "viewer", now)
    )
    answer = await ada.send(f"{PATH}/tokens", name="late", preset="push", request="r")
    assert answer.status_code == 400
    await made(ada, name="late", preset="all")
    assert (await the_token(service, "late")).permissions == {CATALOG_READ, SOURCE_READ}


@pytest.mark.spec("token.dies-with-the-account")
async def test_a_token_made_on_the_page_dies_with_the_account(service: Service) -> None:
    vic = await signed_in(service, "vic", "viewer")
    value = await made(vic)
    assert await status(service, value) == 200
    ada = await signed_in(service)
    await ada.text("/administration/people/vic")
    await ada.done("/administration/people/vic/disable")
    assert await status(service, value) == 401


# What to do with it


async def test_the_lines_to_copy_hold_the_address_and_the_token(start: StartService) -> None:
    service = await start(public_url="https://facts.example.com/", push_word="acme")
    ada = browser(service)
    ada.http.base_url = httpx2.URL("https://facts.example.com")
    await add_person(service, "ada")
    assert (await ada.sign_in("ada")).status_code == 303
    answer = await generate(ada, preset="all")
    [value] = set(_VALUE.findall(answer.text))
    codes = [unescape(code) for code in re.findall(r"<code>(.*?)</code>", answer.text, re.S)]
    assert codes[0] == value
    server = "https://facts.example.com"
    assert f"export FACTBOOK_SERVER={server}\nexport FACTBOOK_TOKEN={value}" in codes
    configured = [json.loads(code) for code in codes if code.startswith("{")]
    [cursor] = [one for one in configured if "url" in one.get("mcpServers", {}).get("factbook", {})]
    assert cursor["mcpServers"]["factbook"] == {
        "url": f"{server}/api/mcp/v1/tech-insights-facts",
        "headers": {"Authorization": f"Bearer {value}"},
    }
    assert any(code.startswith("claude mcp add ") for code in codes)
    assert any(f"-X PUT {server}/api/catalog/acme-entities/sets/" in code for code in codes)
    assert all(value in code for code in codes)


async def test_only_what_the_token_may_is_offered(service: Service) -> None:
    ada = await signed_in(service)
    pushing = words((await generate(ada, preset="push")).text)
    assert "Push a set with curl" in pushing
    assert "Cursor" not in pushing
    asking = words((await generate(ada, name="asks", preset="ask")).text)
    assert "Cursor" in asking
    assert "Push a set with curl" not in asking


@ON_SQLITE
async def test_a_host_that_is_no_address_stands_in_no_line_for_a_shell(
    start: StartService,
) -> None:
    service = await start(host="0.0.0.0")  # noqa: S104 - answers for every host, and listens nowhere
    ada = await signed_in(service)
    page = await ada.text(PATH)
    request = _REQUEST.findall(page)[0]
    fields = {"csrf": ada.csrf, "name": "x", "preset": "ask", "request": request}
    answer = await ada.http.post(
        f"{PATH}/tokens", data=fields, headers={"host": "a$(touch${IFS}b)", "accept": "text/html"}
    )
    assert answer.status_code == 201
    assert "touch" not in answer.text


# The list


async def test_a_token_is_listed_with_its_state(service: Service) -> None:
    ada = await with_password(service)
    await made(ada, name="short", expires="other", other="1h")
    await made(ada, name="long", expires="365d")
    value = await made(ada, name="soon", expires="30d")
    assert "never" in words(await ada.text(PATH))
    await status(service, value)
    service.time.advance(20 * DAY)
    # Nobody is signed in for so long.
    await ada.sign_in("ada")
    listed = words(await ada.text(PATH))
    assert "expired" in listed
    assert "in 10 days" in listed
    assert "20 days ago" in listed
    page = await ada.text(PATH)
    assert re.search(r'state warn">\s*<time[^>]*>in 10 days', page)


async def test_names_are_text_and_nothing_else(service: Service) -> None:
    ada = await signed_in(service)
    evil = "<script>alert(1)</script>\"'&lt;"
    answer = await generate(ada, name=evil)
    assert "<script>alert" not in answer.text
    page = await ada.text(PATH)
    assert "<script>alert" not in page
    assert evil in unescape(page)


async def test_where_there_is_no_token_yet_the_page_says_what_one_is(service: Service) -> None:
    vic = await signed_in(service, "vic", "viewer")
    assert "A token is what agents, scripts and the command factbook call" in words(
        await vic.text(PATH)
    )


async def test_a_viewer_sees_and_revokes_none_but_own_tokens(service: Service) -> None:
    ada = await signed_in(service)
    value = await made(ada, name="of ada")
    vic = await signed_in(service, "vic", "viewer")
    await made(vic, name="of vic")
    page = words(await vic.text(PATH))
    assert "of vic" in page
    assert "of ada" not in page
    assert "everybody" not in page
    assert (await vic.open(f"{PATH}?all=1")).status_code == 403
    await vic.text(PATH)
    answer = await vic.send(f"{PATH}/revoke", token=(await the_token(service, "of ada")).id)
    assert answer.status_code == 404
    assert (await vic.send(f"{PATH}/revoke", token="of ada")).status_code == 404
    assert await status(service, value) == 200


@pytest.mark.spec("token.revocation-acts-on-next-request")
async def test_an_administrator_sees_and_revokes_all_tokens(service: Service) -> None:
    vic = await signed_in(service, "vic", "viewer")
    value = await made(vic, name="of vic")
    ada = await signed_in(service)
    assert "of vic" not in words(await ada.text(PATH))
    page = words(await ada.text(f"{PATH}?all=1"))
    assert "of vic" in page
    assert "user:vic" in page
    of_vic = words(await ada.text(f"{PATH}?all=1&owner=user:default/vic"))
    assert "of vic" in of_vic
    assert "user:tester" not in of_vic
    done = await ada.done(f"{PATH}/revoke", token=(await the_token(service, "of vic")).id, all="1")
    assert 'The token "of vic" is revoked.' in unescape(done)
    assert await status(service, value) == 401
    again = await ada.send(f"{PATH}/revoke", token="gone", all="1")
    assert again.status_code == 404
    assert "There is no token" in unescape(again.text)


async def test_a_long_list_comes_in_pages(service: Service) -> None:
    ada = await signed_in(service)

    for number in range(51):
        service.time.advance(1)
        await service.token(owner="user:default/ada", name=f"number-{number:02}")
    first = await ada.text(PATH)
    assert "number-50" in first
    assert "number-00" not in first
    [following] = re.findall(r'href="([^"]+)" rel="next"', first)
    second = await ada.text(unescape(following))
    assert "number-00" in second
    assert "number-01" not in second
    assert 'rel="next"' not in second
    assert (await ada.open(f"{PATH}?after=nonsense")).status_code == 400


@pytest.mark.spec("errors.no-secret")
async def test_making_and_revoking_is_audited_without_the_value(service: Service) -> None:
    ada = await signed_in(service)
    value = await made(ada)
    token = await the_token(service)
    await ada.done(f"{PATH}/revoke", token=token.id)
    answer = await service.http.get("/api/access/v1/audit", params={"object": token.id})
    assert answer.status_code == 200, answer.text
    records = answer.json()["records"]
    assert [(one["action"], one["actor"]) for one in records] == [
        ("token.revoke", "user:default/ada"),
        ("token.create", "user:default/ada"),
    ]
    assert value[4:] not in answer.text
    rows = await service.state.database.all("SELECT * FROM audit")
    assert value[4:20] not in str(rows)
    assert tokens.digest(value, service.state.token_key) not in str(rows)


async def test_who_is_not_signed_in_makes_nothing(service: Service) -> None:
    visitor = browser(service)
    answer = await visitor.open(PATH)
    assert answer.headers["location"].startswith("/sign-in?next=")
    await visitor.open("/sign-in")
    answer = await visitor.send(f"{PATH}/tokens", name="x", preset="ask")
    assert answer.status_code == 303
    assert await store.listed(service.state.database) != []
    assert "x" not in {one.name for one in await store.listed(service.state.database)}
