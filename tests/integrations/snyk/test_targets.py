"""What annotations point to, and that nothing else comes of them."""

from typing import Any

import pytest

from factbook.integrations.snyk import Selector, read_selector
from factbook.outbound.outcomes import Missing, Outcome
from tests.fakes.snyk import uuid
from tests.integrations.snyk.asking import ACME, OTHER, started

ALL = (ACME, OTHER)


def selected(annotations: dict[str, Any], **table: Any) -> Selector | Missing:
    """What a component with these annotations points to."""
    _, collector = started(**table)
    found = collector.target(**annotations)
    return found if isinstance(found, Missing) else read_selector(found)


def test_annotations_select_projects(subtests: pytest.Subtests) -> None:
    cases: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"targets": " acme/B, acme/a ,acme/b"}, {"targets": ("acme/a", "acme/b")}),
        ({"targets": "acme/a", "target_id": uuid(3), "slug": "x/y"}, {"targets": ("acme/a",)}),
        ({"target_id": uuid(3), "target_name": "acme/a"}, {"targets": (uuid(3),)}),
        ({"target_id": "", "target_name": "Acme, Inc"}, {"targets": ("acme, inc",)}),
        (
            {"project_ids": f"{uuid(9)}, {uuid(8)}", "slug": "x/y"},
            {"projects": (uuid(8), uuid(9))},
        ),
        (
            {"project_ids": uuid(8), "targets": "a/b"},
            {"projects": (uuid(8),), "targets": ("a/b",)},
        ),
        (
            {"slug": "Acme/App", "exclude_project_ids": uuid(7).upper()},
            {"host": "github.com", "slug": "acme/app", "excluded": (uuid(7),)},
        ),
        *(
            ({"slug": slug}, {"host": "github.com", "slug": "acme/app"})
            for slug in (
                "https://github.com/Acme/App.git",
                "https://github.com/acme/app/tree/main/docs",
                "git@github.com:acme/app.git",
                "github.com/acme/app",
                "acme/app.git",
            )
        ),
        (
            {"slug": "acme/app", "location": "url:https://git.acme.test/acme/other"},
            {"host": "git.acme.test", "slug": "acme/app"},
        ),
        (
            {"location": "url:https://github.com/acme/app/tree/main/services/one/"},
            {"host": "github.com", "slug": "acme/app"},
        ),
        (
            {"location": "url:https://gitlab.com/acme/group/app/-/tree/main/one"},
            {"host": "gitlab.com", "slug": "acme/group/app"},
        ),
        (
            {"location": "url:https://git.acme.test/acme/app.git"},
            {"host": "git.acme.test", "slug": "acme/app"},
        ),
    ]
    for annotations, expected in cases:
        with subtests.test(annotations=annotations, expected=expected):
            assert selected(annotations) == Selector(organizations=ALL, **expected)


@pytest.mark.parametrize(
    ("annotations", "organizations"),
    [
        ({}, ALL),
        ({"org_id": ACME.upper()}, (ACME,)),
        ({"org_ids": f"{OTHER},{ACME}", "org_id": uuid(9)}, ALL),
        ({"org_name": "Platform"}, (OTHER,)),
    ],
    ids=repr,
)
def test_annotations_select_among_the_configured_organizations(
    annotations: dict[str, Any], organizations: tuple[str, ...]
) -> None:
    configured = [ACME, f"platform={OTHER}"]
    found = selected({"slug": "acme/app"} | annotations, organizations=configured)
    assert isinstance(found, Selector)
    assert found.organizations == organizations


@pytest.mark.spec("sources.annotations-choose-among-the-configured")
def test_other_annotations_point_to_nothing(subtests: pytest.Subtests) -> None:
    cases: list[dict[str, Any]] = [
        {},
        {"org_id": ACME},
        {"slug": ""},
        {"slug": 7},
        {"slug": "x" * 5_000},
        {"slug": "acme/app\x00"},
        {"slug": "acme/\ud800"},
        {"targets": " , "},
        {"targets": ["acme/app"]},
        {"target_id": "x" * 5_000},
        {"project_ids": "https://evil.example.com"},
        {"project_ids": f"{uuid(1)}/../{uuid(2)}"},
        {"project_ids": f"{uuid(1)}\n{uuid(2)}"},
        {"project_ids": uuid(1), "exclude_project_ids": "some"},
        {"slug": "acme/app", "org_id": uuid(9)},
        {"slug": "acme/app", "org_ids": f"{ACME},{uuid(9)}"},
        {"slug": "acme/app", "org_id": f"{ACME}/../../self"},
        {"slug": "acme/app", "org_id": f"{ACME}%2f.."},
        {"slug": "acme/app", "org_id": "https://evil.example.com"},
        {"slug": "acme/app", "org_name": "nobody"},
        {"location": "url:https://evil.example.com/"},
        {"location": "url:https://[github.com/acme/app"},
        {"location": "dir:./here"},
    ]
    for annotations in cases:
        with subtests.test(annotations=annotations):
            found = selected(annotations)
            assert isinstance(found, Missing)
            assert found.outcome in {Outcome.NO_ANNOTATION, Outcome.BAD_ANNOTATION}
            assert "evil" not in found.detail


def test_entities_that_point_to_the_same_share_one_target() -> None:
    _, collector = started()
    first = collector.target(targets="acme/a, acme/b", org_ids=f"{ACME},{OTHER}")
    assert first == collector.target(targets="Acme/B,acme/a")
    assert first != collector.target(targets="acme/a", org_ids=f"{ACME},{OTHER}")


@pytest.mark.parametrize(
    ("annotations", "outcome"),
    [
        ({}, Outcome.NO_ANNOTATION),
        ({"org_id": uuid(99), "slug": "acme/app"}, Outcome.NO_ANNOTATION),
        ({"project_ids": "seven"}, Outcome.BAD_ANNOTATION),
        ({"slug": "https://evil.example.com/acme/app"}, Outcome.BAD_ANNOTATION),
    ],
)
def test_an_annotation_that_cannot_be_read_is_told_from_one_that_is_not_there(
    annotations: dict[str, Any], outcome: Outcome
) -> None:
    found = selected(annotations)
    assert isinstance(found, Missing)
    assert found.outcome is outcome
