"""Sources that ask hosts of a test's choice, beside one that asks a good one."""

import time
from collections.abc import Callable
from typing import Any

from factbook.datasources.custom import sources
from factbook.datasources.custom.definition import CustomSourceDefinition
from factbook.datasources.custom.sources import SourceConnection
from factbook.integrations.integration import Integration
from factbook.outbound.client import HttpClient
from factbook.outbound.network import Network
from tests.datasources.asking import SECRET, Custom, NoFiles, definition
from tests.outbound.asking import network
from tests.outbound.conftest import Serve
from tests.outbound.talking import saying
from tests.service import NOON, Service, component

MB = 1_000_000
HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"transfer-encoding: chunked\r\n\r\n"
DEEP = b"[" * 10_000 + b"]" * 10_000
PIECE = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
NAMES = ("one", "two", "three")
# No answer of a host that says something takes this long, however loaded the machine.
PATIENT = 60.0


def whole(body: bytes, *, length: int | None = None, headers: bytes = b"") -> bytes:
    """An answer with a length, which may be wrong."""
    size = len(body) if length is None else length
    return HEAD + headers + b"content-length: %d\r\n\r\n" % size + body


def everyone(reasons: dict[str, str]) -> dict[str, dict[str, str]]:
    """The same reasons for every entity."""
    return dict.fromkeys(NAMES, reasons)


class Ticking:
    """A clock that begins at the service's noon."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def __call__(self) -> int:
        return NOON + round((time.monotonic() - self._began) * 1000)


def connecting(
    network: Network, clock: Ticking, seconds: float
) -> Callable[[Integration], HttpClient]:
    """Makes clients over the network, as the service does but with narrower bounds."""

    def connect(integration: Integration) -> HttpClient:
        url = integration.base_url
        sender = network.sender(url, seconds=seconds, most_bytes=MB)
        credential = integration.authorize(HttpClient(url, sender, clock=clock))
        return HttpClient(url, sender, credential=credential, clock=clock, patience=0)

    return connect


class Beside:
    """A source of a test's choice, and a good one beside it, in one collector."""

    def __init__(self, service: Service, serve: Serve) -> None:
        self._service = service
        self._serve = serve
        self.world: Custom

    async def run(
        self,
        source: CustomSourceDefinition,
        base_url: str = "https://nowhere.test",
        seconds: float = PATIENT,
        **options: Any,
    ) -> dict[str, dict[str, str]]:
        """The reasons that are stored for each entity, once both sources have run."""
        good = await self._serve(saying(whole(b'{"ok": true}')))
        connections = {
            "evil": SourceConnection(base_url=base_url, headers={"x-token": SECRET}),
            "good": SourceConnection(base_url=f"http://127.0.0.1:{good}"),
        }
        other = definition("http", "good", connection="good", path="/{{ metadata.name }}")
        clock = Ticking()
        self.world = Custom(
            self._service,
            connecting(network(**options), clock, seconds),
            *(sources.build_integration(one, connections, NoFiles()) for one in (source, other)),
            clock=clock,
        )
        entities = []
        for name in NAMES:
            entities.append(component(name))
            entities[-1]["metadata"]["description"] = "a" * 4_000 + "b"
        await self.world.run(*entities)
        await self.world.collector.stop()
        await self._look_at_the_good_one()
        return {name: (await self.world.latest(name, "evil")).reasons for name in NAMES}

    async def _look_at_the_good_one(self) -> None:
        run = await self.world.last("good")
        assert (run.state, run.covered) == ("done", len(NAMES))
        for name in NAMES:
            assert (await self.world.latest(name, "good")).facts == {"ok": True}


def evil(**options: Any) -> CustomSourceDefinition:
    """A source that has no time to be tried again by the collector."""
    members = {"timeout": {"seconds": 20}}
    options = {"connection": "evil", "path": "/{{ metadata.name }}"} | options
    return definition("http", "evil", members=members, **options)
