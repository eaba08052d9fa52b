"""Replacing a set: what a push changes, what it leaves alone, and what its answer says."""

import random
import re
from typing import Any

import pytest

from factbook.clock import HOUR
from tests.service import PUSH, Service, component, resource

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


async def names(service: Service, set_id: str = "first") -> list[str]:
    """The names in a set, in its order."""
    answer = await service.http.get(f"{PUSH}/sets/{set_id}")
    if answer.status_code == 404:
        return []
    return [item["entity"]["metadata"]["name"] for item in answer.json()["items"]]


@pytest.mark.spec(
    "response.changes",
    "push.replaces-whole-set",
    "push.omitting-deletes",
    "push.updates-provided-entities",
)
async def test_the_items_of_a_push_become_the_whole_content_of_the_set(service: Service) -> None:
    await service.push("first", component("kept"), component("changed"), component("omitted"))
    answer = await service.push(
        "first", component("kept"), component("changed", owner="team-b"), component("new")
    )
    assert answer.json()["changes"] == {"added": 1, "updated": 1, "removed": 1, "unchanged": 1}
    assert await names(service) == ["kept", "changed", "new"]
    assert await service.catalog("component:default/omitted") is None
    changed = await service.catalog("component:default/changed")
    assert changed is not None
    assert changed["spec"]["owner"] == "team-b"


@pytest.mark.spec(
    "push.resending-keeps-in-sync", "unchanged.keeps-its-stamps", "revisions.only-for-changes"
)
async def test_sending_the_same_again_changes_nothing_not_even_the_stamps(service: Service) -> None:
    sent = [component("a"), resource("Master Account", tags=["x"]), component("b")]
    first = await service.push("first", *sent)
    before = await service.catalog("component:default/a")
    service.time.advance(HOUR)
    async with service.client(await service.token(owner="user:default/another")) as another:
        for _ in range(2):
            again = await another.put(f"{PUSH}/sets/first", json={"items": sent})
            assert again.json()["changes"] == {
                "added": 0,
                "updated": 0,
                "removed": 0,
                "unchanged": 3,
            }
            assert again.json()["items"] == first.json()["items"]
            assert again.json()["revision"] == first.json()["revision"] == 1
    assert await service.catalog("component:default/a") == before
    revisions = (await service.http.get(f"{PUSH}/sets/first/revisions")).json()["revisions"]
    assert len(revisions) == 1


@pytest.mark.spec("unchanged.keeps-its-stamps", "item.updated-by", "item.updated-at")
async def test_only_a_changed_entity_gets_the_user_and_time_of_the_push(service: Service) -> None:
    await service.push("first", component("a"), component("b"))
    service.time.advance(HOUR + 7)
    async with service.client(await service.token(owner="user:default/another")) as another:
        body = {"items": [component("a"), component("b", owner="team-b"), component("c")]}
        answer = await another.put(f"{PUSH}/sets/first", json=body)
    stamps = [(item["updatedBy"], item["updatedAt"]) for item in answer.json()["items"]]
    before = ("user:default/tester", "2026-11-21T12:00:00.000+00:00")
    after = ("user:default/another", "2026-11-21T13:00:00.007+00:00")
    assert stamps == [before, after, after]


@pytest.mark.spec("item.id-is-the-uid", "item.id-survives-resends")
async def test_an_entity_keeps_its_id_however_often_and_changed_it_is_sent(
    service: Service,
) -> None:
    seen = set()
    for owner in ("a", "b", "b", "c", "a"):
        for name in ("payments", "Payments"):
            [item] = (await service.push("first", component(name, owner=owner))).json()["items"]
            entity = await service.catalog("component:default/payments")
            assert entity is not None
            assert entity["metadata"]["uid"] == item["id"]
            assert entity["metadata"]["name"] == name
            seen.add(item["id"])
    assert len(seen) == 1
    assert UUID.fullmatch(seen.pop())


@pytest.mark.spec(
    "response.body",
    "item.raw-data-equals-entity",
    "item.entity-is-as-stored",
    "item.set",
    "item.entity-ref",
    "item.source-is-api-entity",
    "response.warnings",
    "response.revision",
)
async def test_the_answer_holds_the_set_and_each_item_as_stored(service: Service) -> None:
    sent = resource("Account-7", namespace="cloud", foreign={"k": [1]})
    answer = await service.push("accounts", resource("Account-1"), sent)
    body = answer.json()
    assert set(body) == {"set", "items", "revision", "changes", "warnings"}
    assert (body["set"], body["revision"], body["warnings"]) == ("accounts", 1, [])
    assert body["items"][0]["entityRef"] == "resource:default/account-1"
    item = body["items"][1]
    assert set(item) == {
        *("id", "entity", "entityRef", "rawData", "set", "updatedBy", "source", "updatedAt"),
    }  # fmt: skip
    assert item["rawData"] == item["entity"]
    assert (item["set"], item["source"]) == ("accounts", "api-entity")
    assert item["entityRef"] == "resource:cloud/account-7"
    stored = item["entity"]
    assert stored["metadata"].pop("annotations")["factbook/entity-set"] == "accounts"
    assert stored == sent


