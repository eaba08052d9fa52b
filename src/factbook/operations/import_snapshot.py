"""One reading of a system without a database, to be pushed."""

import ipaddress
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from factbook.clock import now
from factbook.datasources.clients import ClientFactory
from factbook.importers import registry
from factbook.importers.importer import Show
from factbook.importers.kubernetes import ACCOUNT_FOLDER
from factbook.importers.snapshot import STATED, Snapshot
from factbook.settings import Settings
from factbook.settings.option_tables import DEFAULT_INSTANCE


class OneReading(NamedTuple):
    """Snapshot of an importer, and the calls that it took."""

    importer: str
    snapshot: Snapshot
    calls: int


class _OwnMemory:
    """Memory of a process that reads once."""

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}

    async def get(self, key: str) -> bytes | None:
        return self._kept.get(key)

    async def put(self, key: str, value: bytes, *, days: int | None = None) -> None:
        self._kept[key] = value


async def read_system_once(
    kind: str,
    options: Mapping[str, Any],
    settings: Settings,
    show: Show,
    names: Mapping[str, str] = MappingProxyType({}),
) -> OneReading:
    """Read a system as an importer of this kind with these options does.

    `names` are namespaces and names in the catalog, by external id, which stay.
    Raises ConfigurationError for a mistake in the options.
    """
    importer = registry.configure_importer(kind, DEFAULT_INSTANCE, options, settings.integrations)
    client = ClientFactory(settings, now).client(importer.integration)
    try:
        memory = _OwnMemory()
        if names:
            await memory.put(STATED, msgspec.json.encode(names))
        snapshot = await importer.read(client, memory, now(), show)
        return OneReading(importer.id, snapshot, client.health.calls)
    finally:
        await client.aclose()


def settings_in_cluster(settings: Settings, environment: Mapping[str, str]) -> Settings:
    """The settings with which the API server of the cluster around this process is called.

    Its address is private, and its authority is that of the cluster.
    """
    host, authority = environment.get("KUBERNETES_SERVICE_HOST", ""), Path(ACCOUNT_FOLDER, "ca.crt")
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
