"""get-entity-compliance, and the three sources with the same values: what the catalog says now."""

import re
from typing import Any

import pytest

from factbook.clock import HOUR
from tests.service import Service, component, resource
from tests.tools.checks import TIME, structured

TOOL = "get-entity-compliance"
OWNERSHIP = ("hasOwner", "hasGroupOwner", "hasRelationships", "ownerExists")


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
        "ownership": dict.fromkeys(OWNERSHIP, False),
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
async def test_a_group_owner_is_an_owner_of_kind_group(
    service: Service, subtests: pytest.Subtests
) -> None:
    for owner, expected in [
        ("team-a", True),
        ("group:default/team-a", True),
        ("Group:Team-A", True),
        ("user:default/ann", False),
    ]:
        with subtests.test(owner=owner):
            pushed = await service.push("first", component("payments", owner=owner))
            assert pushed.status_code == 200, pushed.text
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


BLANK = {
    "title": "  ",
    "description": "\t\n ",
    "annotations": {"backstage.io/techdocs-ref": " "},
}


async def test_what_is_blank_is_absent_and_is_read_as_it_was_pushed(service: Service) -> None:
    entity = bare()
    entity["metadata"] |= BLANK
    entity["spec"]["owner"] = " "
    assert (await service.push("first", entity)).status_code == 200
    found = await compliance(service)
    groups = {"metadata": found["metadata"], "techdocs": found["techdocs"]}
    assert not any(value for group in groups.values() for value in group.values())
    assert found["ownership"]["hasOwner"] is False
    path = "/api/catalog/entities/by-name/component/default/payments"
    shown = (await service.http.get(path)).json()
    assert (shown["metadata"]["title"], shown["spec"]["owner"]) == ("  ", " ")
    assert shown["metadata"]["description"] == "\t\n "


async def test_an_owner_that_is_no_text_is_none(
    service: Service, subtests: pytest.Subtests
) -> None:
    cases: list[Any] = [["team-a"], 42, {"name": "team-a"}, True]
    for owner in cases:
        with subtests.test(owner=owner):
            await service.push("first", component("payments", owner=owner))
            found = await compliance(service)
            assert found["metadata"]["hasOwner"] is False
            assert not found["ownership"]["hasOwner"]
            shown = await service.http.get(
                "/api/catalog/entities/by-name/component/default/payments"
            )
            assert shown.json()["spec"]["owner"] == owner
            # With a text in its place the entity is owned once.
            await service.push("first", component("payments", owner="team-a"))
            assert (await compliance(service))["ownership"]["hasOwner"] is True
            shown = await service.http.get(
                "/api/catalog/entities/by-name/component/default/payments"
            )
            relations = [{"type": "ownedBy", "targetRef": "group:default/team-a"}]
            assert shown.json()["relations"] == relations


GROUP = {
    "apiVersion": "backstage.io/v1alpha1",
    "kind": "Group",
    "metadata": {"name": "team-a"},
    "spec": {"type": "team", "children": []},
}


@pytest.mark.spec("facts.ownership-owner-exists")
async def test_an_owner_exists_while_it_is_in_the_catalog(service: Service) -> None:
    async def told() -> list[bool]:
        name = "get-all-entities-facts"
        listed = await service.facts(name, dataSourceId="entity-ownership", facts=["ownerExists"])
        one = await own_facts(service, "entity-ownership")
        return [one["ownerExists"], *(each["facts"]["ownerExists"] for each in listed["entities"])]

    await service.push("first", component("payments"), bare("plain"))
    assert await told() == [False, False, False]
    await service.push("teams", GROUP)
    assert await told() == [True, True, False]
    await service.push("first", component("payments", owner="user:team-a"), bare("plain"))
    assert await told() == [False, False, False]
    await service.push("first", component("payments", owner="Team-A"), bare("plain"))
    assert await told() == [True, True, False]
    await service.push("teams")
    assert await told() == [False, False, False]
    assert (await compliance(service))["ownership"]["hasOwner"] is True


@pytest.mark.parametrize("owner", ["team-a", "team-b"])
async def test_owners_of_a_list_that_an_earlier_release_stored_go_with_the_next_change(
    service: Service, owner: str
) -> None:
    await service.push("first", component("payments", owner=["team-a"]))
    await service.state.database.write(
        lambda transaction: transaction.run(
            "INSERT INTO relations (source_id, type, target_ref) "
            "SELECT id, 'ownedBy', 'group:default/team-a' FROM entities"
        )
    )
    answer = await service.push("first", component("payments", owner=owner))
    assert answer.status_code == 200, answer.text
    shown = await service.http.get("/api/catalog/entities/by-name/component/default/payments")
    relations = [{"type": "ownedBy", "targetRef": f"group:default/{owner}"}]
    assert shown.json()["relations"] == relations
