"""Each way an import can fail, wholly or in part: its state, exit code, sentence and next step."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.testing import Result

from tests.cli.conftest import Command
from tests.cli.imported_catalog import HOSTS, Catalog
from tests.fakes import faults
from tests.fakes.aws.app import KEY_ID, FakeAws
from tests.fakes.aws.app import Account as AwsAccount
from tests.fakes.backstage import TOKEN as CATALOG_TOKEN
from tests.fakes.backstage import FakeBackstage
from tests.fakes.gitea import state as gitea
from tests.fakes.github.faults import secondary_limit
from tests.fakes.gitlab.state import Account
from tests.fakes.kubernetes.app import TOKEN as CLUSTER_TOKEN
from tests.fakes.kubernetes.app import FakeKubernetes
from tests.fakes.kubernetes.objects import DEPLOYMENTS, STATEFUL_SETS
from tests.fakes.serving import served
from tests.importers.directories import group, person
from tests.importers.gitea_organization import GiteaOwner, own
from tests.importers.gitlab_group import GitlabGroup, project
from tests.importers.organization import CATALOG, Organization, file, member, repository, team
from tests.no_retry_delay import no_pauses
from tests.service import component

__all__ = ["no_pauses"]

LOCATION = "apiVersion: v1\nkind: Location\nmetadata: {name: all}\nspec: {target: x.yaml}\n"
FORBIDDEN = faults.saying({"message": "no"}, 403)
NOT_FOUND = faults.saying({"message": "no"}, 404)


class World:
    """What one importer reads: the fake of a system, and the arguments of the command."""

    def __init__(self, catalog: Catalog, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.catalog = catalog
        self.file = folder / "people.ldif"
        self.patch = patch
        self.kind = ""
        self.fake: Any = FakeBackstage()
        self.account: dict[str, str] = {}
        self.name = ""

    def set(self, **values: str) -> None:
        """Set variables of the importer."""
        for name, value in values.items():
            self.patch.setenv(f"FACTBOOK_IMPORTERS__{self.kind.upper()}__DEFAULT__{name}", value)

    def run(self) -> Result:
        """One import."""
        with served(self.fake) as url:
            if self.kind in HOSTS:
                table, below, _ = HOSTS[self.kind]
                for name, value in {**table, "API_URL": f"{url}{below}"}.items():
                    variable = f"FACTBOOK_INTEGRATIONS__{self.kind.upper()}__DEFAULT__{name}"
                    self.patch.setenv(variable, self.account.get(name, value))
            if self.kind == "catalog":
                self.set(ADDRESS=url)
            if self.kind == "aws":
                self.set(URL=url, STS_URL=url)
            if self.kind == "kubernetes":
                self.set(URL=url)
            return self.catalog.answer("run", self.name or self.kind)

    @property
    def states(self) -> dict[str, str]:
        """The state of each part that is not complete, by the end of its name."""
        parts = self.catalog.run("list")
        return {
            part["part"].partition("/")[2].rpartition(".")[2]: part["state"]
            for part in parts
            if part["state"] != "complete"
        }


def github(world: World) -> None:
    one = Organization(*(repository(f"r{n}", n, texts=texts(n)) for n in range(1, 13)))
    one.fake.teams, one.fake.members = [team("web", 1, "alice")], [member("alice", 1)]
    world.fake = one.fake
    world.set(ORGANIZATIONS="acme")


def gitlab(world: World) -> None:
    one = GitlabGroup(*(project(f"r{n}", n, texts=texts(n)) for n in range(1, 13)))
    one.people(Account("alice", 2), web=["alice"])
    world.fake = one.fake
    world.set(GROUPS="acme")


def forgejo(world: World) -> None:
    one = GiteaOwner(*(own(f"r{n}", n, texts=texts(n)) for n in range(1, 13)))
    one.fake.accounts = [gitea.Account("alice", 2)]
    one.fake.teams = [gitea.Team("web", 1, ["alice"])]
    world.fake = one.fake
    world.set(ORGANIZATIONS="acme")


def texts(number: int) -> dict[str, str]:
    """The files of a repository: the first has a file, the second one that leads to another."""
    if number == 2:
        return {CATALOG: LOCATION, "x.yaml": file("x")}
    return {CATALOG: file("r1")} if number == 1 else {}


def catalog(world: World) -> None:
    world.fake = FakeBackstage([component(f"c{n}") for n in range(12)])
    world.set(TOKEN=CATALOG_TOKEN)


def aws(world: World) -> None:
    world.fake = FakeAws(*(AwsAccount(f"a{n}", n, tags={"owner": "core"}) for n in range(1, 13)))
    world.set(ACCESS_KEY_ID=KEY_ID, SECRET_ACCESS_KEY="a secret")


def kubernetes(world: World) -> None:
    world.fake = FakeKubernetes()
    for number in range(12):
        world.fake.add(DEPLOYMENTS, f"web-{number}", "default")
    world.set(CLUSTER="eu-1", NAMESPACES="*", TOKEN=CLUSTER_TOKEN)


def ldif(world: World) -> None:
    world.file.write_text("".join(person(f"p{n}", n) for n in range(1, 13)) + group("core", "p1"))
    world.set(PATH=str(world.file))


KINDS: dict[str, Callable[[World], None]] = {
    "github": github,
    "gitlab": gitlab,
    "gitea": forgejo,
    "catalog": catalog,
    "aws": aws,
    "kubernetes": kubernetes,
    "ldif": ldif,
}


class Row(NamedTuple):
    """A fault: what breaks of a world, the states of parts that aren't complete, the exit code.

    `says` are texts that the command prints beside the report: what happened, and what to do.
    """

    kind: str
    fault: str
    breaks: Callable[[World], object]
    states: dict[str, str]
    code: int
    says: tuple[str, ...]


def fails(kind: str, fault: faults.Fault, **more: Any) -> Callable[[World], object]:
    """A fault of the answers of a kind."""
    return lambda world: world.fake.fail(kind, fault, **({"times": 99} | more))


def table(name: str, value: str) -> Callable[[World], object]:
    """A value of the importer's table."""
    return lambda world: world.set(**{name: value})


