"""A reference has one owner: conflicts, and taking what another set holds."""

from typing import Any

import pytest

from tests.service import PUSH, Service, component


async def read(service: Service, set_id: str) -> Any:
    """A set as it is read."""
    return (await service.http.get(f"{PUSH}/sets/{set_id}")).json()


async def revisions(service: Service, set_id: str) -> list[dict[str, Any]]:
    """The revisions of a set, newest first."""
    answer = await service.http.get(f"{PUSH}/sets/{set_id}/revisions")
    found: list[dict[str, Any]] = answer.json()["revisions"]
    return found


@pytest.mark.spec("conflict.is-409", "conflict.names-refs-and-owners", "conflict.writes-nothing")
async def test_pushing_what_others_hold_is_refused_naming_each_and_its_owner(
    service: Service,
) -> None:
    await service.push("one", component("a"), component("b"))
    await service.push("two", component("c"))
    await service.http.post(f"{PUSH}/entities", json=component("d"))
    await service.push("mine", component("m"))
    before = [await read(service, name) for name in ("one", "two", "mine")]
    sent = [component(name, owner="x") for name in ("m", "D", "c", "b", "new", "A")]
    answer = await service.push("mine", *sent)
    assert answer.status_code == 409
    error = answer.json()["error"]
    assert error["name"] == "ConflictError"
    assert error["conflicts"] == [
        {"entityRef": "component:default/a", "owner": "one"},
        {"entityRef": "component:default/b", "owner": "one"},
        {"entityRef": "component:default/c", "owner": "two"},
        {"entityRef": "component:default/d", "owner": "no set"},
    ]
    assert "component:default/a (held by one)" in error["message"]
    assert "and 1 more" in error["message"]
    assert "onConflict=take" in error["message"]
    assert [await read(service, name) for name in ("one", "two", "mine")] == before
    assert await service.catalog("component:default/new") is None
    wrong = await service.push("mine", component("a"), onConflict="merge")
    assert wrong.status_code == 400


@pytest.mark.spec("conflict.take")
async def test_taking_moves_the_references_and_both_sets_get_a_revision(service: Service) -> None:
    held = (await service.push("one", component("a"), component("b"), component("c"))).json()
    await service.push("mine", component("m"))
    sent = [component("m"), component("b", owner="x"), component("a")]
    answer = await service.push("mine", *sent, onConflict="take")
    assert answer.status_code == 200, answer.text
    assert answer.json()["changes"] == {"added": 2, "updated": 0, "removed": 0, "unchanged": 1}
    ids = {item["entityRef"]: item["id"] for item in held["items"]}
    for item in answer.json()["items"][1:]:
        assert item["id"] == ids[item["entityRef"]]
        assert item["set"] == "mine"
        assert item["entity"]["metadata"]["annotations"]["factbook/entity-set"] == "mine"
    loser = await read(service, "one")
    assert [item["entityRef"] for item in loser["items"]] == ["component:default/c"]
    assert loser["revision"] == 2
    lost, _ = await revisions(service, "one")
    assert lost["changes"] == {"added": 0, "updated": 0, "removed": 2, "unchanged": 1}
    sets = (await service.http.get(f"{PUSH}/sets")).json()["sets"]
    assert [(item["id"], item["itemCount"]) for item in sets] == [("mine", 3), ("one", 1)]
    refused = await service.push("one", component("a"), component("c"))
    assert refused.json()["error"]["conflicts"] == [
        {"entityRef": "component:default/a", "owner": "mine"}
    ]


@pytest.mark.both_databases
@pytest.mark.spec("conflict.take")
async def test_taking_from_several_sets_at_once_may_empty_them(service: Service) -> None:
    for name in "abc":
        await service.push(f"set {name}", component(name))
    answer = await service.push("all", *map(component, "cab"), onConflict="take")
    assert answer.json()["changes"]["added"] == 3
    sets = (await service.http.get(f"{PUSH}/sets")).json()["sets"]
    assert [item["id"] for item in sets] == ["all"]
    for name in "abc":
        assert len(await revisions(service, f"set {name}")) == 2
    # What was emptied can take its own back.
    restore = f"{PUSH}/sets/set a/revisions/1/restore"
    assert (await service.http.post(restore)).status_code == 409
    back = await service.http.post(restore, params={"onConflict": "take"})
    assert back.status_code == 200, back.text
    assert [item["entityRef"] for item in back.json()["items"]] == ["component:default/a"]
    left = await read(service, "all")
    assert [item["entityRef"] for item in left["items"]] == [
        "component:default/c",
        "component:default/b",
    ]


@pytest.mark.spec("conflict.take")
async def test_one_entity_can_be_taken_too(service: Service) -> None:
    [held] = (await service.push("one", component("a"))).json()["items"]
    path = f"{PUSH}/sets/two"
    assert (await service.http.post(path, json=component("a"))).status_code == 409
    taken = await service.http.post(path, json=component("a"), params={"onConflict": "take"})
    assert (taken.json()["id"], taken.json()["set"]) == (held["id"], "two")
    assert (await service.http.get(f"{PUSH}/sets/one")).status_code == 404


async def test_a_conflict_is_over_once_the_owner_lets_go(service: Service) -> None:
    [held] = (await service.push("one", component("a"))).json()["items"]
    assert (await service.push("two", component("a"))).status_code == 409
    await service.push("one")
    [item] = (await service.push("two", component("a"))).json()["items"]
    assert (item["id"], item["set"]) == (held["id"], "two")
