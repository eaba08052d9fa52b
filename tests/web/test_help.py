"""Help: the documentation as pages of the service, and what leads to it."""

import re
from urllib.parse import urlsplit

import pytest

from factbook.web import help, pages
from tests.docs.parts import DOCS
from tests.service import Service, component
from tests.web.markup import hrefs
from tests.web.table import path_of, rows
from tests.web.visiting import signed_in, words

ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
LEFT_OUT = {"performance", "scale"}


def test_every_page_for_those_who_use_the_service_is_there() -> None:
    found = {file.relative_to(DOCS).with_suffix("").as_posix() for file in DOCS.rglob("*.md")}
    shown = {name for name in found if not name.startswith("decisions/")} - LEFT_OUT
    assert help.list_help_names() == shown


@pytest.mark.slow
def test_every_link_of_the_documentation_leads_to_a_page_and_a_heading(
    subtests: pytest.Subtests,
) -> None:
    names = sorted(help.list_help_names())
    assert names
    for name in names:
        with subtests.test(name=name):
            document = help.render_help(name)
            assert document is not None
            assert "<!--" not in document.html
            assert "<img" not in document.html
            for href in hrefs(document.html):
                target = urlsplit(href)
                if target.scheme:
                    assert target.scheme in {"http", "https"}
                    continue
                page = target.path.removeprefix(help.PATH).strip("/") or help.START
                found = help.render_help(page)
                assert found is not None, href
                assert not target.fragment or target.fragment in found.anchors, href


@pytest.mark.slow
def test_headings_of_one_name_have_ids_of_their_own() -> None:
    for name in help.list_help_names():
        document = help.render_help(name)
        assert document is not None
        ids = re.findall(r'<h\d id="([^"]*)"', document.html)
        assert len(ids) == len(set(ids)) == len(document.anchors)


@pytest.mark.slow
@ON_SQLITE
async def test_every_page_has_a_link_to_the_help_that_is_about_it(service: Service) -> None:
    await service.push("all", component("web"))
    visitor = await signed_in(service)
    for page in rows("GET"):
        path = path_of(page)
        answer = await visitor.open(path)
        if not answer.headers.get("content-type", "").startswith("text/html"):
            continue
        href = pages.find_help(path)
        assert href in hrefs(answer.text), path
        target = urlsplit(href)
        told = await visitor.open(target.path)
        assert told.status_code == 200, href
        assert not target.fragment or f'id="{target.fragment}"' in told.text, href


@ON_SQLITE
async def test_where_there_is_nothing_yet_the_help_is_linked(service: Service) -> None:
    visitor = await signed_in(service)
    for path in ("/sets", "/catalog", "/administration/webhooks", "/data-sources?q=none"):
        html = await visitor.text(path)
        empty = html.partition('<div class="empty">')[2].partition("Read more about this")[0]
        assert hrefs(empty)[-1] == pages.find_help(path), path


@ON_SQLITE
async def test_help_is_read_page_by_page_and_what_is_no_page_is_told(service: Service) -> None:
    visitor = await signed_in(service, "vic", "viewer")
    assert "Where to go" in words(await visitor.text("/help"))
    text = words(await visitor.text("/help/reference/integrations/github"))
    assert "Dependabot alerts" in text
    for path in ("/help/nothing", "/help/../settings", "/help/decisions/index", "/help/how-to/"):
        answer = await visitor.open(path)
        assert answer.status_code == 404, path
