"""Projects, groups and members of a GitLab group, and the entities that they become."""

from typing import Any

import pytest

from tests.fakes import faults
from tests.fakes.gitlab.state import Account, Group
from tests.importers.gitlab_group import GitlabGroup, project
from tests.importers.organization import CATALOG, file

RATE_LIMITED = faults.saying({"message": "Retry later"}, 429, {"retry-after": "3600"})
LOCATION = "apiVersion: v1\nkind: Location\nmetadata: {name: all}\nspec: {targets: ['%s']}\n"


async def test_a_gitlab_without_languages_of_projects_imports_them_all_the_same() -> None:
    group = GitlabGroup(project("web/shop", languages={"Go": 100.0}))
    group.fake.lacks = frozenset({"  languages: [RepositoryLanguage!]"})
    part = await group.part()
    assert [item.entity["metadata"]["name"] for item in part.items] == ["web-shop"]
    assert "go" not in part.items[0].entity["metadata"].get("tags", [])
    assert part.complete


async def test_a_project_without_a_file_is_a_component_named_by_its_path() -> None:
    one = project(
        "web/shop",
        description=" Sells things. ",
        topics=["type-website", "retail"],
        languages={"Shell": 2.5, "C++": 97.5},
    )
    found = await GitlabGroup(one).part()
    [item] = found.items
    assert item.entity == {
        "apiVersion": "backstage.io/v1alpha1",
        "kind": "Component",
        "metadata": {
            "name": "web-shop",
            "description": "Sells things.",
            "tags": ["retail", "c++"],
            "annotations": {
                "gitlab.com/project-slug": "acme/web/shop",
                "gitlab.com/project-id": "7",
                "gitlab.com/instance": "gitlab.com",
                "backstage.io/source-location": "url:https://gitlab.com/acme/web/shop/-/tree/main/",
                "backstage.io/view-url": "https://gitlab.com/acme/web/shop",
            },
        },
        "spec": {"type": "website", "lifecycle": "production"},
    }
    assert (item.origin, item.external_id) == ("gitlab.com/acme/web/shop", "gitlab.com/project/7")
    assert (found.complete, found.problems, found.unread) == (True, (), frozenset())


async def test_projects_of_one_name_in_two_subgroups_are_two_components() -> None:
    several = project("a/api", 1), project("b/api", 2)
    assert list(await GitlabGroup(*several).entities()) == ["a-api", "b-api"]


async def test_archived_projects_and_forks_come_by_setting() -> None:
    several = project("old", 1, is_archived=True), project("copy", 2, is_fork=True)
    without = GitlabGroup(*several)
    assert await without.entities() == {}
    assert (await without.read()).left_out == {"archived projects": 1, "forks": 1}
    entities = await GitlabGroup(*several, archived=True, forks=True).entities()
    assert {name: one["spec"]["lifecycle"] for name, one in entities.items()} == {
        "old": "deprecated",
        "copy": "production",
    }


def owned(path: str = "shop", codeowners: str = "", **more: Any) -> GitlabGroup:
    texts = {".gitlab/CODEOWNERS": codeowners} if codeowners else {}
    group = GitlabGroup(project(path, texts=texts, **more))
    group.people(Account("alice", 2), Account("bob", 3), web=["alice", "bob"], shop=[])
    return group


async def test_the_owner_is_of_codeowners(subtests: pytest.Subtests) -> None:
    cases: list[tuple[str, str | None]] = [
        ("* @acme/web\n", "group:default/web"),
        ("* @other/web @Alice # boss\n", "user:default/Alice"),
        ("* @acme/web\n* @bob\n", "user:default/bob"),
        ("* @acme\n", "group:default/acme"),
        ("[All] @acme/web\n*\n[Docs] @bob\ndocs/\n", "group:default/web"),
        ("* @nobody mail@example.com @@maintainers\n", None),
        ("docs/ @bob\n", None),
        ("/* @bob\n", None),
        # What ends with a slash is all that is below, and `**` at the end is one name.
        ("**/ @bob\n", "user:default/bob"),
        ("* @acme/web\n/**/ @bob\n", "user:default/bob"),
        ("/ @bob\n", "user:default/bob"),
        ("**/* @bob\n", "user:default/bob"),
        ("/**/* @bob\n", "user:default/bob"),
        ("** @bob\n", "user:default/bob"),
        ("/** @bob\n", None),
    ]
    for codeowners, owner in cases:
        with subtests.test(codeowners=codeowners):
            entities = await owned(codeowners=codeowners).entities()
            assert entities["shop"]["spec"].get("owner") == owner


