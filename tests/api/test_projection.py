"""`fields`: which parts of an entity are kept."""

import json
from typing import Any

import pytest

from factbook.api.catalog import Projection

ENTITY = {
    "kind": "Component",
    "metadata": {
        "name": "web",
        "annotations": {"a": "1", "github.com/project-slug": "o/r", "a.b": "2"},
        "tags": ["x", "y"],
    },
    "spec": {"owner": "team-a", "empty": {}, "none": None, "profile": {"email": "e"}},
    "relations": [{"type": "ownedBy", "targetRef": "group:default/team-a"}],
}


def kept(*fields: str) -> Any:
    return json.loads(Projection.of(fields).apply(json.dumps(ENTITY)))


@pytest.mark.spec("catalog.list-fields")
def test_only_the_named_paths_are_kept(subtests: pytest.Subtests) -> None:
    cases: list[tuple[list[str], Any]] = [
        (["kind"], {"kind": "Component"}),
        (["kind,metadata.name"], {"kind": "Component", "metadata": {"name": "web"}}),
        (["kind", "metadata.name"], {"kind": "Component", "metadata": {"name": "web"}}),
        ([" kind , ,"], {"kind": "Component"}),
        (["metadata.tags"], {"metadata": {"tags": ["x", "y"]}}),
        (["relations"], {"relations": ENTITY["relations"]}),
        (
            ["metadata.annotations.github.com/project-slug"],
            {"metadata": {"annotations": {"github.com/project-slug": "o/r"}}},
        ),
        (["metadata.annotations.a"], {"metadata": {"annotations": {"a": "1"}}}),
        (["spec.none,spec.empty"], {"spec": {"none": None, "empty": {}}}),
        (["spec.profile.email"], {"spec": {"profile": {"email": "e"}}}),
        (["spec", "spec.owner"], {"spec": ENTITY["spec"]}),
        (["spec.owner", "spec"], {"spec": ENTITY["spec"]}),
        (["spec.profile", "spec.profile.email"], {"spec": {"profile": {"email": "e"}}}),
    ]
    for fields, expected in cases:
        with subtests.test(fields=fields):
            assert kept(*fields) == expected


@pytest.mark.spec("catalog.list-fields")
def test_a_path_that_leads_nowhere_is_just_absent(subtests: pytest.Subtests) -> None:
    for field in [
        "nothing",
        "spec.nothing",
        "spec.owner.deeper",
        "metadata.annotations.github.com",
        "metadata.tags.0",
        "metadata.tags.x",
        "Kind",
        "metadata.",
        ".kind",
        "metadata..name",
    ]:
        with subtests.test(field=field):
            assert kept(field) == {}
            assert kept(field, "kind") == {"kind": "Component"}


def test_without_paths_everything_is_kept(subtests: pytest.Subtests) -> None:
    cases: list[list[str]] = [[], [""], [" , "]]
    for fields in cases:
        with subtests.test(fields=fields):
            assert kept(*fields) == ENTITY
            assert Projection.of(fields).keeps_all
