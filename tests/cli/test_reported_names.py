"""Imports of things whose names are alike, as people reported them in public."""

import pytest

from factbook.clock import MINUTE
from tests.cli.imported_catalog import Catalog, catalog
from tests.fakes.fake import Fake
from tests.fakes.github.app import FakeGitHub
from tests.importers import scenarios
from tests.importers.gitea_organization import GiteaOwner, own
from tests.importers.gitlab_group import GitlabGroup, project
from tests.importers.organization import CATALOG, Organization, file, repository
from tests.importers.scenarios import scenario
from tests.integrations.gitea.asking import HOST

__all__ = ["catalog"]

ACME, BETA = ("--org", "acme"), ("--org", "Beta-Corp")
FIRST = {
    "component:default/one": "platform",
    "component:default/two": "group:default/platform",
}
SECOND = {
    "component:beta-corp/two": "group:beta-corp/platform",
    "component:default/one-b": "group:beta-corp/platform",
}
MEMBERS = {
    "user:default/kim": ["group:beta-corp/platform"],
    "user:default/member-a": ["group:default/platform"],
}


def second() -> FakeGitHub:
    """GitHub with a second organization, whose team and repositories have the same names."""
    return scenarios.github(scenario("18-second-organization"))


def owners(catalog: Catalog) -> dict[str, str | None]:
    """The owner of each component by its reference."""
    return {
        ref: entity["spec"].get("owner")
        for ref, entity in catalog.entities.items()
        if ref.startswith("component:")
    }


def memberships(catalog: Catalog) -> dict[str, list[str]]:
    """The groups of each user."""
    return {
        ref: entity["spec"]["memberOf"]
        for ref, entity in catalog.entities.items()
        if ref.startswith("user:")
    }


def test_a_second_organization_leaves_the_first_where_it_is(catalog: Catalog) -> None:
    catalog.take("github", second(), *ACME)
    assert owners(catalog) == FIRST
    report = catalog.take("github", second(), *ACME, *BETA)
    assert owners(catalog) == {**FIRST, **SECOND}
    assert memberships(catalog) == MEMBERS
    assert [part["changes"]["removed"] for part in report["parts"]] == [0] * 6
    assert [part["problems"] for part in report["parts"]] == [[]] * 6


@pytest.mark.slow
def test_the_order_of_organizations_moves_nothing(catalog: Catalog) -> None:
    catalog.take("github", second(), *ACME, *BETA)
    before = catalog.entities
    for several in [(*BETA, *ACME), BETA, (*ACME, "--org", "ACME"), (*ACME, *BETA)]:
        catalog.take("github", second(), *several)
        assert catalog.entities == before


@pytest.mark.parametrize("namespaces", [("default", "default"), ("acme", "beta-corp")])
def test_organizations_of_an_earlier_release_stay_where_they_are(
    catalog: Catalog, namespaces: tuple[str, str]
) -> None:
    for organization, namespace in zip((ACME, BETA), namespaces, strict=True):
        catalog.take("github", second(), *organization, "--namespace", namespace)
    before = {ref for ref in catalog.entities if ref.startswith(("component:", "group:"))}
    catalog.forget()
    catalog.take("github", second(), *ACME, *BETA)
    assert {ref for ref in catalog.entities if ref.startswith(("component:", "group:"))} == before


@pytest.mark.slow
def test_an_organization_that_was_alone_stays_when_another_comes_after_an_upgrade(
    catalog: Catalog,
) -> None:
    catalog.take("github", second(), *ACME)
    catalog.forget()
    catalog.take("github", second(), *ACME, *BETA)
    assert owners(catalog) == {**FIRST, **SECOND}


def test_teams_of_one_name_in_one_namespace_are_two_groups(catalog: Catalog) -> None:
    catalog.take("github", second(), *ACME)
    catalog.take("github", second(), *ACME, *BETA, "--namespace", "default")
    assert owners(catalog) == {
        **FIRST,
        "component:default/two-22": "group:default/platform-2",
        "component:default/one-b": "group:default/platform-2",
    }
    assert memberships(catalog) == {
        "user:default/kim": ["group:default/platform-2"],
        "user:default/member-a": ["group:default/platform"],
    }


