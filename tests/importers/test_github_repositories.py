"""What becomes of the repositories of a GitHub organization."""

from typing import Any

import pytest

from tests.fakes import faults
from tests.fakes.github.faults import secondary_limit
from tests.importers.organization import CATALOG, Organization, file, member, repository, team


async def test_a_repository_without_a_file_is_a_component() -> None:
    one = repository(
        "shop",
        7,
        description=" Sells things. ",
        topics=["type-website", "retail"],
        languages=["C++"],
    )
    found = await Organization(one).part()
    [item] = found.items
    assert item.entity == {
        "apiVersion": "backstage.io/v1alpha1",
        "kind": "Component",
        "metadata": {
            "name": "shop",
            "description": "Sells things.",
            "tags": ["retail", "c++"],
            "annotations": {
                "github.com/project-slug": "acme/shop",
                "backstage.io/source-location": "url:https://github.com/acme/shop/tree/main/",
                "backstage.io/view-url": "https://github.com/acme/shop",
            },
        },
        "spec": {"type": "website", "lifecycle": "production"},
    }
    assert (item.origin, item.external_id) == (
        "github.com/acme/shop",
        "github.com/repository/7",
    )
    assert (found.complete, found.problems, found.unread) == (True, (), frozenset())


async def test_archived_repositories_and_forks_come_by_setting() -> None:
    several = (repository("old", is_archived=True), repository("copy", is_fork=True))
    without = Organization(*several)
    assert await without.entities() == {}
    assert (await without.read()).left_out == {"archived repositories": 1, "forks": 1}
    entities = await Organization(*several, archived=True, forks=True).entities()
    assert [entities[one]["spec"]["lifecycle"] for one in ("old", "copy")] == [
        "deprecated",
        "production",
    ]


async def test_the_owner_is_of_codeowners_then_of_the_only_team(subtests: pytest.Subtests) -> None:
    cases = [
        ("* @acme/web\n", "group:default/web"),
        ("* @acme/nobody @alice # boss\n", "user:default/alice"),
        ("* @acme/web\n* @bob\n", "user:default/bob"),
        ("/docs @acme/web\n", "group:default/shop"),
        ("* @other/web mail@example.com\n", "group:default/shop"),
        ("* @acme/web\n*\n", "group:default/shop"),
        ("/* @acme/web\n", "group:default/shop"),
        # As Git has it, what ends with a slash is a folder: not the files of the root.
        ("**/ @acme/web\n", "group:default/shop"),
        ("* @acme/web\n/**/ @bob\n", "group:default/web"),
        ("**/* @acme/web\n", "group:default/web"),
        ("/**/* @acme/web\n", "group:default/web"),
        ("/** @acme/web\n", "group:default/web"),
        ("** @acme/web\n", "group:default/web"),
        ("**/** @acme/web\n", "group:default/web"),
    ]
    for codeowners, owner in cases:
        with subtests.test(codeowners=codeowners):
            one = repository("shop", texts={".github/CODEOWNERS": codeowners})
            organization = Organization(one)
            organization.fake.teams = [team("web", 1), team("shop", 2, admin=["shop"])]
            organization.fake.members = [member("alice", 1), member("bob", 2)]
            assert (await organization.entities())["shop"]["spec"]["owner"] == owner


async def test_an_owner_that_is_not_known_is_absent(subtests: pytest.Subtests) -> None:
    cases: list[tuple[list[Any], str | None]] = [
        ([team("a", 1, maintain=["shop"])], "group:default/a"),
        ([team("a", 1, maintain=["shop"]), team("b", 2, admin=["shop"])], "group:default/b"),
        ([team("a", 1, admin=["shop"]), team("b", 2, admin=["shop"])], None),
        ([team("a", 1, admin=["shop"], is_secret=True)], None),
        ([], None),
    ]
    for teams, owner in cases:
        with subtests.test(teams=teams):
            organization = Organization(repository("shop"))
            organization.fake.teams = teams
            assert (await organization.entities())["shop"]["spec"].get("owner") == owner


