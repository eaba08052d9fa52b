"""Catalog files that cannot be used: what their repository is then, at each code host."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.cli.imported_catalog import Catalog, catalog
from tests.importers.gitea_organization import GiteaOwner, own
from tests.importers.gitlab_group import GitlabGroup, project
from tests.importers.organization import CATALOG, Organization, file, repository
from tests.service import NOON

__all__ = ["catalog"]

HOSTS: Mapping[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "github": (Organization, repository),
    "gitlab": (GitlabGroup, project),
    "gitea": (GiteaOwner, own),
}
LOCATION = "apiVersion: v1\nkind: Location\nmetadata: {name: NUMBER}\nspec: {targets: []}\n"
# Files of each kind that cannot be used, with a part of the problem.
CASES: Mapping[str, tuple[bytes, str]] = {
    "empty": (b"", "holds no entity"),
    "commented-out": (b"# kind: Component\n", "holds no entity"),
    "no-mapping": (b"docs/catalog-info.yaml", "is not an entity"),
    "broken-yaml": (b"a: [\n", "is not valid YAML"),
    "not-text": (b"\x89PNG\r\n\x00\xff", "text"),
    "too-large": (b"# " + b"x" * 2_000_000, "bytes"),
    "too-deep": (b"[" * 200 + b"]" * 200, "deep"),
    "no-name": (file("x").replace("name: x", "title: x").encode(), "metadata.name"),
    "invalid-name": (file("a/b").encode(), "metadata.name"),
    "no-kind": (file("x").replace("kind:", "kinds:").encode(), "kind"),
    "invalid-tags": (
        file("x").replace("metadata:", "metadata:\n  tags: 5").encode(),
        "metadata.tags",
    ),
    "below-a-location": (f"{LOCATION}---\n{file('a/b')}".encode(), "metadata.name"),
    "over-the-budget": (LOCATION.replace("[]", str(["x"] * 2_001)).encode(), "more than 2,000"),
}


def texts(name: str) -> dict[str, str]:
    """A file with two components."""
    return {CATALOG: f"{file(f'{name}-a')}---\n{file(f'{name}-b')}"}


@pytest.mark.slow
@pytest.mark.parametrize("host", list(HOSTS))
def test_a_file_that_cannot_be_used_takes_nothing_away_and_shows_its_problem(
    catalog: Catalog, host: str
) -> None:
    owner, made = HOSTS[host]
    known = [made(f"was-{case}", n, texts=texts(case)) for n, case in enumerate(CASES, 1)]
    fine = made("fine", 100, texts={CATALOG: file("fine")})
    catalog.take(host, owner(fine, *known).fake)
    written = {f"{case}-{end}" for case in CASES for end in "ab"}
    assert catalog.owners().keys() == {"fine", *written}
    new = [made(f"new-{case}", 50 + n, texts={CATALOG: ""}) for n, case in enumerate(CASES)]
    for several in (known, new):
        for one, (content, _) in zip(several, CASES.values(), strict=True):
            one.texts[CATALOG] = content.replace(b"NUMBER", f"n{one.number}".encode())
            # Each host says in its own way that something was pushed.
            one.updated_at, one.commits = NOON, 2
    for _ in range(2):
        report = catalog.take(host, owner(fine, *known, *new).fake)
        assert catalog.owners() == {
            "fine": "team-a",
            **dict.fromkeys(written, "team-a"),
            **{f"new-{case}": None for case in CASES},
        }
        [part, *_] = report["parts"]
        assert part["state"] == "complete"
        told = {one["origin"].rpartition("/")[2]: one["message"] for one in part["problems"]}
        assert told.keys() == {f"{when}-{case}" for case in CASES for when in ("was", "new")}
        for name, message in told.items():
            assert CASES[name[4:]][1] in message


@pytest.mark.parametrize("host", list(HOSTS))
@pytest.mark.parametrize("case", ["too-large", "not-text", "invalid-name", "broken-yaml"])
def test_an_import_that_could_use_no_file_is_partial(
    catalog: Catalog, host: str, case: str
) -> None:
    owner, made = HOSTS[host]
    one = made("shop", 1, texts={CATALOG: ""})
    one.texts[CATALOG] = CASES[case][0]
    report = catalog.take(host, owner(one).fake, code=1)
    assert catalog.owners() == {"shop": None}
    assert report["parts"][0]["state"] == "partial"


def test_a_repository_keeps_its_id_when_its_file_becomes_valid(catalog: Catalog) -> None:
    one = repository("shop", 1, texts={CATALOG: file("a/b")})
    fine = repository("fine", 2, texts={CATALOG: file("fine")})
    catalog.take("github", Organization(one, fine).fake)
    assert list(catalog.owners()) == ["fine", "shop"]
    one.commits, one.texts[CATALOG] = 2, file("store").encode()
    report = catalog.take("github", Organization(one, fine).fake)
    assert catalog.owners() == {"fine": "team-a", "store": "team-a"}
    assert report["parts"][0]["moves"] == [
        {"from": "component:default/shop", "to": "component:default/store"}
    ]
