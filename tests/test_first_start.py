"""The first start of a real `factbook serve`: the link that makes the first administrator."""

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import httpx2
import pytest

from tests.processes import ServerProcess, serving

PASSWORD = "correct horse battery"
_LINK = re.compile(r"http://\S+/welcome/\S+")
ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


def link_in(server: ServerProcess) -> str:
    """The only link that the server has printed since it was started last."""
    printed = server.log.read_text().rpartition("Nobody has an account yet.")[2]
    [link] = _LINK.findall(printed)
    return str(link)


def accept(browser: httpx2.Client, link: str, name: str) -> int:
    """Open the link and send its form; the status of the answer."""
    csrf = re.findall(r'name="csrf" value="([^"]+)"', browser.get(link).text)
    fields = {"name": name, "password": PASSWORD, "again": PASSWORD}
    answer = browser.post(link, data={"csrf": unescape("".join(csrf)), **fields})
    return answer.status_code


@pytest.fixture
def browser() -> Iterator[httpx2.Client]:
    with httpx2.Client(headers={"accept": "text/html"}, timeout=60) as client:
        yield client


@pytest.mark.slow
@pytest.mark.spec("people.first-administrator-by-one-time-link", "people.no-default-password")
def test_the_first_start_prints_a_link_that_makes_one_administrator(
    database_url: str, tmp_path: Path, browser: httpx2.Client
) -> None:
    with serving(database_url, tmp_path, "--workers", "2") as server:
        link = link_in(server)
        assert link.startswith(server.url)
        assert link.removeprefix(server.url) not in str(server.invoke("people", "list"))
        assert accept(browser, link, "ada") == 303
        assert browser.get(f"{server.url}/administration/people").status_code == 200
        assert browser.get(link).status_code == 404
        assert accept(browser, link, "eve") != 303
        assert "eve" not in server.invoke("people", "list")
        server.stop()
        before = server.log.read_text()
        server.start()
        assert "/welcome/" not in server.log.read_text()[len(before) :]


@pytest.mark.slow
@ON_SQLITE
def test_every_start_without_anybody_prints_another_link_and_ends_the_last(
    database_url: str, tmp_path: Path
) -> None:
    with serving(database_url, tmp_path) as server:
        first = link_in(server)
        server.stop()
        server.start()
        second = link_in(server)
        assert httpx2.get(first, timeout=60).status_code == 404
        assert httpx2.get(second, timeout=60).status_code == 200
        third = server.invoke("people", "invite", "--server", server.url).strip()
        assert httpx2.get(second, timeout=60).status_code == 404
        assert httpx2.get(third, timeout=60).status_code == 200


@pytest.mark.slow
@ON_SQLITE
def test_a_start_that_fails_ends_no_earlier_link(database_url: str, tmp_path: Path) -> None:
    with serving(database_url, tmp_path) as server:
        link = link_in(server)
        for environment in (
            {"FACTBOOK_INTEGRATIONS__GITHUB__DEFAULT__HOST": "github.com"},
            {"FACTBOOK_TRACES": "true", "OTEL_TRACES_EXPORTER": "paper"},
        ):
            failing = ServerProcess(database_url, tmp_path, **environment)
            failing.command("serve", "--port", str(failing.port), expect=2)
            assert httpx2.get(link, timeout=60).status_code == 200, environment


@pytest.mark.slow
@ON_SQLITE
def test_a_person_is_let_in_again_from_the_command_line(
    database_url: str, tmp_path: Path, browser: httpx2.Client
) -> None:
    with serving(database_url, tmp_path) as server:
        assert accept(browser, link_in(server), "ada") == 303
        link = server.invoke("people", "reset", "ada", "--server", server.url).strip()
        assert accept(browser, link, "") == 303
        [person] = server.invoke("people", "list").splitlines()[1:]
        assert person.split()[:3] == ["ada", "ada", "administrator"]
