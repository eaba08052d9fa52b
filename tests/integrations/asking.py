"""One integration that asks one fake of its vendor."""

from typing import Any

import httpx2
from starlette.types import ASGIApp

from factbook.integrations.integration import Authorize, Collected, Integration, Vendor
from factbook.outbound import Governor, HttpClient
from factbook.outbound.sender import Sender
from tests.service import Time


class Memory:
    """What the integration keeps between its runs."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    async def get(self, key: str) -> bytes | None:
        return self.kept.get(key)

    async def put(self, key: str, value: bytes, *, days: int | None = None) -> None:
        self.kept[key] = value


class Asking:
    """An integration as a table of the settings configures it, and its client to the fake.

    `memory` outlives its runs.
    """

    def __init__(
        self,
        vendor: Vendor,
        fake: ASGIApp,
        table: dict[str, Any],
        *,
        time: Time,
        seconds: float = 5,
        sender: Sender | None = None,
    ) -> None:
        """`sender` leads to the fake over a network; otherwise it is called in this process."""
        self.time = time
        self.memory = Memory()
        self.integration: Integration = vendor.configured("default", table, clock=time)
        self.sender = sender or Sender(httpx2.ASGITransport(fake), seconds=seconds)
        further = {
            url: self._authorized(url, authorize)
            for url, authorize in self.integration.further.items()
        }
        self.client = self._authorized(
            self.integration.base_url, self.integration.authorize, further=further
        )

    def _authorized(self, url: str, authorize: Authorize, **options: Any) -> HttpClient:
        calls = max(self.integration.at_once, self.integration.calls_at_once)
        governor = Governor(at_once=calls, clock=self.time)
        credential = authorize(self._client(url))
        return self._client(url, credential=credential, governor=governor, **options)

    def _client(self, url: str, **options: Any) -> HttpClient:
        return HttpClient(url, self.sender, clock=self.time, patience=0, **options)

    async def collect(self, *targets: str) -> dict[str, Collected]:
        """What one run brings for the targets, batch by batch."""
        collected: dict[str, Collected] = {}
        for batch in self.integration.batches(targets):
            moment = self.time()
            collected |= await self.integration.collect(batch, self.client, self.memory, moment)
        return collected

    async def one(self, target: str) -> Collected:
        """What one run brings for one target."""
        return (await self.collect(target))[target]
