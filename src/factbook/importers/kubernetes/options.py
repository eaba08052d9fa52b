"""Options of an import from a Kubernetes cluster."""

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Final

from factbook.catalog.validation import valid_namespace, valid_subdomain
from factbook.importers.importer import NO_NAMESPACE, ImporterOptions
from factbook.settings.option_tables import about, is_web_address

ACCOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
ID: Final = "backstage.io/kubernetes-id"
WORKLOADS: Final = ("apps/v1/deployments", "apps/v1/statefulsets", "apps/v1/daemonsets")

_ALL: Final = "*"
_VERSION: Final = re.compile(r"v\d{1,3}((alpha|beta)\d{1,3})?", re.ASCII)
_PLURAL: Final = re.compile(r"[a-z][a-z0-9-]{0,62}", re.ASCII)


class KubernetesImportOptions(ImporterOptions, frozen=True, kw_only=True):
    """A cluster, the service account to read it with, and what is imported of it."""

    cluster: Annotated[str, about("Name of the cluster, which its resource and parts have.")]
    url: Annotated[
        str, about("Address of the API server. Empty: that of the cluster which this runs in.")
    ] = ""
    token: Annotated[str, about("Secret. A token. Empty: the file is read.")] = ""
    token_file: Annotated[
        str, about("File with the token of the service account, which is read for each request.")
    ] = f"{ACCOUNT}/token"
    labels: Annotated[
        tuple[str, ...],
        about("Workloads with one of these labels are imported: `key` or `key=value`."),
    ] = (ID,)
    namespaces: Annotated[
        tuple[str, ...], about("Every workload in these namespaces is imported; `*`: in all.")
    ] = ()
    resources: Annotated[
        tuple[str, ...],
        about(
            "What is read as workloads, e.g. `argoproj.io/v1alpha1/rollouts`: group, version and "
            "plural."
        ),
    ] = WORKLOADS
    namespace: Annotated[
        str,
        about("Namespace of the components. Empty: that of the workload in the cluster."),
    ] = ""
    owner_keys: Annotated[
        tuple[str, ...],
        about("Labels and annotations, of a workload or its namespace, that name the owner."),
    ] = ("terasky.backstage.io/owner", "backstage.io/owner")

    def problems(self) -> Iterable[str]:
        """The mistakes in the table."""
        yield from super().problems()
        if not valid_subdomain(self.cluster):
            yield "cluster has to be of a-z, 0-9 and inner hyphens and dots"
        if self.url and not is_web_address(self.url):
            yield "url has to be like https://host:6443"
        if self.namespace and not valid_namespace(self.namespace):
            yield NO_NAMESPACE
        if not all(name == _ALL or valid_namespace(name) for name in self.namespaces):
            yield "namespaces have to be names of namespaces, or * for all"
        if not all(label.partition("=")[0].strip() for label in self.labels):
            yield "labels have to be like key or key=value"
        if not all(map(_is_resource, self.resources)):
            yield "resources have to be like apps/v1/deployments"

    def base_url(self, environment: Mapping[str, str]) -> str:
        """The address of the API server."""
        host = environment.get("KUBERNETES_SERVICE_HOST", "kubernetes.default.svc")
        port = environment.get("KUBERNETES_SERVICE_PORT_HTTPS", "443")
        return self.url or f"https://{f'[{host}]' if ':' in host else host}:{port}"

    def chooses(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """True if a workload with these labels in this namespace is imported."""
        if _ALL in self.namespaces or namespace in self.namespaces:
            return True
        pairs = (label.partition("=") for label in self.labels)
        return any(
            key in labels and (not equals or labels[key] == value) for key, equals, value in pairs
        )


def _is_resource(text: str) -> bool:
    parts = text.split("/")
    if len(parts) != 3:
        return False
    group, version, plural = parts
    return (
        valid_subdomain(group)
        and _VERSION.fullmatch(version) is not None
        and _PLURAL.fullmatch(plural) is not None
    )
