"""Entities that were removed: gone from every read, and remembered for some days."""

from typing import Any

import pytest

from factbook import worker
from factbook.clock import DAY, HOUR
from factbook.facts import store
from factbook.facts.datasource import DataSource
from factbook.facts.freshness import Observation
from factbook.facts.schema import Fact
from factbook.integrations import SOURCES
from tests.conftest import StartService
from tests.service import PUSH, Service, component
from tests.storage.evaluating import evaluating

COVERAGE = DataSource(id="coverage", title="Coverage", schema=(Fact("lines", "integer"),))
REF = "component:default/a"


async def collect(service: Service, lines: int) -> None:
    """Record a fact about the entity `a`."""
    [(id_,)] = await service.state.database.all("SELECT id FROM entities WHERE ref = ?", (REF,))
    await service.state.database.write(
        evaluating(
            lambda transaction: store.record_facts(
                transaction, COVERAGE, [Observation(id_, {"lines": lines})], service.time()
            )
        )
    )


async def facts(service: Service) -> dict[str, Any]:
    """The stored facts about `a`."""
    found: dict[str, Any] = await service.facts(
        "get-entity-facts", dataSourceId="coverage", name="a"
    )
    return dict(found["facts"])


async def sweep(service: Service) -> None:
    """What the worker does once in a while."""
    state = service.state
    sources = tuple(state.registry.fixed.sources.values())
    await worker.sweep(state.database, state.settings, sources, state.clock())


@pytest.mark.both_databases
@pytest.mark.spec("removed.vanishes-from-every-read")
async def test_no_read_and_no_tool_shows_an_entity_that_was_removed(start: StartService) -> None:
    service = await start(sources=[*SOURCES, COVERAGE])
    both = await service.push("first", component("a"), component("b", dependsOn=[REF]))
    uid = both.json()["items"][0]["id"]
    await collect(service, 7)
    await service.push("first", component("b"))
    for path in (
        f"{PUSH}/entities/{uid}",
        f"{PUSH}/entities/by-ref/{REF}",
        f"/api/catalog/entities/by-uid/{uid}",
        "/api/catalog/entities/by-name/component/default/a",
    ):
        assert (await service.http.get(path)).status_code == 404, path
    for path in (
        f"{PUSH}/entities",
        f"{PUSH}/sets/first",
        f"{PUSH}/sets/first?limit=9",
        "/api/catalog/entities",
        "/api/catalog/entities?limit=9",
        "/api/catalog/entities?filter=kind=component,metadata.name=a",
        "/api/catalog/entities?filter=spec.owner=team-a",
        "/api/catalog/entities/by-name/component/default/b",
    ):
        answer = await service.http.get(path)
        assert answer.status_code == 200, answer.text
        assert uid not in answer.text, path
        assert REF not in answer.text, path
    body = {"entityRefs": [REF]}
    refs = await service.http.post("/api/catalog/entities/by-refs", json=body)
    assert refs.json()["items"] == [None]
    for source in ("coverage", "entity-metadata"):
        await service.refusal("get-entity-facts", dataSourceId=source, name="a")
        everything = await service.ask("get-all-entities-facts", dataSourceId=source)
        assert REF not in str(everything)
    await service.refusal("get-entity-compliance", name="a")


@pytest.mark.spec("removed.id-and-facts-kept-for-a-while")
async def test_pushed_again_within_the_keep_time_it_is_the_same_entity(start: StartService) -> None:
    service = await start(sources=[*SOURCES, COVERAGE])
    [item] = (await service.push("first", component("a"))).json()["items"]
    await collect(service, 7)
    ways_to_remove: list[tuple[str, str]] = [
        ("DELETE", "/sets/first"),
        ("DELETE", f"/entities/{item['id']}"),
    ]
    for method, path in ways_to_remove:
        await service.http.request(method, PUSH + path)
        service.time.advance(7 * DAY - HOUR)
        await sweep(service)
        pushed = (await service.push("first", component("A", owner="new"))).json()
        assert pushed["items"][0]["id"] == item["id"]
        assert await facts(service) == {"lines": 7}
    await service.push("first")
    # Another set may bring it back, and so may a restore.
    [elsewhere] = (await service.push("second", component("a"))).json()["items"]
    assert elsewhere["id"] == item["id"]
    await service.push("second")
    restored = await service.http.post(f"{PUSH}/sets/first/revisions/1/restore")
    assert [found["id"] for found in restored.json()["items"]] == [item["id"]]
    assert await facts(service) == {"lines": 7}
    assert await service.state.database.all("SELECT * FROM removed_entities") == []


@pytest.mark.both_databases
@pytest.mark.slow
@pytest.mark.spec("removed.forgotten-after-the-keep-time")
@pytest.mark.parametrize("days", [7, 2])
async def test_after_the_keep_time_id_and_facts_are_gone_for_good(
    start: StartService, days: int
) -> None:
    settings = {} if days == 7 else {"removed_days": days}
    service = await start(sources=[*SOURCES, COVERAGE], **settings)
    first = await service.push("first", component("a"), component("b"))
    old, kept = (item["id"] for item in first.json()["items"])
    await collect(service, 7)
    await service.push("first", component("b"))
    service.time.advance(days * DAY + 1)
    await sweep(service)
    database = service.state.database
    for table in ("removed_entities", "facts_latest", "facts_history"):
        assert await database.all(f"SELECT * FROM {table}") == [], table  # noqa: S608
    again = await service.push("first", component("a"), component("b"))
    new, still = (item["id"] for item in again.json()["items"])
    assert new != old
    assert still == kept
    assert await facts(service) == {}


@pytest.mark.spec("removed.forgotten-after-the-keep-time", "sets.restore")
async def test_restored_after_the_keep_time_it_is_a_new_entity(service: Service) -> None:
    [item] = (await service.push("first", component("a"))).json()["items"]
    await service.http.delete(f"{PUSH}/sets/first")
    service.time.advance(8 * DAY)
    await sweep(service)
    answer = await service.http.post(f"{PUSH}/sets/first/revisions/1/restore")
    [restored] = answer.json()["items"]
    assert restored["id"] != item["id"]
    assert restored["entity"] == item["entity"]