async def test_else_it_is_the_subgroup_or_the_only_group_that_maintains(
    subtests: pytest.Subtests,
) -> None:
    cases: list[tuple[str, dict[str, int], str | None]] = [
        ("web/app", {}, "group:default/web"),
        ("web/app", {"acme/shop": 40}, "group:default/web"),
        ("app", {"acme/shop": 40}, "group:default/shop"),
        ("app", {"acme/shop": 40, "acme/web": 30}, "group:default/shop"),
        ("app", {"acme/shop": 40, "acme/web": 50}, None),
        ("app", {"acme/shop": 30}, None),
        ("app", {}, None),
    ]
    for path, shared, owner in cases:
        with subtests.test(path=path, shared=shared):
            [entity] = (await owned(path, shared_with=shared).entities()).values()
            assert entity["spec"].get("owner") == owner


async def test_a_group_whose_share_expired_owns_nothing() -> None:
    shared = {"acme/shop": 40}
    for until, owner in (("2026-11-21", None), ("2026-11-22", "group:default/shop")):
        one = owned("app", shared_with=shared, shared_until=until)
        [entity] = (await one.entities()).values()
        assert entity["spec"].get("owner") == owner


async def test_without_the_members_an_owner_is_left_as_it_was() -> None:
    group = owned(codeowners="* @alice")
    group.fake.fail("group_members", faults.unavailable, times=90)
    parts = {part.key: part for part in (await group.read()).parts}
    [item] = parts["acme.projects"].items
    assert (parts["acme.projects"].complete, item.tentative) == (True, True)
    assert [parts[f"acme.{word}"].complete for word in ("groups", "members")] == [True, False]


async def test_a_file_brings_its_entities_and_what_it_names() -> None:
    root = f"{file('shop')}---\n{LOCATION % 'apis/*.yaml'}"
    texts = {
        CATALOG: root,
        "apis/a.yaml": file("a", "API", "x: {$text: ../README.md}\n"),
        "README.md": "Hello",
    }
    found = await GitlabGroup(project("web/shop", texts=texts)).part()
    assert [
        (item.entity["metadata"]["name"], item.file, item.external_id) for item in found.items
    ] == [
        ("shop", CATALOG, "gitlab.com/project/7"),
        ("all", CATALOG, ""),
        ("a", "apis/a.yaml", ""),
    ]
    assert found.items[2].entity["x"] == "Hello"
    annotations = found.items[2].entity["metadata"]["annotations"]
    assert annotations["backstage.io/source-location"].endswith("/web/shop/-/tree/main/apis/")
    assert (found.problems, found.unread) == ((), frozenset())


async def test_a_file_may_name_files_of_other_projects_of_the_group() -> None:
    location = (
        "apiVersion: v1\nkind: Location\nmetadata: {name: all}\nspec:\n  targets:\n"
        "    - https://gitlab.com/acme/web/other/-/blob/main/docs/x.yaml\n"
        "    - https://gitlab.com/evil/other/-/blob/main/x.yaml\n"
        "    - https://evil.test/acme/other/-/blob/main/x.yaml\n"
        "    - https://gitlab.com/acme/hidden/-/blob/main/x.yaml\n"
    )
    other = project("web/other", 8, texts={"docs/x.yaml": file("x")}, is_archived=True)
    group = GitlabGroup(project("shop", texts={CATALOG: location}), other)
    found = await group.part()
    assert [item.entity["metadata"]["name"] for item in found.items] == ["all", "x"]
    annotations = found.items[1].entity["metadata"]["annotations"]
    assert annotations["gitlab.com/project-slug"] == "acme/web/other"
    assert found.items[1].external_id == "gitlab.com/project/8"
    assert [
        problem.message.partition(": ")[2] or problem.message for problem in found.problems
    ] == [
        "the target is in a group that is not imported",
        "the target is not a file on gitlab.com",
        "forbidden: there is no such project, or it is hidden",
    ]
    assert found.unread == {"gitlab.com/acme/shop"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"a: [", "is not valid YAML"),
        (b"a: " + b"x" * 2_000_000, "the file has 2,000,003 bytes"),
        (b"\xff\xfe", "the file is not text; save it in UTF-8"),
    ],
)
async def test_a_broken_file_is_a_problem_and_not_taken_for_none(text: bytes, problem: str) -> None:
    one = project("shop")
    one.files, one.texts = [CATALOG], {CATALOG: text}
    found = await GitlabGroup(one, project("other", 8)).part()
    assert [item.origin for item in found.items if not item.tentative] == ["gitlab.com/acme/other"]
    assert (found.complete, found.unread) == (True, frozenset({"gitlab.com/acme/shop"}))
    assert problem in found.problems[0].message
    assert found.problems[0].file == CATALOG


