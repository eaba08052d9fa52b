"""find-entities: filters, conditions in three values, pages, groups, and what it refuses."""

from dataclasses import replace
from typing import Any, get_args

import pytest

from factbook.catalog.kinds import RELATIONS
from factbook.catalog.store import related_entities
from tests.conftest import StartService
from tests.service import Service, component
from tests.tools.checks import refusal, structured
from tests.tools.sources import COVERAGE, DRAFT, TREE, record
from tests.tools.test_entity import group

TOOL = "find-entities"
LONG = {"fact": "lines", "source": "coverage", "operator": "greaterThan", "value": 100}


@pytest.fixture
async def filled(recording: Service) -> Service:
    """Five components beside the two of the fixture; of three the lines are known."""
    items = [component(f"part-{n}", owner="team-b", system="shop") for n in range(5)]
    items[0]["metadata"] |= {"title": "Shop front", "tags": ["web"], "labels": {"tier": "1"}}
    items[1]["metadata"] |= {"tags": ["web", "java"], "labels": {"tier": "2"}}
    items[2]["spec"] |= {"lifecycle": "deprecated", "type": "website"}
    del items[3]["spec"]["owner"]
    answer = await recording.push("second", group("unit"), group("team-b", parent="unit"), *items)
    assert answer.status_code == 200, answer.text
    for number, lines in enumerate((50, 150, 250)):
        await record(recording, f"component:default/part-{number}", {"lines": lines})
    return recording


async def ask(service: Service, **arguments: Any) -> dict[str, Any]:
    return structured(TOOL, await service.ask(TOOL, **arguments))


async def names(service: Service, **arguments: Any) -> list[str]:
    found = await ask(service, **arguments)
    return [one["entityRef"].rpartition("/")[2] for one in found["entities"]]


@pytest.mark.both_databases
@pytest.mark.spec("tools.find.filters")
async def test_entities_are_found_by_all_that_is_given(
    filled: Service, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({"text": "SHOP fro"}, ["part-0"]),
        ({"text": "art-1"}, ["part-1"]),
        ({"tag": "WEB"}, ["part-0", "part-1"]),
        ({"label": "tier"}, ["part-0", "part-1"]),
        ({"label": "Tier=2"}, ["part-1"]),
        ({"lifecycle": "deprecated"}, ["part-2"]),
        ({"type": "Website", "kind": "Component"}, ["part-2"]),
        ({"owner": "unit"}, ["part-0", "part-1", "part-2", "part-4"]),
        ({"owner": "team-b", "tag": "java"}, ["part-1"]),
        ({"system": "shop", "ownership": "none"}, ["part-3"]),
        ({"ownership": "missing"}, ["orders", "payments", "account"]),
        ({"dangling": "system"}, ["part-0", "part-1", "part-2", "part-3", "part-4"]),
        ({"dangling": "dependsOn"}, []),
        ({"query": {"metadata.labels.tier": {"$in": ["1", "2"]}}}, ["part-0", "part-1"]),
        ({"kind": "api"}, []),
    ]
    for arguments, expected in cases:
        with subtests.test(arguments=arguments):
            found = await ask(filled, **arguments)
            assert [one["entityRef"].rpartition("/")[2] for one in found["entities"]] == expected
            assert found["total"] == len(expected)


@pytest.mark.both_databases
async def test_references_that_lead_to_nothing_are_found_with_their_targets(
    service: Service,
) -> None:
    shop = component("shop", owner="user:default/gone", system="old")
    shop["spec"] |= {"dependsOn": ["component:basket", "resource:db"], "subcomponentOf": "none"}
    basket = component("basket", owner="team-a", system="here", dependsOn=[])
    systems = [
        {**component(name), "kind": "System", "spec": {"owner": "team-a", "domain": "none"}}
        for name in ("here",)
    ]
    await service.push("all", shop, basket, group("team-a"), *systems)
    cases: list[tuple[str, dict[str, list[str]]]] = [
        ("dependsOn", {"component:default/shop": ["resource:default/db"]}),
        ("owner", {"component:default/shop": ["user:default/gone"]}),
        ("system", {"component:default/shop": ["system:default/old"]}),
        ("domain", {"system:default/here": ["domain:default/none"]}),
        (
            "any",
            {
                "component:default/shop": [
                    *("component:default/none", "resource:default/db"),
                    *("system:default/old", "user:default/gone"),
                ],
                "system:default/here": ["domain:default/none"],
            },
        ),
        ("memberOf", {}),
    ]
    for field, expected in cases:
        found = await ask(service, dangling=field)
        assert {one["entityRef"]: one["dangling"] for one in found["entities"]} == expected, field
        assert found["total"] == len(expected)
    grouped = await ask(service, dangling="any", groupBy="kind")
    assert grouped["groups"] == [
        {"value": "component", "count": 1},
        {"value": "system", "count": 1},
    ]
    assert "dangling" in await service.refusal(TOOL, dangling="depends")


