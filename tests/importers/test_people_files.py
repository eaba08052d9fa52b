"""Users and groups in catalog files of repositories."""

import pytest

from factbook.importers.snapshot import SnapshotPart
from tests.importers.organization import CATALOG, Organization, file, repository

PERSON = "memberOf: [security]"


def person(name: str, more: str = "") -> str:
    """A catalog file with a user, and more documents."""
    spec = f"spec: {{{PERSON}}}\n"
    head = "apiVersion: backstage.io/v1alpha1\nkind: User\nmetadata:\n"
    return f"{head}  name: {name}\n{spec}{more}"


def location(target: str) -> str:
    """A document that leads to another file."""
    head = "---\napiVersion: backstage.io/v1alpha1\nkind: Location\nmetadata: {name: more}\n"
    return f"{head}spec: {{targets: ['{target}']}}\n"


def names(part: SnapshotPart) -> dict[str, bool]:
    """The users of a part, and whether each only changes what is there."""
    return {
        item.entity["metadata"]["name"]: item.known_only
        for item in part.items
        if item.entity["kind"] == "User"
    }


@pytest.mark.spec("people.only-trusted-sets-give-rights")
async def test_files_add_people_only_in_repositories_that_are_named() -> None:
    url = "https://github.com/acme/{}/blob/{}/{}"
    elsewhere = location(url.format("shop", "main", "more.yaml"))
    own = location(url.format("people", "main", "more.yaml"))
    organization = Organization(
        repository(
            "people", 1, texts={CATALOG: person("kim", elsewhere + own), "more.yaml": person("sam")}
        ),
        repository("shop", 2, texts={CATALOG: person("eve"), "more.yaml": person("mallory")}),
        repository("people-too", 3, texts={CATALOG: person("pat")}),
        repository("web", 4, texts={CATALOG: file("web")}),
        people_from=("Acme/people",),
    )
    parts = {part.key: part for part in (await organization.read()).parts}
    assert names(parts["acme.people"]) == {"kim": False, "sam": False}
    assert names(parts["acme.repositories"]) == {"mallory": True, "eve": True, "pat": True}


async def test_no_repository_is_named_unless_the_settings_do() -> None:
    organization = Organization(repository("shop", texts={CATALOG: person("eve")}))
    parts = {part.key: part for part in (await organization.read()).parts}
    assert "acme.people" not in parts
    assert names(parts["acme.repositories"]) == {"eve": True}


async def test_a_repository_with_people_that_is_not_there_is_told() -> None:
    there = repository("people", texts={CATALOG: file("alice", "User")})
    found = await Organization(there, people_from=("acme/people", "acme/peeple")).part()
    [problem] = found.problems
    assert str(problem) == (
        "github.com/acme: people_from: acme/peeple matches no repository; correct it, or take it "
        "out"
    )
