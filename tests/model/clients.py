"""Clients of histories: four people, who share the services that there are."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import httpx2

from tests.model.calls import Answer, Call, send
from tests.model.histories import Client
from tests.service import Service

ACTORS = tuple(f"user:default/person{number}" for number in range(4))


@asynccontextmanager
async def inside(services: Sequence[Service]) -> AsyncIterator[list[Client]]:
    """Clients of services inside this process, whose clocks go on with every call."""

    def tick() -> None:
        for service in services:
            service.time.advance(1_000)

    async with AsyncExitStack() as stack:
        clients = []
        for number, actor in enumerate(ACTORS):
            service = services[number % len(services)]
            token = await service.token(owner=actor)
            http = await stack.enter_async_context(service.client(token))
            clients.append(_client(actor, http, tick))
        yield clients


@asynccontextmanager
async def outside(addresses: Sequence[str], tokens: Sequence[str]) -> AsyncIterator[list[Client]]:
    """Clients of server processes, with one token for each of ACTORS."""
    async with AsyncExitStack() as stack:
        clients = []
        for number, (actor, token) in enumerate(zip(ACTORS, tokens, strict=True)):
            http = httpx2.AsyncClient(
                base_url=addresses[number % len(addresses)],
                headers={"authorization": f"Bearer {token}"},
                timeout=60,
            )
            clients.append(_client(actor, await stack.enter_async_context(http), lambda: None))
        yield clients


def _client(actor: str, http: httpx2.AsyncClient, tick: Callable[[], None]) -> Client:
    async def ask(call: Call) -> Answer:
        tick()
        return await send(http, call)

    return Client(actor, ask)
