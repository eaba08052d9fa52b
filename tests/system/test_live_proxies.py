"""Streams of live pages through real proxies: each message comes at once, and is not held back."""

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.browser.shop import PASSWORD, first_link
from tests.processes import ServerProcess, serving
from tests.service import PUSH, component
from tests.system.proxies import PROXIES

pytestmark = pytest.mark.system

_TOPIC = {"topic": "entity/component:default/web"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("live")
    with serving(f"sqlite:///{folder}/facts.db", folder) as found:
        yield found


@pytest.fixture(scope="module")
def cookies(server: ServerProcess) -> httpx2.Cookies:
    """The session of a person who has made an account."""
    path = urlsplit(first_link(server)).path
    with httpx2.Client(base_url=server.url, timeout=60) as http:
        found = re.search(r'name="csrf" value="([^"]+)"', http.get(path).text)
        assert found
        typed = {"name": "ada", "password": PASSWORD, "again": PASSWORD}
        answer = http.post(path, data={"csrf": unescape(found[1]), **typed})
        assert answer.status_code == 303, answer.text
        return http.cookies


def beats_before(event: str, lines: Iterator[str]) -> int:
    """How many beats of the service come before an event."""
    beats = 0
    while (line := next(lines)) != event:
        beats += line == ":"
    return beats


@pytest.mark.parametrize("name", PROXIES)
def test_a_message_comes_through_a_proxy_at_once(
    server: ServerProcess, cookies: httpx2.Cookies, name: str, tmp_path: Path
) -> None:
    with (
        PROXIES[name](server.port, tmp_path, second_line=True) as port,
        server.client(server.token()) as writer,
        httpx2.Client(base_url=f"http://127.0.0.1:{port}", cookies=cookies, timeout=60) as http,
    ):
        asked = {"accept": "text/event-stream", "accept-encoding": "gzip"}
        with http.stream("GET", "/live", params=_TOPIC, headers=asked) as answer:
            assert answer.status_code == 200, answer.read()
            lines = answer.iter_lines()
            assert next(lines) == "event: opened"
            beats = []
            for version in range(3):
                items = {"items": [component("web", lifecycle=f"{name}-{version}")]}
                assert writer.put(f"{PUSH}/sets/all", json=items).is_success
                beats.append(beats_before("event: changed", lines))
            # A loaded machine may be late for a beat; a proxy that holds messages back always is.
            assert 0 in beats
