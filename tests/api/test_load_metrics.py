"""What `/metrics` says of how busy a process is, and of what is stored."""

import asyncio
import re
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from factbook.storage import Transaction
from factbook.storage.migrations import list_migrations
from tests.collection.world import World
from tests.service import NOON, PUSH, Service, component, resource

ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


async def shown(service: Service) -> dict[str, float]:
    """The samples by their names, with labels as they are written."""
    text = (await service.http.get("/metrics")).text
    found = re.findall(r"^(factbook_\S+(?: \S+)*) (\S+)$", text, re.MULTILINE)
    return {name: float(value) for name, value in found}


async def test_metrics_count_what_is_stored(service: Service) -> None:
    await service.push("one", component("web"), component("shop"))
    await service.push("two", component("api"))
    await service.push("emptied", component("old"))
    await service.push("emptied")
    answer = await service.http.post(f"{PUSH}/entities", json=resource("alone"))
    assert answer.status_code == 200, answer.text
    events = (await service.http.get("/api/events")).json()["events"]
    found = await shown(service)
    assert (found["factbook_sets"], found["factbook_entities"]) == (2, 4)
    assert found["factbook_schema_version"] == len(list_migrations())
    assert found["factbook_events_last_position"] > 0
    assert found["factbook_events_last_timestamp_seconds"] == NOON / 1000
    assert len(events) >= found["factbook_events_last_position"]
    assert 'factbook_build_info{version="0.1.0"}' in found


async def test_an_empty_database_is_counted_too(service: Service) -> None:
    found = await shown(service)
    assert (found["factbook_sets"], found["factbook_entities"]) == (0, 0)
    assert found["factbook_events_last_position"] == 0
    assert "factbook_events_last_timestamp_seconds" not in found
    assert found['factbook_collection_batches{state="waiting"}'] == 0
    assert found['factbook_webhooks{state="enabled"}'] == 0


async def test_metrics_show_the_disk_of_a_file_and_of_nothing_else(service: Service) -> None:
    await service.push("one", component("web"))
    found = await shown(service)
    on_disk = {name for name in found if name.startswith(("factbook_disk", "factbook_database_by"))}
    if service.database_url.startswith("postgresql"):
        assert not on_disk
        return
    assert found["factbook_database_bytes"] > 4096
    assert 0 < found["factbook_disk_free_bytes"] <= found["factbook_disk_bytes"]


async def test_batches_that_wait_for_a_worker_are_counted_with_their_age(service: Service) -> None:
    world = World(service)
    await world.push("web", "shop")
    assert await world.collector.begin_due() == 1
    begun = service.time.now
    service.time.advance(60_000)
    found = await shown(service)
    assert found['factbook_collection_batches{state="waiting"}'] == 1
    assert found['factbook_collection_batches{state="under_way"}'] == 0
    assert found['factbook_collection_batches{state="given_up"}'] == 0
    assert found["factbook_collection_oldest_timestamp_seconds"] == begun / 1000
    await world.collector.drain()
    found = await shown(service)
    assert found['factbook_collection_batches{state="waiting"}'] == 0
    assert "factbook_collection_oldest_timestamp_seconds" not in found


@ON_SQLITE
async def test_writes_that_wait_for_their_turn_are_seen(service: Service) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def hold(transaction: Transaction) -> None:
        begun.set()
        assert may_end.wait(30)

    database = service.state.database
    first = asyncio.ensure_future(database.write(hold))
    await asyncio.to_thread(begun.wait, 30)
    others = [asyncio.ensure_future(database.write(lambda transaction: None)) for _ in "ab"]
    await asyncio.sleep(0)  # they begin
    before = await shown(service)
    assert before["factbook_database_writes_waiting"] == 2
    may_end.set()
    await asyncio.gather(first, *others)
    after = await shown(service)
    assert after["factbook_database_writes_waiting"] == 0
    for name in ("factbook_database_write_seconds", "factbook_database_write_wait_seconds"):
        assert after[f"{name}_count"] == before[f"{name}_count"] + 3
        assert after[f"{name}_sum"] > before[f"{name}_sum"]


async def test_connections_for_reads_that_are_taken_are_seen(service: Service) -> None:
    taken, free = (
        f'factbook_database_read_connections{{state="{state}"}}' for state in ("taken", "free")
    )
    before = await shown(service)
    async with service.state.database.moment() as moment:
        await moment.columns("SELECT LIST_OF(ref) FROM entities")
        held = await shown(service)
    assert held[taken] == before[taken] + 1
    assert held[taken] + held[free] == before[taken] + before[free]
    assert held["factbook_database_reads_waiting"] == 0


@ON_SQLITE
async def test_an_event_loop_that_is_kept_busy_is_seen(start: Any) -> None:
    service: Service = await start()
    service.state.spawn(service.state.metrics.load.watch())  # as the server process does
    await asyncio.sleep(0)  # it begins to measure
    time.sleep(1.0)  # noqa: ASYNC251 - what keeps it busy
    found = await shown(service)
    while not found["factbook_event_loop_lag_seconds_count"]:
        await asyncio.sleep(0)  # lets it come to its turn
        found = await shown(service)
    assert found["factbook_event_loop_lag_seconds_sum"] >= 0.4


@ON_SQLITE
async def test_a_database_that_cannot_be_written_is_seen(service: Service, tmp_path: Path) -> None:
    assert (await shown(service))["factbook_database_writable"] == 1
    (tmp_path / "factbook.db").rename(tmp_path / "aside.db")
    assert (await service.push("one", component("web"))).status_code == 503
    assert (await shown(service))["factbook_database_writable"] == 0
