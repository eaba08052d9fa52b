"""`factbook serve` and `factbook worker` with an importer: one process imports, and is followed."""

import signal
from pathlib import Path

import pytest

from tests.fakes.github.app import FakeGitHub
from tests.fakes.github.state import Token
from tests.fakes.serving import served
from tests.importers.organization import repository
from tests.integrations.github.asking import TOKEN
from tests.processes import ServerProcess
from tests.waiting import TAKEN_OVER, until

pytestmark = [pytest.mark.system, pytest.mark.timeout(2000)]

ENTITIES = "/api/catalog/entities?filter=kind=component"


def server_of(database_url: str, folder: Path, url: str) -> ServerProcess:
    return ServerProcess(
        database_url,
        folder,
        FACTBOOK_OUTGOING_NETWORKS="127.0.0.0/8",
        FACTBOOK_INTEGRATIONS__GITHUB__DEFAULT__API_URL=url,
        FACTBOOK_INTEGRATIONS__GITHUB__DEFAULT__TOKEN=TOKEN,
        FACTBOOK_IMPORTERS__GITHUB__DEFAULT__ORGANIZATIONS="acme",
    )


def told(server: ServerProcess) -> int:
    """Imports of which the log tells the end."""
    return server.log.read_text().count("import.ended")


def entities(server: ServerProcess) -> int:
    with server.client(server.token()) as client:
        return len(client.get(ENTITIES).json())


def test_of_two_processes_of_a_server_one_imports(database_url: str, tmp_path: Path) -> None:
    fake = FakeGitHub([repository(f"r{n}", n + 1) for n in range(3)], [Token(TOKEN)])
    with served(fake) as url:
        server = server_of(database_url, tmp_path, url).start("--workers", "2")
        try:
            until(lambda: told(server), told=server.log.read_text)
            assert entities(server) == 3
            # Three of the import, and one for facts of what it brought.
            assert fake.requests["graphql"] <= 4
        finally:
            server.stop()


def test_what_is_killed_while_it_reads_begins_again_when_it_is_back(
    database_url: str, tmp_path: Path
) -> None:
    fake = FakeGitHub([repository(f"r{n}", n + 1) for n in range(3)], [Token(TOKEN)], seconds=3)
    with served(fake) as url:
        server = server_of(database_url, tmp_path, url).start()
        until(lambda: fake.requests.total() > 0, told=server.log.read_text, pause=0.05)
        server.stop(signal.SIGKILL)
        server.start()
        try:
            until(lambda: told(server), TAKEN_OVER, told=server.log.read_text)
            assert entities(server) == 3
        finally:
            server.stop()
    assert told(server) == 1
