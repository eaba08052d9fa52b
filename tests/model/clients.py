"""Clients of histories: four people, who share the services that there are."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import httpx2

from tests.model.calls import UNKNOWN, Answer, Call, send
from tests.model.checking import changes_nothing
from tests.model.histories import Client
from tests.service import Service
from tests.waiting import soon

# Until a server that is away answers again.
_UNAVAILABLE = 503
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
    async with _connections(addresses, tokens) as found:
        yield [
            _client(actor, http, lambda: None) for actor, http in zip(ACTORS, found, strict=True)
        ]


@asynccontextmanager
async def enduring(
    addresses: Sequence[str], tokens: Sequence[str], tick: Callable[[], None]
) -> AsyncIterator[list[Client]]:
    """The same for servers that go away at times: who hears no answer waits until they are back.

    A read is asked again; of a write that may have arrived the answer is UNKNOWN. `tick` is called
    before each.
    """
    async with _connections(addresses, tokens) as found:
        yield [
            Client(actor, _Enduring(http, tick)) for actor, http in zip(ACTORS, found, strict=True)
        ]


@asynccontextmanager
async def _connections(
    addresses: Sequence[str], tokens: Sequence[str]
) -> AsyncIterator[list[httpx2.AsyncClient]]:
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(
                httpx2.AsyncClient(
                    base_url=addresses[number % len(addresses)],
                    headers={"authorization": f"Bearer {token}"},
                    timeout=60,
                )
            )
            for number, token in enumerate(tokens)
        ]


class _Enduring:
    """Asks a server that may be away."""

    def __init__(self, http: httpx2.AsyncClient, tick: Callable[[], None]) -> None:
        self._http = http
        self._tick = tick

    async def __call__(self, call: Call) -> Answer:
        self._tick()
        while True:
            try:
                answer = await send(self._http, call)
            except httpx2.ConnectError:
                await self._wait()
                continue
            except httpx2.TransportError:
                answer = UNKNOWN
            if answer.status not in {UNKNOWN.status, _UNAVAILABLE}:
                return answer
            await self._wait()
            if not changes_nothing(call):
                return UNKNOWN

    async def _wait(self) -> None:
        """Return when the server can answer."""
        await soon(self._is_ready)

    async def _is_ready(self) -> bool:
        try:
            return (await self._http.get("/readyz")).status_code == 200
        except httpx2.TransportError:
            return False


def _client(actor: str, http: httpx2.AsyncClient, tick: Callable[[], None]) -> Client:
    async def ask(call: Call) -> Answer:
        tick()
        return await send(http, call)

    return Client(actor, ask)
