"""Answers with fewer bytes, and the token against forgery in them."""

import gzip
import re

import pytest

from factbook.web import pages
from tests.service import Service
from tests.web.visiting import browser, signed_in

_ASSET = re.compile(r'(?:href|src)="(/static/[^"]+\.(?:css|js))"')
ACCOUNT = "/administration/account"
TOKEN = "0123456789abcdef" * 4


async def test_a_page_and_what_it_refers_to_are_sent_compressed(service: Service) -> None:
    visitor = await signed_in(service)
    page = await visitor.open(ACCOUNT)
    assets = _ASSET.findall(page.text)
    assert len(assets) == 2
    sizes = []
    for path in [ACCOUNT, *assets]:
        request = visitor.http.build_request("GET", path, headers={"accept-encoding": "gzip"})
        answer = await visitor.http.send(request, stream=True)
        sent = b"".join([piece async for piece in answer.aiter_raw()])
        assert answer.headers["content-encoding"] == "gzip"
        assert answer.headers["vary"] == "accept-encoding"
        assert len(gzip.decompress(sent)) > 2 * len(sent)
        sizes.append(len(sent))
    assert sum(sizes) < 30_000


async def test_who_does_not_ask_for_it_gets_the_whole(service: Service) -> None:
    visitor = browser(service)
    answer = await visitor.http.get(
        "/sign-in", headers={"accept": "text/html", "accept-encoding": "identity"}
    )
    assert "content-encoding" not in answer.headers
    assert "<h1>Sign in</h1>" in answer.text


async def test_assets_may_be_kept_for_ever_and_pages_never(service: Service) -> None:
    visitor = await signed_in(service)
    page = await visitor.open(ACCOUNT)
    assert page.headers["cache-control"] == "no-store"
    for path in _ASSET.findall(page.text):
        asset = await visitor.open(path)
        assert "immutable" in asset.headers["cache-control"]
        assert asset.headers["x-content-type-options"] == "nosniff"


async def test_other_assets_are_not_there(service: Service, subtests: pytest.Subtests) -> None:
    for path in ["/static/x.css", "/static/..%2fapp.py", "/static/factbook.css", "/static/"]:
        with subtests.test(path=path):
            assert (await browser(service).open(path)).status_code == 404


async def test_the_token_against_forgery_looks_different_on_each_page(service: Service) -> None:
    visitor = await signed_in(service)
    seen = set()
    for _ in range(3):
        await visitor.open(ACCOUNT)
        seen.add(visitor.csrf)
        answer = await visitor.send("/administration/account/theme", theme="dark")
        assert answer.status_code == 303
    assert len(seen) == 3
    assert len({pages.unmask_token(shown) for shown in seen}) == 1


def test_what_no_page_showed_is_no_token() -> None:
    assert pages.unmask_token(pages.mask_token(TOKEN)) == TOKEN
    for shown in (
        "",
        "x",
        "0" * 127,
        "g" * 128,
        "0" * 129,
        pages.mask_token(TOKEN).upper(),
        "²" * 128,
    ):
        assert pages.unmask_token(shown) == ""
