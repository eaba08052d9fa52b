"""Events of collecting: facts that change, sources that go down and come up."""

from tests.collection.madeup import DENIED
from tests.collection.world import OPEN, World
from tests.events.feed import events
from tests.no_retry_delay import no_pauses
from tests.service import Service

__all__ = ["no_pauses"]


async def test_a_collection_tells_of_the_facts_that_changed_and_of_no_other(
    service: Service,
) -> None:
    world = World(service)
    await world.push("web", "api")
    await world.next_run()
    assert await events(service, type="fact.changed") == []  # the first facts change nothing
    world.vendor.open["acme/web"] = 3
    await world.next_run()
    await world.next_run()
    [found] = await events(service, type="fact.changed")
    assert found["subject"] == "component:default/web"
    assert found["data"] == {
        "entityRef": "component:default/web",
        "source": "vendor",
        "facts": {OPEN: {"from": 0, "to": 3}},
    }


async def test_a_source_tells_once_that_it_is_down_and_once_that_it_is_up(
    service: Service,
) -> None:
    world = World(service)
    await world.push("web")
    await world.next_run()
    world.vendor.faults[""] = DENIED
    for _ in range(3):
        await world.next_run()
    world.vendor.faults.clear()
    await world.next_run()
    await world.next_run()
    found = await events(service, source="vendor", type=["source.down", "source.up"])
    assert [one["type"] for one in found] == ["source.down", "source.up"]
    assert found[0]["data"] == {"source": "vendor", "reason": "forbidden"}
    assert found[1]["data"] == {"source": "vendor"}
