"""An organization at a fake AWS, and its importer."""

from typing import Any

import httpx2

from factbook.importers import aws
from factbook.importers.aws import AwsImportOptions, OrganizationsApi, find_keys
from factbook.importers.snapshot import Snapshot, SnapshotPart
from factbook.outbound.client import Governor, HttpClient
from factbook.outbound.network import Sender
from factbook.outbound.outcomes import Missing
from tests.fakes.aws.app import KEY_ID, Account, FakeAws, Unit
from tests.integrations.asking import Memory
from tests.service import Time


class AwsOrganization:
    """An organization, what it holds, and the importer that reads it."""

    def __init__(
        self,
        *accounts: Account,
        units: tuple[Unit, ...] = (),
        systems: bool = False,
        **options: Any,
    ) -> None:
        self.time = Time()
        self.fake = FakeAws(*accounts, clock=self.time, units=units)
        self.memory = Memory()
        self.environment: dict[str, str] = {}
        given: dict[str, Any] = {
            "access_key_id": KEY_ID,
            "secret_access_key": "a secret",
            "units": systems,
        }
        self.options = AwsImportOptions(**(given | options))
        self.sender = Sender(httpx2.ASGITransport(self.fake), seconds=5)

    def client(self, url: str) -> HttpClient:
        governor = Governor(at_once=4, clock=self.time)
        return HttpClient(url, self.sender, governor=governor, patience=0, clock=self.time)

    async def read(self) -> Snapshot:
        """One reading."""
        sts = self.client(self.options.sts_base_url)
        found = await find_keys(self.options, self.environment, sts, self.time())
        if isinstance(found, Missing):
            return aws.make_unread_snapshot(found, self.options)
        client = self.client(self.options.base_url)
        api = OrganizationsApi(client, found, self.options.home, self.time)
        return await aws.read_aws(api, self.options, self.memory, lambda text: None)

    async def part(self, key: str = aws.ACCOUNTS_PART) -> SnapshotPart:
        """A part of one reading."""
        return {part.key: part for part in (await self.read()).parts}[key]

    async def entities(self, key: str = aws.ACCOUNTS_PART) -> dict[str, dict[str, Any]]:
        """The entities of a part by name."""
        items = (await self.part(key)).items
        return {item.entity["metadata"]["name"]: dict(item.entity) for item in items}
