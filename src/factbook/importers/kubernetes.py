"""Importer of Kubernetes clusters: workloads as components, and the cluster as a resource.

Only object metadata is requested from the API server, and lists are read to their end.
"""

import asyncio
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import msgspec

from factbook.catalog import ref
from factbook.catalog.ref import DEFAULT_NAMESPACE
from factbook.catalog.validation import valid_namespace, valid_subdomain
from factbook.errors import InputError
from factbook.importers.importer import (
    NO_NAMESPACE,
    Access,
    ImporterKind,
    ImporterOptions,
    Show,
)
from factbook.importers.snapshot import (
    GENERATED,
    STATED,
    ImportedItem,
    ReadingProblem,
    Snapshot,
    SnapshotPart,
    assign_lasting_names,
    keep_names,
    make_entity_name,
)
from factbook.integrations.integration import SOURCE_LOCATION
from factbook.outbound.cache import Memory
from factbook.outbound.client import Credential, HttpClient
from factbook.outbound.outcomes import REPEATED, UNUSABLE, Answer, Missing, Outcome, read_as
from factbook.settings.option_tables import about, is_web_address

ACCOUNT_FOLDER: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
KUBERNETES_ID: Final = "backstage.io/kubernetes-id"
DEFAULT_WORKLOADS: Final = ("apps/v1/deployments", "apps/v1/statefulsets", "apps/v1/daemonsets")

_EVERY_NAMESPACE: Final = "*"
_RESOURCE_VERSION: Final = re.compile(r"v\d{1,3}((alpha|beta)\d{1,3})?", re.ASCII)
_PLURAL: Final = re.compile(r"[a-z][a-z0-9-]{0,62}", re.ASCII)

NAMESPACES_PATH: Final = "/api/v1/namespaces"
REVIEWS_PATH: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_METADATA: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_PAGE_SIZE: Final = 500
_MOST_PAGES: Final = 2_000
# Restarts of a list whose continue token expired, which takes minutes.
_BEGINNINGS: Final = 3
_GONE: Final = 410
_NO_REVIEWS: Final = frozenset({403, 404, 405})
_CHANGED: Final = Missing(Outcome.TRANSIENT, "the list expired while it was read")

_API_VERSION: Final = "backstage.io/v1alpha1"
_NAMESPACE: Final = "backstage.io/kubernetes-namespace"
_SELECTOR: Final = "backstage.io/kubernetes-label-selector"
_CLUSTER: Final = "backstage.io/kubernetes-cluster"
_APP: Final = "app.kubernetes.io"
# Annotations of workloads by which many clusters are in a catalog already.
_TERASKY: Final = "terasky.backstage.io"
_LISTS: Final = {"dependsOn": "component", "providesApis": "api", "consumesApis": "api"}
_SEPARATOR: Final = re.compile(r"[,\n]")

Entity = dict[str, Any]

WORKLOADS_PART: Final = "workloads"
CLUSTER_PART: Final = "cluster"

# Every cluster has this namespace permanently; its id identifies the cluster.
_SYSTEM: Final = "kube-system"


