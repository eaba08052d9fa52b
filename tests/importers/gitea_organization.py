"""An organization at a fake Gitea, and its importer."""

from typing import Any

from factbook.importers import gitea
from factbook.importers.gitea import GiteaImportOptions
from factbook.importers.snapshot import Snapshot
from factbook.integrations.gitea.api import GiteaApi, GiteaOptions
from tests.fakes.gitea.app import FakeGitea
from tests.fakes.gitea.state import Repository, Token
from tests.importers.hosted_owner import HostedOwner, contents
from tests.integrations.gitea.asking import HOST, TOKEN, Collector
from tests.service import Time


class GiteaOwner(HostedOwner):
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
        return await gitea.read_gitea(api, self.options)


def own(name: str, number: int = 7, **more: Any) -> Repository:
    """A repository of acme, with texts by path as strings."""
    return Repository(f"acme/{name}", number=number, **contents(more.pop("texts", {})), **more)
