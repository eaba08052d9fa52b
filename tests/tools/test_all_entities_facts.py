"""get-all-entities-facts: who is in it, in pages or at once, with which facts."""

import re
from typing import Any

import pytest

from factbook.clock import HOUR
from factbook.integrations import SOURCES
from factbook.tools import all_entities_facts
from tests.conftest import StartService
from tests.service import Service, component, resource
from tests.tools.checks import TIME, structured
from tests.tools.sources import COVERAGE, DRAFT, record

TOOL = "get-all-entities-facts"
AWAY = component("payments") | {
    "metadata": {"name": "payments", "namespace": "away"},
    "spec": {"type": "service", "lifecycle": "production"},
}
API = {
    "apiVersion": "backstage.io/v1alpha1",
    "kind": "API",
    "metadata": {"name": "Payments"},
    "spec": {"type": "openapi", "lifecycle": "x", "owner": "team-a", "definition": "…"},
}
COMPONENTS = [
    "component:away/payments",
    "component:default/orders",
    "component:default/payments",
    "component:default/payments account",
]
EVERYBODY = sorted([*COMPONENTS, "api:default/payments", "resource:default/payments"])


@pytest.fixture
async def filled(start: StartService) -> Service:
    service = await start(sources=[*SOURCES, COVERAGE, DRAFT])
    names = ("payments", "orders", "Payments account")
    entities = [AWAY, API, resource("payments"), *(component(name) for name in names)]
    answer = await service.push("first", *entities)
    assert answer.status_code == 200, answer.text
    return service


async def ask(service: Service, source: str, **arguments: Any) -> dict[str, Any]:
    return structured(TOOL, await service.ask(TOOL, dataSourceId=source, **arguments))


def refs(found: dict[str, Any]) -> list[str]:
    return [entity["entityRef"] for entity in found["entities"]]


# Which entities


@pytest.mark.spec("tools.all-facts.result", "tools.all-facts.kind-defaults-to-component")
async def test_without_a_kind_every_component_is_there_with_its_facts(filled: Service) -> None:
    found = await ask(filled, "techdocs")
    assert found.keys() == {"dataSourceId", "dataSourceTitle", "entities"}
    assert (found["dataSourceId"], found["dataSourceTitle"]) == ("techdocs", "TechDocs")
    assert refs(found) == COMPONENTS
    for entity in found["entities"]:
        assert entity.keys() == {"entityRef", "facts", "timestamp"}
        assert entity["facts"] == {"hasTechdocsRef": False}
        assert re.fullmatch(TIME, entity["timestamp"])


@pytest.mark.spec("tools.all-facts.every-kind-by-star", "tools.all-facts.every-tracked-entity")
async def test_a_star_asks_for_every_kind_and_each_entity_comes_once(filled: Service) -> None:
    for source in ("entity-metadata", "entity-ownership", "techdocs"):
        assert refs(await ask(filled, source, kind="*")) == EVERYBODY


async def test_one_kind_is_asked_for_in_any_case(filled: Service) -> None:
    for kind in ("api", "API", " Api "):
        assert refs(await ask(filled, "techdocs", kind=kind)) == ["api:default/payments"]
    assert refs(await ask(filled, "techdocs", kind="system")) == []


@pytest.mark.spec("tools.all-facts.namespace-filter")
async def test_a_namespace_narrows_and_none_does_not(filled: Service) -> None:
    away = ["component:away/payments"]
    assert refs(await ask(filled, "techdocs", namespace="Away")) == away
    assert refs(await ask(filled, "techdocs", namespace="away", kind="*")) == away
    default = await ask(filled, "techdocs", namespace="default", kind="*")
    assert refs(default) == [ref for ref in EVERYBODY if ref not in away]
    assert refs(await ask(filled, "techdocs", namespace="nowhere")) == []