async def test_a_project_without_a_repository_is_a_component_and_a_hidden_one_is_unread() -> None:
    group = GitlabGroup(project("off", 1, has_repository=False), project("empty", 2, commits=0))
    assert list(await group.entities()) == ["off", "empty"]
    group.token.reads_repository = False
    found = await group.part()
    assert (found.complete, found.unread) == (True, frozenset({"gitlab.com/acme/empty"}))
    assert "the credential may not read the repository" in found.problems[0].message


def many(count: int) -> list[Any]:
    return [project(f"r{number:04}", number) for number in range(1, count + 1)]


@pytest.mark.slow
async def test_a_list_that_fails_after_its_first_page_is_incomplete(
    subtests: pytest.Subtests,
) -> None:
    cases: list[Any] = [
        faults.bad_gateway,
        faults.not_json,
        faults.cut_off,
        RATE_LIMITED,
        faults.saying([]),
        faults.saying({"message": "403 Forbidden"}, 403),
        faults.saying([], headers={"x-total": "0"}),
        faults.saying([], headers={"link": '<https://x/?page=2>; rel="next"'}),
    ]
    for number, fault in enumerate(cases):
        with subtests.test(number=number, fault=fault):
            group = GitlabGroup(*many(250))
            group.fake.fail("group_projects", fault, after=1, times=40)
            found = await group.part()
            # A limit that was met ends the reading of files, too.
            assert (found.complete, len(found.items) + len(found.unread)) == (False, 100)
            assert found.problems[-1].message.startswith("projects: ")


async def test_a_row_of_another_form_makes_the_list_incomplete() -> None:
    group = GitlabGroup(*many(2))
    row = {"id": 1, "path_with_namespace": "../evil"}
    group.fake.fail("group_projects", faults.saying([row], headers={"x-total": "1"}))
    found = await group.part()
    assert (found.complete, found.items) == (False, ())


async def test_files_that_cannot_be_read_now_keep_their_projects() -> None:
    group = GitlabGroup(*many(70))
    group.fake.fail("graphql", RATE_LIMITED, after=1, times=40)
    found = await group.part()
    assert (found.complete, len(found.items), len(found.unread)) == (True, 50, 20)


async def test_requests_for_files_that_are_too_heavy_become_smaller() -> None:
    group = GitlabGroup(*many(70))
    group.fake.fail("graphql", faults.bad_gateway, times=3)
    found = await group.part()
    assert (found.complete, len(found.items), found.unread) == (True, 70, frozenset())


async def test_a_file_that_gitlab_cannot_give_now_keeps_its_project() -> None:
    group = GitlabGroup(*many(3))
    group.fake.projects[1].failing = {"repository": "Gitaly is down"}
    found = await group.part()
    assert (found.complete, found.unread) == (True, frozenset({"gitlab.com/acme/r0002"}))
    assert len(found.items) == 2


async def test_a_group_that_is_not_there_is_a_problem() -> None:
    parts = (await GitlabGroup(project("shop"), groups=("nowhere",)).read()).parts
    assert [(part.complete, part.items) for part in parts] == [(False, ())] * 3
    assert parts[0].problems[0].message.startswith("projects: not-found")


async def test_a_member_sees_everything_and_anybody_else_some_groups() -> None:
    group = GitlabGroup(project("a", 1), project("b", 2, visibility="public"))
    group.people(web=[])
    visible = {"private projects", "public projects"}
    assert (await group.part()).rights == {"membership"} | visible
    group.token.is_member = False
    assert (await group.part()).rights == {"group acme", "group acme/web"} | visible


async def test_a_public_group_that_shows_less_is_no_right_of_one_who_left_it() -> None:
    group = GitlabGroup(project("web/a", 1), project("shop/b", 2))
    group.fake.groups += [Group("acme/web", 10, visibility="public"), Group("acme/shop", 11)]
    group.token.is_member = False
    before = (await group.part()).rights
    group.token.hidden = {"acme/web"}
    part = await group.part()
    assert part.complete
    assert before - part.rights == {"group acme/web"}
    assert len((await group.part("groups")).items) == 3


