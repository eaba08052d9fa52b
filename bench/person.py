"""A person who opens pages, signed in as an administrator."""

import gzip
import http.client
import os
import re
from typing import NamedTuple
from urllib.parse import urlencode, urlsplit

from bench.processes import Server
from bench.run import Run
from bench.service import Factbook, people_link

_ASSET = re.compile(rb'(?:href|src)="(/static/[^"]+)"')
_CSRF = re.compile(rb'name="csrf" value="([^"]+)"')


class Page(NamedTuple):
    """A page as it came, and the bytes that were sent for it."""

    body: bytes
    sent: int  # bytes


class Person:
    """A browser of one connection, without a cache."""

    def __init__(self, server: Server, name: str) -> None:
        self.name = name
        self._assets: dict[str, int] = {}
        self._connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        self._cookies: dict[str, str] = {}

    def close(self) -> None:
        """Hang up; the next page connects again."""
        self._connection.close()

    def open(self, path: str) -> Page:
        """A page; raises unless it is there."""
        status, _, page = self._send("GET", path, b"")
        if status != 200:
            raise RuntimeError(f"GET {path}: {status} {page.body[-800:]!r}")
        return page

    def send(self, path: str, form: dict[str, str]) -> None:
        """Send the form of a page."""
        found = _CSRF.search(self.open(path).body)
        assert found is not None
        body = urlencode({**form, "csrf": found[1].decode()}).encode()
        status, _, page = self._send("POST", path, body)
        if status != 303:
            raise RuntimeError(f"POST {path}: {status} {page.body[-800:]!r}")

    def weight(self, page: Page) -> int:
        """The bytes of a page with everything that it refers to."""
        assets = {found.decode() for found in _ASSET.findall(page.body)}
        for path in assets - self._assets.keys():
            self._assets[path] = self.open(path).sent
        return page.sent + sum(self._assets[path] for path in assets)

    @property
    def cookies(self) -> str:
        """What it sends as its cookies."""
        return "; ".join(f"{name}={value}" for name, value in self._cookies.items())

    def _send(self, method: str, path: str, body: bytes) -> tuple[int, str, Page]:
        headers = {"cookie": self.cookies, "accept": "text/html", "accept-encoding": "gzip"}
        if body:
            headers["content-type"] = "application/x-www-form-urlencoded"
        self._connection.request(method, path, body or None, headers)
        answer = self._connection.getresponse()
        sent = answer.read()
        is_gzip = answer.headers.get("content-encoding") == "gzip"
        content = gzip.decompress(sent) if is_gzip else sent
        for line in answer.headers.get_all("set-cookie") or []:
            name, _, rest = line.partition("=")
            self._cookies[name] = rest.partition(";")[0]
        return answer.status, answer.headers.get("location", ""), Page(content, len(sent))


def signed_in(run: Run, service: Factbook) -> Person:
    """An administrator, who is made for it."""
    # A database that is kept knows those of earlier runs.
    person = Person(service.server, f"bench-{os.getpid()}")
    link = people_link(service.database, run.folder)
    password = "a password that only benchmarks use"  # noqa: S105
    form = {"name": person.name, "password": password, "again": password}
    person.send(urlsplit(link).path, form)
    return person