async def test_a_file_brings_its_entities_and_what_it_names() -> None:
    root = file(
        "shop",
        more="---\nkind: Location\napiVersion: v1\nmetadata: {name: all}\n"
        "spec: {targets: ['apis/*.yaml']}\n",
    )
    texts = {
        CATALOG: root,
        "apis/a.yaml": file("a", "API", "x: {$text: ../README.md}\n"),
        "README.md": "Hello",
    }
    organization = Organization(repository("shop", 7, texts=texts))
    found = await organization.part()
    assert [
        (item.entity["metadata"]["name"], item.file, item.external_id) for item in found.items
    ] == [
        ("shop", CATALOG, "github.com/repository/7"),
        ("all", CATALOG, ""),
        ("a", "apis/a.yaml", ""),
    ]
    assert found.items[2].entity["x"] == "Hello"
    annotations = found.items[2].entity["metadata"]["annotations"]
    assert annotations["backstage.io/source-location"].endswith("/acme/shop/tree/main/apis/")
    assert (found.problems, found.unread) == ((), frozenset())


async def test_a_file_may_name_files_of_other_repositories_of_the_organization() -> None:
    location = (
        "apiVersion: v1\nkind: Location\nmetadata: {name: all}\nspec:\n  targets:\n"
        "    - https://github.com/acme/other/blob/main/x.yaml\n"
        "    - https://github.com/evil/other/blob/main/x.yaml\n"
        "    - https://evil.test/acme/other/blob/main/x.yaml\n"
    )
    other = repository("other", 8, texts={"x.yaml": file("x")}, is_archived=True)
    found = await Organization(repository("shop", texts={CATALOG: location}), other).part()
    assert [item.entity["metadata"]["name"] for item in found.items] == ["all", "x"]
    annotations = found.items[1].entity["metadata"]["annotations"]
    assert annotations["github.com/project-slug"] == "acme/other"
    assert found.items[1].external_id == "github.com/repository/8"
    assert [problem.message for problem in found.problems] == [
        "the target is in an organization that is not imported",
        "the target is not a file on github.com",
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"a: [", "is not valid YAML"),
        (b"a: " + b"x" * 600_000, "the file has 600,003 bytes"),
        (b"\xff\xfe", "the file is not text; save it in UTF-8"),
    ],
)
async def test_a_broken_file_is_a_problem_and_not_taken_for_none(text: bytes, problem: str) -> None:
    one = repository("shop")
    one.files, one.texts = [CATALOG], {CATALOG: text}
    found = await Organization(one, repository("other")).part()
    assert [item.origin for item in found.items if not item.tentative] == ["github.com/acme/other"]
    assert (found.complete, found.unread) == (True, frozenset({"github.com/acme/shop"}))
    assert problem in found.problems[0].message
    assert found.problems[0].file == CATALOG


def many(count: int) -> list[Any]:
    return [repository(f"r{number:04}") for number in range(count)]


@pytest.mark.slow
async def test_a_list_that_fails_after_its_first_page_is_incomplete(
    subtests: pytest.Subtests,
) -> None:
    cases: list[Any] = [
        faults.bad_gateway,
        faults.unavailable,
        faults.not_json,
        faults.cut_off,
        secondary_limit,
        faults.saying({"errors": [{"type": "RATE_LIMITED", "message": "no"}]}),
        faults.saying({"data": {"organization": None}}),
        faults.saying({"data": {"organization": {"page": None}}}),
        faults.saying(
            {
                "data": {
                    "organization": {
                        "page": {
                            "totalCount": 0,
                            "nodes": [],
                            "pageInfo": {"hasNextPage": True, "endCursor": "100"},
                        }
                    }
                }
            }
        ),
    ]
    for number, fault in enumerate(cases):
        with subtests.test(number=number, fault=fault):
            organization = Organization(*many(120))
            organization.fake.fail("graphql", fault, after=1, times=40)
            found = await organization.part()
            assert (found.complete, len(found.items)) == (False, 50)
            assert found.problems[-1].message.startswith("repositories: ")


