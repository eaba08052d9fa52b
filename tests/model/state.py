"""What a sequential model knows between two calls: sets with revisions, entities, their ids.

Everything is a tuple, so that a checker can remember where it has been.
"""

from typing import Any, NamedTuple
from urllib.parse import quote

from tests.service import PUSH

Counts = tuple[int, int, int, int]  # added, updated, removed, unchanged


def named(counts: Counts) -> dict[str, int]:
    """The counts as answers show them."""
    return dict(zip(("added", "updated", "removed", "unchanged"), counts, strict=True))


class Content(NamedTuple):
    """What a client sends about one component."""

    namespace: str
    name: str
    owner: str
    depends_on: tuple[str, ...] = ()
    title: str | None = None

    @property
    def ref(self) -> str:
        return f"component:{self.namespace}/{self.name}"

    def sent(self) -> dict[str, Any]:
        """The entity as it is sent."""
        metadata = {"name": self.name, "namespace": self.namespace}
        spec = {"type": "service", "lifecycle": "production", "owner": self.owner}
        return {
            "apiVersion": "backstage.io/v1alpha1",
            "kind": "Component",
            "metadata": metadata | ({"title": self.title} if self.title else {}),
            "spec": spec | ({"dependsOn": list(self.depends_on)} if self.depends_on else {}),
        }

    def stored(self, set_id: str | None) -> dict[str, Any]:
        """The entity as the push interface shows it in a set."""
        document = self.sent()
        home = f"factbook-api:{PUSH}/entities"
        document["metadata"]["annotations"] = {
            **({"factbook/entity-set": set_id} if set_id else {}),
            "backstage.io/managed-by-location": f"{home}/by-ref/{quote(self.ref, safe='')}",
            "backstage.io/managed-by-origin-location": home,
        }
        return document


class Entity(NamedTuple):
    """An entity that is there."""

    content: Content
    set: str | None
    uid: str
    updated_by: str
    updated_at: str

    def item(self) -> dict[str, Any]:
        """The entity as an item of the push interface."""
        document = self.content.stored(self.set)
        return {
            "id": self.uid,
            "entity": document,
            "entityRef": self.content.ref,
            "rawData": document,
            "set": self.set,
            "updatedBy": self.updated_by,
            "source": "api-entity",
            "updatedAt": self.updated_at,
        }


class Revision(NamedTuple):
    """One revision of a set, with what was in it; `exact` when its order can be restored."""

    number: int
    created_by: str
    changes: Counts
    restored: int | None
    items: tuple[Content, ...]
    exact: bool = True


class Set(NamedTuple):
    """A set: its revision, its references in order, and its past, oldest first."""

    revision: int = 0
    order: tuple[str, ...] = ()
    updated_by: str = ""
    past: tuple[Revision, ...] = ()


class State(NamedTuple):
    """Everything, as sorted pairs; `uids` also of entities that were removed."""

    sets: tuple[tuple[str, Set], ...] = ()
    entities: tuple[tuple[str, Entity], ...] = ()
    uids: tuple[tuple[str, str], ...] = ()


class Refused(Exception):
    """The answer is none that the model can give."""


class Draft:
    """A state under change."""

    def __init__(self, state: State) -> None:
        self.sets = dict(state.sets)
        self.entities = dict(state.entities)
        self.uids = dict(state.uids)

    def done(self) -> State:
        """The state after the change."""
        return State(
            tuple(sorted(self.sets.items())),
            tuple(sorted(self.entities.items())),
            tuple(sorted(self.uids.items())),
        )

    def set(self, name: str) -> Set:
        return self.sets.get(name, Set())

    def items(self, name: str) -> list[dict[str, Any]]:
        """The items of a set in order."""
        return [self.entities[ref].item() for ref in self.set(name).order]

    def uid(self, ref: str, shown: str) -> str:
        """The id of an entity: the one that it had, or a new one, which an answer shows."""
        if ref not in self.uids and shown in self.uids.values():
            raise Refused
        return self.uids.setdefault(ref, shown)

    def relations(self, ref: str) -> list[dict[str, str]]:
        """The relations of an entity, those that others state among them."""
        content = self.entities[ref].content
        found = {("ownedBy", f"group:{content.namespace}/{content.owner}")}
        found |= {("dependsOn", target) for target in content.depends_on}
        found |= {
            ("dependencyOf", other)
            for other, entity in self.entities.items()
            if ref in entity.content.depends_on
        }
        return [{"type": type_, "targetRef": target} for type_, target in sorted(found)]

    def shown(self, ref: str) -> dict[str, Any] | None:
        """The entity as the catalog shows it, without its etag."""
        entity = self.entities.get(ref)
        if entity is None:
            return None
        document = entity.content.stored(entity.set)
        document["metadata"]["uid"] = entity.uid
        return document | {"relations": self.relations(ref)}
