"""Another program locks the SQLite file: pushes wait, and are refused when it takes too long."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.conftest import StartService
from tests.faults.locking import locked
from tests.service import Service, component

ENTITIES = "/api/catalog/entities"
PATIENCE = 1.0
LOCKED = "Another process keeps the database locked; try again later."

pytestmark = [
    pytest.mark.parametrize("database_url", ["sqlite"], indirect=True),
    pytest.mark.parametrize("kind", ["IMMEDIATE", "EXCLUSIVE"]),
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The file of the service."""
    return tmp_path / "factbook.db"


def refused_after(file: Path, seconds: float) -> None:
    """Wait so long for the lock that another process has, as any program does."""
    with (
        closing(sqlite3.connect(file, timeout=seconds)) as connection,
        pytest.raises(sqlite3.OperationalError, match="locked"),
    ):
        connection.execute("BEGIN IMMEDIATE")


async def names(service: Service) -> set[str]:
    answer = await service.http.get(ENTITIES)
    assert answer.status_code == 200, answer.text
    return {entity["metadata"]["name"] for entity in answer.json()}


@pytest.mark.spec("faults.sqlite-locked")
async def test_a_push_waits_for_a_lock_and_then_succeeds(
    start: StartService, file: Path, kind: str
) -> None:
    service = await start()
    await service.push("a", component("old"))
    with locked(file, kind):
        pushing = asyncio.create_task(service.push("b", component("new")))
        for _ in range(5):  # reads go on meanwhile
            assert await names(service) == {"old"}
        assert not pushing.done()
    answer = await pushing
    assert answer.status_code == 200, answer.text
    assert await names(service) == {"old", "new"}


@pytest.mark.spec("faults.sqlite-locked")
async def test_a_push_that_waits_for_a_lock_too_long_is_refused_and_nothing_is_lost(
    start: StartService, file: Path, kind: str
) -> None:
    service = await start(sqlite_busy_timeout=0.2)
    await service.push("a", component("old"))
    with locked(file, kind):
        refused = await service.push("b", component("new"))
        assert refused.status_code == 503, refused.text
        assert refused.json()["error"]["message"] == LOCKED
        assert await names(service) == {"old"}
        assert (await service.http.get("/api/events")).status_code == 200
        ready = await service.http.get("/readyz")
        assert (ready.status_code, ready.json()["writes"]) == (200, LOCKED)
    answer = await service.push("b", component("new"))
    assert answer.status_code == 200, answer.text
    assert await names(service) == {"old", "new"}
    assert (await service.http.get("/readyz")).json() == {"status": "ready"}


@pytest.mark.slow
async def test_pushes_that_wait_behind_each_other_do_not_wait_one_after_another(
    start: StartService, file: Path, kind: str
) -> None:
    service = await start(sqlite_busy_timeout=PATIENCE)
    with locked(file, kind):
        other = asyncio.create_task(asyncio.to_thread(refused_after, file, 5 * PATIENCE))
        answers = await asyncio.gather(*(service.push(f"s{n}", component("c")) for n in range(8)))
        assert {answer.status_code for answer in answers} == {503}
        assert not other.done()
        await other
