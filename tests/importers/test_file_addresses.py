"""Addresses of files, as code hosts write and wrote them, and files on other hosts."""

from collections.abc import Callable
from typing import Any

import pytest

from factbook.errors import ConfigurationError
from factbook.importers import registry
from tests.importers.gitea_organization import GiteaOwner, own
from tests.importers.gitlab_group import GitlabGroup, project
from tests.importers.hosted_owner import HostedOwner
from tests.importers.organization import CATALOG, Organization, file, repository

HOSTS: dict[str, tuple[Callable[..., HostedOwner], Callable[..., Any], list[str]]] = {
    "github": (
        Organization,
        repository,
        [
            "https://github.com/acme/Apis/blob/release/v3/x.yaml",
            "https://github.com/acme/apis/raw/refs/heads/release/v3/x.yaml",
            "https://github.com/acme/apis/blame/release%2Fv3/x.yaml?plain=1#L3",
            "https://raw.githubusercontent.com/acme/apis/release/v3/x.yaml?token=t",
            "https://raw.githubusercontent.com/acme/apis/refs/heads/release/v3/x.yaml",
            "https://GitHub.com/acme/apis.git/blob/HEAD/x.yaml",
            "https://api.github.com/repos/acme/apis/contents/x.yaml",
            "https://api.github.com/repos/Acme/apis/contents/x.yaml?ref=release/v3",
            "https://api.github.com/repositories/1/contents/x.yaml?ref=refs%2Fheads%2Frelease%2Fv3",
        ],
    ),
    "gitlab": (
        GitlabGroup,
        project,
        [
            "https://gitlab.com/acme/apis/-/blob/release/v3/x.yaml",
            "https://gitlab.com/acme/apis/-/raw/release/v3/x.yaml?inline=false",
            "https://gitlab.com/acme/apis/blob/release/v3/x.yaml",
            "https://gitlab.com/acme/apis/raw/release%2Fv3/x.yaml",
            "https://gitlab.com/acme/apis/-/blob/HEAD/x.yaml?ref_type=heads",
            "https://gitlab.com/api/v4/projects/acme%2Fapis/repository/files/x.yaml/raw",
            "https://gitlab.com/api/v4/projects/1/repository/files/x%2Eyaml/raw?ref=release%2Fv3",
            "https://gitlab.com/api/v4/projects/1/repository/files/x.yaml?ref=HEAD&lfs=true",
        ],
    ),
    "gitea": (
        GiteaOwner,
        own,
        [
            "https://git.example.com/acme/apis/src/branch/release/v3/x.yaml",
            "https://git.example.com/acme/apis/raw/branch/release/v3/x.yaml",
            "https://git.example.com/acme/apis/media/branch/release/v3/x.yaml",
            "https://git.example.com/acme/apis/src/release/v3/x.yaml",
            "https://git.example.com/api/v1/repos/acme/apis/raw/x.yaml",
            "https://git.example.com/api/v1/repos/acme/apis/media/x.yaml?ref=release/v3",
            "https://git.example.com/api/v1/repos/acme/apis/contents/x.yaml?ref=HEAD",
        ],
    ),
}


def targets(*addresses: str) -> str:
    """A location of these addresses."""
    listed = "".join(f"\n    - {one}" for one in addresses)
    return (
        "apiVersion: backstage.io/v1alpha1\nkind: Location\nmetadata: {name: all}\n"
        f"spec:\n  targets:{listed}\n"
    )


def api(name: str, text: str) -> str:
    """An API whose definition is in a file."""
    return (
        f"apiVersion: backstage.io/v1alpha1\nkind: API\nmetadata: {{name: {name}}}\n"
        "spec:\n  type: openapi\n  lifecycle: production\n  owner: team-a\n"
        f"  definition: {{$text: '{text}'}}\n"
    )


