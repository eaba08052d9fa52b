"""Entities made of what the metadata of workloads says: components, and a resource.

What is not known is absent: no owner is made up.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from factbook.catalog import ref
from factbook.catalog.ref import DEFAULT_NAMESPACE
from factbook.errors import InputError
from factbook.importers.kubernetes.api import ObjectMetadata
from factbook.importers.kubernetes.options import ID, KubernetesImportOptions
from factbook.importers.names import entity_name
from factbook.integrations.locations import SOURCE_LOCATION

_VERSION: Final = "backstage.io/v1alpha1"
_NAMESPACE: Final = "backstage.io/kubernetes-namespace"
_SELECTOR: Final = "backstage.io/kubernetes-label-selector"
_CLUSTER: Final = "backstage.io/kubernetes-cluster"
_APP: Final = "app.kubernetes.io"
# Annotations of workloads by which many clusters are in a catalog already.
_TERASKY: Final = "terasky.backstage.io"
_LISTS: Final = {"dependsOn": "component", "providesApis": "api", "consumesApis": "api"}
_SEPARATOR: Final = re.compile(r"[,\n]")

Entity = dict[str, Any]


class Workload(NamedTuple):
    """Workload of a cluster; `resource` is what it was listed as."""

    resource: str
    metadata: ObjectMetadata

    def value(self, key: str) -> str:
        """The annotation of this name, or else the label; empty without one."""
        return self.metadata.value(key)


class ComponentKey(NamedTuple):
    """Namespace and name of a component.

    A workload without an id is a component of its own: that of this resource with this name in a
    namespace of the cluster, `within`.
    """

    namespace: str
    name: str
    within: str = ""
    resource: str = ""

    @property
    def suffix(self) -> str:
        """The end of a name that tells a component from others that would have the same one."""
        kind = self.resource.rpartition("/")[2].removesuffix("s") or "id"
        return kind if self.within in ("", self.namespace) else f"{self.within}-{kind}"


@dataclass
class MadeComponent:
    """Component made of workloads; `problems` are sentences about their annotations."""

    entity: Entity
    problems: list[str] = field(default_factory=list)


def is_chosen(workload: Workload, options: KubernetesImportOptions) -> bool:
    """True if a workload is imported: as it says itself, or as the options say."""
    if workload.value(f"{_TERASKY}/exclude-from-catalog") == "true":
        return False
    if workload.value(f"{_TERASKY}/add-to-catalog") == "true":
        return True
    metadata = workload.metadata
    return options.chooses(metadata.namespace, metadata.labels or {})


def key_of(workload: Workload, options: KubernetesImportOptions) -> ComponentKey:
    """The component that a workload is part of.

    Those with one id are one component, which belongs to no namespace of the cluster.
    """
    metadata, id_ = workload.metadata, workload.value(ID)
    own = DEFAULT_NAMESPACE if id_ else metadata.namespace or DEFAULT_NAMESPACE
    namespace = workload.value(f"{_TERASKY}/backstage-namespace") or options.namespace or own
    if id_:
        return ComponentKey(namespace, entity_name(id_))
    return ComponentKey(namespace, entity_name(metadata.name), own, workload.resource)


def component(
    options: KubernetesImportOptions,
    key: ComponentKey,
    workloads: Sequence[Workload],
    namespaces: Mapping[str, ObjectMetadata],
) -> MadeComponent:
    """The component of workloads; of several values the first one counts."""
    made = MadeComponent({})

    def first(*keys: str) -> str:
        return next((value for k in keys for one in workloads if (value := one.value(k))), "")

    def reference(text: str, kind: str) -> str | None:
        try:
            return ref.target(text, kind=kind)
        except InputError:
            made.problems.append("an annotation or a label that names an entity is no reference")
            return None

    spec: Entity = {"type": first(f"{_TERASKY}/component-type") or "service"}
    if lifecycle := first(f"{_TERASKY}/lifecycle"):
        spec["lifecycle"] = lifecycle
    if owner := _owner(options, workloads, namespaces):
        spec["owner"] = reference(owner, "group")
    if system := first(f"{_TERASKY}/system", f"{_APP}/part-of"):
        spec["system"] = reference(system, "system")
    if parent := first(f"{_TERASKY}/subcomponent-of"):
        spec["subcomponentOf"] = reference(parent, "component")
    for name, kind in _LISTS.items():
        texts = _SEPARATOR.split(first(f"{_TERASKY}/{name}"))
        found = (reference(text.strip(), kind) for text in texts if text.strip())
        spec[name] = [one for one in found if one]
    spec["dependsOn"] = [*spec["dependsOn"], _cluster_ref(options)]
    made.entity = {
        "apiVersion": _VERSION,
        "kind": "Component",
        "metadata": _metadata(options, key, workloads, first),
        "spec": {name: value for name, value in spec.items() if value},
    }
    return made


def cluster(options: KubernetesImportOptions) -> Entity:
    """The resource of the cluster."""
    metadata = {"name": options.cluster, "annotations": {_CLUSTER: options.cluster}}
    spec = {"type": "kubernetes-cluster"}
    return {"apiVersion": _VERSION, "kind": "Resource", "metadata": metadata, "spec": spec}


def _cluster_ref(options: KubernetesImportOptions) -> str:
    return f"resource:{DEFAULT_NAMESPACE}/{options.cluster}"


def _owner(
    options: KubernetesImportOptions,
    workloads: Iterable[Workload],
    namespaces: Mapping[str, ObjectMetadata],
) -> str:
    """The owner that a workload names, or else its namespace; empty without one."""
    above = (namespaces.get(one.metadata.namespace) for one in workloads)
    for metadata in [*(one.metadata for one in workloads), *filter(None, above)]:
        for key in options.owner_keys:
            if value := metadata.value(key):
                return value
    return ""


def _metadata(
    options: KubernetesImportOptions,
    key: ComponentKey,
    workloads: Sequence[Workload],
    first: Callable[..., str],
) -> Entity:
    metadata: Entity = {"name": key.name}
    if key.namespace != DEFAULT_NAMESPACE:
        metadata["namespace"] = key.namespace
    if (title := first(f"{_APP}/name")) and title != key.name:
        metadata["title"] = title
    versions = {one.value(f"{_APP}/version") for one in workloads}
    if len(versions) == 1 and (version := versions.pop()):
        metadata["labels"] = {f"{_APP}/version": version}
    id_ = first(ID)
    given = {
        ID: id_,
        _NAMESPACE: first(_NAMESPACE) or workloads[0].metadata.namespace,
        _SELECTOR: first(_SELECTOR, f"{_TERASKY}/kubernetes-label-selector"),
        _CLUSTER: options.cluster,
    }
    if not id_ and not given[_SELECTOR]:
        given[_SELECTOR] = _selector(workloads[0].metadata)
    if source := first(f"{_TERASKY}/source-code-repo-url"):
        branch = first(f"{_TERASKY}/source-branch")
        given[SOURCE_LOCATION] = f"url:{source.rstrip('/')}" + (
            f"/tree/{branch}/" if branch else ""
        )
    metadata["annotations"] = {name: value for name, value in given.items() if value}
    return metadata


def _selector(metadata: ObjectMetadata) -> str:
    """The labels that tell an application from others, as a selector; empty without a name."""
    labels = metadata.labels or {}
    keys = [f"{_APP}/{word}" for word in ("name", "instance")]
    if keys[0] not in labels:
        return ""
    return ",".join(f"{key}={labels[key]}" for key in keys if key in labels)
