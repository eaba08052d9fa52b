"""Pages of a large catalog, as a signed-in administrator opens them one after another."""

import gzip
import http.client
import os
import re
import time
from functools import partial
from statistics import median
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from bench import catalog, scored
from bench.databases import DIALECTS
from bench.findings import Findings
from bench.processes import Server
from bench.run import Run
from bench.service import Factbook, people_link

_TIMES = 9  # each page in one round
_PUSHES = 60
_SOURCE = "latency"
_SOURCES = "/api/tech-insights/v1/data-sources"
_FACTS = "/api/tech-insights/v1/facts"
_ASSET = re.compile(rb'(?:href|src)="(/static/[^"]+)"')
_CSRF = re.compile(rb'name="csrf" value="([^"]+)"')
_DAY = 86_400


class _Page(NamedTuple):
    seconds: float
    body: bytes
    sent: int  # bytes


class Person:
    """A browser of one connection, without a cache."""

    def __init__(self, server: Server) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        self._cookies: dict[str, str] = {}

    def close(self) -> None:
        """Hang up; the next page connects again."""
        self._connection.close()

    def open(self, path: str) -> _Page:
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

    def weight(self, page: _Page) -> int:
        """The bytes of a page with everything that it refers to."""
        assets = {found.decode() for found in _ASSET.findall(page.body)}
        return page.sent + sum(self.open(path).sent for path in assets)

    @property
    def cookies(self) -> str:
        """What it sends as its cookies."""
        return "; ".join(f"{name}={value}" for name, value in self._cookies.items())

    def _send(self, method: str, path: str, body: bytes) -> tuple[int, str, _Page]:
        headers = {"cookie": self.cookies, "accept": "text/html", "accept-encoding": "gzip"}
        if body:
            headers["content-type"] = "application/x-www-form-urlencoded"
        began = time.perf_counter()
        self._connection.request(method, path, body or None, headers)
        answer = self._connection.getresponse()
        sent = answer.read()
        seconds = time.perf_counter() - began
        is_gzip = answer.headers.get("content-encoding") == "gzip"
        content = gzip.decompress(sent) if is_gzip else sent
        for line in answer.headers.get_all("set-cookie") or []:
            name, _, rest = line.partition("=")
            self._cookies[name] = rest.partition(";")[0]
        return answer.status, answer.headers.get("location", ""), _Page(seconds, content, len(sent))


def pages(run: Run) -> Findings:
    """The time of the slowest page, and the weight of the heaviest, on both databases."""
    findings = Findings()
    for dialect in DIALECTS:
        service = run.large(dialect)
        _add_facts(service)
        scored.define(partial(_call, service), _SOURCE, "milliseconds")
        person = signed_in(run, service)
        paths = _paths(run)
        for page in paths.values():  # the templates are read, and the database has seen them
            person.open(page)
        for number in run.rounds:
            _round(run, dialect, person, paths, findings)
            run.say(f"round {number + 1}: {dialect}, {len(paths)} pages")
    return findings


def _round(
    run: Run, dialect: str, person: Person, paths: dict[str, str], findings: Findings
) -> None:
    times: dict[str, float] = {}
    weights: dict[str, float] = {}
    for name, path in paths.items():
        opened = [person.open(path) for _ in range(_TIMES)]
        times[name] = 1000 * median(page.seconds for page in opened)
        weights[name] = person.weight(opened[-1]) / 1000
    findings.add(f"{dialect}-slowest", max(times.values()), **times)
    findings.add(f"{dialect}-heaviest", max(weights.values()), **weights)


def _paths(run: Run) -> dict[str, str]:
    key = catalog.key(next(catalog.entities(1)))
    entity = f"/catalog/{key.kind}/default/{key.name}"
    large = f"/sets/{quote(f'bench-{key.name}')}"
    return {
        "overview": "/",
        "catalog": "/catalog",
        "search": "/search?q=billing",
        "search-letter": "/search?q=b",
        "catalog-kind": "/catalog?kind=component",
        "catalog-search": "/catalog?q=billing",
        "catalog-tag": "/catalog?tag=java",
        "catalog-all-filters": "/catalog?kind=component&namespace=default&tag=java&q=worker",
        "catalog-part-of-owner": "/catalog?owner=team-1",
        "catalog-lifecycle": "/catalog?kind=component&lifecycle=production",
        "catalog-without-owner": "/catalog?ownership=none",
        "catalog-owner-missing": "/catalog?ownership=missing",
        "catalog-columns": f"/catalog?kind=component&column={_SOURCE}/milliseconds",
        "entity": entity,
        "entity-history": f"{entity}/history",
        "entity-raw": f"{entity}/raw",
        "team": f"/catalog/group/default/{catalog.team(0)}",
        "team-contents": f"/catalog/group/default/{catalog.team(0)}/contents",
        "system": f"/catalog/system/default/{catalog.system(0)}",
        "fact": f"{entity}/facts/{_SOURCE}/milliseconds",
        "sets": "/sets",
        "set": large,
        "revisions": f"{large}/revisions",
        "revision": f"{large}/revisions/1",
        "data-sources": "/data-sources",
        "data-source": f"/data-sources/{_SOURCE}",
        **scored.paths(f"{key.kind}:default/{key.name}".lower()),
        "connect": "/connect",
        "playground": f"/connect/tools/get-entity-facts?{urlencode({'name': key.name})}",
        "account": "/administration/account",
        "api-access": "/administration/account/api-access",
        "people": "/administration/people",
        "connections": "/administration/connections",
        "webhooks": "/administration/webhooks",
        "audit": "/administration/audit",
    }


def signed_in(run: Run, service: Factbook) -> Person:
    """An administrator, who is made for it."""
    person = Person(service.server)
    link = people_link(service.database, run.folder)
    password = "a password that only benchmarks use"  # noqa: S105
    # A database that is kept knows those of earlier runs.
    form = {"name": f"bench-{os.getpid()}", "password": password, "again": password}
    person.send(urlsplit(link).path, form)
    return person


def _add_facts(service: Factbook) -> None:
    """A source with a past of two months about one entity, for the pages that draw it."""
    key = catalog.key(next(catalog.entities(1)))
    document = {
        "id": _SOURCE,
        "title": "Latency",
        "handlerDefinition": {"type": "push", "config": {"id": _SOURCE}},
        "schema": {"milliseconds": {"type": "float", "unit": "milliseconds"}},
    }
    now = time.time()
    items = [
        {
            "entity": f"{key.kind}:default/{key.name}",
            "timestamp": time.strftime(
                "%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(now - (_PUSHES - place) * _DAY)
            ),
            "facts": {"milliseconds": 100.0 + place % 7},
        }
        for place in range(_PUSHES)
    ]
    _call(service, "PUT", f"{_SOURCES}/{_SOURCE}", document)
    _call(service, "POST", f"{_SOURCES}/{_SOURCE}/publish", {})
    _call(service, "POST", f"{_FACTS}/{_SOURCE}", {"items": items})


def _call(service: Factbook, method: str, path: str, body: Any) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", service.server.port, timeout=60)
    headers = {**service.client.headers}
    sent = None if body is None else msgspec.json.encode(body)
    connection.request(method, path, sent, headers)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    if answer.status >= 300:
        raise RuntimeError(f"{method} {path}: {answer.status} {content[:300]!r}")
    return msgspec.json.decode(content) if content else None
