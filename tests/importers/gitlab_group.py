"""A group at a fake GitLab, and its importer."""

from typing import Any

from factbook.importers import gitlab
from factbook.importers.gitlab import GitlabImportOptions
from factbook.importers.snapshot import Snapshot
from factbook.integrations.gitlab.api import GitlabApi, GitlabOptions
from tests.fakes.gitlab.app import FakeGitLab
from tests.fakes.gitlab.state import Account, Group, Project, Token
from tests.importers.hosted_owner import HostedOwner, contents
from tests.integrations.gitlab.asking import TOKEN, Collector
from tests.service import Time


class GitlabGroup(HostedOwner):
    """The group `acme`, what it holds, and the importer that reads it."""

    word = "projects"

    def __init__(self, *projects: Project, **options: Any) -> None:
        self.time = Time()
        self.token = Token(TOKEN, limit=1_000_000)
        self.fake = FakeGitLab(projects, [self.token], clock=self.time)
        self.fake.groups = [Group("acme", 1)]
        self.collector = Collector(self.fake, self.time)
        self.options = GitlabImportOptions(**({"groups": ("acme",)} | options))

    async def read(self) -> Snapshot:
        """One reading."""
        client, memory = self.collector.client, self.collector.memory
        api = GitlabApi(client, GitlabOptions(token=TOKEN), memory, self.time())
        return await gitlab.read_gitlab(api, self.options)

    def people(self, *accounts: Account, **groups: list[str]) -> None:
        """Groups below acme by name with their members, numbered from ten."""
        self.fake.accounts = list(accounts)
        named = enumerate(groups.items(), 10)
        self.fake.groups += [Group(f"acme/{path}", n, members) for n, (path, members) in named]


def project(path: str, number: int = 7, **more: Any) -> Project:
    """A project below acme, with texts by path as strings."""
    return Project(f"acme/{path}", number, **contents(more.pop("texts", {})), **more)
