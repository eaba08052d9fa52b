"""Any sequence of faults of a code host, between changes of an organization or group."""

import random
from typing import Any

import pytest

from factbook.storage import Database
from tests.fakes import faults
from tests.fakes.gitea import state as gitea
from tests.fakes.github.faults import of_another_form, secondary_limit
from tests.fakes.gitlab.state import Account
from tests.importers.any_host import FAULTS, AnyHost, refs_of
from tests.importers.gitea_organization import GiteaOwner, own
from tests.importers.gitlab_group import GitlabGroup, project
from tests.importers.organization import CATALOG, Organization, file, member, repository, team
from tests.importers.reading import Imports
from tests.soak import seeds

_LOCATION = "apiVersion: v1\nkind: Location\nmetadata: {name: all-%s}\nspec: {target: x.yaml}"


def texts_of(number: int) -> dict[str, str]:
    """Files of a repository: a third has a catalog file, a third of these one that leads on."""
    if number % 9 == 0:
        return {CATALOG: _LOCATION % number, "x.yaml": file(f"below-{number}")}
    return {CATALOG: file(f"file-{number}")} if number % 3 == 0 else {}


class AnyOrganization(AnyHost):
    """An organization of GitHub."""

    parts = ("acme.repositories", "acme.teams", "acme.members")
    kinds = ("graphql",)
    faults = (
        *FAULTS,
        secondary_limit,
        of_another_form,
        faults.saying({"data": {"organization": None}}),
        faults.saying({"errors": [{"type": "RATE_LIMITED", "message": "no"}]}),
        faults.saying({"data": {"organization": {"page": {
            "totalCount": 0, "nodes": [], "pageInfo": {"hasNextPage": False, "endCursor": None},
        }}}}),
    )  # fmt: skip

    def __init__(self, imports: Imports, dice: random.Random) -> None:
        super().__init__(imports, dice)
        self.reading = organization = Organization()
        self.fake = self.github = organization.fake
        for _ in range(70):
            self.add()
        self.github.teams = [team(f"team-{n}", n + 1, "alice") for n in range(30)]
        self.github.members = [member("alice", 1)]

    @property
    def repositories(self) -> list[Any]:
        return self.github.repositories

    def add(self) -> None:
        self.count += 1
        number = self.count
        self.repositories.append(repository(f"r{number}", number, texts=texts_of(number)))

    def refs(self) -> list[str]:
        several = ((one.number, one.name.partition("/")[2]) for one in self.repositories)
        return sorted(ref for number, name in several for ref in refs_of(number, name))

    def people(self) -> list[str]:
        return sorted([*(f"group:default/team-{n}" for n in range(30)), "user:default/alice"])


class AnyGroup(AnyHost):
    """A group of GitLab with subgroups, one of which the credential may lose for a while."""

    parts = ("acme.projects", "acme.groups", "acme.members")
    kinds = (
        "graphql", "group", "subgroups", "group_projects", "group_members", "user", "membership",
    )  # fmt: skip
    faults = (
        *FAULTS,
        faults.saying([]),
        faults.saying([{"id": "x"}]),
        faults.saying([], headers={"x-total": "0"}),
        faults.saying({"message": "404 Group Not Found"}, 404),
        faults.saying({"message": "403 Forbidden"}, 403),
        faults.saying({"message": "Retry later"}, 429, {"retry-after": "60"}),
        faults.saying({"data": {"group": None}}),
        faults.saying({"data": {"group": {"projects": {"nodes": []}}}}),
        faults.saying({"errors": [{"message": "Timeout on validation of query"}]}),
    )

    def __init__(self, imports: Imports, dice: random.Random) -> None:
        super().__init__(imports, dice)
        self.reading = group = GitlabGroup()
        self.fake = self.gitlab = group.fake
        self.token = group.token
        group.people(
            *(Account(name, n) for n, name in enumerate(("alice", "bob", "carol"), 2)),
            web=["alice", "bob"],
            shop=["carol"],
            **{f"g{n}": ["bob"] for n in range(12)},
        )
        for _ in range(130):
            self.add()

    @property
    def repositories(self) -> list[Any]:
        return self.gitlab.projects

    def add(self) -> None:
        self.count += 1
        number = self.count
        path = ("", "web/", "shop/")[number % 7 % 3]
        self.repositories.append(project(f"{path}r{number}", number, texts=texts_of(number)))

    def fail(self) -> None:
        super().fail()
        if self.dice.random() < 0.3:
            self.token.hidden = {"acme/web"}
            self.token.is_member = False

    async def read(self) -> None:
        self.gitlab.groups.sort(key=lambda _: self.dice.random())
        await super().read()

    async def converge(self) -> None:
        self.token.hidden, self.token.is_member = set(), True
        await super().converge()

    def refs(self) -> list[str]:
        several = (
            (one.number, one.name.removeprefix("acme/").replace("/", "-"))
            for one in self.repositories
        )
        return sorted(ref for number, name in several for ref in refs_of(number, name))

    def people(self) -> list[str]:
        groups = ["acme", "web", "shop", *(f"g{n}" for n in range(12))]
        users = [f"user:default/{name}" for name in ("alice", "bob", "carol")]
        return sorted([*(f"group:default/{name}" for name in groups), *users])


