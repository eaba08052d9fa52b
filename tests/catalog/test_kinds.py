"""What the spec of a well-known kind has to hold."""

from typing import Any

import pytest

from factbook.catalog.kinds import OPTIONAL, REQUIRED, spec_problems

V1 = "backstage.io/v1alpha1"
TEMPLATE = "scaffolder.backstage.io/v1beta3"
SAMPLES: dict[type, Any] = {str: "text", list: [], dict: {}}


def version(kind: str) -> str:
    return TEMPLATE if kind == "template" else V1


def test_a_spec_with_every_required_field_has_no_problem(subtests: pytest.Subtests) -> None:
    for kind in REQUIRED:
        with subtests.test(kind=kind):
            spec = {field: SAMPLES[type_] for field, type_ in REQUIRED[kind].items()}
            assert spec_problems(version(kind), kind, spec) == []


def test_every_missing_field_is_named(subtests: pytest.Subtests) -> None:
    for kind in [kind for kind, fields in REQUIRED.items() if fields]:
        with subtests.test(kind=kind):
            found = spec_problems(version(kind), kind, {})
            assert found == [
                (field, f"spec.{field} is required for this kind") for field in REQUIRED[kind]
            ]


def test_every_field_of_a_wrong_type_is_named(subtests: pytest.Subtests) -> None:
    for kind in REQUIRED:
        with subtests.test(kind=kind):
            spec = dict.fromkeys(REQUIRED[kind] | OPTIONAL[kind], 7)
            assert {field for field, _ in spec_problems(version(kind), kind, spec)} == set(spec)


def test_an_empty_string_is_as_good_as_none() -> None:
    spec = {"type": "", "lifecycle": "x", "owner": "x"}
    assert spec_problems(V1, "component", spec) == [
        ("type", "spec.type has to be a non-empty string")
    ]


def test_the_kind_may_come_in_any_case() -> None:
    assert spec_problems(V1, "Component", {}) == spec_problems(V1, "component", {}) != []


def test_an_api_of_a_tool_server_needs_no_definition() -> None:
    spec = {"type": "mcp-server", "lifecycle": "x", "owner": "x"}
    assert spec_problems(V1, "api", spec) == []


@pytest.mark.spec("validation.unknown-kinds-are-kept")
@pytest.mark.parametrize(
    ("api_version", "kind"),
    [(V1, "Spaceship"), ("example.com/v1", "Component"), (V1, "Template"), (TEMPLATE, "System")],
)
def test_other_kinds_and_versions_are_nobodys_to_check(api_version: str, kind: str) -> None:
    assert spec_problems(api_version, kind, {"owner": 7}) == []
