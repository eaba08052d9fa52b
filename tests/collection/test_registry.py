"""Sources that users define, from the definition to what workers and tools know of them."""

import asyncio
from typing import Any

import pytest

from factbook.clock import HOUR, MINUTE, SECOND
from factbook.collection.collector import Collector
from factbook.datasources.registry import Registry
from factbook.scheduling import runs
from factbook.scheduling.schedule import find_next_start
from factbook.storage import Transaction
from tests.service import Service, Time, component, registry

SOURCES = "/api/tech-insights/v1/data-sources"


def definition(expression: str = "metadata.name", **more: Any) -> dict[str, Any]:
    """A source that reads the entity itself, every ten minutes."""
    return {
        "id": "own",
        "title": "Own",
        "cadence": "*/10 * * * *",
        "handlerDefinition": {"type": "entity", "config": {"id": "own"}},
        "schema": {"named": {"type": "string", "extract": {"jmespath": expression}}},
    } | more


class Elsewhere:
    """A worker in another process: what it knows, and its collector."""

    def __init__(self, service: Service) -> None:
        self.time: Time = service.time
        self.registry: Registry = registry(service)
        self.collector = Collector(
            service.state.database,
            [],
            service.state.connect,
            service.time,
            "elsewhere",
            further=self.registry.custom,
        )

    async def after(self, milliseconds: int) -> None:
        """Let time go by, and do what is due."""
        self.time.advance(milliseconds)
        await self.collector.drain()


@pytest.fixture
async def elsewhere(service: Service) -> Elsewhere:
    assert (await service.push("all", component("web"))).status_code == 200
    return Elsewhere(service)


async def define(service: Service, document: dict[str, Any]) -> None:
    answer = await service.http.put(f"{SOURCES}/{document['id']}", json=document)
    assert answer.status_code == 200, answer.text


async def publish(service: Service, document: dict[str, Any], **body: Any) -> None:
    await define(service, document)
    answer = await service.http.post(f"{SOURCES}/{document['id']}/publish", json=body)
    assert answer.status_code == 200, answer.text


async def facts(service: Service, source: str = "own") -> dict[str, Any]:
    found = await service.facts("get-entity-facts", dataSourceId=source, name="web")
    known: dict[str, Any] = found["facts"]
    return known


async def test_what_is_published_is_collected_by_every_process_on_its_cadence(
    service: Service, elsewhere: Elsewhere
) -> None:
    await elsewhere.after(0)
    await publish(service, definition())
    await elsewhere.after(10 * MINUTE)
    assert await facts(service) == {"named": "web"}
    listed = (await service.facts("get-data-source-discovery"))["dataSources"]
    assert [one["id"] for one in listed][-1] == "own"


async def test_a_clock_that_is_set_back_keeps_no_new_source_waiting(
    service: Service, elsewhere: Elsewhere
) -> None:
    await elsewhere.collector.tick()
    elsewhere.time.advance(-HOUR)
    await publish(service, definition())
    for _ in range(3):
        elsewhere.time.advance(10 * MINUTE)
        await elsewhere.collector.tick()
    await elsewhere.collector.drain()
    assert await facts(service) == {"named": "web"}


async def test_another_process_knows_of_a_change_a_second_later(
    service: Service, elsewhere: Elsewhere
) -> None:
    assert "own" not in (await elsewhere.registry.current()).sources
    await define(service, definition())
    assert "own" in (await service.state.registry.current()).sources
    assert "own" not in (await elsewhere.registry.current()).sources
    elsewhere.time.advance(SECOND)
    assert "own" in (await elsewhere.registry.current()).sources


async def test_what_did_not_change_stays_as_it_is_when_something_else_does(
    service: Service, elsewhere: Elsewhere
) -> None:
    await publish(service, definition())
    await publish(service, definition(id="other", handlerDefinition=_handler("other")))
    before = (await elsewhere.registry.current()).integrations
    await publish(service, definition("kind"))
    elsewhere.time.advance(SECOND)
    after = (await elsewhere.registry.current()).integrations
    assert after["other"] is before["other"]
    assert after["own"] is not before["own"]


async def test_who_asks_while_definitions_are_read_is_answered_when_all_are(
    service: Service, elsewhere: Elsewhere
) -> None:
    await publish(service, definition())
    found = await asyncio.gather(*(elsewhere.registry.current() for _ in range(4)))
    assert ["own" in known.sources for known in found] == [True] * 4


async def test_what_is_written_while_definitions_are_read_is_known_to_the_next_who_asks(
    service: Service, elsewhere: Elsewhere
) -> None:
    await publish(service, definition())
    reading = asyncio.create_task(elsewhere.registry.current())
    await asyncio.sleep(0)  # it has begun
    await publish(service, definition(id="other", handlerDefinition=_handler("other")))
    elsewhere.registry.forget()
    await reading
    assert {"own", "other"} <= (await elsewhere.registry.current()).sources.keys()


