"""Clients with which integrations call their hosts."""

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from factbook.clock import Clock
from factbook.integrations.integration import Authorize, Integration
from factbook.outbound.client import HttpClient
from factbook.outbound.limits import Governor
from factbook.settings import Settings
from factbook.telemetry.spans import NO_TRACER, Tracer

if TYPE_CHECKING:
    from factbook.outbound.network import Sender

# Makes the client with which an integration asks its host.
Connect = Callable[[Integration], HttpClient]


class ClientFactory:
    """Factory of clients that use the network described by the settings.

    The clients of one credential share a governor, and the connections to a host.
    """

    def __init__(self, settings: Settings, clock: Clock, tracer: Tracer = NO_TRACER) -> None:
        # Heavy to import, and of no use to a service without integrations.
        from factbook.outbound.network import Network  # noqa: PLC0415

        self._network = Network(settings, tracer=tracer)
        self._clock = clock
        self._shared: dict[str, _Shared] = {}

    def client(self, integration: Integration) -> HttpClient:
        """A client with the integration's credential, and one for each further host.

        Raises ConfigurationError for an invalid address.
        """
        calls = max(integration.at_once, integration.calls_at_once)
        name, clock = integration.credential, self._clock
        shared = self._shared.get(name)
        if shared is None or shared.edition != integration.edition:
            shared = self._shared[name] = _Shared(integration.edition, {}, {})
        further = {
            url: self._client(shared, url, url, authorize, Governor(at_once=calls, clock=clock))
            for url, authorize in integration.further.items()
        }
        governor = Governor(at_once=calls, pace=integration.pace, clock=clock)
        own = integration.base_url, "", integration.authorize, governor
        return self._client(shared, *own, further)

    def _client(
        self,
        shared: "_Shared",
        url: str,
        name: str,
        authorize: Authorize,
        new: Governor,
        further: Mapping[str, HttpClient] | None = None,
    ) -> HttpClient:
        sender, clock = self._sender(shared, name, url), self._clock
        governor = shared.governors.setdefault(name, new)
        credential = authorize(HttpClient(url, sender, governor=governor, clock=clock))
        return HttpClient(
            url, sender, credential=credential, governor=governor, further=further, clock=clock
        )

    def _sender(self, shared: "_Shared", name: str, url: str) -> "Sender":
        """The sender of one credential and address; a shared one would delay unrelated calls."""
        found = shared.senders.get((name, url))
        if found is None or found.closed:
            found = shared.senders[name, url] = self._network.sender(url)
        return found


class _Shared(NamedTuple):
    """State shared by the clients of one edition of a credential, by further host ("": its own)."""

    edition: str
    governors: dict[str, Governor]
    senders: dict[tuple[str, str], "Sender"]


class Clients:
    """The client of each integration, created on first use."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._made: dict[str, tuple[Integration, HttpClient]] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def of(self, integration: Integration) -> HttpClient:
        """The client; a new one if the integration has changed."""
        id_ = integration.source.id
        made = self._made.get(id_)
        if made is None or made[0] is not integration:
            client = self._connect(integration)
            self._made[id_] = (integration, client)
            if made is not None:
                self._let_go(made[1])
            return client
        return made[1]

    async def aclose(self) -> None:
        """Close the connections of all clients."""
        made = list(self._made.values())
        self._made.clear()
        closing = (client.aclose() for _, client in made)
        await asyncio.gather(*closing, *self._closing, return_exceptions=True)

    def _let_go(self, client: HttpClient) -> None:
        """Close the client after its pending calls, unless another shares its connections."""
        if any(client.shares(other) for _, other in self._made.values()):
            return
        task = asyncio.ensure_future(client.aclose(idle=True))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