class AnyGiteaOrganization(AnyHost):
    """An organization of Gitea, of which the credential may lose some for a while."""

    parts = ("acme.repositories", "acme.teams", "acme.members")
    kinds = (
        "search", "tree", "contents", "organization", "teams", "team_members", "team_repositories",
        "members", "account", "account_teams", "permissions",
    )  # fmt: skip
    faults = (
        *FAULTS,
        faults.saying([]),
        faults.saying({"ok": True, "data": []}),
        faults.saying({"ok": True, "data": []}, headers={"x-total-count": "0"}),
        faults.saying([{"id": "x"}], headers={"x-total-count": "1"}),
        faults.saying([], headers={"x-total-count": "9"}),
        faults.saying({"message": "no"}, 404),
        faults.saying({"message": "no"}, 403),
        faults.saying({"message": "Too many requests"}, 429, {"retry-after": "60"}),
    )

    def __init__(self, imports: Imports, dice: random.Random) -> None:
        super().__init__(imports, dice)
        self.reading = owner = GiteaOwner()
        self.fake = self.gitea = owner.fake
        self.token = owner.token
        self.gitea.accounts = [gitea.Account("alice", 1), gitea.Account("bob", 2)]
        self.gitea.teams = [gitea.Team(f"team-{n}", n + 1, ["alice", "bob"]) for n in range(12)]
        for _ in range(70):
            self.add()

    @property
    def repositories(self) -> list[Any]:
        return self.gitea.repositories

    def add(self) -> None:
        self.count += 1
        number = self.count
        self.repositories.append(own(f"r{number}", number, texts=texts_of(number)))

    def fail(self) -> None:
        super().fail()
        if self.dice.random() < 0.3:
            self.token.hidden = frozenset(one.name for one in self.repositories[:5])
            self.token.is_owner, self.token.teams = False, frozenset({"team-1"})

    async def converge(self) -> None:
        self.token.hidden, self.token.is_owner = frozenset(), True
        await super().converge()

    def refs(self) -> list[str]:
        several = ((one.number, one.name.partition("/")[2]) for one in self.repositories)
        return sorted(ref for number, name in several for ref in refs_of(number, name))

    def people(self) -> list[str]:
        users = ["user:default/alice", "user:default/bob"]
        return sorted([*(f"group:default/team-{n}" for n in range(12)), *users])


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(1, soak=4))
@pytest.mark.parametrize("kind", [AnyOrganization, AnyGroup, AnyGiteaOrganization])
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_no_fault_removes_what_is_still_there_and_a_good_reading_converges(
    database: Database, kind: type[AnyHost], seed: int
) -> None:
    dice = random.Random(seed)
    host = kind(Imports(database), dice)
    await host.converge()
    for _ in range(8):
        before = set(host.refs())
        if dice.random() < 0.5:
            host.change()
        known = set(await host.stored())
        host.fail()
        await host.read()
        host.fake.recover()
        still = known & before & set(host.refs())
        assert still <= set(await host.stored())
        assert await host.stored_people() == host.people()
        if dice.random() < 0.4:
            await host.converge()
    await host.converge()