async def test_what_is_new_is_begun_a_second_later_and_what_waits_at_its_moment(
    service: Service, elsewhere: Elsewhere
) -> None:
    async def begun() -> list[str]:
        await elsewhere.collector.tick()
        rows = await service.state.database.all("SELECT source_id FROM runs ORDER BY id")
        return [row[0] for row in rows]

    await publish(service, definition())
    assert await begun() == ["own"]
    await publish(service, definition(id="other", handlerDefinition=_handler("other")))
    elsewhere.time.advance(SECOND)
    assert await begun() == ["own", "other"]
    next_ = find_next_start("own", "*/10 * * * *", elsewhere.time() - SECOND)
    elsewhere.time.advance(next_ - elsewhere.time() - SECOND)
    assert (await begun()).count("own") == 1
    elsewhere.time.advance(SECOND)
    assert (await begun()).count("own") == 2


async def test_a_draft_is_collected_when_somebody_asks_and_not_by_its_cadence(
    service: Service, elsewhere: Elsewhere
) -> None:
    await define(service, definition())
    await elsewhere.after(20 * MINUTE)
    assert await facts(service) == {}
    assert (await service.http.post(f"{SOURCES}/own/run")).status_code == 202
    await elsewhere.after(SECOND)
    assert await facts(service) == {"named": "web"}


async def test_a_new_version_takes_over_and_history_keeps_what_the_old_one_wrote(
    service: Service, elsewhere: Elsewhere
) -> None:
    await publish(service, definition())
    await elsewhere.after(10 * MINUTE)
    await publish(service, definition("kind"))
    await elsewhere.after(10 * MINUTE)
    assert await facts(service) == {"named": "Component"}
    past = await service.facts("get-fact-history", name="web", dataSourceId="own")
    rows = [(row["version"], row["facts"]["named"]) for row in past["history"]]
    assert rows == [("1.0.1", "Component"), ("1.0.0", "web")]


async def test_a_change_in_the_middle_of_a_run_leaves_nothing_that_does_not_fit(
    service: Service, elsewhere: Elsewhere
) -> None:
    await publish(service, definition())
    elsewhere.time.advance(10 * MINUTE)
    assert (await service.http.post(f"{SOURCES}/own/run")).status_code == 202
    schema = {"count": {"type": "integer", "extract": {"jmespath": "length(spec)"}}}
    await publish(service, definition(schema=schema), force=True)
    await elsewhere.after(SECOND)
    assert set(await facts(service)) <= {"count"}
    await elsewhere.after(20 * MINUTE)  # the end of that run
    await elsewhere.after(10 * MINUTE)
    assert await facts(service) == {"count": 3}


async def test_what_is_deleted_in_the_middle_of_a_run_is_not_collected_any_more(
    service: Service, elsewhere: Elsewhere
) -> None:
    await publish(service, definition())
    assert (await service.http.post(f"{SOURCES}/own/run")).status_code == 202
    assert (await service.http.delete(f"{SOURCES}/own")).status_code == 204
    await elsewhere.after(10 * MINUTE)
    row = await service.state.database.one("SELECT COUNT(*) FROM facts_latest")
    assert row == (0,)
    assert "own" not in await runs.fetch_health(service.state.database)


async def test_a_source_that_cannot_be_collected_costs_the_others_nothing_and_is_told(
    service: Service, elsewhere: Elsewhere
) -> None:
    config = {"id": "asking", "connection": "gone", "path": "/x"}
    asking = definition(id="asking", handlerDefinition={"type": "http", "config": config})
    await publish(service, asking)
    await publish(service, definition())
    await elsewhere.after(10 * MINUTE)
    assert await facts(service) == {"named": "web"}
    shown = (await service.http.get(f"{SOURCES}/asking")).json()
    assert "no connection 'gone'" in shown["problem"]
    answer = await service.http.post(f"{SOURCES}/asking/run")
    assert (answer.status_code, "no connection" in answer.text) == (409, True)


async def test_a_definition_that_this_release_cannot_read_costs_the_others_nothing(
    service: Service, elsewhere: Elsewhere
) -> None:
    await publish(service, definition())
    await publish(service, definition(id="odd", handlerDefinition=_handler("odd")))

    def break_it(transaction: Transaction) -> None:
        transaction.run(
            "UPDATE data_sources SET published = REPLACE(published, 'jmespath', 'xpath') "
            "WHERE id = 'odd'"
        )
        transaction.run("UPDATE counters SET value = value + 1 WHERE name = 'data_source'")

    await service.state.database.write(break_it)
    await elsewhere.after(10 * MINUTE)
    assert await facts(service) == {"named": "web"}
    known = await elsewhere.registry.current()
    assert "schema.named.extract" in known.problems["odd"]
    assert "odd" not in known.integrations


def _handler(id_: str) -> dict[str, Any]:
    return {"type": "entity", "config": {"id": id_}}


@pytest.mark.spec("tools.facts.real-values")
async def test_a_fact_that_is_named_as_a_tools_fills_the_tool(
    service: Service, elsewhere: Elsewhere
) -> None:
    schema = {
        f"observability.{name}": {"type": "integer", "extract": {"jmespath": expression}}
        for name, expression in (("sloCount", "length(kind)"), ("monitorCount", "`0`"))
    }
    await publish(service, definition(schema=schema))
    await elsewhere.after(10 * MINUTE)
    found = await service.facts("get-observability-metrics", name="web")
    assert (found["sloCount"], found["monitorCount"]) == (len("Component"), 0)
