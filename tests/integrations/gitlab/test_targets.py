"""Which project annotations point to, and that they never choose the host."""

from typing import Any

import pytest

from factbook.integrations.gitlab import INTEGRATION
from factbook.outbound.outcomes import Missing, Outcome
from tests.integrations import code_hosts
from tests.integrations.gitlab.asking import TOKEN

SLUG = "gitlab.com/project-slug"
INSTANCE = "gitlab.com/instance"
SOURCE = "backstage.io/source-location"
SERVER = "gitlab.example.com"


def target(annotations: dict[str, Any] | None, **table: Any) -> str | Missing:
    """The target of a component with these annotations."""
    integration = INTEGRATION.configured("default", {"token": TOKEN} | table)
    metadata = {"name": "app"} | ({} if annotations is None else {"annotations": annotations})
    return integration.target({"kind": "Component", "metadata": metadata})


def test_annotations_point_to_a_project(subtests: pytest.Subtests) -> None:
    cases: list[dict[str, Any]] = [
        {SLUG: "acme/team/app"},
        {SLUG: " acme/team/app "},
        {SLUG: "acme/team/app", INSTANCE: "GitLab.com"},
        {SLUG: "acme/team/app", INSTANCE: "gitlab.com", SOURCE: f"url:https://{SERVER}/a/b"},
        {SOURCE: "url:https://gitlab.com/acme/team/app"},
        {SOURCE: "url:https://gitlab.com/acme/team/app.git"},
        {SOURCE: "url:https://gitlab.com/acme/team/app/-/tree/main/services/one/"},
        {SOURCE: "url:https://gitlab.com/acme/team/app/blob/main/catalog-info.yaml"},
        {SLUG: "acme/team/app", SOURCE: "url:https://gitlab.com/acme/other"},
        {SLUG: "acme/team/app", SOURCE: "dir:./here"},
    ]
    for annotations in cases:
        with subtests.test(annotations=annotations):
            assert target(annotations) == "acme/team/app"


@pytest.mark.spec("sources.annotations-choose-among-the-configured")
def test_other_annotations_point_to_nothing(subtests: pytest.Subtests) -> None:
    cases: list[dict[str, Any] | None] = [
        None,
        {},
        {SLUG: ""},
        {SLUG: 7},
        {SLUG: ["acme/app"]},
        {SLUG: "acme"},
        {SLUG: "acme/.."},
        {SLUG: "../app"},
        {SLUG: "acme/%2e%2e/app"},
        {SLUG: "acme%2fapp"},
        {SLUG: "acme//app"},
        {SLUG: "acme/app?x=1"},
        {SLUG: "acme/app#x"},
        {SLUG: "acme/a pp"},
        {SLUG: "acme/app\nevil"},
        {SLUG: "acme/-/app"},
        {SLUG: "acme/" + "a" * 300},
        {SLUG: "/".join(["acme"] * 30)},
        {SLUG: "https://evil.example.com/acme/app"},
        {SLUG: "//evil.example.com/app"},
        {SLUG: "acme@evil.example.com/app:443"},
        {SLUG: "acme/app", INSTANCE: "evil.example.com"},
        {SLUG: "acme/app", INSTANCE: 7},
        {SLUG: "acme/app", INSTANCE: ""},
        {SLUG: "acme/app", SOURCE: "url:https://evil.example.com/acme/app"},
        {SOURCE: "url:https://evil.example.com/acme/app"},
        {SOURCE: "url:https://gitlab.com/acme/app", INSTANCE: SERVER},
        {SOURCE: "url:https://gitlab.com.evil.example.com/acme/app"},
        {SOURCE: "url:https://gitlab.com@evil.example.com/acme/app"},
        {SOURCE: "url:https://token@gitlab.com/acme/app"},
        {SOURCE: "url:https://gitlab.com:8443/acme/app"},
        {SOURCE: "url:https://[gitlab.com/acme/app"},
        {SOURCE: "url:https://gitlab.com/acme"},
        {SOURCE: "url:https://gitlab.com/acme/-/app"},
        {SOURCE: "https://gitlab.com/acme/app"},
    ]
    for annotations in cases:
        with subtests.test(annotations=annotations):
            found = target(annotations)
            assert isinstance(found, Missing)
            assert found.outcome in {Outcome.NO_ANNOTATION, Outcome.BAD_ANNOTATION}


def test_a_self_managed_host_has_annotations_of_its_own(subtests: pytest.Subtests) -> None:
    cases: list[tuple[dict[str, Any], str | None]] = [
        ({f"{SERVER}/project-slug": "acme/app"}, "acme/app"),
        ({SLUG: "acme/app", INSTANCE: SERVER}, "acme/app"),
        ({SLUG: "acme/app", SOURCE: f"url:https://{SERVER}/acme/other"}, "acme/app"),
        ({SOURCE: f"url:https://{SERVER}/acme/app/-/tree/main"}, "acme/app"),
        ({SLUG: "acme/app"}, None),
        ({SLUG: "acme/app", INSTANCE: "gitlab.com"}, None),
        ({SLUG: "acme/app", SOURCE: "url:https://gitlab.com/acme/app"}, None),
        ({SOURCE: f"url:https://{SERVER}/acme/app", INSTANCE: "gitlab.com"}, None),
    ]
    for annotations, expected in cases:
        with subtests.test(annotations=annotations):
            found = target(annotations, host=SERVER)
            assert (None if isinstance(found, Missing) else found) == expected


@pytest.mark.parametrize(
    "annotations",
    [{f"{SERVER}/project-slug": "acme/app"}, {SOURCE: f"url:https://{SERVER}:8443/acme/app"}],
)
def test_the_slug_of_a_host_with_a_port_is_named_without_it(annotations: dict[str, Any]) -> None:
    assert target(annotations, host=f"{SERVER}:8443") == "acme/app"


def test_only_configured_groups_are_asked_for() -> None:
    assert target({SLUG: "acme/team/app"}, groups=["Acme"]) == "acme/team/app"
    refused = target({SLUG: "evil/acme/app"}, groups=["acme"])
    assert isinstance(refused, Missing)
    assert refused.reason == "no-annotation: a group that is not configured"


def test_a_slug_may_be_an_address_on_the_host_of_its_own(subtests: pytest.Subtests) -> None:
    for slug in code_hosts.addresses("gitlab.com", "-/tree/main"):
        with subtests.test(slug=slug):
            assert target({SLUG: slug}) == "acme/app"


@pytest.mark.spec("sources.annotations-choose-among-the-configured")
def test_an_annotation_that_cannot_be_read_is_told_from_one_that_is_not_there(
    subtests: pytest.Subtests,
) -> None:
    for slug in code_hosts.unreadable("gitlab.com"):
        with subtests.test(slug=slug):
            unreadable, *absent = code_hosts.reasons(target, SLUG, slug)
            assert unreadable is not None
            assert unreadable[0] is Outcome.BAD_ANNOTATION
            assert unreadable[1].startswith("what the annotation names is not ")
            assert [reason and reason[0] for reason in absent] == [Outcome.NO_ANNOTATION] * 2