async def test_text_is_compared_in_any_case_unless_a_question_is_case_sensitive(
    filled: Service, subtests: pytest.Subtests
) -> None:
    facts = {"tool": "PyTest", "branches": ["Main", "release/1"]}
    await record(filled, "component:default/part-0", facts)
    sensitive = {"caseSensitive": True}
    cases: list[tuple[str, str, Any, bool]] = [
        ("tool", "equal", "pytest", False),
        ("tool", "in", ["PYTEST", "go"], False),
        ("tool", "contains", "TEST", False),
        ("tool", "contains", "Test", True),
        ("tool", "matches", "^pyt.st$", False),
        ("tool", "matches", "^PyT", True),
        ("branches", "contains", "main", False),
        ("branches", "anyMatches", "^RELEASE/", False),
        ("branches", "anyMatches", "^release/", True),
    ]
    for fact, operator, value, as_written in cases:
        with subtests.test(fact=fact, operator=operator, value=value):
            leaf = {"fact": fact, "source": "coverage", "operator": operator, "value": value}
            for where in (leaf, {"any": [leaf]}, {**leaf, "caseSensitive": None}):
                assert await names(filled, where=where) == ["part-0"]
            exact = await names(filled, where={**leaf, **sensitive})
            assert exact == (["part-0"] if as_written else [])
            some = {"dataSourceId": "coverage", "where": leaf}
            found = await filled.facts("get-all-entities-facts", **some)
            assert [one["entityRef"] for one in found["entities"]] == ["component:default/part-0"]
            some["where"] = {**leaf, **sensitive}
            found = await filled.facts("get-all-entities-facts", **some, count=True)
            assert found["totalCount"] == as_written
    told = await filled.refusal(TOOL, where={"fact": "tool", "operator": "regex", "value": "a"})
    assert "(did you mean matches?)" in told
    assert "anyMatches" in told
    told = await filled.refusal(TOOL, where={**LONG, "operator": ["equal"], **sensitive})
    assert "where.operator has to be one of equal" in told


def test_every_field_of_references_can_be_asked_for() -> None:
    fields = {field.name for fields in RELATIONS.values() for field in fields}
    assert {related_entities.ANY_FIELD, *fields} == set(get_args(related_entities.ReferenceField))


@pytest.mark.both_databases
@pytest.mark.spec("tools.find.conditions")
async def test_a_condition_keeps_apart_what_is_not_known(filled: Service) -> None:
    found = await ask(filled, system="shop", where=LONG)
    assert [one["values"] for one in found["entities"]] == [{"lines": 150}, {"lines": 250}]
    assert (found["total"], found["unknown"]) == (2, 2)
    assert await names(filled, system="shop", where={"not": LONG}) == ["part-0"]
    assert await names(filled, system="shop", where=LONG, unknown=True) == ["part-3", "part-4"]


@pytest.mark.both_databases
async def test_pages_lead_through_all_in_order_with_and_without_a_condition(
    filled: Service,
) -> None:
    known = {"source": "coverage", "fact": "lines", "operator": "isKnown"}
    for arguments in ({"system": "shop"}, {"where": known}):
        found, cursor = list[str](), dict[str, str]()
        while True:
            page = await ask(filled, limit=2, **arguments, **cursor)
            found += [one["entityRef"] for one in page["entities"]]
            if "nextCursor" not in page:
                break
            cursor = {"cursor": page["nextCursor"]}
        assert found == sorted(set(found))
        assert len(found) == (5 if "system" in arguments else 3)


@pytest.mark.both_databases
@pytest.mark.spec("tools.find.groups")
async def test_groups_are_counted_with_and_without_a_condition(filled: Service) -> None:
    plain = await ask(filled, kind="component", groupBy="owner")
    assert plain["groups"] == [
        {"value": "group:default/team-b", "count": 4},
        {"value": "group:default/team-a", "count": 2},
        {"value": None, "count": 1},
    ]
    assert plain["total"] == 7
    for by in ("type", "lifecycle", "tag", "system", "owner", "kind", "namespace"):
        grouped = await ask(filled, kind="component", groupBy=by)
        some = sum(group["count"] for group in grouped["groups"])
        assert some == grouped["total"] + (1 if by == "tag" else 0), by  # one has two tags
    tagged = await ask(filled, where=LONG, groupBy="tag")
    assert tagged["groups"] == [
        {"value": "java", "count": 1},
        {"value": "web", "count": 1},
        {"value": None, "count": 1},
    ]
    assert tagged["total"] == 2
    assert (await ask(filled, where=LONG, limit=0)).keys() == {"asOf", "total", "unknown"}


async def test_a_fact_without_a_source_is_that_of_the_first_source_that_knows_it(
    filled: Service,
) -> None:
    await record(filled, "component:default/part-0", {"lines": 1_000}, DRAFT)
    await record(filled, "component:default/part-4", {"lines": 1_000}, DRAFT)
    anywhere = {name: LONG[name] for name in LONG if name != "source"}
    assert await names(filled, where=anywhere) == ["part-1", "part-2", "part-4"]
    unknown = {"fact": "lines", "operator": "isUnknown"}
    assert await names(filled, system="shop", where=unknown) == ["part-3"]
    assert {COVERAGE.id, DRAFT.id, TREE.id} <= {*(await filled.state.registry.current()).sources}


