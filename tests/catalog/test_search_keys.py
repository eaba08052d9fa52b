"""Keys of search rows: forgotten when no entity has them, whatever is pushed at that moment."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from factbook.catalog.store import index_rows
from factbook.clock import Throttle
from factbook.storage import Database, Transaction
from factbook.storage.database_url import open_database
from tests.conftest import StartService
from tests.service import PUSH, Service, component

T = TypeVar("T")

WAITING = """
SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
KEYS = 1_200  # more than are looked at in one go


async def stored(database: Database) -> set[str]:
    return {key for (key,) in await database.all("SELECT key FROM search_keys")}


async def with_key(service: Service, key: str) -> list[str]:
    """The names of the entities that a filter on the key finds."""
    answer = await service.http.get("/api/catalog/entities", params={"filter": f"spec.{key}"})
    assert answer.status_code == 200, answer.text
    return [entity["metadata"]["name"] for entity in answer.json()]


@pytest.mark.spec("housekeeping.search-keys-are-forgotten")
async def test_keys_that_no_entity_has_are_forgotten_and_the_others_kept(service: Service) -> None:
    database = service.state.database
    await service.push("all", component("web", used="x"))
    before = await stored(database)
    for number in range(2):
        spec = {f"key-{number}-{index}": "x" for index in range(KEYS // 2)}
        await service.push("many", component("many", **spec))
    assert len(await stored(database)) >= KEYS
    # Those of the last push are in use.
    assert await index_rows.sweep_search_keys(database, Throttle()) == KEYS // 2
    await service.http.delete(f"{PUSH}/sets/many")
    assert await index_rows.sweep_search_keys(database, Throttle()) >= KEYS // 2
    assert await stored(database) == before
    assert await index_rows.sweep_search_keys(database, Throttle()) == 0
    assert await with_key(service, "used") == ["web"]
    await service.push("many", component("many", **{"key-0-7": "x"}))
    assert await with_key(service, "key-0-7") == ["many"]


class Watched:
    """The database of another process; says when a write is asked for, and does it when let go."""

    def __init__(self, inner: Database, *, hold: bool) -> None:
        self.asked, self.go = asyncio.Event(), asyncio.Event()
        if not hold:
            self.go.set()
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def write(self, function: Callable[[Transaction], T]) -> T:
        self.asked.set()
        await self.go.wait()
        return await self._inner.write(function)


@pytest.fixture
async def two(start: StartService, database_url: str) -> Any:
    """A service where a key is left that no entity has, and another process on its database."""
    service = await start()
    await service.push("all", component("web", rare="x"))
    await service.push("all", component("web"))
    other = await open_database(database_url, connections=3)
    yield service, other
    await other.close()


Two = tuple[Service, Database]


@pytest.mark.spec("housekeeping.search-keys-are-forgotten")
async def test_a_key_that_is_used_again_after_it_was_looked_at_is_kept(two: Two) -> None:
    service, other = two
    watched = Watched(other, hold=True)
    sweep = asyncio.create_task(index_rows.sweep_search_keys(watched, Throttle()))
    await watched.asked.wait()
    await service.push("all", component("web", rare="y"))
    watched.go.set()
    assert await sweep == 0
    assert await with_key(service, "rare") == ["web"]


@pytest.mark.spec("housekeeping.search-keys-are-forgotten")
async def test_a_key_that_a_push_under_way_has_found_is_kept(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, other = two
    found, go = threading.Event(), threading.Event()
    database = service.state.database

    async def write(function: Callable[[Transaction], Any]) -> Any:
        """A write that is not committed before it is let go."""

        def held(transaction: Transaction) -> Any:
            result = function(transaction)
            found.set()
            assert go.wait(30)
            return result

        return await inner(held)

    inner = database.write
    monkeypatch.setattr(database, "write", write)
    push = asyncio.create_task(service.push("all", component("web", rare="y")))
    await asyncio.to_thread(found.wait, 30)
    watched = Watched(other, hold=False)
    sweep = asyncio.create_task(index_rows.sweep_search_keys(watched, Throttle()))
    await watched.asked.wait()
    if database.dialect == "postgresql":
        await until_it_waits(other, sweep)
    go.set()
    assert (await push).status_code == 200
    assert await sweep == 0
    monkeypatch.undo()
    assert await with_key(service, "rare") == ["web"]


async def until_it_waits(database: Database, sweep: asyncio.Task[int]) -> None:
    """Return when the sweep waits for the lock of the push, or has not waited for it."""
    while not sweep.done():
        if await database.one(WAITING):
            return
        await asyncio.sleep(0)
