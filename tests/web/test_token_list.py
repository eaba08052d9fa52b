"""Administration → Account → API access: listing and revoking tokens with a browser."""

import re
from html import unescape

import pytest

from factbook.auth import tokens
from factbook.clock import DAY
from tests.service import PUSH, TOOLS, Service, call
from tests.web.generating import PATH, generate, made, status, the_token
from tests.web.visiting import signed_in, with_password, words


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
    assert "Agents, scripts and the command factbook call" in words(await vic.text(PATH))


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
    of_ada = await the_token(service, "of ada")
    assert (await vic.send(f"{PATH}/revoke", token=of_ada.id, all="1")).status_code == 404
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
    assert tokens.hash_token(value, service.state.token_key) not in str(rows)


@pytest.mark.spec("token.usage-is-shown")
async def test_calls_of_tools_are_shown_beside_each_token_and_on_the_account(
    service: Service,
) -> None:
    browser = await signed_in(service)
    token = await service.token(owner="user:default/ada", name="laptop")
    async with service.client(token) as agent:
        for _ in range(3):
            asked = call("get-data-source-discovery", {"limit": 1})
            assert (await agent.post(TOOLS, json=asked)).status_code == 200
    page = await browser.text("/administration/account/api-access")
    assert "3 calls" in page
    assert "model tokens" in page
    account = await browser.text("/administration/account")
    assert "3 calls with your tokens" in account


@pytest.mark.spec("token.narrowed-is-kept-within")
async def test_a_token_is_narrowed_by_the_form_and_the_list_says_to_what(service: Service) -> None:
    ada = await with_password(service)
    value = await made(ada, name="ci", preset="push", sets="shop-*, web", namespaces="eu")
    page = words(await ada.text(PATH))
    assert "sets: shop-*, web; namespaces: eu" in page
    assert await status(service, value, f"{PUSH}/sets/other") == 403
    wrong = await generate(ada, name="x", preset="push", namespaces="EU", request="again")
    assert wrong.status_code == 400
    assert 'name="namespaces" value="EU"' in wrong.text
