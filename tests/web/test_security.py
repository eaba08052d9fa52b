"""What keeps other sites and other people out of every page (after the OWASP testing guide)."""

import re

import pytest

from factbook.auth import permissions
from factbook.web.pages import OPEN
from factbook.web.routes import PAGES
from tests.service import Service
from tests.web.table import name_is, path_of, rows
from tests.web.visiting import Browser, add_person, browser, signed_in

HOME = "/administration/account"
ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
SITE = "http://127.0.0.1:8000"
HTML = {"accept": "text/html"}


# Who may what: every row of the table


@ON_SQLITE
async def test_no_page_answers_who_is_not_signed_in(service: Service) -> None:
    """WSTG-ATHN-04 and ATHZ-02."""
    visitor = browser(service)
    assert len(list(rows("GET"))) > 10
    for page in rows("GET"):
        answer = await visitor.http.get(path_of(page), headers=HTML)
        assert answer.status_code == 303, page.path
        assert answer.headers["location"].startswith("/sign-in?next=%2F"), page.path
    await visitor.open("/sign-in")
    for page in rows("POST"):
        answer = await visitor.send(path_of(page))
        assert answer.status_code == 303, page.path
        assert answer.headers["location"] == "/sign-in?next=%2F", page.path


@ON_SQLITE
async def test_no_page_answers_who_lacks_its_permission(service: Service) -> None:
    """WSTG-ATHZ-02 and 03: by the address itself, whatever the navigation shows."""
    vic = await signed_in(service, "vic", permissions.VIEWER)
    held = permissions.ROLES[permissions.VIEWER]
    refused = 0
    for page in PAGES:
        if page.needs is not OPEN and not held.issuperset(page.needs):
            answer = await (vic.open if page.method == "GET" else vic.send)(path_of(page))
            assert answer.status_code == 403, page.path
            assert "does not have the permission" in answer.text
            refused += 1
    assert refused > 10


@ON_SQLITE
async def test_a_bearer_token_opens_no_page(service: Service) -> None:
    answer = await service.http.get(HOME, headers=HTML)
    assert answer.status_code == 303


@ON_SQLITE
async def test_a_session_opens_no_interface_of_programs(service: Service) -> None:
    """Nothing that a page of another site makes a browser send is believed there."""
    ada = await signed_in(service)
    for path in ("/api/catalog/entities", "/api/access/v1/tokens", "/api/access/v1/audit"):
        assert (await ada.http.get(path)).status_code == 401
    pushed = await ada.http.put(
        "/api/catalog/factbook-entities/sets/a", content='{"items":[]}', headers=HTML
    )
    assert pushed.status_code == 401


# Forms of other sites


@pytest.mark.slow
@ON_SQLITE
async def test_no_form_is_done_without_the_token_of_the_persons_own_page(service: Service) -> None:
    """WSTG-SESS-05, at every row of the table."""
    ada = await signed_in(service)
    for page in rows("POST"):
        for data in ({}, {"csrf": ""}, {"csrf": "0" * 64}):
            answer = await ada.http.post(path_of(page), data={"a": "b", **data}, headers=HTML)
            assert answer.status_code == 403, page.path
            assert "comes from another site" in answer.text


async def test_the_token_of_another_session_is_no_ones(service: Service) -> None:
    ada = await signed_in(service)
    await signed_in(service, "vic", permissions.VIEWER)
    visitor = browser(service)
    await visitor.open("/sign-in")
    other = await _another_session(service, ada)
    own = ada.csrf
    for csrf in (visitor.csrf, other.csrf, own[:-1], own + "0", own.upper() + "x", "é"):
        answer = await ada.send(f"{HOME}/name", csrf=csrf, display_name="Changed")
        assert answer.status_code == 403
    assert (await ada.send(f"{HOME}/name", display_name="Changed")).status_code == 303


async def _another_session(service: Service, of: Browser) -> Browser:
    """A browser of somebody else, whose forms carry another token."""
    found = await signed_in(service, "eve", permissions.VIEWER)
    assert found.csrf != of.csrf
    return found


@ON_SQLITE
async def test_the_token_from_before_signing_in_counts_no_more(service: Service) -> None:
    await add_person(service, "ada")
    visitor = browser(service)
    await visitor.open("/sign-in")
    before = visitor.csrf
    assert (await visitor.sign_in("ada")).status_code == 303
    assert visitor.csrf != before
    answer = await visitor.send(f"{HOME}/name", csrf=before, display_name="Changed")
    assert answer.status_code == 403


