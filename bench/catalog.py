"""A made-up catalog of realistic entities: each of at least 1 kB, with 22 search rows on average.

Search rows are counted by the rules of the catalog API's reference on an entity as a read shows
it, so with the uid, the relations and the annotations that the service adds.
"""

import random
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

Entity = dict[str, Any]
SearchRow = tuple[str, str | None]

TEAMS = 50
SYSTEMS = 200
LEAST_BYTES = 1024
_LONGEST = 200  # characters of a key or value that the search index takes

_SUBJECTS = ("billing", "checkout", "ledger", "search", "identity", "catalog", "shipping", "fraud")
_ROLES = ("api", "worker", "gateway", "importer", "scheduler", "frontend", "exporter", "bridge")
_TAGS = ("java", "python", "go", "rust", "kotlin", "grpc", "kafka", "react", "tier-1", "pci")
_SENTENCES = (
    "Takes requests of the storefront and answers within the agreed time.",
    "Reads its events from the shared broker and writes a record of each before it acts.",
    "Owned and run by one team, which is on call for it around the clock.",
    "Its data is kept for two years and then removed as the retention policy says.",
    "Deployed several times a day from the main branch, region after region.",
    "Depends on the platform's identity service for every call from the outside.",
    "A second instance waits in another region and takes over within a minute.",
)
_KINDS = ("Component",) * 8 + ("API", "Resource")
_API_VERSION = "backstage.io/v1alpha1"


class Key(NamedTuple):
    """What by-name and the tools need to find an entity."""

    kind: str
    name: str


def organisation() -> list[Entity]:
    """The teams and systems that the other entities name."""
    teams = [plain("Group", team(i), type="team", children=[]) for i in range(TEAMS)]
    systems = [plain("System", system(i), owner=team(i % TEAMS)) for i in range(SYSTEMS)]
    return teams + systems


def entities(count: int, seed: int = 1, prefix: str = "") -> Iterator[Entity]:
    """Components, APIs and resources in the proportion 8:1:1; names are unique by their prefix."""
    chance = random.Random(seed)
    for number in range(count):
        kind = _KINDS[number % len(_KINDS)]
        dependency = None
        if kind == "Component" and chance.random() < 0.1:
            component = chance.randrange(count) // len(_KINDS) * len(_KINDS)
            dependency = f"component:default/{prefix}{_name(component)}"
        yield _entity(kind, f"{prefix}{_name(number)}", dependency, chance)


def keys(count: int, prefix: str = "") -> list[Key]:
    """The keys of what `entities` makes, without making it."""
    return [
        Key(_KINDS[number % len(_KINDS)].lower(), f"{prefix}{_name(number)}")
        for number in range(count)
    ]


def key(entity: Entity) -> Key:
    """The kind and name of an entity, as a path or a tool takes them."""
    return Key(entity["kind"].lower(), entity["metadata"]["name"])


def changed(items: Sequence[Entity], share: float) -> list[Entity]:
    """The same entities, of which an evenly spread share has another description."""
    step = round(1 / share)
    return [_changed(item) if number % step == 0 else item for number, item in enumerate(items)]


def body(items: Sequence[Entity]) -> bytes:
    """The body of a PUT."""
    return msgspec.json.encode({"items": items})


def search_rows(entity: Entity) -> set[SearchRow]:
    """The distinct rows (key, value or None) of the reference's search index for an entity."""
    metadata = entity["metadata"]
    rows: list[tuple[str, Any]] = [
        ("metadata.name", metadata["name"]),
        ("metadata.namespace", metadata.get("namespace", "default")),
        ("metadata.uid", metadata["uid"]),
    ]
    for member, value in entity.items():
        rows += _walk(member, value)
    rows += [(f"relations.{item['type']}", item["targetRef"]) for item in entity["relations"]]
    return {(path.lower(), _value(value)) for path, value in rows if len(path) <= _LONGEST}


_NOT_WALKED = frozenset(
    {
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "metadata.etag",
        "relations",
        "status",
        "attachments",
    }
)


def _walk(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if path in _NOT_WALKED:
        return
    if isinstance(value, dict):
        for name, child in value.items():
            yield from _walk(f"{path}.{name}", child)
    elif isinstance(value, list):
        for child in value:
            yield from _walk(path, child)
            if isinstance(child, str):
                yield f"{path}.{child}", True
    else:
        yield path, value


def _value(value: Any) -> str | None:
    if value is None:
        return None
    text = (value if isinstance(value, str) else msgspec.json.encode(value).decode()).lower()
    return text if len(text) <= _LONGEST else None


def _entity(kind: str, name: str, dependency: str | None, chance: random.Random) -> Entity:
    spec: Entity = {
        "type": {"API": "openapi", "Resource": "database"}.get(kind, "service"),
        "lifecycle": chance.choice(("production", "experimental")),
        "owner": team(chance.randrange(TEAMS)),
        "system": system(chance.randrange(SYSTEMS)),
    }
    if kind == "API":
        spec["definition"] = (
            f"openapi: 3.1.0\ninfo:\n  title: {name}\n  version: 1.0.0\npaths: {{}}"
        )
    if dependency:
        spec["dependsOn"] = [dependency]
    entity = {
        "apiVersion": _API_VERSION,
        "kind": kind,
        "metadata": _metadata(name, chance),
        "spec": spec,
    }
    return _lengthened(entity, chance)


def _metadata(name: str, chance: random.Random) -> Entity:
    return {
        "name": name,
        "description": f"The {name.replace('-', ' ')} of the web shop.",
        "annotations": {
            "github.com/project-slug": f"acme/{name}",
            "backstage.io/techdocs-ref": "dir:.",
        },
        "tags": chance.sample(_TAGS, chance.choice((1, 1, 2))),
        "links": [{"url": f"https://runbooks.acme.example/{name}/on-call", "title": "Runbook"}],
    }


def _lengthened(entity: Entity, chance: random.Random) -> Entity:
    """The entity with as much more description as makes it long enough."""
    missing = LEAST_BYTES - len(msgspec.json.encode(entity))
    while missing > 0:
        sentence = f" {chance.choice(_SENTENCES)}"
        entity["metadata"]["description"] += sentence
        missing -= len(sentence)
    return entity


def _changed(entity: Entity) -> Entity:
    metadata = entity["metadata"]
    return entity | {"metadata": metadata | {"description": f"Changed. {metadata['description']}"}}


def plain(kind: str, name: str, **spec: Any) -> Entity:
    """An entity with a short description and no more."""
    metadata = {"name": name, "description": f"{kind} {name} of the web shop."}
    return {"apiVersion": _API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}


def _name(number: int) -> str:
    subject, role = _SUBJECTS[number // 10 % 8], _ROLES[number // 80 % 8]
    return f"{subject}-{role}-{number:06d}"


def team(number: int) -> str:
    """The name of a team."""
    return f"team-{number:02d}"


def system(number: int) -> str:
    """The name of a system."""
    return f"system-{number:03d}"