@pytest.mark.slow
async def test_every_address_of_a_file_on_a_default_branch_is_the_same_file(
    subtests: pytest.Subtests,
) -> None:
    for kind, (owner, made, addresses) in HOSTS.items():
        for address in addresses:
            with subtests.test(kind, address=address):
                host = owner(
                    made("apis", 1, texts={"x.yaml": file("x")}, branch="release/v3"),
                    made("all", 2, texts={CATALOG: f"{targets(address)}---\n{api('y', address)}"}),
                )
                found = await host.entities()
                assert (await host.part()).problems == ()
                assert {"x", "y", "all"} <= found.keys()
                assert found["y"]["spec"]["definition"] == file("x")


async def test_other_branches_may_have_slashes_too() -> None:
    address = "https://github.com/acme/all/blob/feature/a/b/docs/x.yaml"
    texts = {CATALOG: targets(address, address.replace("b/docs", "none"))}
    branches = {"feature/a/b": {"docs/x.yaml": file("x").encode()}}
    owner = Organization(repository("all", 2, texts=texts, branches=branches))
    assert set(await owner.entities()) == {"all", "x"}
    assert [one.message for one in (await owner.part()).problems] == [
        "a/none/x.yaml: there is no such file"
    ]


async def test_the_address_of_an_api_names_any_branch_and_folder() -> None:
    address = "https://api.github.com/repos/acme/all/contents/a%20b/x.yaml?ref=feature/a/b"
    branches = {"feature/a/b": {"a b/x.yaml": file("x").encode()}}
    texts = {CATALOG: targets(address, address.replace("x.y", "none.y"))}
    owner = Organization(repository("all", 2, texts=texts, branches=branches))
    assert set(await owner.entities()) == {"all", "x"}
    assert [one.message for one in (await owner.part()).problems] == [
        "a b/none.yaml: there is no such file"
    ]


async def test_the_address_of_an_api_is_read_of_imported_owners_alone(
    subtests: pytest.Subtests,
) -> None:
    for address, reason in {
        "repos/other/all/contents/x.yaml": "is in an organization that is not imported",
        "repositories/9/contents/x.yaml": "is in an organization that is not imported",
        "repos/acme/all/contents/../../../x.yaml": "is outside the repository",
        "repos/acme/all/git/blobs/x.yaml": "is not a file on github.com",
    }.items():
        with subtests.test(address):
            texts = {CATALOG: targets(f"https://api.github.com/{address}")}
            owner = Organization(repository("all", 2, texts=texts))
            assert [one.message for one in (await owner.part()).problems] == [
                f"the target {reason}"
            ]


async def test_an_address_elsewhere_leaves_the_entity_without_that_content() -> None:
    texts = {CATALOG: api("x", "https://specs.example.com/x.yaml")}
    owner = Organization(repository("all", 2, texts=texts))
    assert "definition" not in (await owner.entities())["x"]["spec"]
    [problem] = (await owner.part()).problems
    assert problem.message == (
        "https://specs.example.com/x.yaml: the target is not a file on github.com, or on a host of "
        "text_hosts"
    )


def test_hosts_of_content_are_checked_where_settings_are_read(subtests: pytest.Subtests) -> None:
    accounts = {"github": {"default": {"token": "t", "organizations": ["acme"]}}}
    for host, message in [
        ("specs.example.com", ""),
        ("http://specs.example.com:8080/apis/", ""),
        ("https://a@b", "text_hosts: https://a@b: A base URL has to be like"),
        ("", "text_hosts: : A base URL"),
        ("github.com", "https://github.com is the code host itself"),
    ]:
        with subtests.test(host):
            table = {"text_hosts": [host]}
            if not message:
                made = registry.configure_importer("github", "default", table, accounts)
                assert any("specs" in base for base in made.integration.further)
                continue
            with pytest.raises(ConfigurationError) as caught:
                registry.configure_importer("github", "default", table, accounts)
            assert message in str(caught.value)
