"""An organization at a fake Gitea, and its importer."""

from typing import Any

from factbook.importers.gitea import organization
from factbook.importers.gitea.options import GiteaImportOptions
from factbook.importers.snapshot import Snapshot, SnapshotPart
from factbook.integrations.gitea.api import GiteaApi
from factbook.integrations.gitea.options import GiteaOptions
from tests.fakes.gitea.app import FakeGitea
from tests.fakes.gitea.state import Repository, Token
from tests.importers.organization import name
from tests.integrations.gitea.asking import HOST, TOKEN, Collector
from tests.service import Time


class GiteaOwner:
    """The organization `acme`, what it holds, and the importer that reads it."""

    def __init__(self, *repositories: Repository, **options: Any) -> None:
        self.time = Time()
        self.token = Token(TOKEN)
        self.fake = FakeGitea(repositories, [self.token])
        self.collector = Collector(self.fake, self.time)
        self.options = GiteaImportOptions(**({"organizations": ("acme",)} | options))

    async def read(self) -> Snapshot:
        """One reading."""
        client, memory = self.collector.client, self.collector.memory
        api = GiteaApi(client, GiteaOptions(host=HOST, token=TOKEN), memory, self.time())
        return await organization.read(api, self.options)

    async def part(self, word: str = "repositories") -> SnapshotPart:
        """A part of one reading."""
        parts = {part.key: part for part in (await self.read()).parts}
        return parts[f"acme.{word}"]

    async def entities(self, word: str = "repositories") -> dict[str, dict[str, Any]]:
        """The entities of a part by name."""
        items = (await self.part(word)).items
        return {name(item): dict(item.entity) for item in items}


def own(name: str, number: int = 7, **more: Any) -> Repository:
    """A repository of acme, with texts by path as strings."""
    texts = {path: text.encode() for path, text in more.pop("texts", {}).items()}
    return Repository(f"acme/{name}", number=number, files=[*texts], texts=texts, **more)
