"""Entities made of what a code host says about repositories, and annotations that name these.

What is not known is absent: no owner is made up.
"""

import posixpath
import re
from collections.abc import Collection, Iterable
from typing import Any, Final, NamedTuple

from factbook.catalog import ref
from factbook.catalog.ref import DEFAULT_NAMESPACE
from factbook.catalog.validation import valid_tag
from factbook.errors import InputError
from factbook.importers.code_host.repository import HostedRepository, Place
from factbook.integrations.locations import SOURCE_LOCATION

VERSION: Final = "backstage.io/v1alpha1"
VIEW: Final = "backstage.io/view-url"
_TYPE: Final = "type-"
# Patterns of Git for every file. `/*` is not among them, as GitHub takes it for the files of the
# root folder, nor is `**/`, which leaves these out.
EVERYTHING: Final = frozenset({"*", "**", "/**", "**/*", "/**/*", "**/**", "/**/**"})
_MOST_OWNERS: Final = 20
_OWNER: Final = re.compile(r"@([\w.-]+)(?:/([\w.-]+))?", re.ASCII)

Entity = dict[str, Any]


def component(place: Place, one: HostedRepository, owner: str | None) -> Entity:
    """The component of a repository without a catalog file."""
    spec: Entity = {
        "type": _type(one.topics),
        "lifecycle": "deprecated" if one.is_archived else "production",
    }
    if owner is not None:
        spec["owner"] = owner
    made = metadata(place, "component", one.name, one.description)
    if tags := _tags(one):
        made["tags"] = tags
    made["annotations"] = annotations(one, "")
    return {"apiVersion": VERSION, "kind": "Component", "metadata": made, "spec": spec}


def annotated(one: HostedRepository, entity: Entity, path: str) -> Entity:
    """An entity of a file with the annotations of its repository, unless it has its own."""
    found = entity.get("metadata")
    if not isinstance(found, dict):
        return entity
    own = found.get("annotations")
    if not (own is None or isinstance(own, dict)):
        return entity
    given = {**annotations(one, posixpath.dirname(path)), **(own or {})}
    return {**entity, "metadata": {**found, "annotations": given}}


def owned(place: Place, entity: Entity) -> Entity:
    """An entity of a file, whose owner without a namespace is the group of the place.

    Where the place has no group of that name, and in an entity with a namespace of its own, it
    stays as it is.
    """
    spec, found = entity.get("spec"), entity.get("metadata")
    if not (isinstance(spec, dict) and isinstance(found, dict)) or found.get("namespace"):
        return entity
    try:
        kind, namespace, name = ref.split(spec.get("owner") or "")
    except (InputError, TypeError, AttributeError):
        return entity
    group = place.group_of(name)
    if namespace or (kind or "group").lower() != "group" or group is None:
        return entity
    if (place.namespace, group.lower()) == (DEFAULT_NAMESPACE, name.lower()):
        return entity
    return {**entity, "spec": {**spec, "owner": f"group:{place.namespace}/{group}"}}


def annotations(one: HostedRepository, folder: str) -> dict[str, str]:
    """The annotations that name a repository, and a folder in it."""
    tree = f"{one.tree}{folder}/" if folder else one.tree
    return {**one.annotations, SOURCE_LOCATION: f"url:{tree}", VIEW: one.url}


def metadata(place: Place, kind: str, name: str, description: str | None) -> Entity:
    """The metadata of an entity of a place, made of what the host calls so."""
    found: Entity = {"name": place.name_of(kind, name)}
    if (namespace := place.namespace_of(kind)) != DEFAULT_NAMESPACE:
        found["namespace"] = namespace
    if description and description.strip():
        found["description"] = description.strip()
    return found


class KnownOwners(NamedTuple):
    """Teams and people who may own something, by their names in lower case; None: not known.

    A team of another organization never is one of them, nor is somebody who left.
    """

    teams: Collection[str] | None
    people: Collection[str] | None

    def first(self, place: Place, owners: Iterable[str]) -> str | None:
        """The reference of the first of these owners, as CODEOWNERS names them, that may be one."""
        for owner in owners:
            match = _OWNER.fullmatch(owner)
            if match is None:
                continue
            name, team = match[1].lower(), match[2] and match[2].lower()
            if team is None:
                if self.people is None or name in self.people:
                    return place.ref("user", match[1])
            elif name == place.login.lower() and (self.teams is None or team in self.teams):
                return place.ref("group", team)
        return None


def owners_of_everything(
    text: str, *, patterns: Collection[str] = EVERYTHING, sections: bool = False
) -> list[str]:
    """The owners that the last line for everything in a CODEOWNERS file names.

    It has one of these patterns. With `sections`, as GitLab has them, a line without owners has
    those of its section.
    """
    owners: list[str] = []
    default: list[str] = []
    for line in text.splitlines():
        content = line.removeprefix("\ufeff").partition("#")[0].strip()
        if sections and content.lstrip("^").startswith("["):
            default = content.rpartition("]")[2].split()[:_MOST_OWNERS]
            continue
        pattern, *named = content.split()[: _MOST_OWNERS + 1] or [""]
        if pattern in patterns:
            owners = named or default
    return owners


def _type(topics: Iterable[str]) -> str:
    """The type that a topic such as `type-service` names."""
    named = (topic.removeprefix(_TYPE) for topic in topics if topic.startswith(_TYPE))
    return next(filter(None, named), "repository")


def _tags(one: HostedRepository) -> list[str]:
    language = one.language.lower().replace(" ", "-")
    names = [topic for topic in one.topics if not topic.startswith(_TYPE)]
    return [tag for tag in dict.fromkeys([*names, language]) if valid_tag(tag)]
