"""Repositories, teams and members of a Gitea organization, and the entities that they become."""

from typing import Any

import pytest

from factbook.clock import DAY
from tests.fakes import faults
from tests.fakes.faults import Fault
from tests.fakes.gitea.state import Account, Team
from tests.importers.gitea_organization import GiteaOwner, own
from tests.importers.organization import CATALOG, file
from tests.service import NOON

RATE_LIMITED = faults.saying({"message": "Too many requests"}, 429, {"retry-after": "3600"})
LOCATION = "apiVersion: v1\nkind: Location\nmetadata: {name: all}\nspec: {targets: ['%s']}\n"


async def test_a_repository_without_a_file_is_a_component() -> None:
    one = own("Shop", description=" Sells. ", topics=["type-website", "retail"], languages={"C": 9})
    found = await GiteaOwner(one).part()
    [item] = found.items
    assert item.entity == {
        "apiVersion": "backstage.io/v1alpha1",
        "kind": "Component",
        "metadata": {
            "name": "Shop",
            "description": "Sells.",
            "tags": ["retail", "c"],
            "annotations": {
                "git.example.com/project-slug": "acme/Shop",
                "backstage.io/source-location": (
                    "url:https://git.example.com/acme/Shop/src/branch/main/"
                ),
                "backstage.io/view-url": "https://git.example.com/acme/Shop",
            },
        },
        "spec": {"type": "website", "lifecycle": "production"},
    }
    assert (item.origin, item.external_id) == (
        "git.example.com/acme/Shop",
        "git.example.com/repository/7",
    )
    assert (found.complete, found.problems, found.unread) == (True, (), frozenset())


async def test_archived_repositories_and_forks_come_by_setting() -> None:
    several = own("old", 1, is_archived=True), own("copy", 2, is_fork=True)
    without = GiteaOwner(*several)
    assert await without.entities() == {}
    assert (await without.read()).left_out == {"archived repositories": 1, "forks": 1}
    entities = await GiteaOwner(*several, archived=True, forks=True).entities()
    assert {name: one["spec"]["lifecycle"] for name, one in entities.items()} == {
        "old": "deprecated",
        "copy": "production",
    }


OWNERS = Team("Owners", 1, permission="owner", has_all=True)


def owned(codeowners: str, *teams: Team) -> GiteaOwner:
    texts = {".gitea/CODEOWNERS": codeowners} if codeowners else {}
    organization = GiteaOwner(own("shop", texts=texts))
    organization.fake.teams = [OWNERS, *teams]
    return organization


def team(name: str, number: int, permission: str = "write", *, has_all: bool = False) -> Team:
    return Team(name, number, [], ["acme/shop"], permission, has_all)


async def test_the_owner_is_of_codeowners_then_of_the_only_team(subtests: pytest.Subtests) -> None:
    cases = [
        (".* @acme/web\n", "group:default/web"),
        ("* @acme/nobody @alice # boss\n", "user:default/alice"),
        (".* @acme/web\n.*\\.go @bob\n", "group:default/web"),
        ("docs/.* @acme/web\n", "group:default/shop"),
        ("^.*$ @acme/web\n", "group:default/web"),
        ("**/* @acme/web\n", "group:default/web"),
        ("**/ @acme/web\n", "group:default/shop"),
        ("/* @acme/web\n", "group:default/shop"),
        (".* @other/web mail@example.com\n", "group:default/shop"),
    ]
    for codeowners, owner in cases:
        with subtests.test(codeowners=codeowners):
            organization = owned(codeowners, Team("web", 2, ["alice"]), team("shop", 3, "admin"))
            organization.fake.accounts = [Account("alice", 11)]
            assert (await organization.entities())["shop"]["spec"]["owner"] == owner


async def test_an_owner_that_is_not_known_is_absent(subtests: pytest.Subtests) -> None:
    cases: list[tuple[list[Team], str | None]] = [
        ([team("a", 2)], "group:default/a"),
        ([team("a", 2), team("b", 3, "admin")], "group:default/b"),
        ([team("a", 2, "admin"), team("b", 3, "admin"), team("c", 4)], None),
        ([team("a", 2, "read")], None),
        ([team("a", 2, has_all=True)], None),
        ([], None),
    ]
    for teams, owner in cases:
        with subtests.test(teams=teams):
            entities = await owned("", *teams).entities()
            assert entities["shop"]["spec"].get("owner") == owner


