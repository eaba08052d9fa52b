"""Entities made of what GitLab says: groups, and users of their members."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from factbook.importers.code_host.entities import VERSION, VIEW, Entity, metadata
from factbook.importers.code_host.repository import HostedRepository, Place
from factbook.importers.gitlab.answers import GroupMember, ListedGroup, ListedProject
from factbook.importers.gitlab.roots import GitlabRoot
from factbook.integrations.gitlab.options import INSTANCE, SLUG

_NUMBER: Final = "gitlab.com/project-id"


class GroupPlace(NamedTuple):
    """Group that entities are made of: those below it are named by their paths from there."""

    place: Place
    path: str

    def name_of(self, path: str) -> str:
        """The name of a project or group below the group, and of the group itself."""
        below = path[len(self.path) + 1 :] or self.path.rpartition("/")[2]
        return below.replace("/", "-")

    def group_ref(self, path: str) -> str:
        """The reference of a group, which is unique among those that are imported."""
        is_known = path.lower() in self.place.groups
        return self.place.ref("group", path if is_known else self.name_of(path))


def hosted(at: GroupPlace, one: ListedProject, root: GitlabRoot) -> HostedRepository:
    """A project of a listing, as every code host lists them."""
    branch = one.default_branch or "HEAD"
    slug = one.path_with_namespace
    return HostedRepository(
        number=one.id,
        slug=slug,
        name=at.name_of(slug),
        url=one.web_url,
        tree=f"{one.web_url}/-/tree/{branch}/",
        branch=branch,
        version=root.version,
        annotations={SLUG: slug, _NUMBER: str(one.id), INSTANCE: at.place.host},
        description=one.description,
        topics=one.topics,
        language=root.language,
        is_archived=one.archived,
        is_fork=one.forked_from_project is not None,
        is_deleted=one.is_deleted(slug),
    )


def group(at: GroupPlace, one: ListedGroup, parent: ListedGroup | None) -> Entity:
    """The entity of a group."""
    spec: Entity = {"type": "team", "profile": {"displayName": one.name}, "children": []}
    if parent is not None:
        spec["parent"] = at.group_ref(parent.full_path)
    made = metadata(at.place, "group", one.full_path, one.description)
    made["annotations"] = {_key(at, "team-path"): one.full_path, VIEW: one.web_url}
    return {"apiVersion": VERSION, "kind": "Group", "metadata": made, "spec": spec}


def user(at: GroupPlace, member: GroupMember, groups: Sequence[str]) -> Entity:
    """The user of a member of groups of these references."""
    profile = {"displayName": member.name.strip() or member.username}
    if member.avatar_url:
        profile["picture"] = member.avatar_url
    spec = {"profile": profile, "memberOf": groups}
    made = metadata(at.place, "user", member.username, None)
    made["annotations"] = {_key(at, "user-login"): member.web_url, VIEW: member.web_url}
    return {"apiVersion": VERSION, "kind": "User", "metadata": made, "spec": spec}


def _key(at: GroupPlace, name: str) -> str:
    """The name of an annotation of this host, which cannot have a port."""
    return f"{at.place.host.partition(':')[0]}/{name}"
