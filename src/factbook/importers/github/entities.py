"""Entities made of what GitHub says: groups of teams and users of members."""

from collections.abc import Sequence
from typing import Final

from factbook.importers.code_host.entities import VERSION, VIEW, Entity, metadata
from factbook.importers.code_host.repository import HostedRepository, Place
from factbook.importers.github.answers import ListedMember, ListedRepository, ListedTeam
from factbook.integrations.github.options import SLUG

_TEAM: Final = "github.com/team-slug"
_LOGIN: Final = "github.com/user-login"


def hosted(one: ListedRepository) -> HostedRepository:
    """A repository of a listing, as every code host lists them."""
    branch = one.default_branch_ref.name if one.default_branch_ref else "HEAD"
    return HostedRepository(
        number=one.database_id,
        slug=one.name_with_owner,
        name=one.name,
        url=one.url,
        tree=f"{one.url}/tree/{branch}/",
        branch=branch,
        version=one.head,
        annotations={SLUG: one.name_with_owner},
        description=one.description,
        topics=one.topics,
        language=one.primary_language.name if one.primary_language else "",
        is_archived=one.is_archived,
        is_fork=one.is_fork,
    )


def group(place: Place, team: ListedTeam) -> Entity:
    """The group of a team."""
    spec: Entity = {"type": "team", "profile": {"displayName": team.name}, "children": []}
    # A secret team is no group here.
    if team.parent_team is not None and team.parent_team.slug.lower() in place.groups:
        spec["parent"] = place.ref("group", team.parent_team.slug)
    made = metadata(place, "group", team.slug, team.description)
    made["annotations"] = {_TEAM: f"{place.login}/{team.slug}", VIEW: team.url}
    return {"apiVersion": VERSION, "kind": "Group", "metadata": made, "spec": spec}


def user(place: Place, member: ListedMember, groups: Sequence[str]) -> Entity:
    """The user of a member, who is in groups of these references."""
    profile = {"picture": member.avatar_url}
    if member.name and member.name.strip():
        profile["displayName"] = member.name.strip()
    spec = {"profile": profile, "memberOf": groups}
    made = metadata(place, "user", member.login, None)
    made["annotations"] = {_LOGIN: member.login, VIEW: member.url}
    return {"apiVersion": VERSION, "kind": "User", "metadata": made, "spec": spec}
