"""Entity filters: which entities they let through, and which filters are refused."""

from typing import Any

import pytest

from factbook.catalog.filters import EntityFilter, matches_filter, parse_entity_filter

ENTITY: dict[str, Any] = {
    "apiVersion": "backstage.io/v1alpha1",
    "kind": "Component",
    "metadata": {
        "name": "Payments",
        "annotations": {"github.com/project-slug": "acme/Payments", "empty": ""},
        "tags": ["java", "tier1"],
    },
    "spec": {"type": "service", "replicas": 3, "public": False, "nothing": None},
    "relations": [{"type": "ownedBy", "targetRef": "group:default/team-a"}],
}


def passes(*conditions: dict[str, Any]) -> bool:
    return matches_filter(conditions, ENTITY)


def problems_of(value: object) -> list[tuple[str, str]]:
    problems: list[tuple[str, str]] = []
    parse_entity_filter(
        value, "entityFilter", lambda path, message: problems.append((path, message))
    )
    return problems


def test_no_filter_lets_every_entity_through() -> None:
    assert matches_filter(None, ENTITY)


@pytest.mark.spec("filter.or-between-objects")
def test_one_fitting_object_is_enough() -> None:
    assert passes({"kind": "api"}, {"spec.type": "service"})
    assert not passes({"kind": "api"}, {"spec.type": "website"})


@pytest.mark.spec("filter.and-inside-an-object")
def test_every_condition_of_an_object_has_to_hold() -> None:
    assert passes({"kind": "component", "spec.type": "service"})
    assert not passes({"kind": "component", "spec.type": "website"})


@pytest.mark.spec("filter.or-in-a-list-value")
def test_one_fitting_value_of_a_list_is_enough() -> None:
    assert passes({"kind": ["api", "component"]})
    assert not passes({"kind": ["api", "resource"]})


@pytest.mark.spec("filter.dotted-paths")
def test_a_dotted_path_reaches_into_the_entity(subtests: pytest.Subtests) -> None:
    cases: list[tuple[str, Any]] = [
        ("metadata.name", "payments"),
        ("metadata.namespace", "default"),
        ("metadata.annotations.github.com/project-slug", "acme/payments"),
        ("metadata.tags", "java"),
        ("metadata.tags.java", True),
        ("spec.replicas", 3),
        ("spec.replicas", "3"),
        ("spec.public", False),
        ("metadata.annotations.empty", ""),
        ("relations.ownedBy", "group:default/team-a"),
    ]
    for path, value in cases:
        with subtests.test(path=path, value=value):
            assert passes({path: value})
            assert not passes({path: "another"})


def test_case_makes_no_difference() -> None:
    assert passes({"KIND": "COMPONENT", "Metadata.Name": "pAYMENTS", "spec.type": "Service"})


@pytest.mark.spec("filter.exists-marker")
def test_the_exists_marker_asks_only_whether_the_path_is_there() -> None:
    slug = "metadata.annotations.github.com/project-slug"
    assert passes({slug: {"exists": True}})
    assert passes({"spec.nothing": {"exists": True}})
    assert not passes({"spec.missing": {"exists": True}})
    assert passes({"spec.missing": {"exists": False}})
    assert not passes({slug: {"exists": False}})


def test_a_value_too_long_for_the_index_equals_nothing() -> None:
    entity = {"kind": "Component", "metadata": {"name": "a"}, "spec": {"text": "x" * 500}}
    assert not matches_filter([{"spec.text": "x" * 500}], entity)
    assert matches_filter([{"spec.text": {"exists": True}}], entity)


def test_a_filter_is_read_from_a_list_and_from_json_text_alike() -> None:
    wanted: EntityFilter = [{"kind": ["component", "api"], "spec.type": {"exists": True}}]
    text = '[{"kind": ["component", "api"], "spec.type": {"exists": true}}]'
    assert problems_of(wanted) == problems_of(text) == []
    assert parse_entity_filter(wanted, "", print) == parse_entity_filter(text, "", print) == wanted


def test_a_filter_that_is_no_list_of_objects_is_refused(subtests: pytest.Subtests) -> None:
    values: list[object] = [[], {}, {"kind": "component"}, 1, "{}", "not json", "\ud800"]
    for value in values:
        with subtests.test(value=value):
            assert [path for path, _ in problems_of(value)] == ["entityFilter"]


def test_every_problem_of_a_filter_is_named_with_its_path() -> None:
    value = [
        "component",
        {"": "a", "kind": None, "spec": {"type": "a"}, "x": {"exists": "yes"}},
        {"kind": [], "a.b": ["x", None], "sound": 1},
    ]
    assert [path for path, _ in problems_of(value)] == [
        "entityFilter[0]",
        "entityFilter[1]",
        "entityFilter[1].kind",
        "entityFilter[1].spec",
        "entityFilter[1].x",
        "entityFilter[2].kind",
        "entityFilter[2].a.b",
    ]
