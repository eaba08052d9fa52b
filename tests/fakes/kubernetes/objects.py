"""Whole objects of the fake, as the API server shows them to who does not ask for metadata."""

from collections.abc import Mapping
from typing import Any

NAMESPACES = "/api/v1/namespaces"
DEPLOYMENTS = "/apis/apps/v1/deployments"
STATEFUL_SETS = "/apis/apps/v1/statefulsets"
DAEMON_SETS = "/apis/apps/v1/daemonsets"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

KINDS = {
    NAMESPACES: "Namespace",
    DEPLOYMENTS: "Deployment",
    STATEFUL_SETS: "StatefulSet",
    DAEMON_SETS: "DaemonSet",
}


def whole(path: str, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """An object of a list; those of lists say no kind."""
    if path == NAMESPACES:
        return {"metadata": metadata, "spec": {}, "status": {"phase": "Active"}}
    labels = {"app": metadata["name"]}
    container = {"name": "main", "image": "registry.example.com/main:1"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    if path == STATEFUL_SETS:
        spec["serviceName"] = metadata["name"]
    return {"metadata": metadata, "spec": spec}


def partial(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata of an object."""
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}


def listed(path: str, page: Mapping[str, Any], items: list[Any]) -> dict[str, Any]:
    """A page of whole objects."""
    version = path.removeprefix("/apis/").removeprefix("/api/").rpartition("/")[0]
    kind = f"{KINDS.get(path, 'Object')}List"
    return {"kind": kind, "apiVersion": version, "metadata": page, "items": items}


def listed_partially(page: Mapping[str, Any], items: list[Any]) -> dict[str, Any]:
    """A page of metadata."""
    kind = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1"}
    return {**kind, "metadata": page, "items": items}