@ON_SQLITE
async def test_signing_in_takes_the_token_of_the_form_too(service: Service) -> None:
    """Nobody is signed in as somebody else by another site's form."""
    await add_person(service, "ada")
    fields = {"name": "ada", "password": "correct horse battery"}
    answer = await browser(service).http.post("/sign-in", data=fields, headers=HTML)
    assert answer.status_code == 403
    assert "factbook=" not in answer.headers.get("set-cookie", "")


@ON_SQLITE
@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "null", "http://127.0.0.1:8001", "http://127.0.0.1:8000.evil.example"],
)
async def test_a_request_that_names_another_origin_is_refused(
    service: Service, origin: str
) -> None:
    ada = await signed_in(service)
    data = {"csrf": ada.csrf, "display_name": "Changed"}
    headers = {**HTML, "origin": origin}
    answer = await ada.http.post(f"{HOME}/name", data=data, headers=headers)
    assert answer.status_code == 403
    assert await name_is(service, "Ada")
    own = await ada.http.post(f"{HOME}/name", data=data, headers={**HTML, "origin": SITE})
    assert own.status_code == 303


@ON_SQLITE
async def test_a_form_of_another_type_is_refused(
    service: Service, subtests: pytest.Subtests
) -> None:
    """A form of another site can send text; what it holds is not even read."""
    ada = await signed_in(service)
    body = f"csrf={ada.csrf}&display_name=Changed"
    for type_ in ["text/plain", "application/json", "multipart/form-data", ""]:
        with subtests.test(type_=type_):
            headers = {**HTML, "content-type": type_}
            answer = await ada.http.post(f"{HOME}/name", content=body, headers=headers)
            assert answer.status_code == 415
            assert await name_is(service, "Ada")


# What every answer says


@pytest.mark.slow
@ON_SQLITE
async def test_every_answer_keeps_other_sites_out(service: Service) -> None:
    """WSTG-CLNT-09 and CONF-07: pages, forms, refusals and what is not there."""
    ada = await signed_in(service)
    visitor = browser(service)
    answers = [await ada.open(path_of(page)) for page in PAGES if page.method == "GET"]
    answers += [
        await visitor.open("/sign-in"),
        await visitor.open("/welcome/none"),
        await visitor.open("/nowhere"),
        await visitor.open(HOME),
        await ada.http.post(HOME, headers=HTML),
        await ada.send("/sign-in", csrf="", name="a"),
    ]
    for answer in answers:
        where = f"{answer.request.method} {answer.request.url}"
        policy = dict(
            part.strip().partition(" ")[::2]
            for part in answer.headers["content-security-policy"].split(";")
        )
        assert policy["default-src"] == "'none'", where
        assert policy["script-src"] == policy["style-src"] == "'self'", where
        assert policy["frame-ancestors"] == policy["base-uri"] == "'none'", where
        assert policy["form-action"].startswith("'self'"), where
        assert "unsafe" not in answer.headers["content-security-policy"], where
        assert answer.headers["x-frame-options"] == "DENY", where
        assert answer.headers["x-content-type-options"] == "nosniff", where
        assert answer.headers["referrer-policy"] in {"same-origin", "strict-origin"}, where
        by_clients = answer.request.url.path.startswith(("/sign-in", "/oauth/"))
        openers = "unsafe-none" if by_clients else "same-origin"
        assert answer.headers["cross-origin-opener-policy"] == openers, where
        assert "server" not in answer.headers, where
        assert "access-control-allow-origin" not in answer.headers, where
        if "/static/" not in where or answer.status_code != 200:
            assert answer.headers["cache-control"] == "no-store", where


@ON_SQLITE
async def test_no_page_holds_what_the_policy_forbids(service: Service) -> None:
    """Nothing inline and nothing from elsewhere, so that the policy can stay as it is."""
    ada = await signed_in(service)
    seen = 0
    for page in PAGES:
        if page.method != "GET" or page.path.startswith("/static/"):
            continue
        answer = await ada.open(path_of(page))
        if answer.status_code == 303:
            continue
        html = answer.text
        seen += 1
        assert not re.search(r"<script(?![^>]*\ssrc=\"/static/)", html), page.path
        assert not re.search(r"<style|<iframe|<object|<embed|<base", html), page.path
        assert not re.search(r"<[^>]+\s(style|on[a-z]+)=", html), page.path
        assert not re.search(r"<(script|link|img|form)[^>]+(src|href|action)=\"(?!/|data:)", html)
        assert "javascript:" not in html, page.path
    assert seen > 10