async def test_a_list_with_fewer_rows_than_it_counts_is_incomplete() -> None:
    info = {"hasNextPage": False, "endCursor": None}
    page = {"totalCount": 3, "nodes": [], "pageInfo": info}
    organization = Organization(*many(3))
    organization.fake.fail("graphql", faults.saying({"data": {"organization": {"page": page}}}))
    found = await organization.part()
    assert found.complete is False
    assert found.problems[-1].message == "repositories: upstream-error: 0 of 3 were listed"


async def test_a_row_that_is_hidden_makes_the_list_incomplete() -> None:
    organization = Organization(*many(3))
    organization.fake.repositories[1].failing = {"nameWithOwner": "FORBIDDEN"}
    found = await organization.part()
    assert (found.complete, len(found.items)) == (False, 2)


async def test_a_file_that_github_cannot_give_now_keeps_its_repository() -> None:
    organization = Organization(*many(3))
    organization.fake.repositories[1].failing = {"object": None}
    found = await organization.part()
    assert (found.complete, found.unread) == (True, frozenset({"github.com/acme/r0001"}))
    assert len(found.items) == 2


async def test_pages_that_are_too_heavy_become_smaller() -> None:
    organization = Organization(*many(60), people=False)
    organization.fake.most_in_page = 20
    found = await organization.part()
    assert (found.complete, len(found.items)) == (True, 60)


async def test_a_target_that_cannot_be_read_now_keeps_its_repository() -> None:
    root = "apiVersion: v1\nkind: Location\nmetadata: {name: all}\nspec: {target: x.yaml}\n"
    one = repository("shop", texts={CATALOG: root, "x.yaml": file("x")})
    organization = Organization(one, people=False)
    organization.fake.fail("graphql", faults.unavailable, after=1, times=9)
    found = await organization.part()
    assert (found.complete, found.unread) == (True, frozenset({"github.com/acme/shop"}))


async def test_without_the_teams_an_owner_is_left_as_it_was() -> None:
    organization = Organization(repository("shop"))
    organization.token.reads_teams = False
    found, teams = await organization.part(), await organization.part("teams")
    assert (found.complete, found.items[0].tentative) == (True, True)
    assert (teams.complete, teams.items) == (False, ())
    assert teams.problems[0].message.startswith("teams: forbidden")


async def test_an_organization_that_is_not_there_is_a_problem() -> None:
    organization = Organization(repository("shop"), organizations=("nowhere",))
    parts = (await organization.read()).parts
    assert [(part.complete, part.items) for part in parts] == [(False, ())] * 3
    assert parts[0].problems[0].message.startswith("repositories: there is no nowhere at")


async def test_what_the_credential_sees_is_told() -> None:
    organization = Organization(repository("a"), repository("b", visibility="PUBLIC"))
    assert (await organization.part()).rights == {
        "membership",
        "private repositories",
        "public repositories",
    }
    organization.token.hidden = {"acme/a"}
    organization.token.is_member = False
    assert (await organization.part()).rights == {"public repositories"}


async def test_the_first_organization_is_in_default_and_each_other_in_its_own_namespace() -> None:
    organization = Organization(repository("shop"), organizations=("acme", "Beta"), people=False)
    organization.fake.repositories.append(repository("x"))
    organization.fake.repositories[-1].name = "Beta/shop"
    parts = (await organization.read()).parts
    assert [(part.key, part.items[0].entity["metadata"].get("namespace")) for part in parts] == [
        ("acme.repositories", None),
        ("beta.repositories", "beta"),
    ]


