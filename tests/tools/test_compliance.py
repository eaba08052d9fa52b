"""get-entity-compliance, and the three sources with the same values: what the catalog says now."""

import re
from typing import Any

import pytest

from factbook.clock import HOUR
from tests.service import Service, component, resource
from tests.tools.checks import TIME, structured

TOOL = "get-entity-compliance"


async def compliance(service: Service, name: str = "payments", **where: str) -> dict[str, Any]:
    return structured(TOOL, await service.ask(TOOL, name=name, **where))


async def own_facts(service: Service, source: str, name: str = "payments") -> dict[str, bool]:
    found = await service.facts("get-entity-facts", dataSourceId=source, name=name)
    facts: dict[str, bool] = found["facts"]
    return facts


def bare(name: str = "payments") -> dict[str, Any]:
    """A component that says as little of itself as it may."""
    return component(name) | {"spec": {"type": "service"}}


@pytest.mark.spec(
    "tools.compliance.metadata-leaves",
    "tools.compliance.techdocs-leaf",
    "tools.compliance.ownership-leaves",
    "unknown.collected-at",
)
async def test_of_an_entity_that_says_nothing_every_leaf_is_false(service: Service) -> None:
    await service.push("first", bare())
    service.time.advance(HOUR)
    now = "2026-11-21T13:00:00.000+00:00"
    assert re.fullmatch(TIME, now)
    assert await compliance(service) == {
        "metadata": dict.fromkeys(["hasTitle", "hasDescription", "hasTags", "hasOwner"], False),
        "techdocs": {"hasTechdocsRef": False},
        "ownership": dict.fromkeys(["hasOwner", "hasGroupOwner", "hasRelationships"], False),
        "unknownReasons": {},
        "collectedAt": {"metadata": now, "techdocs": now, "ownership": now},
    }


@pytest.mark.spec(
    "tools.compliance.metadata-leaves",
    "tools.compliance.techdocs-leaf",
    "tools.compliance.ownership-leaves",
)
async def test_each_thing_that_an_entity_says_turns_its_own_leaf(service: Service) -> None:
    metadata: dict[str, dict[str, Any]] = {
        "hasTitle": {"title": "Payments"},
        "hasDescription": {"description": "Money in, money out."},
        "hasTags": {"tags": ["money"]},
    }
    for leaf, part in metadata.items():
        entity = bare()
        entity["metadata"] |= part
        await service.push("first", entity)
        assert [name for name, said in (await compliance(service))["metadata"].items() if said] == [
            leaf
        ]
    entity = bare()
    entity["metadata"] |= {"annotations": {"backstage.io/techdocs-ref": "dir:."}, "tags": []}
    await service.push("first", entity)
    found = await compliance(service)
    assert found["techdocs"] == {"hasTechdocsRef": True}
    assert not any(found["metadata"].values())


@pytest.mark.spec("facts.metadata-has-owner", "facts.ownership-has-owner")
async def test_an_owner_is_told_by_both_groups_whether_it_is_in_the_catalog_or_not(
    service: Service,
) -> None:
    await service.push("first", component("payments", owner="group:default/nobody"))
    found = await compliance(service)
    assert found["metadata"]["hasOwner"] is True
    assert found["ownership"]["hasOwner"] is True
    assert found["ownership"]["hasRelationships"] is False
    await service.push("first", bare())
    found = await compliance(service)
    assert found["metadata"]["hasOwner"] is False
    assert found["ownership"]["hasOwner"] is False


@pytest.mark.spec("facts.metadata-has-owner", "facts.ownership-has-owner")
async def test_an_owner_that_makes_no_relation_is_told_by_metadata_alone(
    service: Service,
) -> None:
    robot = component("payments") | {"kind": "Robot", "spec": {"owner": "group:default/team-a"}}
    await service.push("first", robot)
    found = await compliance(service, kind="robot")
    assert found["metadata"]["hasOwner"] is True
    assert found["ownership"]["hasOwner"] is False


@pytest.mark.spec("facts.has-group-owner")
@pytest.mark.parametrize(
    ("owner", "expected"),
    [
        ("team-a", True),
        ("group:default/team-a", True),
        ("Group:Team-A", True),
        ("user:default/ann", False),
    ],
)
async def test_a_group_owner_is_an_owner_of_kind_group(
    service: Service, owner: str, expected: bool
) -> None:
    await service.push("first", component("payments", owner=owner))
    assert (await compliance(service))["ownership"]["hasGroupOwner"] is expected
    facts = await own_facts(service, "entity-ownership")
    assert (facts["hasOwner"], facts["hasGroupOwner"]) == (True, expected)


@pytest.mark.spec("facts.has-relationships")
async def test_any_relation_but_that_to_the_owner_is_a_relationship(service: Service) -> None:
    await service.push("first", component("payments"))
    assert (await compliance(service))["ownership"]["hasRelationships"] is False
    await service.push("first", component("payments", system="money"))
    assert (await compliance(service))["ownership"]["hasRelationships"] is True
    group = component("team-a") | {"kind": "Group", "spec": {"type": "team", "children": []}}
    await service.push("second", group)
    found = await compliance(service, "team-a", kind="group")
    assert found["ownership"]["hasRelationships"] is True  # it owns something


@pytest.mark.spec(
    "facts.other-sets-change-relations",
    "facts.catalog-facts-are-current",
    "facts.has-relationships",
)
async def test_another_sets_push_turns_relationships_at_once_and_back(service: Service) -> None:
    await service.push("first", component("payments"))

    async def told() -> list[bool]:
        every = await service.facts("get-all-entities-facts", dataSourceId="entity-ownership")
        [facts] = [
            entity["facts"]
            for entity in every["entities"]
            if entity["entityRef"] == "component:default/payments"
        ]
        return [
            (await compliance(service))["ownership"]["hasRelationships"],
            (await own_facts(service, "entity-ownership"))["hasRelationships"],
            facts["hasRelationships"],
        ]

    assert await told() == [False, False, False]
    await service.push("second", component("shop", dependsOn=["component:default/payments"]))
    assert await told() == [True, True, True]
    await service.push("second", component("shop"))
    assert await told() == [False, False, False]
    await service.push("second", component("shop", dependsOn=["Component:Payments"]))
    assert await told() == [True, True, True]
    await service.push("second")
    assert await told() == [False, False, False]


@pytest.mark.spec("facts.catalog-facts-are-current")
async def test_the_sources_and_the_tool_say_the_same_of_every_entity(service: Service) -> None:
    tagged = resource("account", title="Account", tags=["cloud"])
    docs = component("docs", subcomponentOf="payments")
    docs["metadata"]["annotations"] = {"backstage.io/techdocs-ref": "dir:."}
    await service.push("first", bare(), tagged, docs)
    groups = {
        "entity-metadata": "metadata",
        "entity-ownership": "ownership",
        "techdocs": "techdocs",
    }
    for source, group in groups.items():
        every = await service.facts("get-all-entities-facts", dataSourceId=source, kind="*")
        assert len(every["entities"]) == 3
        for entity in every["entities"]:
            found = await compliance(service, entity["entityRef"])
            assert entity["facts"] == found[group], (source, entity["entityRef"])
