"""A push to a repository of a large organization, from the webhook to the catalog of a server."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx2
import pytest

from bench.import_hosts import CREDENTIAL, github
from tests.fakes.github.app import FakeGitHub
from tests.fakes.serving import served
from tests.importers.deliveries import EVENTS, SECRET, push_to, signed
from tests.processes import ServerProcess, serving
from tests.waiting import until

pytestmark = pytest.mark.system

REPOSITORIES = 1_000
ENTITY = """apiVersion: backstage.io/v1alpha1
kind: Component
metadata: {name: %s}
spec: {type: service, lifecycle: production, owner: team-01}
"""


class Receiver(NamedTuple):
    """A server that has imported an organization and takes its events, and the fake it read."""

    server: ServerProcess
    token: str
    fake: FakeGitHub

    def push(self, number: int, file: str) -> str:
        """Add a component to a file of a repository, and deliver the event; returns its name."""
        repository, name = self.fake.repositories[number], f"pushed-{number}"
        text = repository.texts.get(file, b"")
        repository.texts[file] = text + f"---\n{ENTITY % name}".encode()
        repository.files = [*repository.texts]
        repository.commits += 1
        content = push_to(repository)
        headers = signed(content, delivery=name)
        answer = httpx2.post(
            f"{self.server.url}{EVENTS}", content=content, headers=headers, timeout=60
        )
        assert answer.status_code == 202, answer.text
        return name

    def requests_for(self, number: int, file: str) -> int:
        """The requests to GitHub from such a push until its component is in the catalog."""
        before, name = self.fake.requests.total(), self.push(number, file)
        until(lambda: self.has(name), told=self.server.log.read_text)
        return self.fake.requests.total() - before

    def has(self, name: str) -> bool:
        """True if the catalog has a component of this name."""
        with self.server.client(self.token) as http:
            path = f"/api/catalog/entities/by-name/component/default/{name}"
            return http.get(path).status_code == 200


@contextmanager
def receiving(database_url: str, folder: Path) -> Iterator[Receiver]:
    """A server whose first import is over, in front of a GitHub that takes 50 ms to answer."""
    fake = github(REPOSITORIES).fake
    assert isinstance(fake, FakeGitHub)
    with (
        served(fake) as url,
        serving(
            database_url,
            folder,
            FACTBOOK_OUTGOING_NETWORKS="127.0.0.0/8",
            FACTBOOK_IMPORTERS__GITHUB__DEFAULT__ORGANIZATIONS="acme",
            FACTBOOK_IMPORTERS__GITHUB__DEFAULT__WEBHOOK_SECRET=SECRET,
            FACTBOOK_IMPORTERS__GITHUB__DEFAULT__EVERY="6h",
            FACTBOOK_IMPORTERS__GITHUB__DEFAULT__ACCOUNT=json.dumps(
                {"api_url": url, "token": CREDENTIAL}
            ),
        ) as server,
    ):
        log = server.log.read_text
        until(lambda: "import.ended" in log(), told=log)
        yield Receiver(server, server.token(), fake)


def test_a_push_is_seen_by_at_most_three_requests(database_url: str, tmp_path: Path) -> None:
    with receiving(database_url, tmp_path) as receiver:
        assert receiver.has("repository-0999")
        assert 1 <= receiver.requests_for(10, "catalog-info.yaml") <= 3
        # One that a pattern of its repository finds.
        assert 1 <= receiver.requests_for(0, "services/new/catalog-info.yaml") <= 3
        assert receiver.has("repository-0000-2")
        assert receiver.has("repository-0999")