@pytest.mark.spec("annotations.namespace-is-not-written")
async def test_no_namespace_is_written_into_an_entity_that_came_without_one(
    service: Service,
) -> None:
    [plain, spaced] = (
        await service.push("first", component("a"), resource("b", namespace="default"))
    ).json()["items"]
    assert "namespace" not in plain["entity"]["metadata"]
    assert spaced["entity"]["metadata"]["namespace"] == "default"


@pytest.mark.spec("annotations.clients-values-are-overruled")
async def test_a_clients_annotations_stay_but_those_of_the_service_are_its_own(
    service: Service,
) -> None:
    ours = ["factbook/entity-set", "backstage.io/managed-by-location"]
    ours.append("backstage.io/managed-by-origin-location")
    sent = resource("a", annotations=dict.fromkeys([*ours, "team/note"], "mine"))
    [item] = (await service.push("first", sent)).json()["items"]
    annotations = item["entity"]["metadata"]["annotations"]
    assert [annotations[key] for key in ours if annotations[key] == "mine"] == []
    assert annotations["team/note"] == "mine"


@pytest.mark.slow
@pytest.mark.spec("response.keeps-request-order", "sets.get")
async def test_items_are_answered_and_read_in_the_order_they_were_sent(service: Service) -> None:
    chance = random.Random(7)
    await service.push("other", component("e5"), component("e1"))
    pool = [f"e{number}" for number in range(8)]
    for _ in range(12):
        sent = chance.sample(pool, chance.randint(1, 8))
        items = [component(name) for name in sent]
        answer = await service.push("first", *items, onConflict="take")
        answered = [item["entity"]["metadata"]["name"] for item in answer.json()["items"]]
        assert answered == sent
        assert await names(service) == sent


@pytest.mark.both_databases
@pytest.mark.spec("response.keeps-request-order")
async def test_new_and_taken_entities_are_appended_in_the_order_they_were_sent(
    service: Service,
) -> None:
    await service.push("other", component("t1"), component("t2"))
    await service.push("first", component("old"))
    sent = ["old", "t1", "new", "t2"]
    await service.push("first", *map(component, sent), onConflict="take")
    assert await names(service) == sent


@pytest.mark.spec("guard.off-by-default", "sets.empty-is-not-listed")
async def test_a_push_of_nothing_empties_the_set_and_it_is_listed_no_more(service: Service) -> None:
    await service.push("first", *(component(f"c{number}") for number in range(20)))
    answer = await service.push("first")
    assert answer.status_code == 200
    assert answer.json()["changes"]["removed"] == 20
    assert (await service.http.get(f"{PUSH}/sets")).json() == {"sets": []}
    assert (await service.http.get(f"{PUSH}/sets/first")).status_code == 404
    assert (await service.http.get(f"{PUSH}/entities")).json() == {"items": []}


async def test_a_push_of_nothing_to_an_unused_id_makes_no_set(service: Service) -> None:
    answer = await service.push("never")
    assert (answer.status_code, answer.json()["revision"]) == (200, 0)
    assert (await service.http.get(f"{PUSH}/sets/never/revisions")).status_code == 404


@pytest.mark.spec("push.dry-run-writes-nothing")
async def test_a_dry_run_tells_the_changes_and_stores_nothing(service: Service) -> None:
    await service.push("other", component("theirs"))
    await service.push("first", component("kept"), component("changed"), component("omitted"))
    before = await everything(service)
    lacking: dict[str, Any] = component("new") | {"spec": {}}
    sent = [lacking, component("kept"), component("changed", owner="b"), component("theirs")]
    answer = await service.push("first", *sent, dryRun="true", onConflict="take")
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert (body["dryRun"], body["revision"], body["set"]) == (True, 1, "first")
    assert body["changes"] == {"added": 2, "updated": 1, "removed": 1, "unchanged": 1}
    assert {item["entityRef"]: item["change"] for item in body["difference"]} == {
        "component:default/new": "added",
        "component:default/theirs": "added",
        "component:default/changed": "updated",
        "component:default/omitted": "removed",
    }
    assert body["warnings"]
    refused = [
        await service.push("first", {"kind": 7}, dryRun="true"),
        await service.push("first", component("theirs"), dryRun="true"),
        await service.push("first", dryRun="true", maxRemovals="0"),
        await service.push("first", dryRun="maybe"),
    ]
    assert [answer.status_code for answer in refused] == [400, 409, 409, 400]
    assert (await service.push("unused", component("x"), dryRun="true")).json()["revision"] == 0
    assert await everything(service) == before


async def everything(service: Service) -> list[list[tuple[Any, ...]]]:
    """All that is stored about sets and entities."""
    tables = [
        *("sets", "set_items", "entities", "search", "relations", "revisions"),
        *("revision_changes", "removed_entities", "counters"),
    ]
    database = service.state.database
    return [
        sorted(await database.all(f"SELECT * FROM {table}"), key=repr)  # noqa: S608
        for table in tables
    ]
