"""A catalog to push, and what has to be shown of it, told from what is pushed alone."""

import copy
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import yaml

from tests.api.oracle import expected, ref
from tests.processes import ServerProcess

Entity = dict[str, Any]
Sets = dict[str, list[Entity]]

VERSION = "backstage.io/v1alpha1"
COMPONENTS = 600
# A name as pushes allow and addresses have to encode.
ODD_NAME = "Zahlung äöü 100% (a+b)? #1"
# Fields that tell entities apart.
SHORT = ["kind", "metadata.namespace", "metadata.name"]
_SERVICE_KEYS = ("uid", "etag")

# By kind: field of the spec, kind of a target that names none, relation, relation of the target.
_OWNER = ("owner", "group", "ownedBy", "ownerOf")
_SYSTEM = ("system", "system", "partOf", "hasPart")
_DEPENDS = ("dependsOn", "", "dependsOn", "dependencyOf")
_RELATIONS = {
    "Component": (
        _OWNER,
        _SYSTEM,
        _DEPENDS,
        ("providesApis", "api", "providesApi", "apiProvidedBy"),
        ("consumesApis", "api", "consumesApi", "apiConsumedBy"),
    ),
    "API": (_OWNER, _SYSTEM),
    "Resource": (_OWNER, _SYSTEM, _DEPENDS),
    "System": (_OWNER, ("domain", "domain", "partOf", "hasPart")),
    "Domain": (_OWNER,),
    "Group": (("parent", "group", "childOf", "parentOf"),),
    "User": (("memberOf", "group", "memberOf", "hasMember"),),
}


class Sample(NamedTuple):
    """A service that holds the catalog, a token for it, and what it has to show, by reference."""

    server: ServerProcess
    token: str
    entities: list[Entity]

    @property
    def by_ref(self) -> dict[str, Entity]:
        return {ref(entity): entity for entity in self.entities}

    def found(self, filters: Iterable[str] = (), orders: Iterable[str] = ()) -> list[Entity]:
        """The entities that pass the filters, in this order."""
        there = self.by_ref
        return [there[one] for one in expected(self.entities, list(filters), list(orders))]


def sets(test_data: Path) -> Sets:
    """Real entities, and made-up ones of every sort, as they are pushed."""
    files = sorted(test_data.glob("catalogs/*.yaml"))
    assert files, f"there is no catalog in {test_data}"
    real = [one for file in files for one in yaml.safe_load_all(file.read_text()) if one]
    chance = random.Random(7)
    return {"real": real, "people": list(_people()), "made-up": list(_made_up(chance))}


def shown(pushed: Sets) -> list[Entity]:
    """Every entity as reads show it, by reference, but for the service's uid and etag."""
    found = {}
    for name, items in pushed.items():
        for item in items:
            entity = copy.deepcopy(item)
            annotations = entity["metadata"].setdefault("annotations", {})
            annotations.update(_service_annotations(name, ref(entity)))
            entity["relations"] = []
            found[ref(entity)] = entity
    for source, type_, reverse, target in _edges(list(found.values())):
        found[source]["relations"].append({"type": type_, "targetRef": target})
        if target in found:
            found[target]["relations"].append({"type": reverse, "targetRef": source})
    for entity in found.values():
        entity["relations"] = _distinct(entity["relations"])
    return [found[key] for key in sorted(found)]


def plain(entity: Entity) -> Entity:
    """An entity that was read, without the uid and the etag that it has to have."""
    metadata = entity["metadata"]
    assert all(isinstance(metadata[key], str) for key in _SERVICE_KEYS)
    rest = {key: value for key, value in metadata.items() if key not in _SERVICE_KEYS}
    return {**entity, "metadata": rest}


def short(items: list[Entity]) -> list[Entity]:
    """Only what SHORT names."""
    return [
        {
            "kind": item["kind"],
            "metadata": {
                key: item["metadata"][key]
                for key in ("namespace", "name")
                if key in item["metadata"]
            },
        }
        for item in items
    ]


def _service_annotations(set_name: str, reference: str) -> dict[str, str]:
    base = "factbook-api:/api/catalog/factbook-entities/entities"
    return {
        "factbook/entity-set": set_name,
        "backstage.io/managed-by-location": f"{base}/by-ref/{quote(reference, safe='')}",
        "backstage.io/managed-by-origin-location": base,
    }


def _edges(entities: Iterable[Entity]) -> Iterator[tuple[str, str, str, str]]:
    """(source, relation, reverse, target) for whatever a spec names."""
    for entity in entities:
        space = entity["metadata"].get("namespace", "default")
        for field, kind, type_, reverse in _RELATIONS.get(entity["kind"], ()):
            values = entity["spec"].get(field, [])
            for text in values if isinstance(values, list) else [values]:
                yield ref(entity), type_, reverse, _target(text, kind, space)


