"""get-all-entities-facts for some entities: by owner and condition, counted and grouped."""

from typing import Any

import pytest

from factbook.clock import HOUR, iso
from tests.service import Service, component
from tests.tools.checks import refusal, structured
from tests.tools.sources import COVERAGE, TREE, record
from tests.tools.test_entity import group

TOOL = "get-all-entities-facts"
GREEN = {"fact": "green", "operator": "equal", "value": True}


@pytest.fixture
async def filled(recording: Service) -> Service:
    """Components of two teams, one below the other, and one that nothing is known of."""
    answer = await recording.push(
        "second",
        group("unit"),
        group("team-b", parent="unit"),
        *(component(name, owner="team-b") for name in ("alpha", "beta", "gamma")),
    )
    assert answer.status_code == 200, answer.text
    for name, lines, green in (("alpha", 10, True), ("beta", 10, False), ("payments", 7, True)):
        facts = {"lines": lines, "green": green, "raw": {"text": "x" * 500}}
        await record(recording, f"component:default/{name}", facts)
    return recording


async def ask(service: Service, **arguments: Any) -> dict[str, Any]:
    arguments.setdefault("dataSourceId", "coverage")
    return structured(TOOL, await service.ask(TOOL, **arguments))


def names(found: dict[str, Any]) -> list[str]:
    return [one["entityRef"].rpartition("/")[2] for one in found["entities"]]


async def test_an_owner_stands_for_the_groups_below_it(filled: Service) -> None:
    for owner in ("team-b", "unit", "group:default/unit"):
        found = await ask(filled, owner=owner)
        assert names(found) == ["alpha", "beta"]
        assert (found["totalCount"], found["unknown"]) == (2, 1)


@pytest.mark.spec("tools.all-facts.chosen")
async def test_a_condition_of_checks_chooses_entities_and_what_is_unknown_is_told_apart(
    filled: Service,
) -> None:
    assert names(await ask(filled, where=GREEN)) == ["alpha", "payments"]
    assert names(await ask(filled, where={"not": GREEN})) == ["beta"]
    assert names(await ask(filled, where=GREEN, namespace="default")) == ["alpha", "payments"]
    assert names(await ask(filled, where=GREEN, namespace="nowhere")) == []
    found = await ask(filled, where=GREEN, unknown=True)
    assert names(found) == ["gamma", "orders"]
    assert found["unknown"] == 2


@pytest.mark.spec("tools.all-facts.long-values-and-shared-times")
async def test_long_values_are_left_out_and_counted_unless_they_are_named(filled: Service) -> None:
    found = await ask(filled, owner="unit")
    assert [one["facts"] for one in found["entities"]] == [
        {"lines": 10, "green": True},
        {"lines": 10, "green": False},
    ]
    assert found["leftOut"] == {"raw": 2}
    named = await ask(filled, owner="unit", facts=["raw"])
    assert [one["facts"] for one in named["entities"]] == [{"raw": {"text": "x" * 500}}] * 2
    assert "leftOut" not in named


@pytest.mark.spec("tools.all-facts.long-values-and-shared-times")
async def test_a_time_that_all_share_is_said_once(filled: Service) -> None:
    found = await ask(filled, owner="unit")
    assert found["timestamp"]
    assert not any("timestamp" in one for one in found["entities"])
    filled.time.advance(HOUR)
    await record(filled, "component:default/beta", {"lines": 11})
    found = await ask(filled, owner="unit")
    assert "timestamp" not in found
    assert len({one["timestamp"] for one in found["entities"]}) == 2


async def test_numbers_alone_are_counted_by_a_fact_or_by_what_the_catalog_says(
    filled: Service,
) -> None:
    assert await ask(filled, count=True) == {
        "dataSourceId": "coverage",
        "dataSourceTitle": "Test coverage",
        "entities": [],
        "asOf": iso(filled.time()),
        "totalCount": 3,
        "unknown": 2,
    }
    by_lines = await ask(filled, groupBy="lines")
    assert by_lines["groups"] == [{"value": 10, "count": 2}, {"value": 7, "count": 1}]
    by_owner = await ask(filled, groupBy="owner", where=GREEN)
    assert by_owner["groups"] == [
        {"value": "group:default/team-a", "count": 1},
        {"value": "group:default/team-b", "count": 1},
    ]
    assert "groupBy cannot be raw" in refusal(
        await filled.ask(TOOL, dataSourceId="coverage", groupBy="raw")
    )


async def test_groups_that_an_answer_has_no_room_for_are_counted(filled: Service) -> None:
    many = [component(f"part-{number:03}", owner=f"owner-{number:03}") for number in range(120)]
    await filled.push("many", *many)
    for number in range(120):
        await record(filled, f"component:default/part-{number:03}", {"lines": number + 1_000})
    for by, groups in (("owner", 122), ("lines", 122)):
        found = await ask(filled, groupBy=by)
        assert len(found["groups"]) == 100
        assert found["otherGroups"] == groups - 100, by


async def test_pages_go_on_behind_their_last_entity(filled: Service) -> None:
    first = await ask(filled, owner="unit", limit=1)
    assert names(first) == ["alpha"]
    second = await ask(filled, owner="unit", limit=1, cursor=first["nextCursor"])
    assert names(second) == ["beta"]
    assert "nextCursor" not in second


@pytest.mark.spec("tools.entities-source")
async def test_what_entities_say_of_themselves_is_a_source_too(filled: Service) -> None:
    ref = "component:default/alpha"
    one = await filled.facts("get-entity-facts", dataSourceId="entity", name="alpha")
    assert (one["entityRef"], one["facts"]) == (
        ref,
        {
            "owner": "group:default/team-b",
            "type": "service",
            "lifecycle": "production",
            "ownerExists": True,
        },
    )
    every = await ask(filled, dataSourceId="entity")
    assert dict(zip(names(every), every["entities"], strict=True))["alpha"]["facts"] == one["facts"]
    missing = {"fact": "ownerExists", "operator": "equal", "value": False}
    assert names(await ask(filled, dataSourceId="entity", where=missing)) == ["orders", "payments"]
    grouped = await ask(filled, dataSourceId="entity", groupBy="ownerExists")
    assert grouped["groups"] == [{"value": True, "count": 3}, {"value": False, "count": 2}]


@pytest.mark.spec("tools.entities-source")
async def test_the_same_names_are_read_by_conditions_of_checks(filled: Service) -> None:
    for fact, value in (("owner", "group:default/team-b"), ("type", "service")):
        where = {"source": "entity", "fact": fact, "operator": "equal", "value": value}
        found = await filled.facts("find-entities", where=where, kind="component")
        expected = ["alpha", "beta", "gamma", *(["orders", "payments"] if fact == "type" else [])]
        assert names(found) == expected


@pytest.mark.spec("tools.all-facts.chosen")
async def test_without_the_new_arguments_the_answer_is_as_it_was(filled: Service) -> None:
    found = await ask(filled)
    assert found.keys() == {"dataSourceId", "dataSourceTitle", "entities", "unknownEntities"}
    assert found["entities"][0]["facts"]["raw"] == {"text": "x" * 500}
    assert all("timestamp" in one for one in found["entities"])
    assert {COVERAGE.id, TREE.id} == {"coverage", "tree"}
