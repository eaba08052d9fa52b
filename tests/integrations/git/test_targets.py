"""Which repository annotations point to, and that they choose neither host nor program."""

from typing import Any

import pytest

from factbook.integrations.git import INTEGRATION
from factbook.outbound.outcomes import Missing, Outcome

SOURCE = "backstage.io/source-location"
WEB = "url:https://git.example.com/"


def target(annotations: Any, **table: Any) -> str | Missing:
    """The target of a component with these annotations."""
    integration = INTEGRATION.configured("default", {"host": "git.example.com"} | table)
    return integration.target({"kind": "Component", "metadata": {"annotations": annotations}})


def test_a_location_on_the_host_points_to_a_repository() -> None:
    expected = {
        "acme/app": "acme/app",
        "/acme/app/": "acme/app",
        "acme/app?ref=main#readme": "acme/app",
        "Acme/App": "Acme/App",
        "app": "app",
        # Up to `.git`
        "acme/app.git": "acme/app.git",
        "pub/scm/linux.git/tree/Makefile": "pub/scm/linux.git",
        "acme/group/src/app.git": "acme/group/src/app.git",
        "src/app.git": "src/app.git",
        # GitLab
        "acme/group/app/-/tree/main/src/blob": "acme/group/app",
        "acme/app/-/blob/main/x.git/catalog-info.yaml": "acme/app",
        # GitHub and its like; Gitea and Bitbucket; cgit
        "acme/app/tree/main/services/one/": "acme/app",
        "acme/app/blob/main/catalog-info.yaml": "acme/app",
        "acme/app/src/branch/main/x": "acme/app",
        "app/tree/README": "app",
        # What only looks like one of these
        "src/app": "src/app",
        "acme/src": "acme/src",
        "tree/blob": "tree",
        "acme/tree-house/treed": "acme/tree-house/treed",
        # Names that need care
        "My%20Group/_git/caf%C3%A9": "My Group/_git/café",
        "~user/app": "~user/app",
        "--upload-pack=touch%20x/app": "--upload-pack=touch x/app",
    }
    assert {path: target({SOURCE: WEB + path}) for path in expected} == expected


@pytest.mark.spec("sources.annotations-choose-among-the-configured")
def test_other_annotations_point_to_nothing(subtests: pytest.Subtests) -> None:
    locations: list[Any] = [
        7,
        "",
        "--upload-pack=touch x",
        "ext::sh -c 'touch x'",
        "url:ext::sh -c 'touch x'",
        "url:file:///etc/passwd",
        "url:ssh://git@git.example.com/acme/app",
        "url:git://git.example.com/acme/app",
        "git@git.example.com:acme/app.git",
        "https://git.example.com/acme/app",
        "url:https://evil.example.net/acme/app",
        "url:https://git.example.com.evil.example.net/acme/app",
        "url:https://git.example.com@evil.example.net/acme/app",
        "url:https://token@git.example.com/acme/app",
        "url:https://git.example.com:8443/acme/app",
        "url:https://[git.example.com/acme/app",
        WEB,
        f"{WEB}../etc/passwd",
        f"{WEB}acme/%2e%2e/app",
        f"{WEB}acme/./app",
        f"{WEB}acme//app",
        f"{WEB}acme%2fapp",
        f"{WEB}acme%5capp",
        f"{WEB}acme\\app",
        f"{WEB}acme/app%0ahost=evil.example.net",
        f"{WEB}acme/app%00",
        f"{WEB}acme/{'a' * 500}",
        f"{WEB}-/tree/main",
    ]
    for location in locations:
        with subtests.test(location=location):
            found = target({SOURCE: location})
            assert isinstance(found, Missing)
            assert found.outcome in {Outcome.NO_ANNOTATION, Outcome.BAD_ANNOTATION}


@pytest.mark.parametrize("annotations", [None, {}, [], "text"])
def test_without_annotations_there_is_no_repository(annotations: Any) -> None:
    assert target(annotations) == Missing(Outcome.NO_ANNOTATION, "no repository on git.example.com")


def test_only_configured_paths_are_read_by_whole_parts() -> None:
    table = {"paths": ["acme/apps", "/tools/"]}
    for path, allowed in (
        ("acme/apps/web", True),
        ("acme/apps", True),
        ("tools/one", True),
        ("acme/apps-secret/web", False),
        ("acme/other", False),
        ("Acme/apps/web", False),
    ):
        found = target({SOURCE: WEB + path}, **table)
        assert (found == path) is allowed, path
        if isinstance(found, Missing):
            assert found.reason == "no-annotation: a path that is not configured"
