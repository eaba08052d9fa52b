"""A group at a fake GitLab, and its importer."""

from typing import Any

from factbook.importers.gitlab import group
from factbook.importers.gitlab.options import GitlabImportOptions
from factbook.importers.snapshot import Snapshot, SnapshotPart
from factbook.integrations.gitlab.api import GitlabApi
from factbook.integrations.gitlab.options import GitlabOptions
from tests.fakes.gitlab.app import FakeGitLab
from tests.fakes.gitlab.state import Account, Group, Project, Token
from tests.importers.organization import name
from tests.integrations.gitlab.asking import TOKEN, Collector
from tests.service import Time


class GitlabGroup:
    """The group `acme`, what it holds, and the importer that reads it."""

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
        return await group.read(api, self.options)

    async def part(self, word: str = "projects") -> SnapshotPart:
        """A part of one reading."""
        parts = {part.key: part for part in (await self.read()).parts}
        return parts[f"acme.{word}"]

    async def entities(self, word: str = "projects") -> dict[str, dict[str, Any]]:
        """The entities of a part by name."""
        items = (await self.part(word)).items
        return {name(item): dict(item.entity) for item in items}

    def people(self, *accounts: Account, **groups: list[str]) -> None:
        """Groups below acme by name with their members, numbered from ten."""
        self.fake.accounts = list(accounts)
        named = enumerate(groups.items(), 10)
        self.fake.groups += [Group(f"acme/{path}", n, members) for n, (path, members) in named]


def project(path: str, number: int = 7, **more: Any) -> Project:
    """A project below acme, with texts by path as strings."""
    texts = {path: text.encode() for path, text in more.pop("texts", {}).items()}
    return Project(f"acme/{path}", number, files=[*texts], texts=texts, **more)
