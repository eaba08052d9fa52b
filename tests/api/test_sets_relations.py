"""Relations are right on both ends in the first read after a push."""

import pytest

from tests.service import PUSH, Service, component, resource

A, B = "component:default/a", "component:default/b"
TEAM = "group:default/team-a"


def group(name: str, **spec: object) -> dict[str, object]:
    """A sound group."""
    return {
        "apiVersion": "backstage.io/v1alpha1",
        "kind": "Group",
        "metadata": {"name": name},
        "spec": {"type": "team", "children": []} | spec,
    }


async def relations(service: Service, ref: str) -> list[tuple[str, str]]:
    """Type and target of each relation of an entity, as every read shows them."""
    entity = await service.catalog(ref)
    assert entity is not None
    by_uid = await service.http.get(f"/api/catalog/entities/by-uid/{entity['metadata']['uid']}")
    assert by_uid.json() == entity
    return [(item["type"], item["targetRef"]) for item in entity["relations"]]


@pytest.mark.spec("catalog.relations-in-the-push-transaction")
async def test_both_directions_show_at_once_and_follow_every_change(service: Service) -> None:
    await service.push("teams", group("team-a"))
    await service.push("first", component("a", dependsOn=["component:b"]), component("b"))
    assert await relations(service, A) == [("dependsOn", B), ("ownedBy", TEAM)]
    assert await relations(service, B) == [("dependencyOf", A), ("ownedBy", TEAM)]
    assert await relations(service, TEAM) == [("ownerOf", A), ("ownerOf", B)]
    await service.push("first", component("a", owner="team-b"), component("b"))
    assert await relations(service, A) == [("ownedBy", "group:default/team-b")]
    assert await relations(service, B) == [("ownedBy", TEAM)]
    assert await relations(service, TEAM) == [("ownerOf", B)]
    await service.push("first")
    assert await relations(service, TEAM) == []


@pytest.mark.both_databases
@pytest.mark.spec("catalog.relations-in-the-push-transaction")
async def test_a_dangling_target_gets_its_side_when_it_comes_and_leaves_ours_when_it_goes(
    service: Service,
) -> None:
    await service.push("first", component("a", dependsOn=["component:b"]))
    ours = [("dependsOn", B), ("ownedBy", TEAM)]
    assert await relations(service, A) == ours
    for _ in range(2):
        await service.push("second", component("b", owner="team-b"))
        assert await relations(service, B) == [
            ("dependencyOf", A),
            ("ownedBy", "group:default/team-b"),
        ]
        assert await relations(service, A) == ours
        await service.push("second")
        assert await service.catalog(B) is None
        assert await relations(service, A) == ours


async def test_a_relation_that_both_ends_state_lasts_until_neither_does(service: Service) -> None:
    stating = component("a", dependsOn=["component:b"])
    stated = component("b", dependencyOf=["component:a"])
    await service.push("one", stating)
    await service.push("two", stated)
    for first, second, related in (
        (component("a"), stated, True),
        (stating, component("b"), True),
        (component("a"), component("b"), False),
    ):
        await service.push("one", first)
        await service.push("two", second)
        assert (("dependsOn", B) in await relations(service, A)) is related
        assert (("dependencyOf", A) in await relations(service, B)) is related


async def test_an_entity_may_relate_to_itself(service: Service) -> None:
    await service.push("one", component("a", dependsOn=["component:a"]))
    assert await relations(service, A) == [
        ("dependencyOf", A),
        ("dependsOn", A),
        ("ownedBy", TEAM),
    ]
    await service.push("one", component("a"))
    assert await relations(service, A) == [("ownedBy", TEAM)]


async def test_a_relation_leads_to_another_namespace_only_when_it_says_so(
    service: Service,
) -> None:
    plain = resource("x", namespace="cloud")
    plain["spec"]["dependsOn"] = ["resource:y", "resource:default/y"]
    await service.push("one", plain, resource("y", namespace="cloud"), resource("y"))
    for namespace in ("cloud", "default"):
        related = await relations(service, f"resource:{namespace}/y")
        assert ("dependencyOf", "resource:cloud/x") in related


@pytest.mark.spec("facts.other-sets-change-relations")
async def test_another_sets_push_changes_the_facts_of_its_targets(service: Service) -> None:
    await service.push("one", component("a"))
    await service.http.post(f"{PUSH}/entities", json=group("team-a"))

    async def facts() -> tuple[bool, bool, bool]:
        source = "entity-ownership"
        answer = await service.facts("get-entity-facts", dataSourceId=source, name="a")
        found = answer["facts"]
        return found["hasOwner"], found["hasGroupOwner"], found["hasRelationships"]

    assert await facts() == (True, True, False)
    await service.push("two", component("b", dependsOn=["component:a"]))
    assert await facts() == (True, True, True)
    await service.http.delete(f"{PUSH}/sets/two")
    assert await facts() == (True, True, False)
