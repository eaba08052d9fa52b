"""Which repository annotations point to, and that they never choose the host."""

from typing import Any

import pytest

from factbook.integrations.gitea import INTEGRATION
from factbook.outbound.outcomes import Missing, Outcome
from tests.integrations import code_hosts
from tests.integrations.gitea.asking import HOST, TOKEN

SLUG = f"{HOST}/project-slug"
SOURCE = "backstage.io/source-location"


def target(annotations: Any, **table: Any) -> str | Missing:
    """The target of a component with these annotations."""
    integration = INTEGRATION.configured("default", {"host": HOST, "token": TOKEN} | table)
    metadata = {"name": "app", "annotations": annotations}
    return integration.target({"kind": "Component", "metadata": metadata})


def test_annotations_point_to_a_repository(subtests: pytest.Subtests) -> None:
    cases: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({SLUG: "acme/app"}, {}),
        ({SLUG: " Acme/App "}, {}),
        ({SLUG: "acme/app", SOURCE: "url:https://github.com/acme/other"}, {}),
        ({SOURCE: f"url:https://{HOST}/acme/app"}, {}),
        ({SOURCE: f"url:https://{HOST}/acme/app.git"}, {}),
        ({SOURCE: f"url:https://{HOST}/acme/app/src/branch/main/services/one/"}, {}),
        ({"gitea.com/project-slug": "acme/app"}, {"host": "gitea.com"}),
        ({"a/project-slug": "acme/app"}, {"host": "a:3000"}),
        ({SOURCE: "url:http://a:3000/acme/app"}, {"host": "a:3000"}),
        ({SLUG: "acme/app"}, {"organizations": ["Acme"]}),
    ]
    for annotations, table in cases:
        with subtests.test(annotations=annotations, table=table):
            assert target(annotations, **table) == "acme/app"


@pytest.mark.spec("sources.annotations-choose-among-the-configured")
def test_other_annotations_point_to_nothing(subtests: pytest.Subtests) -> None:
    cases: list[Any] = [
        None,
        7,
        {},
        *(
            {SLUG: slug}
            for slug in (
                "",
                "acme",
                "acme/app/more",
                "acme/..",
                "../app",
                "acme/%2e%2e",
                "acme%2fapp/x",
                "acme/app?x=1",
                "acme/app#x",
                "acme/app\nx",
                "acme/äpp",
                f"acme/{'a' * 101}",
                f"{'a' * 101}/app",
                "https://evil.example.com/acme/app",
                "//evil.example.com/app",
                "acme@evil.example.com/app:443",
            )
        ),
        {SLUG: 7},
        {SLUG: ["acme/app"]},
        {"gitea.com/project-slug": "acme/app"},
        {"github.com/project-slug": "acme/app"},
        {SOURCE: "url:https://evil.example.com/acme/app"},
        {SOURCE: f"url:https://{HOST}.evil.example.com/acme/app"},
        {SOURCE: f"url:https://{HOST}@evil.example.com/acme/app"},
        {SOURCE: f"url:https://token@{HOST}/acme/app"},
        {SOURCE: f"url:https://{HOST}:8443/acme/app"},
        {SOURCE: f"url:https://{HOST}/acme"},
        {SOURCE: f"https://{HOST}/acme/app"},
    ]
    for annotations in cases:
        with subtests.test(annotations=annotations):
            found = target(annotations)
            assert isinstance(found, Missing)
            assert found.outcome in {Outcome.NO_ANNOTATION, Outcome.BAD_ANNOTATION}


def test_only_configured_organizations_are_asked_for() -> None:
    refused = target({SLUG: "evil/app"}, organizations=["acme"])
    assert isinstance(refused, Missing)
    assert refused.reason == "no-annotation: an organization that is not configured"


def test_a_slug_may_be_an_address_on_the_host_of_its_own(subtests: pytest.Subtests) -> None:
    for slug in code_hosts.addresses("git.example.com", "src/branch/main"):
        with subtests.test(slug=slug):
            assert target({SLUG: slug}) == "acme/app"


@pytest.mark.spec("sources.annotations-choose-among-the-configured")
def test_an_annotation_that_cannot_be_read_is_told_from_one_that_is_not_there(
    subtests: pytest.Subtests,
) -> None:
    for slug in code_hosts.unreadable("git.example.com"):
        with subtests.test(slug=slug):
            unreadable, *absent = code_hosts.reasons(target, SLUG, slug)
            assert unreadable is not None
            assert unreadable[0] is Outcome.BAD_ANNOTATION
            assert unreadable[1].startswith("what the annotation names is not ")
            assert [reason and reason[0] for reason in absent] == [Outcome.NO_ANNOTATION] * 2