@pytest.mark.spec("facts.tracked", "tools.all-facts.every-tracked-entity")
async def test_tracked_are_those_that_fit_the_filter_and_have_a_value(filled: Service) -> None:
    await record(filled, "component:default/payments", {"lines": 1})
    await record(filled, "api:default/payments", {"lines": 2})
    # What the filter of the source leaves out, and what has reasons alone, is not tracked.
    await record(filled, "resource:default/payments", {"lines": 3})
    await record(filled, "component:default/orders", {}, reasons={"lines": "not-found"})
    await record(filled, "component:away/payments", {"lines": "seven"})
    found = await ask(filled, "coverage", kind="*", limit=10)
    assert refs(found) == ["api:default/payments", "component:default/payments"]
    assert found["totalCount"] == 2
    assert [entity["facts"] for entity in found["entities"]] == [{"lines": 2}, {"lines": 1}]
    assert refs(await ask(filled, "coverage")) == ["component:default/payments"]


@pytest.mark.spec("facts.timestamp-is-the-last-good-write")
async def test_each_entity_has_the_time_of_its_own_last_write(filled: Service) -> None:
    await record(filled, "component:default/payments", {"lines": 1})
    filled.time.advance(HOUR)
    await record(filled, "component:default/orders", {"lines": 2})
    found = await ask(filled, "coverage")
    assert {entity["entityRef"]: entity["timestamp"] for entity in found["entities"]} == {
        "component:default/orders": "2026-11-21T13:00:00.000+00:00",
        "component:default/payments": "2026-11-21T12:00:00.000+00:00",
    }


@pytest.mark.spec("removed.vanishes-from-every-read")
async def test_a_removed_entity_is_not_there(filled: Service) -> None:
    await record(filled, "component:default/payments", {"lines": 1})
    await filled.push("first", component("orders"))
    assert refs(await ask(filled, "coverage", kind="*")) == []
    assert refs(await ask(filled, "techdocs", kind="*")) == ["component:default/orders"]


# Pages


async def pages(service: Service, source: str, **arguments: Any) -> list[dict[str, Any]]:
    """Every page, following nextCursor."""
    found = [await ask(service, source, **arguments)]
    while "nextCursor" in found[-1]:
        found.append(await ask(service, source, **arguments, cursor=found[-1]["nextCursor"]))
        assert len(found) < 20
    return found


