"""One integration that asks one fake of its vendor."""

import asyncio
from typing import Any

import httpx2
from starlette.types import ASGIApp

from factbook.clock import SECOND
from factbook.integrations.integration import Authorize, Collected, Integration, Vendor
from factbook.outbound.client import Governor, HttpClient
from factbook.outbound.network import Sender
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
        others: Sender | None = None,
        paced: bool = False,
    ) -> None:
        """`sender` leads to the fake over a network; otherwise it is called in this process.

        `others` leads to the further hosts of the integration. When it is `paced`, its time passes
        while calls wait for the pace.
        """
        self._pace = vendor.configured("default", table, clock=time).pace if paced else {}
        self.time = time
        self.table = table
        self.memory = Memory()
        self.integration: Integration = vendor.configured("default", table, clock=time)
        self.sender = sender or Sender(httpx2.ASGITransport(fake), seconds=seconds)
        further = {
            url: self._authorized(url, authorize, others)
            for url, authorize in self.integration.further.items()
        }
        self.client = self._authorized(
            self.integration.base_url, self.integration.authorize, None, further=further
        )

    def _authorized(
        self, url: str, authorize: Authorize, sender: Sender | None, **options: Any
    ) -> HttpClient:
        calls = max(self.integration.at_once, self.integration.calls_at_once)
        governor = Governor(at_once=calls, pace=self._pace, clock=self.time)
        credential = authorize(self._client(url, sender))
        return self._client(url, sender, credential=credential, governor=governor, **options)

    def _client(self, url: str, sender: Sender | None, **options: Any) -> HttpClient:
        given: dict[str, Any] = {"clock": self.time, "patience": 0, "sleep": self._sleep, **options}
        return HttpClient(url, sender or self.sender, **given)

    async def _sleep(self, seconds: float) -> None:
        """Let it be that much later."""
        self.time.advance(round(seconds * SECOND))
        await asyncio.sleep(0)

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
