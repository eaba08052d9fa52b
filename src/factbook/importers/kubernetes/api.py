"""Lists of a Kubernetes API server: of metadata alone, and read to their end."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from factbook.importers.kubernetes.options import KubernetesImportOptions
from factbook.outbound import Answer, Credential, HttpClient
from factbook.outbound.outcomes import REPEATED, UNUSABLE, Missing, Outcome, read_as

NAMESPACES: Final = "/api/v1/namespaces"
REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_METADATA: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_PAGE: Final = 500
_MOST_PAGES: Final = 2_000
# A list whose beginning was forgotten, which takes minutes, is read anew so often.
_BEGINNINGS: Final = 3
_GONE: Final = 410
_NO_REVIEWS: Final = frozenset({403, 404, 405})
_CHANGED: Final = Missing(Outcome.TRANSIENT, "the list was forgotten while it was read")


class ObjectMetadata(msgspec.Struct, frozen=True):
    """Metadata of an object of a cluster."""

    name: str
    uid: str
    namespace: str = ""
    labels: Mapping[str, str] | None = None
    annotations: Mapping[str, str] | None = None
    deletion: str | None = msgspec.field(default=None, name="deletionTimestamp")

    def value(self, key: str) -> str:
        """The annotation of this name, or else the label; empty without one."""
        for given in (self.annotations, self.labels):
            if given and given.get(key, "").strip():
                return given[key].strip()
        return ""


class KubernetesObject(msgspec.Struct, frozen=True):
    """Object of a cluster, without anything but its metadata."""

    metadata: ObjectMetadata


class ListMetadata(msgspec.Struct, rename={"next": "continue"}):
    """Metadata of a page."""

    next: str | None = None


class ObjectPage(msgspec.Struct):
    """Page of a list; another answer has another kind, such as `Status`."""

    kind: str
    metadata: ListMetadata
    items: list[Any] | None


class ReviewStatus(msgspec.Struct):
    """Result of a review."""

    allowed: bool


class AccessReview(msgspec.Struct):
    """Review of what the account itself may do."""

    status: ReviewStatus


@dataclass
class ObjectList:
    """Objects by uid, and the reason if there are others that were not read.

    `everywhere` is false if those of some namespaces may have been left out of the answers.
    """

    objects: dict[str, ObjectMetadata] = field(default_factory=dict)
    missing: Missing | None = None
    everywhere: bool = True


class KubernetesApi:
    """An API server, asked with the client's service account."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client

    async def objects(self, path: str) -> ObjectList:
        """The metadata of every object at this path."""
        for _ in range(_BEGINNINGS):
            found = await self._pages(path)
            if found.missing is not _CHANGED:
                break
        return found

    async def workloads(self, resource: str) -> ObjectList:
        """The metadata of every object of a resource such as `apps/v1/deployments`."""
        found = await self.objects(path_of(resource))
        if found.missing:
            return found
        allowed = await self._lists_everywhere(resource)
        if isinstance(allowed, Missing):
            found.missing = allowed
        else:
            found.everywhere = allowed
        return found

    async def _lists_everywhere(self, resource: str) -> bool | Missing:
        """True if the account may list a resource in every namespace.

        An API server answers nobody else. A proxy in front of it may, with some of the namespaces.
        """
        group, version, plural = resource.split("/")
        asked = {"group": group, "version": version, "resource": plural, "verb": "list"}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": asked},
        }
        answer = await self._client.post(REVIEWS, review)
        if answer.status in _NO_REVIEWS:
            return False
        found = answer.read_as(AccessReview)
        return found if isinstance(found, Missing) else found.status.allowed

    async def _pages(self, path: str) -> ObjectList:
        found, seen = ObjectList(), set[str]()
        token = ""
        for _ in range(_MOST_PAGES):
            query: dict[str, str | int] = {"limit": _PAGE}
            if token:
                query["continue"] = token
            answer = await self._client.get(path, query=query, headers={"accept": _METADATA})
            page = _page(path, answer)
            if isinstance(page, Missing):
                found.missing = page
                return found
            _take(found, page.items or ())
            token = page.metadata.next or ""
            if not token or found.missing:
                return found
            if token in seen:
                break
            seen.add(token)
        found.missing = REPEATED
        return found


def path_of(resource: str) -> str:
    """The path of a resource in all namespaces: `apps/v1/deployments`."""
    return f"/apis/{resource}"


def service_account(options: KubernetesImportOptions) -> Credential:
    """The credential of a service account, whose token is another one every hour."""
    if options.token:
        return Credential.fixed("token", {"authorization": f"Bearer {options.token}"})

    async def authorize() -> Mapping[str, str] | Answer:
        try:
            token = (await asyncio.to_thread(Path(options.token_file).read_text)).strip()
        except (OSError, ValueError):
            token = ""
        if not token:
            return Answer(Outcome.REFUSED, detail="the file with the token cannot be read")
        return {"authorization": f"Bearer {token}"}

    return Credential("service account", options.token_file, authorize)


def _page(path: str, answer: Answer) -> ObjectPage | Missing:
    if answer.status == _GONE:
        return _CHANGED
    if answer.outcome is Outcome.DENIED:
        return Missing(Outcome.DENIED, f"needs the verb list on {_resource(path)}")
    page = answer.read_as(ObjectPage)
    if isinstance(page, ObjectPage) and not page.kind.endswith("List"):
        return UNUSABLE
    return page


def _resource(path: str) -> str:
    """The words of a role for a path: `deployments.apps`."""
    group, _, plural = path.split("/")[2:] if path.startswith("/apis/") else ("", "", "namespaces")
    return f"{plural}.{group}".rstrip(".")


def _take(found: ObjectList, items: Any) -> None:
    for raw in items:
        one = read_as(raw, KubernetesObject)
        if isinstance(one, Missing):
            found.missing = one
        else:
            found.objects[one.metadata.uid] = one.metadata