@pytest.mark.spec("tools.all-facts.limit-and-cursor")
async def test_pages_of_any_size_walk_everything_once(filled: Service) -> None:
    for ref in EVERYBODY:
        await record(filled, ref, {"lines": 1}, DRAFT)
    for source in ("entity-metadata", "draft"):
        whole = await ask(filled, source, kind="*")
        assert "totalCount" not in whole
        for limit in range(1, 8):
            walked = await pages(filled, source, kind="*", limit=limit)
            entities = [entity for page in walked for entity in page["entities"]]
            assert entities == whole["entities"]
            assert {len(page["entities"]) for page in walked[:-1]} <= {limit}
            assert {page["totalCount"] for page in walked} == {6}
            assert len(walked) == -(-6 // limit)


@pytest.mark.spec("tools.all-facts.limit-and-cursor")
async def test_ten_thousand_entities_are_counted_and_more_are_not(
    filled: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert all_entities_facts.COUNTED == 10_000
    monkeypatch.setattr(all_entities_facts, "COUNTED", 100)
    for count, told in ((100, 100), (101, None)):
        await filled.push("first", *(component(f"n{number}") for number in range(count)))
        found = await ask(filled, "entity-metadata", limit=1, namespace="default")
        assert found.get("totalCount") == told
        assert len(found["entities"]) == 1
        assert "nextCursor" in found


@pytest.mark.spec("tools.all-facts.limit-and-cursor")
async def test_pages_keep_to_the_filters(filled: Service) -> None:
    walked = await pages(filled, "techdocs", limit=1, namespace="default")
    assert [ref for page in walked for ref in refs(page)] == COMPONENTS[1:]
    assert {page["totalCount"] for page in walked} == {3}


@pytest.mark.spec("tools.all-facts.limit-and-cursor")
async def test_a_page_goes_on_although_its_last_entity_is_gone(filled: Service) -> None:
    first = await ask(filled, "techdocs", limit=2)
    await filled.push("first", component("payments"))
    rest = await ask(filled, "techdocs", limit=2, cursor=first["nextCursor"])
    assert refs(rest) == ["component:default/payments"]
    assert "nextCursor" not in rest


async def test_a_cursor_without_a_limit_brings_all_that_follows(filled: Service) -> None:
    first = await ask(filled, "techdocs", limit=1)
    assert refs(await ask(filled, "techdocs", cursor=first["nextCursor"])) == COMPONENTS[1:]


async def test_a_limit_beyond_every_number_of_the_database_is_no_limit(filled: Service) -> None:
    for limit in (2**31, 2**63 - 1, 2**63, 2**80):
        found = await ask(filled, "techdocs", limit=limit)
        assert (refs(found), found["totalCount"]) == (COMPONENTS, 4)


@pytest.mark.slow
@pytest.mark.spec("tools.all-facts.everything-without-limit")
async def test_without_a_limit_nothing_is_cut_off(service: Service) -> None:
    count = 2_500
    await service.push("many", *(component(f"part-{number:05}") for number in range(count)))
    everybody = [f"component:default/part-{number:05}" for number in range(count)]
    assert refs(await ask(service, "entity-metadata")) == everybody
    for limit in (999, 1_000, 1_001, 2_000, 2_499, 2_500):
        walked = await pages(service, "entity-metadata", limit=limit)
        assert [ref for page in walked for ref in refs(page)] == everybody, limit
        assert len(walked) == -(-count // limit)


async def test_names_that_json_has_to_escape_come_back_whole(service: Service) -> None:
    names = ['say "hi"', "back\\slash", "größe", "\N{GRINNING FACE}", "a"]
    await service.push("first", *(component(name) for name in names))
    for limit in ({}, {"limit": 5}):
        found = await ask(service, "entity-metadata", **limit)
        assert refs(found) == sorted(f"component:default/{name}" for name in names)


# Facts to keep


@pytest.mark.spec("tools.all-facts.facts-to-keep")
async def test_the_named_facts_are_kept_and_the_others_dropped(filled: Service) -> None:
    keep = ["hasOwner", "hasTitle"]
    found = await ask(filled, "entity-metadata", facts=keep)
    assert refs(found) == COMPONENTS
    assert [entity["facts"] for entity in found["entities"]] == [
        {"hasTitle": False, "hasOwner": owned} for owned in (False, True, True, True)
    ]
    await record(filled, "component:default/payments", {"lines": 1, "share": 0.5, "green": True})
    [entity] = (await ask(filled, "coverage", facts=["share", "tool"]))["entities"]
    assert entity["facts"] == {"share": 0.5}


@pytest.mark.spec("result.additions-leave-seed-fields-alone")
async def test_additional_arguments_change_no_field_of_the_seed(filled: Service) -> None:
    plain = await ask(filled, "entity-metadata")
    names = [fact.name for source in SOURCES[:1] for fact in source.schema]
    fuller = await ask(filled, "entity-metadata", limit=100, facts=names)
    assert {key: fuller[key] for key in plain} == plain
    assert fuller.keys() - plain.keys() == {"totalCount"}


async def test_facts_of_a_draft_are_marked_on_every_page(filled: Service) -> None:
    for ref in EVERYBODY:
        await record(filled, ref, {"lines": 1}, DRAFT)
    assert (await ask(filled, "draft"))["draft"] is True
    assert all(page["draft"] for page in await pages(filled, "draft", limit=3))
    assert "draft" not in await ask(filled, "coverage", limit=1)
