"""The parts of the housekeeping: each has its turn, and is known to have had it or not."""

import re

import httpx2
import pytest
import structlog

from factbook.clock import HOUR, MINUTE, SECOND
from factbook.operations.doctor.examination import examine
from factbook.worker import PARTS, Worker
from tests.operations.doctor.conftest import nobody
from tests.service import Service, component

pytestmark = pytest.mark.both_databases

HIDE = "ALTER TABLE memories RENAME TO hidden"
SHOW = "ALTER TABLE hidden RENAME TO memories"


def worker(service: Service) -> Worker:
    return service.application.worker(service.state.database, service.state.registry, "server")


async def run(service: Service, sql: str) -> None:
    await service.state.database.write(lambda tx: tx.run(sql))


async def doctor(service: Service, topic: str) -> dict[str, str]:
    """What the doctor finds of a topic, and how bad it is."""
    settings = service.state.settings
    flags = {"database_url": settings.database_url, "token_key": settings.token_key}
    silent = httpx2.MockTransport(nobody)
    found = examine(flags, lambda _: None, quick=True, clock=service.time, transport=silent)
    return {one.what: one.state async for one in found if one.topic == topic}


async def succeeded(service: Service) -> dict[str, int]:
    """When each part last succeeded, in milliseconds, as the metrics say it."""
    text = (await service.http.get("/metrics")).text
    name = "factbook_housekeeping_last_success_timestamp_seconds"
    found = re.findall(rf'^{name}{{part="(\w+)"}} (\S+)$', text, re.MULTILINE)
    return {part: round(float(seconds) * SECOND) for part, seconds in found}


@pytest.mark.slow
@pytest.mark.spec("housekeeping.parts-are-known")
async def test_when_each_part_last_succeeded_is_known(service: Service) -> None:
    assert await succeeded(service) == {}
    one = worker(service)
    assert await one.work()
    assert await succeeded(service) == dict.fromkeys(PARTS, service.time())
    assert set((await doctor(service, "housekeeping")).values()) == {"ok"}
    service.time.advance(2 * HOUR)
    found = await doctor(service, "housekeeping")
    assert [what for what, state in found.items() if state == "warning"] == [
        f"The part {part} was not done since 2026-11-21T12:00:00.000+00:00."
        for part in sorted(PARTS)
    ]
    assert await one.work()
    assert await succeeded(service) == dict.fromkeys(PARTS, service.time())


@pytest.mark.slow
@pytest.mark.spec("housekeeping.parts-are-known")
async def test_a_part_that_fails_keeps_no_other_from_its_turn_and_is_told(
    service: Service,
) -> None:
    await service.push("all", component("web"))
    one, begun = worker(service), service.time()
    assert await one.work()
    await run(service, HIDE)
    with structlog.testing.capture_logs() as told:
        for _ in range(3):
            service.time.advance(10 * MINUTE)
            assert await one.work()
    failed = [each for each in told if each["event"] == "worker.part_failed"]
    assert [each["part"] for each in failed] == ["memories"]
    times = await succeeded(service)
    assert times.pop("memories") == begun
    assert set(times.values()) == {service.time()}
    found = await doctor(service, "housekeeping")
    [wrong] = [what for what, state in found.items() if state == "problem"]
    assert wrong.startswith("The part memories fails since 2026-11-21T12:00:00.000+00:00: ")
    assert "no such table" in wrong or "does not exist" in wrong
    await run(service, SHOW)
    with structlog.testing.capture_logs() as told:
        assert await one.work()
    assert [each["event"] for each in told] == ["worker.part_recovered"]
    assert set((await doctor(service, "housekeeping")).values()) == {"ok"}


async def test_a_part_that_never_succeeded_is_told(service: Service) -> None:
    await run(service, HIDE)
    assert await worker(service).work()
    assert (await succeeded(service))["memories"] == 0
    found = await doctor(service, "housekeeping")
    assert any("memories fails from the first time on" in what for what in found)


async def test_a_part_of_another_release_is_forgotten(service: Service) -> None:
    await run(service, "INSERT INTO housekeeping (part, failed_at, error) VALUES ('old', 1, 'x')")
    assert await worker(service).work()
    assert set(await succeeded(service)) == set(PARTS)
