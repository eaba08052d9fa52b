"""The clients with which integrations ask their hosts."""

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from factbook.clock import Clock
from factbook.settings import Settings
from factbook.sources.http import Client, Governor
from factbook.sources.integration import Authorize, Integration

if TYPE_CHECKING:
    from factbook.sources.http.sending import Sender

# Makes the client with which an integration asks its host.
Connect = Callable[[Integration], Client]


class Connections:
    """Makes clients, all with the network that the settings describe.

    The clients of one credential share a governor, and the connections to a host.
    """

    def __init__(self, settings: Settings, clock: Clock) -> None:
        # Heavy to import, and of no use to a service without integrations.
        from factbook.sources.http.network import Network  # noqa: PLC0415

        self._network = Network(settings)
        self._clock = clock
        self._governors: dict[str, Governor] = {}
        self._senders: dict[tuple[str, str], Sender] = {}

    def client(self, integration: Integration) -> Client:
        """A client with the integration's credential, and with one for each further host.

        Raises ConfigurationError for a wrong address.
        """
        calls = max(integration.at_once, integration.calls_at_once)
        name = integration.credential
        further = {
            url: self._client(url, f"{name} {url}", authorize, calls)
            for url, authorize in integration.further.items()
        }
        return self._client(integration.base_url, name, integration.authorize, calls, further)

    def _client(
        self,
        url: str,
        name: str,
        authorize: Authorize,
        calls: int,
        further: Mapping[str, Client] | None = None,
    ) -> Client:
        sender, clock = self._sender(name, url), self._clock
        governor = self._governors.setdefault(name, Governor(at_once=calls, clock=clock))
        credential = authorize(Client(url, sender, governor=governor, clock=clock))
        return Client(
            url, sender, credential=credential, governor=governor, further=further, clock=clock
        )

    def _sender(self, name: str, url: str) -> "Sender":
        """One for each credential and address, or calls of one would wait for another's."""
        if (name, url) not in self._senders:
            self._senders[name, url] = self._network.sender(url)
        return self._senders[name, url]


class Clients:
    """The client of each integration, made when it is needed first."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._made: dict[str, tuple[Integration, Client]] = {}

    def of(self, integration: Integration) -> Client:
        """The client; another one when the integration has changed since."""
        id_ = integration.source.id
        made = self._made.get(id_)
        if made is None or made[0] is not integration:
            made = self._made[id_] = (integration, self._connect(integration))
        return made[1]

    async def aclose(self) -> None:
        """Close the connections of all of them."""
        made = list(self._made.values())
        self._made.clear()
        await asyncio.gather(*(client.aclose() for _, client in made), return_exceptions=True)
