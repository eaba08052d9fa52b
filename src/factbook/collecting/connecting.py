"""The clients with which integrations ask their hosts."""

from collections.abc import Mapping

from factbook.clock import Clock
from factbook.settings import Settings
from factbook.sources.http import Client, Governor
from factbook.sources.integration import Authorize, Integration


class Connections:
    """Makes clients, all with the network that the settings describe.

    The clients of one credential share a governor.
    """

    def __init__(self, settings: Settings, clock: Clock) -> None:
        # Heavy to import, and of no use to a service without integrations.
        from factbook.sources.http.network import Network  # noqa: PLC0415

        self._network = Network(settings)
        self._clock = clock
        self._governors: dict[str, Governor] = {}

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
        sender, clock = self._network.sender(url), self._clock
        governor = self._governors.setdefault(name, Governor(at_once=calls, clock=clock))
        credential = authorize(Client(url, sender, governor=governor, clock=clock))
        return Client(
            url, sender, credential=credential, governor=governor, further=further, clock=clock
        )