@pytest.mark.parametrize("kind", ["teams", "team_members", "team_repositories"])
async def test_without_the_teams_an_owner_is_left_as_it_was(kind: str) -> None:
    organization = owned("", team("a", 2))
    organization.fake.fail(kind, faults.unavailable, times=30)
    parts = {part.key: part for part in (await organization.read()).parts}
    [item] = parts["acme.repositories"].items
    assert (parts["acme.repositories"].complete, item.tentative) == (True, True)
    assert parts["acme.teams"].complete is False


async def test_a_file_brings_its_entities_and_what_it_names() -> None:
    texts = {
        CATALOG: f"{file('shop')}---\n{LOCATION % 'apis/*.yaml'}",
        "apis/a.yaml": file("a", "API", "x: {$text: ../README.md}\n"),
        "README.md": "Hello",
    }
    found = await GiteaOwner(own("shop", texts=texts)).part()
    assert [
        (item.entity["metadata"]["name"], item.file, item.external_id) for item in found.items
    ] == [
        ("shop", CATALOG, "git.example.com/repository/7"),
        ("all", CATALOG, ""),
        ("a", "apis/a.yaml", ""),
    ]
    assert found.items[2].entity["x"] == "Hello"
    annotations = found.items[2].entity["metadata"]["annotations"]
    assert annotations["backstage.io/source-location"].endswith("/shop/src/branch/main/apis/")
    assert (found.problems, found.unread) == ((), frozenset())


async def test_a_file_may_name_files_of_other_repositories_of_the_organization() -> None:
    location = (
        "apiVersion: v1\nkind: Location\nmetadata: {name: all}\nspec:\n  targets:\n"
        "    - https://git.example.com/acme/other/src/branch/main/x.yaml\n"
        "    - https://git.example.com/evil/other/src/branch/main/x.yaml\n"
        "    - https://evil.test/acme/other/src/branch/main/x.yaml\n"
        "    - https://git.example.com/acme/hidden/raw/branch/main/x.yaml\n"
    )
    other = own("other", 8, texts={"x.yaml": file("x")}, is_archived=True)
    found = await GiteaOwner(own("shop", texts={CATALOG: location}), other).part()
    assert [item.entity["metadata"]["name"] for item in found.items] == ["all", "x"]
    annotations = found.items[1].entity["metadata"]["annotations"]
    assert annotations["git.example.com/project-slug"] == "acme/other"
    assert found.items[1].external_id == "git.example.com/repository/8"
    assert [problem.message for problem in found.problems] == [
        "the target is in an organization that is not imported",
        "the target is not a file on git.example.com",
        "x.yaml: forbidden: the repository does not exist, or may not be read",
    ]
    assert found.unread == {"git.example.com/acme/shop"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"a: [", "is not valid YAML"),
        (b"a: " + b"x" * 2_000_000, "the file has 2,000,003 bytes"),
        (b"\xff\xfe\xfd", "holds no text"),
    ],
)
async def test_a_broken_file_is_a_problem_and_not_taken_for_none(text: bytes, problem: str) -> None:
    one = own("shop")
    one.files, one.texts = [CATALOG], {CATALOG: text}
    found = await GiteaOwner(one, own("other", 8)).part()
    assert [item.origin for item in found.items if not item.tentative] == [
        "git.example.com/acme/other"
    ]
    assert (found.complete, found.unread) == (True, frozenset({"git.example.com/acme/shop"}))
    assert problem in found.problems[0].message
    assert found.problems[0].file == CATALOG


async def test_an_empty_repository_is_a_component_and_one_without_its_code_is_unread() -> None:
    several = own("empty", 1, empty=True), own("closed", 2, has_code=False)
    found = await GiteaOwner(*several).part()
    assert [item.origin for item in found.items] == ["git.example.com/acme/empty"]
    assert (found.complete, found.unread) == (True, frozenset({"git.example.com/acme/closed"}))
    assert "the repository does not exist, or may not be read" in found.problems[0].message