def _target(text: str, kind: str, namespace: str) -> str:
    before, colon, rest = text.rpartition(":")
    space, slash, name = rest.rpartition("/")
    return f"{before if colon else kind}:{space if slash else namespace}/{name}".lower()


def _distinct(relations: list[dict[str, str]]) -> list[dict[str, str]]:
    pairs = sorted({(one["type"], one["targetRef"]) for one in relations})
    return [{"type": type_, "targetRef": target} for type_, target in pairs]


def _entity(kind: str, name: str, spec: Entity, **metadata: Any) -> Entity:
    return {
        "apiVersion": VERSION,
        "kind": kind,
        "metadata": {"name": name, **metadata},
        "spec": spec,
    }


def _people() -> Iterator[Entity]:
    yield _entity("Group", "open-source", {"type": "team", "children": []})
    for number in range(8):
        parent = {"parent": "open-source"} if number else {}
        spec = {"type": "team", "children": [], **parent}
        yield _entity("Group", f"Team-{'ABCDEFGH'[number]}", spec, title=f"Team {number}")
    for number in range(40):
        groups = [f"team-{'abcdefgh'[number % 8]}", "group:other/guests"]
        profile = {"displayName": f"Käthe {number}", "email": f"k{number}@example.com"}
        yield _entity("User", f"kaethe.{number}", {"memberOf": groups, "profile": profile})


def _made_up(chance: random.Random) -> Iterator[Entity]:
    yield _entity("Domain", "Payments", {"owner": "team-a"})
    for number in range(6):
        spec = {"owner": "Team-A", "domain": "payments"}
        yield _entity("System", f"system-{number}", spec, namespace=_space(number))
    for number in range(40):
        spec = {"type": "openapi", "lifecycle": "production", "owner": "Group:default/Team-B"}
        spec |= {"definition": "openapi: 3.1.0", "system": f"system-{number % 6}"}
        yield _entity("API", f"Api_{number}", spec, namespace=_space(number))
    yield _entity("Resource", ODD_NAME, {"type": "account", "owner": "team-b"})
    for number in range(60):
        spec = {"type": "account", "owner": "user:kaethe.1"}
        yield _entity("Resource", f"Account {number}", spec, tags=["aws"] if number % 2 else [])
    for number in range(20):
        metadata = {"defaultBranch": "main", "stars": number, "archived": number % 3 == 0}
        one = _entity("Repository", f"repo-{number}", {"visibility": "public"}, **metadata)
        yield one | {"apiVersion": "example.com/v1"}
    for number in range(COMPONENTS):
        yield _component(chance, number)


def _component(chance: random.Random, number: int) -> Entity:
    metadata: Entity = {"title": f"Service {chance.choice(['Élan', 'über', 'PLAIN'])} {number}"}
    if number % 3 == 0:
        metadata["namespace"] = "other"
    if chance.random() < 0.7:
        metadata["tags"] = chance.sample(["java", "go", "c++", "java-8", "a:b"], 2)
    if chance.random() < 0.5:
        metadata["labels"] = {"tier": str(chance.randint(1, 3)), "example.com/zone": "eu"}
    if chance.random() < 0.6:
        slug = f"Org/{chance.choice(['one', 'two'])}"
        metadata["annotations"] = {"github.com/project-slug": slug, "backstage.io/x.y.z": "dots"}
    if chance.random() < 0.2:
        metadata["links"] = [{"url": "https://example.com/?a=b,c", "title": "Wiki"}]
    spec: Entity = {
        "type": chance.choice(["service", "website", "library"]),
        "lifecycle": chance.choice(["production", "experimental"]),
        "owner": f"team-{chance.choice('abcdefgh')}",
        "replicas": chance.choice([1, 2, 10]),
        "public": chance.random() < 0.5,
    }
    if chance.random() < 0.5:
        spec["system"] = f"system-{chance.randrange(6)}"
    if chance.random() < 0.5:
        spec["dependsOn"] = [f"component:svc-{number - 1:03}", f"Resource:default/account {number}"]
    if chance.random() < 0.3:
        spec["providesApis"] = [f"Api_{chance.randrange(40)}"]
        spec["consumesApis"] = [f"default/api_{chance.randrange(40)}"]
    name = f"{chance.choice(['svc', 'SVC', 'Svc'])}-{number:03}"
    return _entity("Component", name, spec, **metadata)


def _space(number: int) -> str:
    return "other" if number % 2 else "default"
