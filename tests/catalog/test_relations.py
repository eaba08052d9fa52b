"""Relations that a spec states."""

import json
import random
import string
from typing import Any

import pytest

from factbook.catalog.kinds import (
    RELATIONS,
    REVERSE_RELATIONS,
    derive_relations,
    former_relations,
    render_relations,
)

TABLE: list[tuple[str, dict[str, Any], tuple[str, str]]] = [
    ("component", {"owner": "a"}, ("ownedBy", "group:default/a")),
    ("component", {"system": "a"}, ("partOf", "system:default/a")),
    ("component", {"subcomponentOf": "a"}, ("partOf", "component:default/a")),
    ("component", {"providesApis": ["a"]}, ("providesApi", "api:default/a")),
    ("component", {"consumesApis": ["a"]}, ("consumesApi", "api:default/a")),
    ("component", {"dependsOn": ["resource:a"]}, ("dependsOn", "resource:default/a")),
    ("api", {"owner": "user:a"}, ("ownedBy", "user:default/a")),
    ("api", {"system": "x/a"}, ("partOf", "system:x/a")),
    ("resource", {"dependencyOf": ["component:a"]}, ("dependencyOf", "component:default/a")),
    ("resource", {"dependsOn": ["resource:a"]}, ("dependsOn", "resource:default/a")),
    ("system", {"domain": "a"}, ("partOf", "domain:default/a")),
    ("domain", {"subdomainOf": "a"}, ("partOf", "domain:default/a")),
    ("group", {"parent": "a"}, ("childOf", "group:default/a")),
    ("group", {"children": ["a"]}, ("parentOf", "group:default/a")),
    ("group", {"members": ["a"]}, ("hasMember", "user:default/a")),
    ("user", {"memberOf": ["a"]}, ("memberOf", "group:default/a")),
]


def test_each_field_states_its_relation(subtests: pytest.Subtests) -> None:
    for kind, spec, relation in TABLE:
        with subtests.test(kind=kind, spec=spec):
            assert derive_relations(kind, "default", spec) == ({relation}, [])


def test_every_relation_has_a_reverse_that_leads_back() -> None:
    stated = {field.type for fields in RELATIONS.values() for field in fields}
    assert stated <= set(REVERSE_RELATIONS)
    assert all(
        REVERSE_RELATIONS[reverse] == forward for forward, reverse in REVERSE_RELATIONS.items()
    )


def test_a_short_reference_is_in_the_entitys_own_namespace() -> None:
    found, _ = derive_relations(
        "component", "payments", {"owner": "Team-A", "system": "default/shop"}
    )
    assert found == {("ownedBy", "group:payments/team-a"), ("partOf", "system:default/shop")}


def test_what_cannot_be_a_reference_is_told_with_its_field() -> None:
    found, problems = derive_relations(
        "component", "default", {"owner": "a/", "dependsOn": ["b", "api:c"]}
    )
    assert found == {("dependsOn", "api:default/c")}
    assert [field for field, _ in problems] == ["owner", "dependsOn[0]"]
    assert "lacks a kind" in problems[1][1]


@pytest.mark.parametrize(
    "owner", ["a\0b", "a\nb", "".join(random.Random(1).choices(string.ascii_letters, k=5000))]
)
def test_what_no_database_can_index_is_no_reference(owner: str) -> None:
    found, problems = derive_relations("component", "default", {"owner": owner})
    assert found == set()
    assert [field for field, _ in problems] == ["owner"]


def test_a_reference_that_no_entity_can_have_is_none(subtests: pytest.Subtests) -> None:
    for owner in (
        "@acme/platform",
        "group:@acme/platform",
        "2:a",
        "my_team/a",
        "-a/b",
        "a" * 64 + "/b",
    ):
        with subtests.test(owner=owner):
            found, problems = derive_relations("component", "default", {"owner": owner})
            assert (found, [field for field, _ in problems]) == (set(), ["owner"])
            # An earlier release stored it.
            [former] = former_relations("component", "default", {"owner": owner})
            assert former[0] == "ownedBy"
    for owner in ("platform", "@platform", "a--b/c", "Group:Default/Platform", "a" * 63 + "/b"):
        with subtests.test(owner=owner):
            assert derive_relations("component", "default", {"owner": owner})[1] == []
            assert former_relations("component", "default", {"owner": owner}) == set()


def test_values_of_another_type_state_nothing_and_are_told_with_their_place(
    subtests: pytest.Subtests,
) -> None:
    like = "and no reference like group:default/name"
    cases: list[tuple[Any, list[str]]] = [
        (None, []),
        ("", []),
        ([], []),
        (7, [f": is a number, {like}"]),
        ({"a": 1}, [f": is an object, {like}"]),
        (["a", True, None], [f"[1]: is true or false, {like}", f"[2]: is null, {like}"]),
        (["", 1.5], [f"[0]: is an empty text, {like}", f"[1]: is a number, {like}"]),
        ([["a"]], [f"[0]: is a list, {like}"]),
        (
            [{"kind": "Group", "namespace": "b", "name": "c"}],
            ["[0]: is an object; write the reference group:b/c instead"],
        ),
    ]
    for value, problems in cases:
        with subtests.test(value=value):
            found, told = derive_relations("user", "default", {"memberOf": value})
            assert len(found) == (value == ["a", True, None])
            assert [message for _, message in told] == [f"spec.memberOf{one}" for one in problems]
            assert all(message.startswith(f"spec.{field}:") for field, message in told)


def test_an_owner_that_is_no_text_or_blank_is_none(subtests: pytest.Subtests) -> None:
    for owner in (["a"], ["a", "user:b"], 7, {"a": 1}, " "):
        with subtests.test(owner=owner):
            assert derive_relations("component", "default", {"owner": owner})[0] == set()


def test_unknown_kinds_state_nothing() -> None:
    assert derive_relations("spaceship", "default", {"owner": "a"}) == (set(), [])


def test_relations_are_shown_once_each_and_sorted() -> None:
    shown = json.loads(
        render_relations([("partOf", "b"), ("dependsOn", "z"), ("partOf", "a"), ("partOf", "b")])
    )
    assert [(item["type"], item["targetRef"]) for item in shown] == [
        ("dependsOn", "z"),
        ("partOf", "a"),
        ("partOf", "b"),
    ]
