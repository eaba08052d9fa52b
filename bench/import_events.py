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
_ENTITY = b"""---
apiVersion: backstage.io/v1alpha1
kind: Component
metadata: {name: pushed}
spec: {type: service, lifecycle: production, owner: team-01}
"""


class EventFigures(NamedTuple):
    """Time from the delivery of an event until the catalog shows the push, and its requests."""

    seconds: float
    requests: int


def pushed(host: ImportedHost, url: str, database_url: str, folder: Path) -> EventFigures:
    """Push to a repository that was imported into the database, with a server that takes events.

    The importer has the only credential, so that nothing else is collected meanwhile.
    """
    assert isinstance(host.fake, FakeGitHub)
    table = "FACTBOOK_IMPORTERS__GITHUB__DEFAULT"
    account = {"api_url": url, "token": CREDENTIAL}
    settings = {
        "FACTBOOK_OUTGOING_NETWORKS": "127.0.0.0/8",
        f"{table}__ORGANIZATIONS": "acme",
        f"{table}__WEBHOOK_SECRET": SECRET,
        f"{table}__EVERY": "6h",
        f"{table}__ACCOUNT": json.dumps(account),
    }
    with (
        serving(database_url, folder, **settings) as server,
        server.client(server.token()) as http,
    ):
        return _pushed(server, http, host.fake)


def _pushed(server: ServerProcess, http: httpx2.Client, fake: FakeGitHub) -> EventFigures:
    repository, before = fake.repositories[0], fake.requests.total()
    repository.texts["services/new/catalog-info.yaml"] = _ENTITY
    repository.files = [*repository.texts]
    repository.commits += 1
    content, began = push_to(repository), time.perf_counter()
    httpx2.post(
        f"{server.url}{EVENTS}", content=content, headers=signed(content)
    ).raise_for_status()
    while http.get("/api/catalog/entities/by-name/component/default/pushed").status_code != 200:
        if time.perf_counter() - began > _LONGEST:
            raise RuntimeError(server.log.read_text())
        time.sleep(_PAUSE)
    return EventFigures(time.perf_counter() - began, fake.requests.total() - before)
