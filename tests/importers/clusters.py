"""A cluster at a fake Kubernetes, and its importer."""

from typing import Any

import httpx2

from factbook.importers import kubernetes
from factbook.importers.kubernetes import (
    KubernetesApi,
    KubernetesImportOptions,
    make_account_credential,
)
from factbook.importers.snapshot import Snapshot, SnapshotPart
from factbook.outbound.client import HttpClient
from factbook.outbound.network import Sender
from tests.fakes.kubernetes.app import TOKEN, FakeKubernetes
from tests.integrations.asking import Memory
from tests.service import Time

CLUSTER = "eu-1"


class ImportedCluster:
    """A cluster, and the importer that reads it: all namespaces, unless the options say."""

    def __init__(self, **options: Any) -> None:
        self.time = Time()
        self.fake = FakeKubernetes()
        self.memory = Memory()
        given: dict[str, Any] = {"cluster": CLUSTER, "token": TOKEN, "namespaces": ("*",)}
        self.options = KubernetesImportOptions(**(given | options))

    async def read(self) -> Snapshot:
        """One reading."""
        sender = Sender(httpx2.ASGITransport(self.fake), seconds=5)
        credential, url = make_account_credential(self.options), self.options.base_url({})
        client = HttpClient(url, sender, credential=credential, patience=0, clock=self.time)
        return await kubernetes.read_cluster(
            KubernetesApi(client), self.options, self.memory, lambda text: None
        )

    async def part(self, word: str = kubernetes.WORKLOADS_PART) -> SnapshotPart:
        """A part of one reading."""
        return {part.key: part for part in (await self.read()).parts}[f"{CLUSTER}.{word}"]

    async def entities(self) -> dict[str, dict[str, Any]]:
        """The components by namespace and name."""
        found = [dict(item.entity) for item in (await self.part()).items]
        return {_name(entity["metadata"]): entity for entity in found}


def _name(metadata: dict[str, str]) -> str:
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else metadata["name"]
