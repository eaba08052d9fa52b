"""Code hosts of `bench.imports`, each with as many repositories, groups and people.

The fakes of the tests take 50 ms for each answer, beside its making. Of the repositories 30 % have
a catalog file, a tenth of these a location with a pattern, and half name their owners.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tests.fakes.fake import Fake
from tests.fakes.gitea import state as gitea
from tests.fakes.gitea.app import FakeGitea
from tests.fakes.github.app import FakeGitHub
from tests.fakes.github.state import Member, Repository, Team, Token
from tests.fakes.gitlab import state as gitlab
from tests.fakes.gitlab.app import FakeGitLab

CREDENTIAL: Final = "ghp_bench"
_LATENCY: Final = 0.05
_TEAMS: Final = 60
_MEMBERS: Final = 400
_PEOPLE: Final = [f"person-{n}" for n in range(_MEMBERS)]
_ENTITY: Final = """apiVersion: backstage.io/v1alpha1
kind: Component
metadata:
  name: {name}
  description: Sells what people need.
  tags: [python, shop]
spec: {{type: service, lifecycle: production, owner: team-{team:02}}}
"""
_LOCATION: Final = """---
apiVersion: backstage.io/v1alpha1
kind: Location
metadata: {{name: {name}-all}}
spec: {{targets: ['services/**/catalog-info.yaml']}}
"""


@dataclass(frozen=True)
class ImportedHost:
    """A fake, the path of its interface, how it is imported, and a commit to its first repository.

    `points` are those used of its limit.
    """

    kind: str
    fake: Fake
    api: str
    arguments: tuple[str, ...]
    table: Mapping[str, str]
    commit: Callable[[], None]
    points: Callable[[], int] = lambda: 0


def github(count: int) -> ImportedHost:
    """An organization of GitHub."""
    token = Token(CREDENTIAL)
    fake = FakeGitHub(map(_repository, range(count)), [token], seconds=_LATENCY)
    fake.members = [Member(name, n, name.title()) for n, name in enumerate(_PEOPLE, 1)]
    fake.teams = [_team(n, count) for n in range(_TEAMS)]

    def commit() -> None:
        fake.repositories[0].commits += 1

    def points() -> int:
        return sum(token.used.values())

    owner, table = ("--org", "acme"), {"TOKEN": CREDENTIAL}
    return ImportedHost("github", fake, "", owner, table, commit, points)


def gitlab_group(count: int) -> ImportedHost:
    """A group of GitLab whose projects are in its subgroups."""
    token = gitlab.Token(CREDENTIAL, limit=1_000_000)
    fake = FakeGitLab(map(_project, range(count)), [token], seconds=_LATENCY)
    fake.accounts = [gitlab.Account(name, n) for n, name in enumerate(_PEOPLE, 1)]
    subgroups = (
        gitlab.Group(f"acme/team-{n:02}", n + 2, _PEOPLE[n::_TEAMS]) for n in range(_TEAMS)
    )
    fake.groups = [gitlab.Group("acme", 1), *subgroups]

    def commit() -> None:
        fake.projects[0].commits += 1

    owner, table = ("--group", "acme"), {"TOKEN": CREDENTIAL}
    return ImportedHost("gitlab", fake, "/api/v4", owner, table, commit)


def gitea_organization(count: int) -> ImportedHost:
    """An organization of Gitea."""
    fake = FakeGitea(map(_own, range(count)), [gitea.Token(CREDENTIAL)], seconds=_LATENCY)
    fake.accounts = [gitea.Account(name, n) for n, name in enumerate(_PEOPLE, 1)]
    fake.teams = [
        gitea.Team(
            f"team-{n:02}",
            n + 1,
            _PEOPLE[n::_TEAMS],
            [f"acme/{_name(m)}" for m in range(n, count, _TEAMS)],
        )
        for n in range(_TEAMS)
    ]

    def commit() -> None:
        fake.repositories[0].commits += 1
        fake.repositories[0].updated_at += 1_000

    table = {"TOKEN": CREDENTIAL, "HOST": "git.example.com"}
    return ImportedHost("gitea", fake, "/api/v1", ("--org", "acme"), table, commit)


HOSTS: Final = {"github": github, "gitlab": gitlab_group, "gitea": gitea_organization}


def _name(number: int) -> str:
    return f"repository-{number:04}"


def _texts(number: int) -> dict[str, bytes]:
    """The files of a repository."""
    name, texts = _name(number), {}
    if number % 2 == 0:
        texts["CODEOWNERS"] = "* @acme/team-01\n"
    if number % 10 < 3:
        texts["catalog-info.yaml"] = _ENTITY.format(name=name, team=number % _TEAMS)
    if number % 100 < 3:
        texts["catalog-info.yaml"] += _LOCATION.format(name=name)
        for part in range(3):
            text = _ENTITY.format(name=f"{name}-{part}", team=number % _TEAMS)
            texts[f"services/{part}/catalog-info.yaml"] = text
    return {path: text.encode() for path, text in texts.items()}


def _repository(number: int) -> Repository:
    return Repository(f"acme/{_name(number)}", languages=["Python"], **_described(number))


def _project(number: int) -> gitlab.Project:
    path = f"acme/team-{number % _TEAMS:02}/{_name(number)}"
    return gitlab.Project(path, languages={"Python": 100.0}, **_described(number))


def _own(number: int) -> gitea.Repository:
    return gitea.Repository(
        f"acme/{_name(number)}", languages={"Python": 100}, **_described(number)
    )


def _described(number: int) -> dict[str, Any]:
    """Fields of a repository that all fakes have."""
    texts = _texts(number)
    return {
        "number": number + 1,
        "files": [*texts],
        "texts": texts,
        "topics": ["shop"],
        "description": "Sells what people need.",
    }


def _team(number: int, count: int) -> Team:
    permissions = {f"acme/{_name(n)}": "ADMIN" for n in range(number, count, _TEAMS)}
    members = _PEOPLE[number::_TEAMS]
    return Team(f"team-{number:02}", number + 1, members, permissions)  # type: ignore[arg-type]