@pytest.mark.slow
def test_somebody_in_two_organizations_is_one_user_in_the_teams_of_both(catalog: Catalog) -> None:
    given = scenario("18-second-organization")
    given["members"].append("lee")
    given["others"][0]["teams"][0]["members"].append("member-a")
    both = ["group:beta-corp/platform", "group:default/platform"]
    fake = scenarios.github(given)
    catalog.take("github", fake, *ACME, *BETA)
    assert memberships(catalog)["user:default/member-a"] == both
    catalog.take("github", fake, *ACME)
    assert memberships(catalog)["user:default/member-a"] == both
    fake.members[0].organizations.remove("acme")
    fake.teams[0].members.clear()
    catalog.take("github", fake, *ACME, *BETA)
    assert memberships(catalog)["user:default/member-a"] == ["group:beta-corp/platform"]


def test_a_plan_lists_what_would_move(catalog: Catalog) -> None:
    catalog.take("github", second(), *ACME)
    report = catalog.take("github", second(), *ACME, "--namespace", "acme", "--plan")
    assert [part["moves"] for part in report["parts"]] == [
        [{"from": "component:default/two", "to": "component:acme/two"}],
        [{"from": "group:default/platform", "to": "group:acme/platform"}],
        [{"from": "user:default/member-a", "to": "user:acme/member-a"}],
    ]


def test_groups_whose_paths_are_alike_are_two(catalog: Catalog) -> None:
    fake = scenarios.gitlab(scenario("21-groups-with-paths-alike"))
    for _ in range(2):
        report = catalog.take("gitlab", fake)
        assert memberships(catalog) == {
            "user:default/kim": ["group:default/web-ui"],
            "user:default/member-d": ["group:default/web-ui-4"],
        }
        assert list(owners(catalog)) == [
            "component:default/web-shop",
            "component:default/web-shop-102",
        ]
        assert [part["problems"] for part in report["parts"]] == [[]] * 3
    fake.groups = [one for one in fake.groups if one.number != 3]
    catalog.take("gitlab", fake, code=1)
    assert memberships(catalog)["user:default/member-d"] == ["group:default/web-ui-4"]


def central(host: str, text: str) -> Fake:
    """The repository `all`, whose catalog file has this text, and `shop` with a file below it."""
    files = {"deploy/x.yaml": file("storefront")}
    if host == "github":
        given = (repository("all", 1, texts={CATALOG: text}), repository("shop", 2, texts=files))
        return Organization(*given).fake
    if host == "gitlab":
        return GitlabGroup(
            project("all", 1, texts={CATALOG: text}), project("shop", 2, texts=files)
        ).fake
    return GiteaOwner(
        own("all", 1, texts={CATALOG: text}, updated_at=len(text) * MINUTE),
        own("shop", 2, texts=files),
    ).fake


FILES = {
    "github": ("https://github.com/acme/shop/blob/main/deploy/x.yaml", "github.com", "repository"),
    "gitlab": ("https://gitlab.com/acme/shop/-/blob/main/deploy/x.yaml", "gitlab.com", "project"),
    "gitea": (f"https://{HOST}/acme/shop/src/branch/main/deploy/x.yaml", HOST, "repository"),
}


@pytest.mark.parametrize("host", list(FILES))
def test_a_file_in_another_repository_is_about_that_one(catalog: Catalog, host: str) -> None:
    url, name, word = FILES[host]
    location = (
        f"apiVersion: v1\nkind: Location\nmetadata: {{name: all}}\nspec: {{target: '{url}'}}\n"
    )
    for text, code in [(location, 0), (f"{location}  a: [", 1)]:
        catalog.take(host, central(host, text), code=code)
        assert list(owners(catalog)) == ["component:default/storefront"]
        annotations = catalog.entities["component:default/storefront"]["metadata"]["annotations"]
        assert annotations[f"{name}/project-slug"] == "acme/shop"
        assert annotations["factbook/external-id"] == f"{name}/{word}/2"
        assert annotations["factbook/import-origin"] == f"{name}/acme/all"
