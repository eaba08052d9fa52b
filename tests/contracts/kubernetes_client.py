"""Asks a Kubernetes API server with the client that is generated from the published OpenAPI.

    python kubernetes_client.py URL TOKEN

It prints as JSON what it lists, page by page, and what of each exchange that it reads as JSON is
not published: a call without an operation or a parameter, an answer that is no model. It runs in an
environment of its own, as the package brings many others.
"""

import inspect
import json
import re
import sys
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

# None of them is installed where this project's checks run.
from kubernetes import client  # type: ignore[import-not-found]
from pydantic import ValidationError

LISTS = {
    "/api/v1/namespaces": (client.CoreV1Api, "list_namespace"),
    "/apis/apps/v1/deployments": (client.AppsV1Api, "list_deployment_for_all_namespaces"),
    "/apis/apps/v1/statefulsets": (client.AppsV1Api, "list_stateful_set_for_all_namespaces"),
    "/apis/apps/v1/daemonsets": (client.AppsV1Api, "list_daemon_set_for_all_namespaces"),
}
APIS = (client.CoreV1Api, client.AppsV1Api, client.AuthorizationV1Api)
PAGE = 7
# It has no model of its own: it is a list of the metadata, for which there are models.
PARTIAL = "PartialObjectMetadata"


class Operation:
    """Operation of the published interface: its address, its parameters and its answer."""

    def __init__(self, api: type, name: str) -> None:
        made = getattr(api(), f"_{name}_serialize")
        given = {one: _value(one) for one in inspect.signature(made).parameters}
        self.method, url, *_ = made(**given)
        address = urlsplit(url)
        self.path = unquote(address.path)
        self.parameters = dict(parse_qsl(address.query)).keys()
        self.answer = inspect.signature(getattr(api, name)).return_annotation

    def is_for(self, method: str, path: str) -> bool:
        """True for a call of this operation."""
        pattern = re.sub(r"\\{\w+\\}", "[^/]+", re.escape(self.path))
        return method == self.method and re.fullmatch(pattern, path) is not None


def _value(parameter: str) -> Any:
    """A value by which an argument is known in an address; none for what is no part of it."""
    if parameter == "_host_index":
        return 0
    if parameter == "body" or (parameter.startswith("_") and parameter != "_continue"):
        return None
    return f"{{{parameter}}}"


def operations() -> Iterator[Operation]:
    """The operations of the groups that are asked, and those of resources that others define."""
    for api in APIS:
        for name in dir(api):
            if name.endswith("_serialize"):
                yield Operation(api, name.removeprefix("_").removesuffix("_serialize"))


def custom() -> Operation:
    """The list of a resource that is defined in a cluster."""
    return Operation(client.CustomObjectsApi, "list_custom_object_for_all_namespaces")


class Published:
    """The published interface."""

    def __init__(self) -> None:
        self._known = list(operations())
        self._groups = {one.path.rpartition("/")[0] for one in self._known}

    def problems(self, exchange: dict[str, Any]) -> Iterator[str]:
        """What is not published of a call and its answer."""
        method, path = exchange["method"], exchange["path"]
        choice = self._known if path.rpartition("/")[0] in self._groups else [custom()]
        found = next((one for one in choice if one.is_for(method, path)), None)
        if found is None:
            yield f"{method} {path} is no operation"
            return
        for name in exchange["query"].keys() - found.parameters:
            yield f"{method} {path} has no parameter {name}"
        for problem in _answer_problems(exchange, found):
            yield f"{method} {path} {exchange['status']}: {problem}"


def _answer_problems(exchange: dict[str, Any], operation: Operation) -> Iterator[str]:
    body = exchange["body"]
    if exchange["status"] >= 400:
        yield from _not_of(client.V1Status, body)
        if body.get("code") != exchange["status"]:
            yield "another code"
    elif body.get("kind") == f"{PARTIAL}List":
        yield from _partial_problems(body)
    else:
        yield from _not_of(operation.answer, body)


def _partial_problems(body: dict[str, Any]) -> Iterator[str]:
    """What of a list of metadata is not of the metadata's models."""
    if body.keys() != {"kind", "apiVersion", "metadata", "items"}:
        yield "another form"
    yield from _not_of(client.V1ListMeta, body["metadata"])
    for item in body["items"]:
        kind = item["kind"], item["apiVersion"], item.keys() - {"kind", "apiVersion", "metadata"}
        if kind != (PARTIAL, body["apiVersion"], set()):
            yield "an item of another form"
        yield from _not_of(client.V1ObjectMeta, item["metadata"])


def _not_of(model: Any, value: object) -> Iterator[str]:
    try:
        model.model_validate(value)
    except ValidationError as error:
        for one in error.errors():
            yield f"{model.__name__} {'.'.join(map(str, one['loc']))}: {one['msg']}"


def listed(api_client: Any, api: type, name: str) -> list[dict[str, Any]]:
    """The metadata of every object of a list, in small pages."""
    found: list[dict[str, Any]] = []
    more = None
    while True:
        page = getattr(api(api_client), name)(limit=PAGE, _continue=more)
        metadata = (one.metadata for one in page.items)
        found += [
            {
                "name": one.name,
                "namespace": one.namespace or "",
                "uid": one.uid,
                "labels": one.labels,
                "annotations": one.annotations,
            }
            for one in metadata
        ]
        more = page.metadata._continue
        if not more:
            return found


def main(url: str, token: str) -> None:
    configuration = client.Configuration(host=url)
    configuration.api_key = {"authorization": f"Bearer {token}"}
    with client.ApiClient(configuration) as api_client:
        lists = {path: listed(api_client, *one) for path, one in LISTS.items()}
    published = Published()
    found = [list(published.problems(one)) for one in json.load(sys.stdin)]
    sys.stdout.write(json.dumps({"lists": lists, "problems": found}))


main(*sys.argv[1:])
