"""One integration that asks one fake of its vendor."""

from typing import Any

import httpx2
from starlette.types import ASGIApp

from factbook.sources.http import Client, Governor
from factbook.sources.http.sending import Sender
from factbook.sources.integration import Collected, Integration, Vendor
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
    ) -> None:
        self.time = time
        self.memory = Memory()
        self.integration: Integration = vendor.configured("default", table, clock=time)
        self.sender = Sender(httpx2.ASGITransport(fake), seconds=seconds)
        credential = self.integration.authorize(self._client())
        calls = max(self.integration.at_once, self.integration.calls_at_once)
        self.client = self._client(
            credential=credential, governor=Governor(at_once=calls, clock=time)
        )

    def _client(self, **options: Any) -> Client:
        return Client(
            self.integration.base_url, self.sender, clock=self.time, patience=0, **options
        )

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
