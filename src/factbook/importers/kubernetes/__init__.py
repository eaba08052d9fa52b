"""Importer of Kubernetes clusters: workloads as components."""

import os
from typing import Final

from factbook.importers.importer import Access, ImporterKind, ReadingContext, Show
from factbook.importers.kubernetes import cluster
from factbook.importers.kubernetes.api import KubernetesApi, service_account
from factbook.importers.kubernetes.options import KubernetesImportOptions
from factbook.importers.snapshot import Snapshot


def _access(options: KubernetesImportOptions) -> Access:
    return Access(
        base_url=options.base_url(os.environ),
        authorize=lambda _: service_account(options),
    )


async def _read(context: ReadingContext, options: KubernetesImportOptions, show: Show) -> Snapshot:
    return await cluster.read(KubernetesApi(context.client), options, context.memory, show)


IMPORTER: Final = ImporterKind(
    id="kubernetes",
    title="Kubernetes",
    options=KubernetesImportOptions,
    makes=("component", "resource"),
    read=_read,
    access=_access,
)