class KubernetesImportOptions(ImporterOptions, frozen=True, kw_only=True):
    """A cluster, the service account to read it with, and what is imported of it."""

    cluster: Annotated[str, about("Name of the cluster, which its resource and parts have.")]
    url: Annotated[
        str, about("Address of the API server. Empty: that of the cluster that Factbook runs in.")
    ] = ""
    token: Annotated[str, about("Secret. A token. Empty: the file is read.")] = ""
    token_file: Annotated[
        str, about("File with the token of the service account, which is read for each request.")
    ] = f"{ACCOUNT_FOLDER}/token"
    labels: Annotated[
        tuple[str, ...],
        about("Workloads with one of these labels are imported: `key` or `key=value`."),
    ] = (KUBERNETES_ID,)
    namespaces: Annotated[
        tuple[str, ...], about("Every workload in these namespaces is imported; `*`: in all.")
    ] = ()
    resources: Annotated[
        tuple[str, ...],
        about(
            "Resources to read as workloads, e.g. `argoproj.io/v1alpha1/rollouts`: group, version "
            "and plural."
        ),
    ] = DEFAULT_WORKLOADS
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
            yield "cluster has to consist of a-z, 0-9 and inner hyphens and dots"
        if self.url and not is_web_address(self.url):
            yield "url has to be like https://host:6443"
        if self.namespace and not valid_namespace(self.namespace):
            yield NO_NAMESPACE
        if not all(name == _EVERY_NAMESPACE or valid_namespace(name) for name in self.namespaces):
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
        if _EVERY_NAMESPACE in self.namespaces or namespace in self.namespaces:
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
        and _RESOURCE_VERSION.fullmatch(version) is not None
        and _PLURAL.fullmatch(plural) is not None
    )


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
        found = await self.objects(make_resource_path(resource))
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
        answer = await self._client.post(REVIEWS_PATH, review)
        if answer.status in _NO_REVIEWS:
            return False
        found = answer.read_as(AccessReview)
        return found if isinstance(found, Missing) else found.status.allowed

    async def _pages(self, path: str) -> ObjectList:
        found, seen = ObjectList(), set[str]()
        token = ""
        for _ in range(_MOST_PAGES):
            query: dict[str, str | int] = {"limit": _PAGE_SIZE}
            if token:
                query["continue"] = token
            answer = await self._client.get(path, query=query, headers={"accept": _METADATA})
            page = _read_object_page(path, answer)
            if isinstance(page, Missing):
                found.missing = page
                return found
            _add_objects(found, page.items or ())
            token = page.metadata.next or ""
            if not token or found.missing:
                return found
            if token in seen:
                break
            seen.add(token)
        found.missing = REPEATED
        return found


def make_resource_path(resource: str) -> str:
    """The path of a resource in all namespaces: `apps/v1/deployments`."""
    return f"/apis/{resource}"


def make_account_credential(options: KubernetesImportOptions) -> Credential:
    """The credential of a service account, whose token changes every hour."""
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


def _read_object_page(path: str, answer: Answer) -> ObjectPage | Missing:
    if answer.status == _GONE:
        return _CHANGED
    if answer.outcome is Outcome.DENIED:
        group, _, plural = (
            path.split("/")[2:] if path.startswith("/apis/") else ("", "", "namespaces")
        )
        return Missing(Outcome.DENIED, f"needs the verb list on {f'{plural}.{group}'.rstrip('.')}")
    page = answer.read_as(ObjectPage)
    if isinstance(page, ObjectPage) and not page.kind.endswith("List"):
        return UNUSABLE
    return page


def _add_objects(found: ObjectList, items: Any) -> None:
    for raw in items:
        one = read_as(raw, KubernetesObject)
        if isinstance(one, Missing):
            found.missing = one
        else:
            found.objects[one.metadata.uid] = one.metadata


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


def is_chosen_workload(workload: Workload, options: KubernetesImportOptions) -> bool:
    """True if a workload is imported, by its own annotation or by the options."""
    if workload.value(f"{_TERASKY}/exclude-from-catalog") == "true":
        return False
    if workload.value(f"{_TERASKY}/add-to-catalog") == "true":
        return True
    metadata = workload.metadata
    return options.chooses(metadata.namespace, metadata.labels or {})


def find_component_key(workload: Workload, options: KubernetesImportOptions) -> ComponentKey:
    """The component that a workload is part of.

    Those with one id are one component, which belongs to no namespace of the cluster.
    """
    metadata, id_ = workload.metadata, workload.value(KUBERNETES_ID)
    own = DEFAULT_NAMESPACE if id_ else metadata.namespace or DEFAULT_NAMESPACE
    namespace = workload.value(f"{_TERASKY}/backstage-namespace") or options.namespace or own
    if id_:
        return ComponentKey(namespace, make_entity_name(id_))
    return ComponentKey(namespace, make_entity_name(metadata.name), own, workload.resource)


