"""Not applicable, unknown and absent are counted and shown as three different things."""

import re
from typing import Any

import pytest

from tests.api.defining import FACTS, define, item, push, pushed
from tests.conftest import StartService
from tests.service import Service, component
from tests.tools.test_entity import group
from tests.web.visiting import Browser, signed_in

SOURCE = {"dataSourceId": "coverage"}
OUTSIDE = "/catalog/group/default/team-a/facts/coverage"


@pytest.fixture
async def service(start: StartService) -> Service:
    """A source about components: one has a value, one has none; two groups are outside of it."""
    service = await start()
    await define(service, pushed(entityFilter=[{"kind": "component"}]))
    full, bare = component("full", dependsOn=["component:bare"], system="shop"), component("bare")
    full["metadata"] |= {"title": "Full", "tags": ["java"], "labels": {"tier": "1"}}
    bare["spec"] = {}
    answer = await service.push("all", full, bare, group("team-a"), group("team-b"))
    assert answer.status_code == 200, answer.text
    await push(service, item("component:default/full", lines=10))
    return service


async def names(service: Service, where: dict[str, Any]) -> tuple[list[str], int]:
    """The names of the components that meet a condition, and how many are unknown."""
    found = await service.facts("find-entities", where=where, kind="component")
    return [one["entityRef"].rpartition("/")[2] for one in found["entities"]], found["unknown"]


async def test_no_question_finds_or_counts_entities_outside_the_source(service: Service) -> None:
    known = {"fact": "lines", "operator": "isKnown"}
    unknown = {"fact": "lines", "operator": "isUnknown"}
    reason = {"fact": "lines", "operator": "reasonIs", "value": "never-collected"}
    more = {"fact": "lines", "operator": "greaterThan", "value": 5}
    for where, total, unknowns in (
        (known, 1, 0),
        (unknown, 1, 0),
        ({"not": known}, 1, 0),
        (reason, 1, 0),
        (more, 1, 1),
        ({"not": more}, 0, 1),
    ):
        found = await service.facts("find-entities", where=where, limit=0)
        assert (found["total"], found["unknown"]) == (total, unknowns), where
        found = await service.facts("find-entities", where=where, groupBy="kind")
        assert [one["value"] for one in found["groups"]] == ["component"] * bool(total), where
    every = {**SOURCE, "kind": "*"}
    found = await service.facts("get-all-entities-facts", **every)
    assert found["unknownEntities"]["count"] == 1
    found = await service.facts("get-all-entities-facts", **every, unknown=True)
    assert [one["entityRef"] for one in found["entities"]] == ["component:default/bare"]
    for asked in ({"count": True}, {"groupBy": "kind"}, {"where": more}):
        found = await service.facts("get-all-entities-facts", **every, **asked)
        assert found["unknown"] == 1, asked


async def test_rest_and_exports_count_no_entity_outside_the_source(service: Service) -> None:
    path = f"{FACTS}/coverage"
    found = (await service.http.get(f"{path}/distribution?fact=lines&by=kind")).json()
    assert (found["entities"], found["known"], found["unknown"]) == (2, 1, 1)
    assert [one["name"] for one in found["groups"]] == ["component"]
    found = (await service.http.get(f"{path}/values?fact=lines")).json()
    assert len(found["entities"]) == 2
    browser = await signed_in(service, role="viewer")
    lines = (await browser.text("/data-sources/coverage/values/lines")).splitlines()
    assert [line.partition(",")[0] for line in lines[1:]] == [
        "component:default/bare",
        "component:default/full",
    ]


async def text(browser: Browser, path: str) -> str:
    found = await browser.text(path)
    main = re.sub(r"<[^>]+>", " ", found[found.index("<main") : found.index("</main")])
    return " ".join(main.split())


async def test_pages_of_an_entity_outside_the_source_say_that_it_does_not_apply(
    service: Service,
) -> None:
    browser = await signed_in(service, role="viewer")
    for path in (OUTSIDE, f"{OUTSIDE}/lines"):
        shown = await text(browser, path)
        assert "not applicable" in shown, path
        assert "unknown" not in shown, path
        assert "not collected yet" not in shown, path
    shown = await text(browser, "/catalog/component/default/bare/facts/coverage/lines")
    assert "unknown not collected yet" in shown
    shown = await text(browser, "/data-sources/coverage/facts/lines")
    assert "1 of 2 entities known" in shown


async def test_nothing_of_the_catalog_is_unknown_where_an_entity_has_none(
    service: Service, subtests: pytest.Subtests
) -> None:
    full, bare, both = ["full"], ["bare"], ["bare", "full"]
    cases: list[tuple[str, str, Any, list[str]]] = [
        ("tags", "contains", "java", full),
        ("metadata.tags", "contains", "java", full),
        ("metadata.tags", "doesNotContain", "java", bare),
        ("metadata.tags", "anyMatches", "^j", full),
        ("metadata.tags", "isEmpty", None, bare),
        ("metadata.tags", "isNotEmpty", None, full),
        ("metadata.tags", "sizeAtMost", 0, bare),
        ("metadata.tags", "isKnown", None, full),
        ("metadata.tags", "isUnknown", None, bare),
        ("metadata.labels.tier", "equal", "1", full),
        ("metadata.labels.tier", "notEqual", "1", bare),
        ("metadata.labels.tier", "notIn", ["2"], both),
        ("relations.dependsOn", "contains", "component:default/bare", full),
        ("relations.dependsOn", "isEmpty", None, bare),
        ("spec.dependsOn", "isEmpty", None, bare),
        ("metadata.title", "matches", "full", full),
        ("owner", "equal", "group:default/team-a", full),
        ("spec.lifecycle", "notEqual", "production", bare),
    ]
    for fact, operator, value, expected in cases:
        with subtests.test(fact=fact, operator=operator):
            leaf = {"source": "entity", "fact": fact, "operator": operator}
            leaf |= {} if value is None else {"value": value}
            assert await names(service, leaf) == (expected, 0)
            others = [name for name in both if name not in expected]
            assert await names(service, {"not": leaf}) == (others, 0)
    misspelled = {"source": "entity", "fact": "metadata.tgas", "operator": "isEmpty"}
    refusal = await service.refusal("find-entities", where=misspelled)
    assert "Did you mean metadata.tags?" in refusal


async def test_answers_leave_out_what_an_entity_does_not_have(service: Service) -> None:
    found = await service.facts("get-entity", name="bare")
    absent = {"tags", "labels", "owner", "lifecycle", "type", "title"}
    assert not absent & {*found, *found["writtenByOthers"]}
    assert "dependsOn" not in found["relations"]
    found = await service.facts("get-entity-facts", dataSourceId="entity", name="bare")
    assert found["facts"] == {}
    found = await service.facts("find-entities", text="bare")
    assert [one.keys() for one in found["entities"]] == [{"entityRef"}]
    entity = await service.catalog("component:default/bare")
    assert entity is not None
    assert not {"tags", "labels"} & entity["metadata"].keys()
    assert not {"dependsOn"} & entity["spec"].keys()
