"""Tokens as a browser makes them on the page of API access."""

import re
from typing import Any

import httpx2

from factbook.auth import tokens
from tests.service import Service
from tests.web.visiting import Browser, words

PATH = "/administration/account/api-access"
REQUEST = re.compile(r'name="request" value="([^"]+)"')
VALUE = re.compile(r"fbk_[0-9A-Za-z]{46}")


async def generate(visitor: Browser, **fields: Any) -> httpx2.Response:
    """Fill in the form and send it."""
    found = REQUEST.search(await visitor.text(PATH))
    assert found
    sent = {"name": "ci", "preset": "ask", "expires": "90d", "request": found[1], **fields}
    return await visitor.send(f"{PATH}/tokens", **sent)


async def made(visitor: Browser, **fields: Any) -> str:
    """The value of a new token."""
    answer = await generate(visitor, **fields)
    assert answer.status_code == 201, words(answer.text)
    found = VALUE.search(answer.text)
    assert found
    return found[0]


async def the_token(service: Service, name: str = "ci") -> tokens.StoredToken:
    [found] = [one for one in await tokens.list_tokens(service.state.database) if one.name == name]
    return found


async def status(service: Service, value: str, path: str = "/api/catalog/entities") -> int:
    async with service.client(value) as http:
        return (await http.get(path)).status_code