def make_workload_component(
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
            return ref.canonicalize_target(text, kind=kind)
        except InputError:
            made.problems.append("an annotation or a label that names an entity is not a reference")
            return None

    spec: Entity = {"type": first(f"{_TERASKY}/component-type") or "service"}
    if lifecycle := first(f"{_TERASKY}/lifecycle"):
        spec["lifecycle"] = lifecycle
    if owner := _find_workload_owner(options, workloads, namespaces):
        spec["owner"] = reference(owner, "group")
    if system := first(f"{_TERASKY}/system", f"{_APP}/part-of"):
        spec["system"] = reference(system, "system")
    if parent := first(f"{_TERASKY}/subcomponent-of"):
        spec["subcomponentOf"] = reference(parent, "component")
    for name, kind in _LISTS.items():
        texts = _SEPARATOR.split(first(f"{_TERASKY}/{name}"))
        found = (reference(text.strip(), kind) for text in texts if text.strip())
        spec[name] = [one for one in found if one]
    spec["dependsOn"] = [*spec["dependsOn"], f"resource:{DEFAULT_NAMESPACE}/{options.cluster}"]
    made.entity = {
        "apiVersion": _API_VERSION,
        "kind": "Component",
        "metadata": _make_workload_metadata(options, key, workloads, first),
        "spec": {name: value for name, value in spec.items() if value},
    }
    return made


def make_cluster_resource(options: KubernetesImportOptions) -> Entity:
    """The resource of the cluster."""
    metadata = {"name": options.cluster, "annotations": {_CLUSTER: options.cluster}}
    spec = {"type": "kubernetes-cluster"}
    return {"apiVersion": _API_VERSION, "kind": "Resource", "metadata": metadata, "spec": spec}


def _find_workload_owner(
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


def _make_workload_metadata(
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
    id_ = first(KUBERNETES_ID)
    given = {
        KUBERNETES_ID: id_,
        _NAMESPACE: first(_NAMESPACE) or workloads[0].metadata.namespace,
        _SELECTOR: first(_SELECTOR, f"{_TERASKY}/kubernetes-label-selector"),
        _CLUSTER: options.cluster,
    }
    if not id_ and not given[_SELECTOR]:
        given[_SELECTOR] = _make_selector(workloads[0].metadata)
    if source := first(f"{_TERASKY}/source-code-repo-url"):
        branch = first(f"{_TERASKY}/source-branch")
        given[SOURCE_LOCATION] = f"url:{source.rstrip('/')}" + (
            f"/tree/{branch}/" if branch else ""
        )
    metadata["annotations"] = {name: value for name, value in given.items() if value}
    return metadata


def _make_selector(metadata: ObjectMetadata) -> str:
    """The labels that tell an application from others, as a selector; empty without a name."""
    labels = metadata.labels or {}
    keys = [f"{_APP}/{word}" for word in ("name", "instance")]
    if keys[0] not in labels:
        return ""
    return ",".join(f"{key}={labels[key]}" for key in keys if key in labels)


async def read_cluster(
    api: KubernetesApi, options: KubernetesImportOptions, memory: Memory, show: Show
) -> Snapshot:
    """A snapshot of the cluster: parts for its workloads, and for itself.

    If a list is incomplete, all components are tentative. The cluster itself is not counted as a
    workload, so an empty list is noticed.
    """
    show("Reading the namespaces")
    namespaces = await api.objects(NAMESPACES_PATH)
    lists: dict[str, ObjectList] = {"namespaces": namespaces}
    for resource in dict.fromkeys(options.resources):
        show(f"Reading {resource}")
        lists[resource] = await api.workloads(resource)
    problems = [
        ReadingProblem(options.cluster, f"{resource}: {found.missing.reason}")
        for resource, found in lists.items()
        if found.missing
    ]
    by_name = {one.name: one for one in namespaces.objects.values()}
    grouped, left_out = _group_workloads(options, lists)
    certain = not problems
    problems += [
        ReadingProblem(options.cluster, f"namespaces: {name} is not a namespace of the cluster")
        for name in options.namespaces
        if certain and name != "*" and name not in by_name
    ]
    items: list[ImportedItem] = []
    names = await _name_workload_components(memory, options, grouped, complete=certain)
    for wanted, members in sorted(grouped.items()):
        key = wanted._replace(name=names[wanted])
        made = make_workload_component(options, key, members, by_name)
        origin = f"{options.cluster} {key.within or key.namespace}/{key.name}"
        item = _make_workload_item(made.entity, origin, members, lists, by_name)
        items.append(item if certain else replace(item, tentative=True))
        problems += [ReadingProblem(origin, text) for text in made.problems]
    part = SnapshotPart(
        f"{options.cluster}.{WORKLOADS_PART}",
        certain,
        tuple(items),
        tuple(problems),
        rights=_list_cluster_rights(lists),
    )
    itself = (_make_cluster_item(options, by_name),)
    unread = tuple(problems[:1]) if namespaces.missing else ()
    own = SnapshotPart(f"{options.cluster}.{CLUSTER_PART}", not unread, itself, unread)
    return Snapshot((part, own), left_out)


async def _name_workload_components(
    memory: Memory,
    options: KubernetesImportOptions,
    grouped: Mapping[ComponentKey, Sequence[Workload]],
    *,
    complete: bool,
) -> dict[ComponentKey, str]:
    """A lasting name for each component, unique in its namespace."""
    by_id = {"/".join(key): key for key in sorted(grouped)}
    wanted = {id_: f"{key.namespace}/{key.name}" for id_, key in by_id.items() if key.name}
    suffixes = {id_: key.suffix for id_, key in by_id.items()}
    kept = f"names of components:{options.cluster}"
    if stated := await memory.get(STATED):
        known = msgspec.json.decode(stated, type=dict[str, str])
        ids = {_make_external_id(grouped[key]): id_ for id_, key in by_id.items()}
        await keep_names(memory, kept, {ids.get(id_, id_): name for id_, name in known.items()})
    names = await assign_lasting_names(memory, kept, wanted, suffixes, complete=complete)
    return {key: names.get(id_, "").partition("/")[2] for id_, key in by_id.items()}


def _make_workload_item(
    entity: Mapping[str, Any],
    origin: str,
    members: Sequence[Workload],
    lists: Mapping[str, ObjectList],
    namespaces: Mapping[str, ObjectMetadata],
) -> ImportedItem:
    """The item of a component, which is uncertain without its namespaces, as its owner is."""
    found = [one.metadata for one in members]
    return ImportedItem(
        entity,
        origin,
        _make_external_id(members),
        tentative=not all(one.namespace in namespaces for one in found),
        marks=GENERATED,
        raw={
            "workloads": [one._asdict() for one in members],
            "namespace": namespaces.get(found[0].namespace),
        },
        rights=frozenset(_name_right(one.resource, lists, one.metadata) for one in members),
    )


def _make_external_id(members: Sequence[Workload]) -> str:
    """The id of a component that is one workload; empty for several."""
    return f"kubernetes/{members[0].metadata.uid}" if len(members) == 1 else ""


def _list_cluster_rights(lists: Mapping[str, ObjectList]) -> frozenset[str]:
    """The lists with something in them: one that is suddenly empty isn't trusted.

    Of a list that may be of some namespaces alone, each of them is a right.
    """
    return frozenset(
        _name_right(name, lists, one)
        for name, found in lists.items()
        if not found.missing
        for one in found.objects.values()
    )


def _name_right(name: str, lists: Mapping[str, ObjectList], found: ObjectMetadata) -> str:
    """The right that an object of a list was found by."""
    return name if lists[name].everywhere else f"{name} in {found.namespace}"


def _group_workloads(
    options: KubernetesImportOptions, lists: Mapping[str, ObjectList]
) -> tuple[dict[ComponentKey, list[Workload]], Counter[str]]:
    """The workloads of each component, in order, and the numbers of those that are left out."""
    grouped: dict[ComponentKey, list[Workload]] = {}
    left_out: Counter[str] = Counter()
    for resource in dict.fromkeys(options.resources):
        for metadata in lists[resource].objects.values():
            workload = Workload(resource, metadata)
            if metadata.deletion:
                left_out["workloads that are being deleted"] += 1
            elif is_chosen_workload(workload, options):
                grouped.setdefault(find_component_key(workload, options), []).append(workload)
            else:
                left_out["workloads that are not chosen"] += 1
    for members in grouped.values():
        members.sort(key=lambda one: (one.metadata.namespace, one.resource, one.metadata.name))
    return grouped, left_out


def _make_cluster_item(
    options: KubernetesImportOptions, namespaces: Mapping[str, ObjectMetadata]
) -> ImportedItem:
    found = namespaces.get(_SYSTEM)
    external_id = f"kubernetes/{found.uid}" if found else ""
    raw, entity = {"name": options.cluster}, make_cluster_resource(options)
    # Without its id it changes nothing: it may be another cluster at the same address.
    return ImportedItem(
        entity, options.cluster, external_id, tentative=found is None, marks=GENERATED, raw=raw
    )


IMPORTER: Final = ImporterKind(
    id="kubernetes",
    title="Kubernetes",
    options=KubernetesImportOptions,
    makes=("component", "resource"),
    read=lambda context, options, show: read_cluster(
        KubernetesApi(context.client), options, context.memory, show
    ),
    access=lambda options: Access(
        base_url=options.base_url(os.environ),
        authorize=lambda _: make_account_credential(options),
    ),
)
