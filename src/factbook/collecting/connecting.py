"""The clients with which integrations ask their hosts."""

from factbook.clock import Clock
from factbook.settings import Settings
from factbook.sources.http import Client, Governor
from factbook.sources.integration import Integration


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
        """A client with the integration's credential; ConfigurationError for a wrong address."""
        url, name = integration.base_url, integration.credential
        sender = self._network.sender(url)
        calls = max(integration.at_once, integration.calls_at_once)
        governor = self._governors.setdefault(name, Governor(at_once=calls, clock=self._clock))
        plain = Client(url, sender, governor=governor, clock=self._clock)
        credential = integration.authorize(plain)
        return Client(url, sender, credential=credential, governor=governor, clock=self._clock)
