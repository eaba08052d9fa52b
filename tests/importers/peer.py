"""Another catalog, and the importer that reads it."""

from typing import Any

import httpx2
from starlette.types import ASGIApp

from factbook.importers import registry
from factbook.importers.catalog import CatalogImportOptions
from factbook.importers.snapshot import ImportedItem, Snapshot, SnapshotPart
from factbook.outbound.client import HttpClient
from factbook.outbound.network import Sender
from tests.fakes.backstage import TOKEN
from tests.integrations.asking import Memory
from tests.service import Time

ADDRESS = "https://backstage.test"


class Peer:
    """A catalog that answers by its own interface, and an import from it."""

    def __init__(self, application: ASGIApp, *, token: str = TOKEN, **options: Any) -> None:
        self.time = Time()
        table = {"address": ADDRESS, "token": token} | options
        self.importer = registry.configure_importer(
            "catalog", "default", table, {}, clock=self.time
        )
        self.sender = Sender(httpx2.ASGITransport(application), seconds=5)

    async def read(self) -> Snapshot:
        """One reading."""
        integration = self.importer.integration
        credential = integration.authorize(self._client())
        client = self._client(credential=credential)
        return await self.importer.read(client, Memory(), self.time(), lambda text: None)

    async def part(self) -> SnapshotPart:
        """The only part of one reading."""
        [part] = (await self.read()).parts
        return part

    async def items(self) -> dict[str, ImportedItem]:
        """The items of a complete reading by name."""
        part = await self.part()
        assert part.complete, part.problems
        return {item.entity["metadata"]["name"]: item for item in part.items}

    def _client(self, **options: Any) -> HttpClient:
        url = self.importer.integration.base_url
        return HttpClient(url, self.sender, clock=self.time, patience=0, **options)


def options(**values: Any) -> CatalogImportOptions:
    """Options of an import."""
    return CatalogImportOptions(**({"address": ADDRESS} | values))