async def test_teams_and_members_are_groups_and_users() -> None:
    organization = Organization(repository("shop"))
    organization.fake.teams = [
        team("web", 1, "alice", description="The web"),
        team("shop", 2, "alice", "bob", parent="web"),
        team("hidden", 3, "bob", is_secret=True),
    ]
    organization.fake.members = [member("alice", 11, "Alice A"), member("bob", 12)]
    snapshot = await organization.read()
    items = [item for part in snapshot.parts[1:] for item in part.items]
    specs = {item.entity["metadata"]["name"]: item.entity["spec"] for item in items}
    assert specs["shop"]["parent"] == "group:default/web"
    assert specs["alice"] == {
        "profile": {"picture": "https://github.com/alice.png", "displayName": "Alice A"},
        "memberOf": ["group:default/shop", "group:default/web"],
    }
    assert specs["bob"]["memberOf"] == ["group:default/shop"]
    assert [item.external_id for item in items] == [
        "github.com/team/2",
        "github.com/team/1",
        "github.com/user/11",
        "github.com/user/12",
    ]
    assert snapshot.left_out == {"secret teams": 1}


async def test_all_members_of_a_large_team_are_read_or_the_part_is_incomplete() -> None:
    organization = Organization(repository("shop"))
    logins = [f"m{number:03}" for number in range(250)]
    organization.fake.teams = [team("all", 1, *logins)]
    organization.fake.members = [member(login, n) for n, login in enumerate(logins, 10)]
    part = await organization.part("members")
    assert all(item.entity["spec"]["memberOf"] for item in part.items)
    assert (part.complete, len(part.items)) == (True, 250)
    organization.fake.fail("graphql", secondary_limit, after=2, times=9)
    parts = (await organization.read()).parts
    assert [part.complete for part in parts] == [True, False, False]


async def test_a_page_that_is_empty_in_the_middle_makes_the_list_incomplete() -> None:
    organization = Organization(*many(60), people=False)
    info = {"hasNextPage": False, "endCursor": None}
    page = {"totalCount": 0, "nodes": [], "pageInfo": info}
    fault = faults.saying({"data": {"organization": {"page": page}}})
    organization.fake.fail("graphql", fault, after=1)
    found = await organization.part()
    assert (found.complete, len(found.items)) == (False, 50)


async def test_an_unchanged_organization_is_listed_and_nothing_else() -> None:
    root = "apiVersion: v1\nkind: Location\nmetadata: {name: all}\nspec: {targets: ['*/x.yaml']}\n"
    texts = {CATALOG: root, "a/x.yaml": file("a"), "b/x.yaml": file("b")}
    one = repository("shop", texts=texts)
    organization = Organization(one, people=False)
    first = await organization.part()
    before = dict(organization.fake.requests)
    second = await organization.part()
    after = dict(organization.fake.requests)
    assert (first, before) == (second, {"graphql": 2, "tree": 1})
    assert after == {"graphql": 3, "tree": 1}
    one.commits += 1
    one.texts["a/x.yaml"] = file("changed").encode()
    third = await organization.part()
    assert [item.entity["metadata"]["name"] for item in third.items] == ["all", "changed", "b"]


@pytest.mark.slow
async def test_a_repository_that_was_cut_off_is_not_begun_again_until_it_changes() -> None:
    uses = ", ".join("{$text: ./big}" for _ in range(80))
    texts = {CATALOG: file("a", more=f"x: [{uses}]\n"), "big": "x" * 500_000}
    one = repository("shop", 7, texts=texts)
    other = repository("other", 8, texts={CATALOG: file("b")})
    organization = Organization(one, other, people=False)
    first = await organization.part()
    before = organization.fake.requests["graphql"]
    second = await organization.part()
    listing = organization.fake.requests["graphql"] - before
    assert listing < before, "the file of the placeholders is not read again"
    for found in (first, second):
        [problem] = found.problems
        assert "more than 33,554,432 bytes together" in problem.message
        assert found.unread == {"github.com/acme/shop"}
        assert {item.entity["metadata"]["name"] for item in found.items} == {"b", "shop"}
    one.commits += 1
    one.texts[CATALOG] = file("a").encode()
    third = await organization.part()
    assert (third.problems, len(third.items)) == ((), 2)
