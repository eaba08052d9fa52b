"""The catalog API's own rules for an entity; tests/contracts compares them with the npm package."""

from typing import Any

import pytest

from factbook.catalog import validation
from factbook.catalog.validation import SCHEMAS

SPECS: dict[tuple[str, str], dict[str, Any]] = {
    ("Component", ""): {"type": "x", "lifecycle": "x", "owner": "x"},
    ("API", ""): {"type": "x", "lifecycle": "x", "owner": "x", "definition": "x"},
    ("API", "mcp-server"): {
        "type": "mcp-server",
        "lifecycle": "x",
        "owner": "x",
        "remotes": [{"type": "http", "url": "https://a"}],
    },
    ("Resource", ""): {"type": "x", "owner": "x"},
    ("System", ""): {"owner": "x"},
    ("Domain", ""): {"owner": "x"},
    ("Group", ""): {"type": "x", "children": []},
    ("User", ""): {"memberOf": []},
    ("Location", ""): {},
    ("Template", ""): {"type": "x", "steps": [{"action": "x"}]},
    ("AiResource", ""): {"type": "x", "lifecycle": "x", "owner": "x"},
    ("AiResource", "skill"): {"type": "skill", "lifecycle": "x", "owner": "x"},
    ("AiResource", "rule"): {
        "type": "rule",
        "lifecycle": "x",
        "owner": "x",
        "category": "x",
        "rationale": "x",
    },
    ("AiResource", "plugin"): {"type": "plugin", "lifecycle": "x", "owner": "x", "skills": []},
    ("AiResource", "marketplace"): {
        "type": "marketplace",
        "lifecycle": "x",
        "owner": "x",
        "plugins": [],
    },
}


def entity(kind: str, type_: str = "", **spec: Any) -> dict[str, Any]:
    version = "scaffolder.backstage.io/v1beta3" if kind == "Template" else "backstage.io/v1alpha1"
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": "a"},
        "spec": SPECS[kind, type_] | spec,
    }


def paths(value: Any) -> list[str]:
    return sorted(path for path, _ in validation.find_strict_problems(value))


def test_every_known_kind_is_among_these() -> None:
    assert SPECS.keys() == SCHEMAS.keys()


def test_an_entity_with_what_its_kind_needs_is_valid(subtests: pytest.Subtests) -> None:
    for kind, type_ in SPECS:
        with subtests.test(kind=kind, type=type_):
            assert paths(entity(kind, type_)) == []


def test_each_needed_field_is_missed(subtests: pytest.Subtests) -> None:
    for (kind, type_), spec in SPECS.items():
        with subtests.test(kind=kind, type=type_):
            for field in spec.keys() - ({"type"} if type_ else set()):
                lacking = entity(kind, type_)
                del lacking["spec"][field]
                assert paths(lacking) == [f"spec.{field}"]


def test_every_known_kind_needs_a_spec(subtests: pytest.Subtests) -> None:
    for kind, type_ in SPECS:
        with subtests.test(kind=kind, type=type_):
            lacking = entity(kind, type_)
            del lacking["spec"]
            assert paths(lacking) == ["spec"]


def test_metadata_follows_the_strict_forms(subtests: pytest.Subtests) -> None:
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({"name": "x" * 64}, ["name"]),
        ({"namespace": "a" * 64}, ["namespace"]),
        ({"uid": "", "etag": None, "title": "", "description": ""}, ["etag", "title", "uid"]),
        ({"labels": {"a": "", "b": "x y", "A/c": "x"}}, ["labels.A/c", "labels.b"]),
        ({"annotations": {"a": "x y", "a/b": 1, "": ""}}, ["annotations.", "annotations.a/b"]),
        ({"annotations": {f"{'a' * 63}.{'a' * 63}/{'a' * 63}": ""}}, []),
        ({"tags": ["c++", "a:b", "java-8", "a--b", "A", 1]}, [f"tags[{i}]" for i in (3, 4, 5)]),
        (
            {"links": [{"url": "https://a", "title": " ", "icon": "\ufeff"}]},
            ["links[0].icon", "links[0].title"],
        ),
        ({"links": [{"url": "mailto:a", "title": "\x1c", "type": " ", "more": 1}]}, []),
        ({"links": [{"url": "//a"}, {}, 1]}, ["links[0].url", "links[1].url", "links[2]"]),
        ({"more": {"deep": [1]}}, []),
    ]
    for metadata, expected in cases:
        with subtests.test(metadata=metadata):
            changed = entity("System")
            changed["metadata"] |= metadata
            assert paths(changed) == [f"metadata.{path}" for path in expected]


def test_a_spec_follows_the_form_of_its_kind(subtests: pytest.Subtests) -> None:
    cases: list[tuple[str, dict[str, Any], list[str]]] = [
        ("Component", {"dependsOn": ["x"]}, ["dependsOn[0]"]),
        ("Component", {"dependencyOf": ["component:x", "y"]}, ["dependencyOf[1]"]),
        ("Component", {"dependencyOf": 1, "owner": "group:"}, ["owner"]),
        (
            "Component",
            {"providesApis": ["/x", "", "a/b:c"]},
            ["providesApis[0]", "providesApis[1]"],
        ),
        ("API", {"type": "mcp-server"}, ["remotes"]),
        ("Group", {"profile": {"email": "", "more": 1}}, ["profile.email"]),
        ("User", {"profile": []}, ["profile"]),
        ("Location", {"presence": "maybe"}, ["presence"]),
        ("Location", {"presence": "optional", "targets": ["./a"]}, []),
        (
            "Template",
            {"steps": [{"action": "x", "if": True}, {"if": 1}]},
            ["steps[1].action", "steps[1].if"],
        ),
        ("Template", {"parameters": [{"x": 1}, 1]}, ["parameters[1]"]),
        (
            "Template",
            {"parameters": {"backstage:permissions": {"tags": [1]}}},
            ["parameters.backstage:permissions.tags[0]"],
        ),
        (
            "Template",
            {"output": {"more": 1, "links": [{"url": ""}]}},
            ["output.links[0].url", "output.more"],
        ),
        ("Template", {"output": {"more": "x", "text": [{"content": ""}]}}, []),
    ]
    for kind, spec, expected in cases:
        with subtests.test(kind=kind, spec=spec):
            assert paths(entity(kind, **spec)) == [f"spec.{path}" for path in expected]


def test_a_skills_compatibility_is_counted_in_characters() -> None:
    assert paths(entity("AiResource", "skill", compatibility="\U0001f680" * 500)) == []
    long = entity("AiResource", "skill", compatibility="\U0001f680" * 501)
    assert paths(long) == ["spec.compatibility"]


@pytest.mark.parametrize("kind", ["component", "Spaceship", "COMPONENT"])
def test_a_kind_is_known_in_its_own_case_only(kind: str) -> None:
    assert paths(entity("Component") | {"kind": kind}) == ["kind"]


@pytest.mark.parametrize(
    ("kind", "version"),
    [("AiResource", "backstage.io/v1beta1"), ("Template", "backstage.io/v1alpha1"), ("API", "v1")],
)
def test_a_kind_is_known_in_its_api_versions_only(kind: str, version: str) -> None:
    assert paths(entity(kind) | {"apiVersion": version}) == ["apiVersion"]


@pytest.mark.parametrize("field", ["relations", "status", "attachments", "more"])
def test_nothing_foreign_is_at_the_root(field: str) -> None:
    assert paths(entity("System") | {field: []}) == [field]