async def test_a_file_that_gitea_cannot_give_now_keeps_its_repository(
    subtests: pytest.Subtests,
) -> None:
    failures: list[Fault] = [
        faults.unavailable,
        RATE_LIMITED,
        faults.saying({"message": "no"}, 403),
        faults.saying({"message": "no"}, 404),
        faults.not_json,
        faults.saying({"type": "file", "size": 9, "content": "YTogMQ=="}),
        faults.saying({"type": "file", "size": 1, "content": "?"}),
        faults.saying({"type": "submodule", "size": 0}),
    ]
    for kind in ("tree", "contents"):
        for number, fault in enumerate(failures):
            with subtests.test(kind=kind, number=number):
                organization = GiteaOwner(own("shop", texts={CATALOG: file("shop")}), people=False)
                organization.fake.fail(kind, fault, times=9)
                found = await organization.part()
                # A submodule will not be a file by itself: the repository is as one without it.
                is_none = kind == "contents" and number == len(failures) - 1
                assert (found.complete, len(found.items)) == (True, is_none)
                assert found.unread == {"git.example.com/acme/shop"}


def many(count: int) -> list[Any]:
    return [own(f"r{number:04}", number) for number in range(1, count + 1)]


@pytest.mark.parametrize("most", [50, 20])
async def test_all_pages_of_a_list_are_read(most: int) -> None:
    organization = GiteaOwner(*many(120))
    organization.fake.most = most
    found = await organization.part()
    assert (found.complete, len(found.items)) == (True, 120)


@pytest.mark.slow
async def test_a_list_that_fails_after_its_first_page_is_incomplete(
    subtests: pytest.Subtests,
) -> None:
    cases: list[Any] = [
        faults.bad_gateway,
        faults.not_json,
        faults.cut_off,
        RATE_LIMITED,
        faults.saying({"ok": True, "data": []}),
        faults.saying({"ok": True, "data": []}, headers={"x-total-count": "0"}),
        faults.saying({"message": "no"}, 403),
    ]
    for number, fault in enumerate(cases):
        with subtests.test(number=number, fault=fault):
            organization = GiteaOwner(*many(120))
            organization.fake.fail("search", fault, after=1, times=40)
            found = await organization.part()
            assert (found.complete, len(found.items) + len(found.unread)) == (False, 50)
            assert found.problems[-1].message.startswith("repositories: ")


@pytest.mark.parametrize("data", [[], [{"id": 1, "full_name": "../evil"}]])
async def test_a_list_without_a_total_or_with_a_row_of_another_form_is_incomplete(
    data: list[Any],
) -> None:
    organization = GiteaOwner(*many(2))
    organization.fake.fail("search", faults.saying({"ok": True, "data": data}), times=2)
    found = await organization.part()
    assert (found.complete, found.items) == (False, ())


async def test_an_organization_that_is_not_there_is_a_problem() -> None:
    parts = (await GiteaOwner(own("shop"), organizations=("nowhere",)).read()).parts
    assert [(part.complete, part.items) for part in parts] == [(False, ())] * 3
    assert parts[0].problems[0].message.startswith("repositories: forbidden")


async def test_an_owner_sees_everything_and_anybody_else_what_teams_may() -> None:
    organization = GiteaOwner(own("a", 1), own("b", 2, is_private=False))
    organization.fake.teams = [OWNERS, team("web", 2)]
    visible = {"private repositories", "public repositories"}
    assert (await organization.part()).rights == {"ownership"} | visible
    organization.token.is_owner, organization.token.teams = False, frozenset({"web"})
    assert (await organization.part()).rights == {"team web"} | visible


async def test_a_team_that_is_shown_is_no_right_of_one_who_left_it() -> None:
    organization = GiteaOwner(own("a", 1), own("b", 2))
    organization.fake.teams = [OWNERS, team("core", 2), team("web", 3)]
    organization.token.is_owner, organization.token.teams = False, frozenset({"core", "web"})
    before = (await organization.part()).rights
    organization.token.teams = frozenset({"core"})
    organization.token.hidden = frozenset({"acme/b"})
    part = await organization.part()
    assert part.complete
    assert before - part.rights == {"team web"}
    assert len((await organization.part("teams")).items) == 3


