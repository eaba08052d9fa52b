"""An organization at a fake GitHub, and its importer."""

from typing import Any

from factbook.importers import github
from factbook.importers.github import GithubImportOptions
from factbook.importers.snapshot import Snapshot
from factbook.integrations.github.api import GithubApi, GithubOptions
from tests.fakes.github.app import FakeGitHub
from tests.fakes.github.state import Member, Permission, Repository, Team, Token
from tests.importers.hosted_owner import HostedOwner, contents
from tests.integrations.github.asking import TOKEN, Collector
from tests.service import Time

CATALOG = "catalog-info.yaml"


class Organization(HostedOwner):
    """The organization `acme`, what it holds, and the importer that reads it."""

    def __init__(self, *repositories: Repository, **options: Any) -> None:
        self.time = Time()
        self.token = Token(TOKEN)
        self.fake = FakeGitHub(repositories, [self.token], clock=self.time)
        self.collector = Collector(self.fake, self.time)
        self.options = GithubImportOptions(**({"organizations": ("acme",)} | options))

    async def read(self) -> Snapshot:
        """One reading."""
        client, memory = self.collector.client, self.collector.memory
        api = GithubApi(client, GithubOptions(token=TOKEN), memory, self.time())
        return await github.read_github(api, self.options)


def repository(name: str, number: int = 0, **more: Any) -> Repository:
    """A repository of acme, with texts by path as strings."""
    return Repository(f"acme/{name}", number=number, **contents(more.pop("texts", {})), **more)


def team(slug: str, number: int, *members: str, **more: Any) -> Team:
    """A team; `admin` and `maintain` are names of repositories."""
    permissions: dict[str, Permission] = {f"acme/{one}": "ADMIN" for one in more.pop("admin", ())}
    permissions |= {f"acme/{one}": "MAINTAIN" for one in more.pop("maintain", ())}
    return Team(slug, number, list(members), permissions, **more)


def member(login: str, number: int, name: str | None = None) -> Member:
    return Member(login, number, name)


def file(name: str, kind: str = "Component", more: str = "") -> str:
    """A catalog file with one entity."""
    return (
        f"apiVersion: backstage.io/v1alpha1\nkind: {kind}\nmetadata:\n  name: {name}\n"
        f"spec: {{type: service, lifecycle: production, owner: team-a}}\n{more}"
    )
