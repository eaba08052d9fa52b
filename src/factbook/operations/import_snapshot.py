"""One reading of a system without a database, to be pushed."""

import ipaddress
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from factbook.clock import now
from factbook.datasources.clients import ClientFactory
from factbook.importers import configuration
from factbook.importers.importer import Show
from factbook.importers.kubernetes.options import ACCOUNT
from factbook.importers.snapshot import Snapshot
from factbook.settings import Settings
from factbook.settings.option_tables import DEFAULT


class OneReading(NamedTuple):
    """Snapshot of an importer, and the calls that it took."""

    importer: str
    snapshot: Snapshot
    calls: int


class _NoMemory:
    """Memory of a process that reads once."""

    async def get(self, key: str) -> bytes | None:
        return None

    async def put(self, key: str, value: bytes, *, days: int | None = None) -> None:
        pass


async def read_once(
    kind: str, options: Mapping[str, Any], settings: Settings, show: Show
) -> OneReading:
    """Read a system as an importer of this kind with these options does.

    Raises ConfigurationError for a mistake in the options.
    """
    importer = configuration.importer(kind, DEFAULT, options, settings.integrations)
    client = ClientFactory(settings, now).client(importer.integration)
    try:
        snapshot = await importer.read(client, _NoMemory(), now(), show)
        return OneReading(importer.id, snapshot, client.health.calls)
    finally:
        await client.aclose()


def within_cluster(settings: Settings, environment: Mapping[str, str]) -> Settings:
    """The settings with which the API server of the cluster around this process is called.

    Its address is private, and its authority is that of the cluster.
    """
    host, authority = environment.get("KUBERNETES_SERVICE_HOST", ""), Path(ACCOUNT, "ca.crt")
    networks = [*settings.outgoing_networks]
    try:
        networks.append(str(ipaddress.ip_network(host)))
    except ValueError:
        return settings
    found = str(authority) if authority.exists() else None
    return replace(
        settings,
        outgoing_networks=networks,
        outgoing_direct=[*settings.outgoing_direct, host],
        outgoing_ca_file=settings.outgoing_ca_file or found,
    )
