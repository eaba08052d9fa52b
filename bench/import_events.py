"""A push to a repository, from its signed event to the catalog of a running `factbook serve`."""

import json
import time
from pathlib import Path
from typing import NamedTuple

import httpx2

from bench.import_hosts import CREDENTIAL, ImportedHost
from tests.fakes.github.app import FakeGitHub
from tests.importers.deliveries import EVENTS, SECRET, push_to, signed
from tests.processes import ServerProcess, serving

_LONGEST = 60.0
_PAUSE = 0.05
_ENTITY = """---
apiVersion: backstage.io/v1alpha1
kind: Component
metadata: {name: %s}
spec: {type: service, lifecycle: production, owner: team-01}
"""


class EventFigures(NamedTuple):
    """Time from the delivery of an event until the catalog shows the push, and its requests."""

    seconds: float
    requests: int


def pushed(
    host: ImportedHost, url: str, database_url: str, folder: Path, number: int, *, collecting: bool
) -> EventFigures:
    """Push to a repository that was imported into the database, with a server that takes events.

    When it is `collecting`, everything is collected for the first time with the same credential.
    """
    assert isinstance(host.fake, FakeGitHub)
    table, integration = "FACTBOOK_IMPORTERS", "FACTBOOK_INTEGRATIONS"
    settings = {
        "FACTBOOK_OUTGOING_NETWORKS": "127.0.0.0/8",
        f"{table}__GITHUB__DEFAULT__ORGANIZATIONS": "acme",
        f"{table}__GITHUB__DEFAULT__WEBHOOK_SECRET": SECRET,
        f"{table}__GITHUB__DEFAULT__EVERY": "6h",
    }
    account = {"api_url": url, "token": CREDENTIAL}
    if collecting:
        named = {f"{integration}__GITHUB__DEFAULT__{k.upper()}": v for k, v in account.items()}
        settings |= named
    else:
        settings[f"{table}__GITHUB__DEFAULT__ACCOUNT"] = json.dumps(account)
    with (
        serving(database_url, folder, **settings) as server,
        server.client(server.token()) as http,
    ):
        return _pushed(server, http, host.fake, number)


def _pushed(
    server: ServerProcess, http: httpx2.Client, fake: FakeGitHub, number: int
) -> EventFigures:
    repository, before = fake.repositories[number], fake.requests.total()
    name = f"pushed-{number}"
    repository.texts["services/new/catalog-info.yaml"] = (_ENTITY % name).encode()
    repository.files = [*repository.texts]
    repository.commits += 1
    content, began = push_to(repository), time.perf_counter()
    headers = signed(content, delivery=name)
    httpx2.post(f"{server.url}{EVENTS}", content=content, headers=headers).raise_for_status()
    while http.get(f"/api/catalog/entities/by-name/component/default/{name}").status_code != 200:
        if time.perf_counter() - began > _LONGEST:
            raise RuntimeError(server.log.read_text())
        time.sleep(_PAUSE)
    return EventFigures(time.perf_counter() - began, fake.requests.total() - before)
