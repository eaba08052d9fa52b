"""get-changed-facts: the entities that were added, updated and removed, from the revisions."""

from typing import Any

import pytest

from factbook.clock import DAY, HOUR, MINUTE, iso
from factbook.collection import run_start
from factbook.integrations import SOURCES
from tests.service import NOON, Service, component, resource
from tests.tools import past
from tests.tools.past import ALL, CHANGES, ORDERS, PAYMENTS, answered, changes
from tests.tools.sources import record

pytestmark = pytest.mark.spec("tools.changed-facts.of-the-catalog")

OWN = {"dataSourceId": "catalog"}


def told(change: str, ref: str, time: int, revision: int = 1, **more: Any) -> dict[str, Any]:
    """A change of the catalog as it is shown, so many milliseconds after noon."""
    return {
        "timestamp": iso(NOON + time),
        "dataSourceId": "catalog",
        "version": "1.0.0",
        "entityRef": ref,
        "change": change,
        "set": "shop",
        "revision": revision,
        "by": "user:default/tester",
        "facts": {},
        **more,
    }


def from_to(before: object, after: object) -> dict[str, object]:
    return {"from": before, "to": after}


async def test_entities_that_came_changed_and_went_are_told_with_what_changed(
    service: Service,
) -> None:
    described = component("web")
    described["metadata"]["description"] = "Sells."
    await service.push("shop", described, component("api"))
    service.time.advance(HOUR)
    await service.push("shop", component("web", owner="user:kim", lifecycle="retired"))
    service.time.advance(HOUR)
    await service.push("shop", component("web", owner="user:kim", lifecycle="retired"))
    await service.push("shop")
    web = "component:default/web"
    assert await changes(service) == [
        told("added", "component:default/api", 0),
        told("added", web, 0),
        told("removed", "component:default/api", HOUR, 2),
        told(
            "updated",
            web,
            HOUR,
            2,
            facts={
                "metadata.hasDescription": from_to(True, False),
                "ownership.hasGroupOwner": from_to(True, False),
            },
            fields=["metadata.description", "spec.lifecycle", "spec.owner"],
        ),
        told("removed", web, 2 * HOUR, 3),
    ]
    assert [one["change"] for one in await changes(service, since="30m")] == ["removed"]


async def test_a_spec_that_came_or_went_is_one_field(service: Service) -> None:
    plain = {"apiVersion": "v1", "kind": "Note", "metadata": {"name": "n"}}
    for document in (plain, {**plain, "spec": {"type": "memo"}}, plain):
        await service.push("shop", document)
        service.time.advance(HOUR)
    updated = [one["fields"] for one in await changes(service) if one["change"] == "updated"]
    assert updated == [["spec"], ["spec"]]


async def test_a_source_and_a_kind_narrow_them(recording: Service) -> None:
    await recording.push("shop", component("web"), resource("database"))
    for lines in (1, 2):
        await record(recording, PAYMENTS, {"lines": lines})
        recording.time.advance(HOUR)

    async def refs(**narrowed: str) -> list[str]:
        return [one["entityRef"] for one in await changes(recording, **ALL, **narrowed)]

    both = ["component:default/web", "resource:default/database"]
    assert await refs() == [*both, PAYMENTS]
    assert await refs(**OWN) == both
    assert await refs(kind="resource") == await refs(kind="Resource", **OWN) == both[1:]
    assert await refs(dataSourceId="coverage") == [PAYMENTS]
    assert await refs(dataSourceId="entity-metadata") == []


@pytest.mark.slow
async def test_pages_walk_both_in_the_order_of_time_without_a_repeat_or_a_gap(
    recording: Service,
) -> None:
    for number in range(6):
        names = (f"a{number}", f"b{number} /é~".replace("/", ""), f"c{number}")
        await recording.push(f"set-{number % 2}", *map(component, names))
        for ref in (PAYMENTS, ORDERS):
            await record(recording, ref, {"lines": number})
        recording.time.advance(MINUTE)
    whole = await changes(recording, **ALL, limit=200)
    times = [one["timestamp"] for one in whole]
    assert times == sorted(times)
    # The first facts of both are no change; four sets in a row take the place of another.
    assert len(whole) == 10 + 6 * 3 + 4 * 3
    for limit in (1, 2, 7):
        pages = [page async for page in past.pages(recording, CHANGES, **ALL, limit=limit)]
        assert [one for page in pages for one in page["changes"]] == whole, limit
        assert all(len(page["changes"]) <= limit for page in pages)


async def test_a_page_goes_on_although_one_of_both_was_looked_through_for_nothing(
    recording: Service,
) -> None:
    entity_id = await past.id_of(recording, PAYMENTS)
    rows = [("coverage", entity_id, NOON - 9_000 + n, {"lines": 1}) for n in range(5_000)]
    await past.write(recording, rows)
    await recording.push("shop", component("web"))
    await recording.push("shop", component("web"), component("api"))
    found = [page async for page in past.pages(recording, CHANGES, **ALL, limit=1)]
    refs = [one["entityRef"] for page in found for one in page["changes"]]
    assert refs == ["component:default/web", "component:default/api"]


async def test_a_cursor_of_a_release_before_goes_on_from_its_time(recording: Service) -> None:
    await recording.push("shop", component("web"))
    recording.time.advance(HOUR)
    await recording.push("shop", component("web"), component("api"))
    cursor = f"{NOON + MINUTE}/coverage/1"
    found = await answered(recording, CHANGES, **ALL, cursor=cursor)
    assert [one["entityRef"] for one in found["changes"]] == ["component:default/api"]


async def sample(service: Service) -> None:
    state = service.state
    assert await run_start.sample_catalog(state.database, SOURCES, service.time())


async def test_what_a_revision_told_is_not_told_again_by_the_daily_sample(
    service: Service,
) -> None:
    titled = component("web")
    titled["metadata"]["title"] = "Web"
    await service.push("shop", component("web"), component("api"))
    await sample(service)
    service.time.advance(DAY)
    await service.push("shop", titled, component("api", dependsOn=["component:web"]))
    service.time.advance(HOUR)
    await sample(service)
    web = "component:default/web"
    found = await changes(service, since="24h")
    assert [(one["dataSourceId"], one["entityRef"]) for one in found] == [
        ("catalog", "component:default/api"),
        ("catalog", web),
        # That another entity points to it is in no revision of it.
        ("entity-ownership", web),
        ("entity-ownership", "component:default/api"),
    ]
    assert found[1]["facts"] == {"metadata.hasTitle": from_to(False, True)}
    assert found[2]["facts"] == {"hasRelationships": from_to(False, True)}
    # Of revisions that are kept no more the sample tells.
    await service.state.database.write(lambda tx: tx.run("DELETE FROM revisions"))
    kept = await changes(service, since="24h")
    assert {one["dataSourceId"] for one in kept} == {"entity-metadata", "entity-ownership"}
