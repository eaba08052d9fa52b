"""What tests of webhooks can ask for."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from factbook.clock import SECOND
from factbook.webhooks.sender import WebhookSender
from tests.conftest import StartService
from tests.service import Service
from tests.webhooks.receiver import NETWORKS, Receiver, receiving

HOOKS = "/api/events/webhooks"


class World:
    """A service that may call loopback, and what sends for it when a test says so."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.database = service.state.database
        self._couriers: list[WebhookSender] = []
        self.courier = self.another()

    def another(self) -> WebhookSender:
        """A courier of another process."""
        courier = self.service.application.courier(self.database)
        self._couriers.append(courier)
        return courier

    async def close(self) -> None:
        for courier in self._couriers:
            await courier.stop()

    async def hook(self, url: str, *types: str) -> dict[str, Any]:
        """A new webhook with its secret."""
        answer = await self.service.http.post(HOOKS, json={"url": url, "types": types})
        assert answer.status_code == 201, answer.text
        made: dict[str, Any] = answer.json()
        return made

    async def shown(self, hook: dict[str, Any]) -> dict[str, Any]:
        answer = await self.service.http.get(f"{HOOKS}/{hook['id']}")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def later(self, seconds: int) -> None:
        """Go on in time, and send what is due then."""
        self.service.time.advance(seconds * SECOND)
        await self.courier.drain()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


StartWorld = Callable[..., Awaitable[World]]


@pytest.fixture
async def start_world(start: StartService) -> AsyncIterator[StartWorld]:
    """Starts services with the settings given, on one database."""
    async with AsyncExitStack() as stack:

        async def started(**settings: Any) -> World:
            world = World(await start(**settings))
            stack.push_async_callback(world.close)
            return world

        yield started


@pytest.fixture
async def world(start_world: StartWorld) -> World:
    return await start_world(outgoing_networks=NETWORKS)
