"""Reading of a Kubernetes cluster: its namespaces and workloads."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import msgspec

from factbook.importers.kubernetes import workloads
from factbook.importers.kubernetes.api import (
    NAMESPACES,
    KubernetesApi,
    ObjectList,
    ObjectMetadata,
)
from factbook.importers.kubernetes.options import KubernetesImportOptions
from factbook.importers.kubernetes.workloads import ComponentKey, Workload
from factbook.importers.names import keep_names, lasting_names
from factbook.importers.snapshot import (
    GENERATED,
    STATED,
    ImportedItem,
    ReadingProblem,
    Snapshot,
    SnapshotPart,
)
from factbook.outbound import Memory

WORKLOADS: Final = "workloads"
ITSELF: Final = "cluster"

# A namespace that every cluster has for good, so that its id is that of the cluster.
_SYSTEM: Final = "kube-system"

Show = Callable[[str], None]


async def read(
    api: KubernetesApi, options: KubernetesImportOptions, memory: Memory, show: Show
) -> Snapshot:
    """A snapshot of the cluster: parts for its workloads, and for itself.

    Where a list is not whole, nothing that is known of a component is certain. The cluster is no
    workload, so that a list of none is noticed.
    """
    show("Reading the namespaces")
    namespaces = await api.objects(NAMESPACES)
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
    grouped, left_out = _grouped(options, lists)
    certain = not problems
    problems += [
        ReadingProblem(options.cluster, f"namespaces: {name} is no namespace of the cluster")
        for name in options.namespaces
        if certain and name != "*" and name not in by_name
    ]
    items: list[ImportedItem] = []
    names = await _names(memory, options, grouped, complete=certain)
    for wanted, members in sorted(grouped.items()):
        key = wanted._replace(name=names[wanted])
        made = workloads.component(options, key, members, by_name)
        origin = f"{options.cluster} {key.within or key.namespace}/{key.name}"
        item = _item(made.entity, origin, members, lists, by_name)
        items.append(item if certain else replace(item, tentative=True))
        problems += [ReadingProblem(origin, text) for text in made.problems]
    part = SnapshotPart(
        f"{options.cluster}.{WORKLOADS}",
        certain,
        tuple(items),
        tuple(problems),
        rights=_rights(lists),
    )
    itself = (_cluster(options, by_name),)
    unread = tuple(problems[:1]) if namespaces.missing else ()
    own = SnapshotPart(f"{options.cluster}.{ITSELF}", not unread, itself, unread)
    return Snapshot((part, own), left_out)


async def _names(
    memory: Memory,
    options: KubernetesImportOptions,
    grouped: Mapping[ComponentKey, Sequence[Workload]],
    *,
    complete: bool,
) -> dict[ComponentKey, str]:
    """A name for each component that no other one in its namespace has, and that stays."""
    by_id = {"/".join(key): key for key in sorted(grouped)}
    wanted = {id_: f"{key.namespace}/{key.name}" for id_, key in by_id.items() if key.name}
    suffixes = {id_: key.suffix for id_, key in by_id.items()}
    kept = f"names of components:{options.cluster}"
    if stated := await memory.get(STATED):
        known = msgspec.json.decode(stated, type=dict[str, str])
        ids = {_id(grouped[key]): id_ for id_, key in by_id.items()}
        await keep_names(memory, kept, {ids.get(id_, id_): name for id_, name in known.items()})
    names = await lasting_names(memory, kept, wanted, suffixes, complete=complete)
    return {key: names.get(id_, "").partition("/")[2] for id_, key in by_id.items()}


def _item(
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
        _id(members),
        tentative=not all(one.namespace in namespaces for one in found),
        marks=GENERATED,
        raw={
            "workloads": [one._asdict() for one in members],
            "namespace": namespaces.get(found[0].namespace),
        },
        rights=frozenset(_right(one.resource, lists, one.metadata) for one in members),
    )


def _id(members: Sequence[Workload]) -> str:
    """The id of a component that is one workload; empty for several."""
    return f"kubernetes/{members[0].metadata.uid}" if len(members) == 1 else ""


def _rights(lists: Mapping[str, ObjectList]) -> frozenset[str]:
    """The lists with something in them: one that is suddenly empty is not believed.

    Of a list that may be of some namespaces alone, each of them is a right.
    """
    return frozenset(
        _right(name, lists, one)
        for name, found in lists.items()
        if not found.missing
        for one in found.objects.values()
    )


def _right(name: str, lists: Mapping[str, ObjectList], found: ObjectMetadata) -> str:
    """The right that an object of a list was found by."""
    return name if lists[name].everywhere else f"{name} in {found.namespace}"


def _grouped(
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
            elif workloads.is_chosen(workload, options):
                grouped.setdefault(workloads.key_of(workload, options), []).append(workload)
            else:
                left_out["workloads that are not chosen"] += 1
    for members in grouped.values():
        members.sort(key=lambda one: (one.metadata.namespace, one.resource, one.metadata.name))
    return grouped, left_out


def _cluster(
    options: KubernetesImportOptions, namespaces: Mapping[str, ObjectMetadata]
) -> ImportedItem:
    found = namespaces.get(_SYSTEM)
    external_id = f"kubernetes/{found.uid}" if found else ""
    raw, entity = {"name": options.cluster}, workloads.cluster(options)
    # Without its id it changes nothing: it may be another cluster at the same address.
    return ImportedItem(
        entity, options.cluster, external_id, tentative=found is None, marks=GENERATED, raw=raw
    )