def token(world: World) -> None:
    """A credential that is not known."""
    world.account["TOKEN"] = "a-token-that-ended"


def without(number: int) -> Callable[[World], object]:
    """No repositories but the first ones."""

    def breaks(world: World) -> None:
        repositories = getattr(world.fake, "projects" if world.kind == "gitlab" else "repositories")
        del repositories[number:]

    return breaks


def texts_become(*texts: str) -> Callable[[World], object]:
    """Another catalog file in each of the first repositories."""

    def breaks(world: World) -> None:
        repositories = getattr(world.fake, "projects" if world.kind == "gitlab" else "repositories")
        for one, text in zip(repositories, texts, strict=False):
            one.commits, one.texts[CATALOG], one.files = 2, text.encode(), [CATALOG]

    return breaks


def writes(edit: Callable[[str], str]) -> Callable[[World], object]:
    """Another text in the file of a directory."""
    return lambda world: world.file.write_text(edit(world.file.read_text()))


def unknown(world: World) -> None:
    """A name that no importer has."""
    world.name = "nobody"


PEOPLE = {"teams": "partial", "members": "partial"}
ALL = {"repositories": "partial", "teams": "partial", "members": "partial"}
GROUP = {"projects": "partial", "groups": "partial", "members": "partial"}
UNREAD = "Not everything could be read; what could not stays as it was."
HELD = "Removals are held; the entities stay."
SHOW = "factbook import show {}"
APPLY = "factbook import apply {}"
COMPLETE: dict[str, str] = {}
# The part that each importer names first.
SETS = {
    "github": "github/acme.repositories",
    "gitlab": "gitlab/acme.projects",
    "gitea": "gitea/acme.repositories",
    "catalog": "catalog/entities",
    "aws": "aws/accounts",
    "kubernetes": "kubernetes/eu-1.workloads",
    "ldif": "ldif/people",
}