async def test_groups_and_members_are_groups_and_users() -> None:
    group = GitlabGroup()
    alice, bob = Account("alice", 11, "Alice A"), Account("bob", 12)
    bot, gone = Account("group_1_bot_2f", 13), Account("carol", 14, state="blocked")
    group.fake.accounts = [alice, bob, bot, gone]
    group.fake.groups = [
        Group("acme", 1, ["alice", bot.username, "carol"], "Acme", "Makes things"),
        Group("acme/web", 2, ["bob", "alice"]),
        Group("acme/web/ui", 3, ["bob"], "The UI"),
    ]
    snapshot = await group.read()
    items = [item for part in snapshot.parts[1:] for item in part.items]
    entities = {item.entity["metadata"]["name"]: item.entity for item in items}
    assert entities["web-ui"] == {
        "apiVersion": "backstage.io/v1alpha1",
        "kind": "Group",
        "metadata": {
            "name": "web-ui",
            "annotations": {
                "gitlab.com/team-path": "acme/web/ui",
                "backstage.io/view-url": "https://gitlab.com/groups/acme/web/ui",
            },
        },
        "spec": {
            "type": "team",
            "profile": {"displayName": "The UI"},
            "children": [],
            "parent": "group:default/web",
        },
    }
    assert entities["web"]["spec"]["parent"] == "group:default/acme"
    assert entities["alice"]["spec"] == {
        "profile": {
            "displayName": "Alice A",
            "picture": "https://gitlab.com/uploads/alice.png",
        },
        "memberOf": ["group:default/acme", "group:default/web"],
    }
    assert entities["bob"]["spec"]["memberOf"] == ["group:default/web", "group:default/web-ui"]
    assert sorted(item.external_id for item in items) == [
        "gitlab.com/group/1",
        "gitlab.com/group/2",
        "gitlab.com/group/3",
        "gitlab.com/user/11",
        "gitlab.com/user/12",
    ]
    assert snapshot.left_out == {"service accounts": 1, "disabled accounts": 1}


@pytest.mark.parametrize("status", [403, 404, 500])
async def test_a_subgroup_whose_members_are_not_shown_makes_the_members_incomplete(
    status: int,
) -> None:
    group = GitlabGroup()
    group.people(Account("alice", 2), web=["alice"], shop=["alice"])
    fault = faults.saying({"message": "no"}, status)
    group.fake.fail("group_members", fault, after=1, times=1 if status < 500 else 9)
    parts = {part.key: part for part in (await group.read()).parts}
    members = parts["acme.members"]
    assert (members.complete, parts["acme.groups"].complete) == (False, True)
    assert all(item.tentative for item in members.items)


async def test_several_groups_have_namespaces_and_a_subgroup_a_key_of_its_own() -> None:
    group = GitlabGroup(project("web/shop"), groups=("acme/web", "Beta", "beta"), people=False)
    group.fake.groups += [Group("acme/web", 2), Group("beta", 3)]
    group.fake.projects.append(project("x", 9))
    group.fake.projects[-1].name = "beta/shop"
    parts = (await group.read()).parts
    shown = [
        (part.key, item.entity["metadata"].get("namespace"), item.entity["metadata"]["name"])
        for part in parts
        for item in part.items
    ]
    assert shown == [
        ("acme:web.projects", None, "shop"),
        ("beta.projects", "beta", "shop"),
    ]


async def test_an_unchanged_group_is_listed_and_nothing_else() -> None:
    texts = {CATALOG: LOCATION % "*/x.yaml", "a/x.yaml": file("a"), "b/x.yaml": file("b")}
    one = project("shop", texts=texts)
    group = GitlabGroup(one, people=False)
    listed = {"group": 1, "subgroups": 1, "user": 1, "membership": 1, "group_projects": 1}
    first = await group.part()
    before = dict(group.fake.requests)
    group.fake.requests.clear()
    second = await group.part()
    assert first == second
    assert before == {**listed, "graphql": 2, "tree": 1}
    assert dict(group.fake.requests) == {**listed, "graphql": 1}
    one.commits += 1
    one.texts["a/x.yaml"] = file("changed").encode()
    third = await group.part()
    assert [item.entity["metadata"]["name"] for item in third.items] == ["all", "changed", "b"]
