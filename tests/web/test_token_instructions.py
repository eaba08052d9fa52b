"""What the page of a new token says to do with it."""

import json
import re
from html import unescape

import httpx2
import pytest

from tests.conftest import StartService
from tests.service import Service
from tests.web.generating import PATH, REQUEST, VALUE, generate
from tests.web.visiting import add_person, browser, signed_in, words

ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


async def test_the_lines_to_copy_hold_the_address_and_the_token(start: StartService) -> None:
    service = await start(public_url="https://facts.example.com/", push_word="acme")
    ada = browser(service)
    ada.http.base_url = httpx2.URL("https://facts.example.com")
    await add_person(service, "ada")
    assert (await ada.sign_in("ada")).status_code == 303
    answer = await generate(ada, preset="all")
    [value] = set(VALUE.findall(answer.text))
    codes = [unescape(code) for code in re.findall(r"<code>(.*?)</code>", answer.text, re.S)]
    assert codes[0] == value
    server = "https://facts.example.com"
    assert f"export FACTBOOK_SERVER={server}\nexport FACTBOOK_TOKEN={value}" in codes
    configured = [json.loads(code) for code in codes if code.startswith("{")]
    [cursor] = [one for one in configured if "url" in one.get("mcpServers", {}).get("factbook", {})]
    assert cursor["mcpServers"]["factbook"] == {
        "url": f"{server}/mcp",
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
    odd = "a$(touch${IFS}b)"
    service = await start(allowed_hosts=["127.0.0.1", odd])
    ada = await signed_in(service)
    page = await ada.text(PATH)
    request = REQUEST.findall(page)[0]
    fields = {"csrf": ada.csrf, "name": "x", "preset": "ask", "request": request}
    answer = await ada.http.post(
        f"{PATH}/tokens", data=fields, headers={"host": odd, "accept": "text/html"}
    )
    assert answer.status_code == 201
    assert "touch" not in answer.text
