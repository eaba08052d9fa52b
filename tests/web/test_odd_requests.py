"""Odd requests for pages: methods, forms, files, hosts and headers that no browser sends."""

import httpx2
import pytest

from factbook.web.routes import PAGES
from tests.service import Service
from tests.web.table import name_is, path_of, rows
from tests.web.visiting import browser, signed_in

HOME = "/administration/account"
SITE = "http://127.0.0.1:8000"
HTML = {"accept": "text/html"}
ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@ON_SQLITE
async def test_other_methods_are_refused_with_those_there_are(
    service: Service, subtests: pytest.Subtests
) -> None:
    """WSTG-CONF-06."""
    ada = await signed_in(service)
    for method in ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "JUNK"]:
        with subtests.test(method=method):
            answer = await ada.http.request(method, "/sign-in", headers=HTML)
            assert (answer.status_code, answer.headers["allow"]) == (405, "GET, POST")
            overridden = await ada.http.post(
                f"{HOME}/name",
                data={"_method": method},
                headers={"x-http-method-override": method, **HTML},
            )
            assert overridden.status_code == 403


async def test_a_head_is_a_get_without_a_body_and_changes_nothing(service: Service) -> None:
    ada = await signed_in(service)
    answer = await ada.http.head(HOME, headers=HTML)
    assert (answer.status_code, answer.content) == (200, b"")
    assert (await browser(service).http.head(HOME, headers=HTML)).status_code == 303
    for page in rows("POST"):
        found = {row.method for row in PAGES if row.path == page.path}
        if "GET" not in found:
            answer = await ada.http.head(path_of(page), headers=HTML)
            assert (answer.status_code, answer.content) == (405, b""), page.path
    assert (await ada.open(HOME)).status_code == 200


@ON_SQLITE
async def test_a_form_that_no_browser_sends_is_refused(
    service: Service, subtests: pytest.Subtests
) -> None:
    ada = await signed_in(service)
    headers = {**HTML, "content-type": "application/x-www-form-urlencoded"}
    for body, status in [
        (b"a=" + b"x" * 512 * 1024, 413),
        (b"&".join([b"a=b"] * 1001), 400),
        (b"display_name=%ff%fe", 400),
        (b"display_name=\xff", 400),
        (b"", 403),
        (b"&&&===;;;", 403),
        (b"csrf", 403),
        (b"%" * 1000, 403),
    ]:
        with subtests.test(body=body):
            for path in (f"{HOME}/name", "/sign-in"):
                answer = await ada.http.post(path, content=body, headers=headers)
                assert answer.status_code == status, path
            assert await name_is(service, "Ada")


@ON_SQLITE
async def test_of_a_field_that_is_sent_twice_the_last_counts_everywhere(service: Service) -> None:
    """WSTG-INPV-04: what is checked is what is used."""
    ada = await signed_in(service)
    for tokens, status in (([ada.csrf, "wrong"], 403), (["wrong", ada.csrf], 303)):
        data = {"csrf": tokens, "display_name": ["One", "Two"]}
        answer = await ada.http.post(f"{HOME}/name", data=data, headers=HTML)
        assert answer.status_code == status
    assert await name_is(service, "Two")


@ON_SQLITE
async def test_no_file_is_read_but_the_pages_own(
    service: Service, subtests: pytest.Subtests
) -> None:
    """WSTG-ATHZ-01."""
    for path in [
        "/static/../factbook.db",
        "/static/..%2f..%2fapp.py",
        "/static/%2e%2e/visit.py",
        "/static/nothing.css",
        "/static/",
        "//evil.example/sign-in",
        "/sign-in/",
        "/%00",
    ]:
        with subtests.test(path=path):
            answer = await browser(service).http.get(httpx2.URL(SITE + path), headers=HTML)
            assert answer.status_code == 404
            assert "import" not in answer.text


@ON_SQLITE
async def test_a_foreign_host_gets_no_page(service: Service) -> None:
    """WSTG-INPV-17; also what keeps a name that is bound anew to loopback out."""
    answer = await browser(service).http.get("/sign-in", headers={"host": "evil.example", **HTML})
    assert answer.status_code == 421
    assert 'action="/sign-in"' not in answer.text


@ON_SQLITE
async def test_forwarded_headers_of_nobody_trusted_change_nothing(service: Service) -> None:
    ada = await signed_in(service)
    forwarded = {
        "x-forwarded-host": "evil.example",
        "x-forwarded-proto": "https",
        "forwarded": "host=evil.example;proto=https",
        "x-original-url": "/sign-out",
        "x-rewrite-url": "/sign-out",
    }
    data = {"csrf": ada.csrf, "role": "viewer", "name": "kim"}
    answer = await ada.http.post(
        "/administration/people/-/invitations", data=data, headers={**HTML, **forwarded}
    )
    assert answer.status_code == 201
    assert f"{SITE}/welcome/" in answer.text
    assert "evil.example" not in answer.text
