"""Which repository annotations point to, and that they never choose the host."""

from typing import Any

import pytest

from factbook.integrations.github import INTEGRATION
from factbook.outbound.outcomes import Missing, Outcome
from tests.integrations import code_hosts
from tests.integrations.github.asking import TOKEN

SLUG = "github.com/project-slug"
SOURCE = "backstage.io/source-location"
SERVER = "github.example.com"


def target(annotations: dict[str, Any] | None, **table: Any) -> str | Missing:
    """The target of a component with these annotations."""
    integration = INTEGRATION.configured("default", {"token": TOKEN} | table)
    metadata = {"name": "app"} | ({} if annotations is None else {"annotations": annotations})
    return integration.target({"kind": "Component", "metadata": metadata})


def test_annotations_point_to_a_repository(subtests: pytest.Subtests) -> None:
    cases: list[dict[str, Any]] = [
        {SLUG: "acme/app"},
        {SLUG: " Acme/App "},
        {SOURCE: "url:https://github.com/acme/app"},
        {SOURCE: "url:https://github.com/acme/app.git"},
        {SOURCE: "url:https://github.com/acme/app/tree/main/services/one/"},
        {SLUG: "acme/app", SOURCE: "url:https://github.com/acme/other"},
        {SLUG: "acme/app", SOURCE: "dir:./here"},
    ]
    for annotations in cases:
        with subtests.test(annotations=annotations):
            assert target(annotations) == "acme/app"


@pytest.mark.spec("sources.annotations-choose-among-the-configured")
def test_other_annotations_point_to_nothing(subtests: pytest.Subtests) -> None:
    cases: list[dict[str, Any] | None] = [
        None,
        {},
        {SLUG: ""},
        {SLUG: 7},
        {SLUG: "acme"},
        {SLUG: "acme/app/more"},
        {SLUG: "acme/.."},
        {SLUG: "../app"},
        {SLUG: "acme/app?x=1"},
        {SLUG: "acme/app#x"},
        {SLUG: "acme/a pp"},
        {SLUG: "acme/app\n"} | {SOURCE: "url:https://evil.example.com/acme/app"},
        {SLUG: "https://evil.example.com/acme/app"},
        {SLUG: "//evil.example.com/app"},
        {SLUG: "acme@evil.example.com/app:443"},
        {SLUG: "acme/app", SOURCE: "url:https://evil.example.com/acme/app"},
        {SOURCE: "url:https://evil.example.com/acme/app"},
        {SOURCE: "url:https://github.com.evil.example.com/acme/app"},
        {SOURCE: "url:https://github.com@evil.example.com/acme/app"},
        {SOURCE: "url:https://token@github.com/acme/app"},
        {SOURCE: "url:https://github.com:8443/acme/app"},
        {SOURCE: "url:https://[github.com/acme/app"},
        {SOURCE: "url:https://github.com/acme"},
        {SOURCE: "url:https://github.com/"},
        {SOURCE: "https://github.com/acme/app"},
    ]
    for annotations in cases:
        with subtests.test(annotations=annotations):
            found = target(annotations)
            assert isinstance(found, Missing)
            assert found.outcome in {Outcome.NO_ANNOTATION, Outcome.BAD_ANNOTATION}


def test_an_enterprise_server_has_annotations_of_its_own(subtests: pytest.Subtests) -> None:
    cases: list[tuple[dict[str, Any], str | None]] = [
        ({f"{SERVER}/project-slug": "acme/app"}, "acme/app"),
        ({SLUG: "acme/app", SOURCE: f"url:https://{SERVER}/acme/app"}, "acme/app"),
        ({SOURCE: f"url:https://{SERVER}/acme/app"}, "acme/app"),
        ({SLUG: "acme/app"}, None),
        ({SLUG: "acme/app", SOURCE: "url:https://github.com/acme/app"}, None),
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


def test_only_configured_organizations_are_asked_for() -> None:
    assert target({SLUG: "acme/app"}, organizations=["Acme"]) == "acme/app"
    refused = target({SLUG: "evil/app"}, organizations=["acme"])
    assert isinstance(refused, Missing)
    assert refused.reason == "no-annotation: an organization that is not configured"


def test_a_slug_may_be_an_address_on_the_host_of_its_own(subtests: pytest.Subtests) -> None:
    for slug in code_hosts.addresses("github.com", "tree/main/docs"):
        with subtests.test(slug=slug):
            assert target({SLUG: slug}) == "acme/app"


@pytest.mark.spec("sources.annotations-choose-among-the-configured")
def test_an_annotation_that_cannot_be_read_is_told_from_one_that_is_not_there(
    subtests: pytest.Subtests,
) -> None:
    for slug in code_hosts.unreadable("github.com"):
        with subtests.test(slug=slug):
            unreadable, *absent = code_hosts.reasons(target, SLUG, slug)
            assert unreadable is not None
            assert unreadable[0] is Outcome.BAD_ANNOTATION
            assert unreadable[1].startswith("what the annotation names is not ")
            assert [reason and reason[0] for reason in absent] == [Outcome.NO_ANNOTATION] * 2
