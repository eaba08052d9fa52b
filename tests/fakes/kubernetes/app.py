"""A fake API server that lists: in pages, as metadata alone, to a service account."""

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from tests.fakes.fake import Fake
from tests.fakes.faults import as_json
from tests.fakes.kubernetes.objects import (
    DAEMON_SETS,
    DEPLOYMENTS,
    NAMESPACES,
    REVIEWS,
    STATEFUL_SETS,
    listed,
    listed_partially,
    partial,
    whole,
)

_JSON = {"application/json"}
_METADATA = _JSON | {"as=PartialObjectMetadataList", "g=meta.k8s.io", "v=v1"}
TOKEN = "a.token.of-tests"


class FakeKubernetes(Fake):
    """A cluster: objects by the path that lists them. Its kinds of requests are these paths.

    `forbidden` are paths that the service account may not list. `shown` are the namespaces that a
    proxy in front of the server leaves in its answers, None without one. `forget` makes every token
    to go on with one of a list that is not kept any more.
    """

    def __init__(self) -> None:
        super().__init__()
        self.objects: dict[str, list[dict[str, Any]]] = {
            path: [] for path in (NAMESPACES, DEPLOYMENTS, STATEFUL_SETS, DAEMON_SETS)
        }
        self.tokens = {TOKEN}
        self.forbidden: set[str] = set()
        self.shown: set[str] | None = None
        self._edition = 0
        self._numbers = 0
        for name in ("default", "kube-system"):
            self.add(NAMESPACES, name)

    def add(
        self,
        path: str,
        name: str,
        namespace: str = "",
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Make an object; returns its metadata."""
        self._numbers += 1
        metadata: dict[str, Any] = {
            "name": name,
            "uid": f"00000000-0000-0000-0000-{self._numbers:012}",
            "resourceVersion": str(self._numbers),
            "creationTimestamp": "2026-01-02T03:04:05Z",
        }
        given = {"namespace": namespace, "labels": labels, "annotations": annotations}
        metadata |= {key: value for key, value in given.items() if value}
        self.objects[path].append(metadata)
        return metadata

    def forget(self) -> None:
        """Lists that have begun cannot be gone on with."""
        self._edition += 1

    def kind(self, request: Request) -> str:
        """The path."""
        return request.url.path

    async def answer(self, request: Request) -> Response:
        """What the API server says."""
        path = request.url.path
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if token not in self.tokens:
            return status(401, "Unauthorized")
        if path == REVIEWS and request.method == "POST":
            return self._review(await request.json())
        if path not in self.objects:
            return Response("404 page not found\n", 404)
        if path in self.forbidden:
            return status(403, "Forbidden")
        return self._list(request, path)

    def _list(self, request: Request, path: str) -> Response:
        """A page of objects."""
        form = set(request.headers.get("accept", "").split(";"))
        if form not in (_JSON, _METADATA):
            return status(406, "NotAcceptable")
        limit = int(request.query_params.get("limit", "0")) or len(self.objects[path])
        edition, start = self._edition, 0
        if token := request.query_params.get("continue", ""):
            edition, start = map(int, token.split("."))
        if edition != self._edition:
            return status(410, "Expired")
        every = [one for one in self.objects[path] if self._shows(path, one)]
        end = start + limit
        metadata: dict[str, Any] = {"resourceVersion": "7"}
        if end < len(every):
            left = len(every) - end
            metadata |= {"continue": f"{edition}.{end}", "remainingItemCount": left}
        if form == _METADATA:
            return as_json(listed_partially(metadata, [partial(one) for one in every[start:end]]))
        return as_json(listed(path, metadata, [whole(path, one) for one in every[start:end]]))

    def _shows(self, path: str, one: Mapping[str, Any]) -> bool:
        namespace = one["name"] if path == NAMESPACES else one.get("namespace")
        return self.shown is None or namespace in self.shown

    def _review(self, review: dict[str, Any]) -> Response:
        """What the service account may do in all namespaces."""
        asked = review["spec"]["resourceAttributes"]
        path = f"/apis/{asked['group']}/{asked['version']}/{asked['resource']}"
        allowed = self.shown is None and path in self.objects and path not in self.forbidden
        return as_json(review | {"metadata": {}, "status": {"allowed": allowed}}, 201)


def status(code: int, reason: str) -> Response:
    """A failure as the API server says it."""
    body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    return as_json(body | {"message": "No.", "reason": reason, "code": code}, code)