async def test_a_fact_of_very_many_sources_needs_its_source(start: StartService) -> None:
    many = [replace(DRAFT, id=f"team-{number}", draft=False) for number in range(11)]
    service = await start(sources=many)
    anywhere = {"fact": "lines", "operator": "greaterThan", "value": 1}
    told = refusal(await service.ask(TOOL, where={"any": [anywhere] * 150}))
    assert 'more than 10 data sources have a fact "lines". Give its source' in told
    assert (await ask(service, where={**anywhere, "source": "team-9"}))["total"] == 0


async def test_what_cannot_be_asked_is_refused_with_what_can(
    filled: Service, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"owner": "tem-b"}, "Did you mean group:default/team-b"),
        ({"system": "shp"}, "There is no system system:default/shp"),
        ({"owner": "group:"}, "kind:namespace/name"),
        ({"text": "x" * 301}, "300 characters at most"),
        ({"label": "=1"}, "label has to be a name"),
        ({"query": {"$any": 5}}, "query: $any takes a list"),
        ({"query": {"$all": [{"kind": "x"}] * 600}}, "500 conditions at most"),
        ({"where": {"fact": "liens", "operator": "isKnown"}}, 'no data source has a fact "liens"'),
        ({"where": {**LONG, "source": "covrage"}}, "Did you mean coverage?"),
        ({"where": {**LONG, "operator": "like"}}, "did you mean matches?"),
        ({"where": {**LONG, "value": "many"}}, "where.value has to be"),
        ({"where": {"all": [LONG] * 300}}, "200 conditions at most"),
        ({"where": {"any": [{"fact": "liens"}] * 300}}, "200 conditions at most"),
        ({"where": {}}, "where"),
        ({"where": {"source": "checks", "fact": "none", "operator": "isKnown"}}, "names no check"),
        ({"unknown": True}, "unknown needs `where`"),
        ({"cursor": "nothing"}, "cursor is not the nextCursor"),
    ]
    for arguments, message in cases:
        with subtests.test(arguments=arguments):
            assert message in refusal(await filled.ask(TOOL, **arguments))


async def test_hostile_arguments_are_answered_or_refused_and_nothing_else(filled: Service) -> None:
    deep: dict[str, Any] = LONG
    predicate: dict[str, Any] = {"kind": "component"}
    for _ in range(200):
        deep, predicate = {"not": deep}, {"$not": predicate}
    odd = ["%", "_", "\\", "'; DROP TABLE entities; --", "\u202e", "é" * 300, " ", "a" * 300]
    asked: list[dict[str, Any]] = [{"where": deep}, {"query": predicate}, {"cursor": "=%00:/"}]
    for name in ("text", "kind", "namespace", "type", "lifecycle", "tag", "label", "owner"):
        asked += [{name: text} for text in odd]
    asked += [{"where": {"all": [None, 5, "x", [], {"any": {}}]}}, {"query": {"": {"": []}}}]
    pattern = {**LONG, "fact": "tool", "operator": "matches", "value": "(a+)+$" * 20}
    asked += [{"where": pattern}, {"where": {**LONG, "value": 10**400}}]
    for arguments in asked:
        result = await filled.ask(TOOL, **arguments)
        if result["isError"]:
            assert len(refusal(result)) < 8_000, arguments
        else:
            structured(TOOL, result)


@pytest.mark.slow
async def test_of_many_candidates_only_as_many_are_looked_at_as_a_page_needs(
    filled: Service,
) -> None:
    answer = await filled.push("many", *(component(f"unit-{n:04}") for n in range(2_600)))
    assert answer.status_code == 200, answer.text
    typed = {"source": "entity", "fact": "type", "operator": "equal", "value": "service"}
    page = await ask(filled, where=typed, kind="component", limit=5)
    assert (len(page["entities"]), page["examined"]) == (5, 128)
    assert "total" not in page
    assert (await ask(filled, where=typed, kind="component", limit=0))["total"] == 2_606


@pytest.mark.both_databases
async def test_entities_that_no_source_is_about_are_not_unknown(filled: Service) -> None:
    """The source of lines is about components and APIs: not about groups and the account."""
    found = await ask(filled, where=LONG, limit=0)
    assert (found["total"], found["unknown"]) == (2, 4)
    assert await names(filled, where=LONG, unknown=True) == [
        "orders",
        "part-3",
        "part-4",
        "payments",
    ]
    # Whether another source is about one of these entities decides the same for both.
    other = {"source": "draft", "fact": "lines", "operator": "greaterThan", "value": 100}
    both = {"any": [{**LONG, "source": "coverage"}, other]}
    found = await ask(filled, where=both, limit=0)
    assert (found["total"], found["unknown"]) == (2, 8)
    every = await filled.facts(
        "get-all-entities-facts", dataSourceId="coverage", kind="*", count=True
    )
    assert (every["totalCount"], every["unknown"]) == (3, 4)
    owned = await filled.facts(
        "get-all-entities-facts", dataSourceId="coverage", kind="*", owner="unit", groupBy="lines"
    )
    assert (owned["totalCount"], owned["unknown"]) == (3, 1)
