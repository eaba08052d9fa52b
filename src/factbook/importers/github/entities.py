"""Entities made of what GitHub says: components, groups and users.

What is not known is absent: no owner is made up.
"""

import posixpath
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from factbook.catalog.ref import DEFAULT_NAMESPACE
from factbook.catalog.validation import valid_tag
from factbook.importers.github.answers import ListedMember, ListedRepository, ListedTeam
from factbook.integrations.github.options import SLUG
from factbook.integrations.locations import SOURCE_LOCATION

_VERSION: Final = "backstage.io/v1alpha1"
_VIEW: Final = "backstage.io/view-url"
_TEAM: Final = "github.com/team-slug"
_LOGIN: Final = "github.com/user-login"
_TYPE: Final = "type-"
_OWNER: Final = re.compile(r"@([A-Za-z0-9-]+)(?:/([A-Za-z0-9._-]+))?")

Entity = dict[str, Any]


class Place(NamedTuple):
    """Organization that entities are made of, its host, and their namespace."""

    host: str
    login: str
    namespace: str

    @property
    def origin(self) -> str:
        """Origin of the problems of an organization as a whole."""
        return f"{self.host}/{self.login}"

    def repository(self, one: ListedRepository) -> str:
        """Origin of everything in a repository."""
        return f"{self.host}/{one.name_with_owner}"

    def id_of(self, kind: str, number: int) -> str:
        """The id of a thing that outlives its name."""
        return f"{self.host}/{kind}/{number}"

    def ref(self, kind: str, name: str) -> str:
        """The reference of an entity of this place."""
        return f"{kind}:{self.namespace}/{name}"


def component(place: Place, one: ListedRepository, owner: str | None) -> Entity:
    """The component of a repository without a catalog file."""
    spec: Entity = {
        "type": _type(one.topics),
        "lifecycle": "deprecated" if one.is_archived else "production",
    }
    if owner is not None:
        spec["owner"] = owner
    metadata = _metadata(place, one.name, one.description)
    if tags := _tags(one):
        metadata["tags"] = tags
    metadata["annotations"] = annotations(place, one, "")
    return {"apiVersion": _VERSION, "kind": "Component", "metadata": metadata, "spec": spec}


def group(place: Place, team: ListedTeam) -> Entity:
    """The group of a team."""
    spec: Entity = {"type": "team", "profile": {"displayName": team.name}, "children": []}
    if team.parent_team is not None:
        spec["parent"] = place.ref("group", team.parent_team.slug)
    metadata = _metadata(place, team.slug, team.description)
    metadata["annotations"] = {_TEAM: f"{place.login}/{team.slug}", _VIEW: team.url}
    return {"apiVersion": _VERSION, "kind": "Group", "metadata": metadata, "spec": spec}


def user(place: Place, member: ListedMember, teams: Iterable[str]) -> Entity:
    """The user of a member, who is in these teams."""
    profile = {"picture": member.avatar_url}
    if member.name and member.name.strip():
        profile["displayName"] = member.name.strip()
    spec = {"profile": profile, "memberOf": [place.ref("group", slug) for slug in sorted(teams)]}
    metadata = _metadata(place, member.login, None)
    metadata["annotations"] = {_LOGIN: member.login, _VIEW: member.url}
    return {"apiVersion": _VERSION, "kind": "User", "metadata": metadata, "spec": spec}


def annotated(place: Place, one: ListedRepository, entity: Entity, path: str) -> Entity:
    """An entity of a file with the annotations of its repository, unless it has its own."""
    metadata = entity.get("metadata")
    if not isinstance(metadata, dict):
        return entity
    own = metadata.get("annotations")
    if not (own is None or isinstance(own, dict)):
        return entity
    given = {**annotations(place, one, posixpath.dirname(path)), **(own or {})}
    return {**entity, "metadata": {**metadata, "annotations": given}}


def annotations(place: Place, one: ListedRepository, folder: str) -> dict[str, str]:
    """The annotations that name a repository, and a folder in it."""
    branch = one.default_branch_ref.name if one.default_branch_ref else "HEAD"
    tree = f"{one.url}/tree/{branch}/{folder}/" if folder else f"{one.url}/tree/{branch}/"
    return {SLUG: one.name_with_owner, SOURCE_LOCATION: f"url:{tree}", _VIEW: one.url}


def codeowner(place: Place, text: str, teams: Mapping[str, object] | None) -> str | None:
    """The owner of everything by a CODEOWNERS file: of the last line for `*`, the first known one.

    A team of another organization, and one that is not among `teams`, is nobody's owner.
    """
    owners: list[str] = []
    for line in text.splitlines():
        pattern, *named = line.partition("#")[0].split()[:20] or [""]
        if pattern in {"*", "/*", "**", "/**"}:
            owners = named
    for owner in owners:
        match = _OWNER.fullmatch(owner)
        if match is None:
            continue
        if match[2] is None:
            return place.ref("user", match[1])
        slug = match[2].lower()
        if match[1].lower() == place.login.lower() and (teams is None or slug in teams):
            return place.ref("group", slug)
    return None


def _metadata(place: Place, name: str, description: str | None) -> Entity:
    metadata: Entity = {"name": name}
    if place.namespace != DEFAULT_NAMESPACE:
        metadata["namespace"] = place.namespace
    if description and description.strip():
        metadata["description"] = description.strip()
    return metadata


def _type(topics: Iterable[str]) -> str:
    """The type that a topic such as `type-service` names."""
    named = (topic.removeprefix(_TYPE) for topic in topics if topic.startswith(_TYPE))
    return next(filter(None, named), "repository")


def _tags(one: ListedRepository) -> list[str]:
    language = one.primary_language.name.lower().replace(" ", "-") if one.primary_language else ""
    names = [topic for topic in one.topics if not topic.startswith(_TYPE)]
    return [tag for tag in dict.fromkeys([*names, language]) if valid_tag(tag)]