@pytest.mark.parametrize("kind", ["account", "permissions"])
async def test_a_credential_whose_rights_are_not_told_now_reads_in_part(kind: str) -> None:
    organization = GiteaOwner(own("a", 1))
    organization.fake.fail(kind, faults.unavailable, times=9)
    parts = (await organization.read()).parts
    assert [(part.complete, len(part.items)) for part in parts] == [
        (False, 1),
        (False, 0),
        (False, 0),
    ]
    organization.fake.recover()
    organization.fake.fail(kind, faults.saying({"message": "no"}, 403))
    part = await organization.part()
    assert part.complete
    assert part.rights == {"private repositories"}


async def test_teams_and_members_are_groups_and_users() -> None:
    organization = GiteaOwner()
    organization.fake.accounts = [Account("alice", 11, "Alice A"), Account("bob", 12)]
    organization.fake.teams = [
        Team("Owners", 1, ["alice"], permission="owner", has_all=True),
        Team("web", 2, ["bob", "alice"], description="The web"),
    ]
    items = [item for part in (await organization.read()).parts for item in part.items]
    entities = {item.entity["metadata"]["name"]: item.entity for item in items}
    assert entities["web"] == {
        "apiVersion": "backstage.io/v1alpha1",
        "kind": "Group",
        "metadata": {
            "name": "web",
            "description": "The web",
            "annotations": {
                "git.example.com/team-slug": "acme/web",
                "backstage.io/view-url": "https://git.example.com/org/acme/teams/web",
            },
        },
        "spec": {"type": "team", "profile": {"displayName": "web"}, "children": []},
    }
    assert entities["alice"]["spec"] == {
        "profile": {
            "displayName": "Alice A",
            "picture": "https://git.example.com/avatars/11",
        },
        "memberOf": ["group:default/Owners", "group:default/web"],
    }
    assert [item.external_id for item in items] == [
        "git.example.com/team/1",
        "git.example.com/team/2",
        "git.example.com/user/11",
        "git.example.com/user/12",
    ]


async def test_an_unchanged_organization_is_listed_and_nothing_else() -> None:
    texts = {CATALOG: LOCATION % "*/x.yaml", "a/x.yaml": file("a"), "b/x.yaml": file("b")}
    one = own("shop", 1, texts=texts)
    organization = GiteaOwner(one, own("other", 2), people=False)
    first = await organization.part()
    before = dict(organization.fake.requests)
    organization.fake.requests.clear()
    assert await organization.part() == first
    listed = {"organization": 1, "search": 1, "teams": 1, "account": 1, "permissions": 1}
    # The patterns of a location need the commit.
    assert dict(organization.fake.requests) == {**listed, "branch": 1}
    assert before["contents"] == 3
    one.texts["a/x.yaml"] = file("changed").encode()
    one.commits, one.updated_at = 2, one.updated_at + 1_000
    third = await organization.part()
    names = [item.entity["metadata"]["name"] for item in third.items]
    assert names == ["all", "changed", "b", "other"]


@pytest.mark.parametrize("more", [{"mirror": True}, {"updated_at": NOON}])
async def test_times_that_tell_nothing_are_not_relied_on(more: dict[str, Any]) -> None:
    one = own("shop", texts={CATALOG: file("shop")}, **more)
    organization = GiteaOwner(one, people=False)
    assert list(await organization.entities()) == ["shop"]
    one.texts[CATALOG] = file("changed").encode()
    organization.time.advance(1_000)
    assert list(await organization.entities()) == ["changed"]


async def test_a_change_without_a_time_is_found_within_a_week() -> None:
    one = own("shop", texts={CATALOG: file("shop")})
    organization = GiteaOwner(one, people=False)
    assert list(await organization.entities()) == ["shop"]
    one.texts[CATALOG] = file("changed").encode()
    organization.time.advance(7 * DAY)
    assert list(await organization.entities()) == ["changed"]