ROWS = [
    Row("github", "token", token, ALL, 1, (UNREAD, "forbidden", SHOW)),
    Row("github", "down", fails("graphql", faults.unavailable), ALL, 1, (UNREAD, SHOW)),
    Row("github", "proxy", fails("graphql", faults.not_json), ALL, 1, (UNREAD, SHOW)),
    Row(
        "github", "limit", fails("graphql", secondary_limit), ALL, 1, (UNREAD, "rate-limited", SHOW)
    ),
    Row(
        "github",
        "no-organization",
        table("ORGANIZATIONS", "nobody"),
        ALL,
        1,
        (
            UNREAD,
            "there is no nobody at github.com",
            "factbook import show github/nobody.repositories",
        ),
    ),
    Row(
        "github",
        "broken",
        texts_become("a: ["),
        COMPLETE,
        0,
        ("catalog-info.yaml:2: is not valid YAML",),
    ),
    Row(
        "github",
        "empty",
        texts_become(""),
        COMPLETE,
        0,
        ("holds no entity", "write one, or delete the file"),
    ),
    Row("github", "few-left", without(2), {"repositories": "held"}, 1, (HELD, APPLY)),
    Row(
        "gitlab",
        "files",
        fails("graphql", faults.saying({}, 500)),
        {"projects": "partial"},
        1,
        (UNREAD, SHOW),
    ),
    Row("gitlab", "token", token, GROUP, 1, (UNREAD, SHOW)),
    Row("gitlab", "no-group", fails("group", NOT_FOUND), GROUP, 1, (UNREAD, SHOW)),
    Row(
        "gitlab",
        "members",
        fails("group_members", FORBIDDEN),
        {"members": "partial"},
        1,
        (UNREAD, "factbook import show gitlab/acme.members"),
    ),
    Row("gitlab", "none-left", without(0), {"projects": "held"}, 1, (HELD, APPLY)),
    Row("gitea", "down", fails("organization", faults.unavailable), ALL, 1, (UNREAD, SHOW)),
    Row("gitea", "token", token, ALL, 1, (UNREAD, SHOW)),
    Row(
        "gitea",
        "list",
        fails("search", faults.unavailable),
        {"repositories": "partial"},
        1,
        (UNREAD, SHOW),
    ),
    Row("gitea", "none-left", without(0), {"repositories": "held"}, 1, (HELD, APPLY)),
    Row("catalog", "token", table("TOKEN", "ended"), {"entities": "partial"}, 1, (UNREAD, SHOW)),
    Row(
        "catalog",
        "sign-in",
        fails("page", faults.not_json),
        {"entities": "partial"},
        1,
        (UNREAD, SHOW),
    ),
    Row(
        "catalog", "cut", fails("page", faults.cut_off), {"entities": "partial"}, 1, (UNREAD, SHOW)
    ),
    Row(
        "catalog",
        "none-left",
        lambda world: world.fake.entities.clear(),
        {"entities": "held"},
        1,
        (HELD, APPLY),
    ),
    Row(
        "aws",
        "denied",
        fails("ListAccounts", FORBIDDEN),
        {"accounts": "partial"},
        1,
        (UNREAD, SHOW),
    ),
    Row(
        "aws",
        "tags",
        fails("ListTagsForResource", FORBIDDEN),
        {"accounts": "partial"},
        1,
        (UNREAD, SHOW),
    ),
    Row(
        "aws",
        "none-left",
        lambda world: world.fake.accounts.clear(),
        {"accounts": "held"},
        1,
        (HELD, APPLY),
    ),
    Row(
        "kubernetes",
        "token",
        table("TOKEN", "ended"),
        {"workloads": "partial", "cluster": "partial"},
        1,
        (UNREAD, SHOW),
    ),
    Row(
        "kubernetes",
        "list",
        fails(STATEFUL_SETS, FORBIDDEN),
        {"workloads": "partial"},
        1,
        (UNREAD, SHOW),
    ),
    Row(
        "kubernetes",
        "none-left",
        lambda world: world.fake.objects[DEPLOYMENTS].clear(),
        {"workloads": "held"},
        1,
        (HELD, APPLY),
    ),
    Row(
        "kubernetes",
        "namespace",
        table("NAMESPACES", "default,defualt"),
        COMPLETE,
        0,
        ("namespaces: defualt is not a namespace of the cluster",),
    ),
    Row(
        "ldif",
        "no-file",
        lambda world: world.file.unlink(),
        {"people": "partial", "groups": "partial"},
        1,
        (UNREAD, SHOW),
    ),
    Row(
        "ldif",
        "cut-off",
        writes(lambda text: text[:-9]),
        {"people": "partial", "groups": "partial"},
        1,
        (UNREAD, SHOW),
    ),
    Row(
        "ldif",
        "empty",
        writes(lambda text: ""),
        {"people": "partial", "groups": "partial"},
        1,
        (UNREAD, SHOW),
    ),
    Row(
        "ldif",
        "comments",
        writes(lambda text: "# nothing\n\n"),
        {"people": "held", "groups": "held"},
        1,
        (HELD, APPLY),
    ),
    Row(
        "ldif",
        "broken",
        writes(lambda text: text.replace("cn: P3", "cn P3")),
        COMPLETE,
        0,
        ("people.ldif:",),
    ),
    Row(
        "github",
        "path",
        table("FILES", "/catalog-info.yaml"),
        COMPLETE,
        2,
        ("files has a path that matches nothing", "docs/catalog-info.yaml"),
    ),
    Row("github", "option", table("FILEZ", "x"), COMPLETE, 2, ("filez",)),
    Row(
        "github",
        "people-from",
        table("PEOPLE_FROM", "acme/peeple"),
        COMPLETE,
        0,
        ("acme/peeple matches no repository", "correct it, or take it out"),
    ),
    Row(
        "github",
        "mapping",
        table("MAPPING", '{"spec.x": "max(item.name)"}'),
        PEOPLE,
        1,
        ("spec.x: the mapping failed", UNREAD),
    ),
    Row(
        "github",
        "twice",
        texts_become(file("r3")),
        COMPLETE,
        0,
        ("comes from github.com/acme/r1 catalog-info.yaml",),
    ),
    Row(
        "github",
        "owner",
        texts_become(file("r1").replace("team-a", "'@acme/web'")),
        COMPLETE,
        0,
        ("write it like group:default/web",),
    ),
    Row(
        "github",
        "people",
        fails("graphql", faults.unavailable, after=1),
        PEOPLE,
        1,
        (UNREAD, "factbook import show github/acme.teams"),
    ),
    Row(
        "github",
        "name",
        unknown,
        COMPLETE,
        1,
        ('There is no importer "nobody"', "There are: github."),
    ),
    Row(
        "github",
        "account",
        table("INTEGRATION", "other"),
        COMPLETE,
        2,
        ("there is no table [integrations.github.other]",),
    ),
    Row("aws", "credential", table("SECRET_ACCESS_KEY", ""), COMPLETE, 2, ("belong together",)),
]


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=[f"{row.kind}-{row.fault}" for row in ROWS])
def test_no_failure_is_silent(
    row: Row,
    factbook: Command,
    migrated_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = Path(shutil.copy(migrated_file, tmp_path))
    world = World(Catalog(factbook, path, monkeypatch), tmp_path, monkeypatch)
    world.kind = row.kind
    KINDS[row.kind](world)
    first = world.run()
    assert first.exit_code == 0, first.stderr
    row.breaks(world)
    answer = world.run()
    states = {} if row.code == 2 else world.states
    assert (states, answer.exit_code) == (row.states, row.code), answer.stderr
    name = SETS[row.kind]
    missing = [text for text in row.says if text.format(name) not in answer.stderr]
    assert not missing, answer.stderr
