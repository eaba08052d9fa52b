"""Entities made of what Gitea says: groups of teams and users of members."""

from collections.abc import Sequence
from typing import Final

from factbook.clock import DAY, MINUTE
from factbook.importers.code_host.entities import (
    EVERYTHING,
    VERSION,
    VIEW,
    Entity,
    KnownOwners,
    metadata,
    owners_of_everything,
)
from factbook.importers.code_host.repository import HostedRepository, Place
from factbook.importers.gitea.answers import GiteaMember, GiteaTeam, OwnRepository
from factbook.integrations.gitea.api import GiteaApi
from factbook.integrations.merge_times import milliseconds

# Gitea's patterns are regular expressions of whole paths; those of Git are written for GitHub.
_PATTERNS: Final = EVERYTHING | {".*", ".+", "(.*)", "^.*", ".*$", "^.*$"}
# So long after a change another one may have the same time.
_SETTLED: Final = MINUTE
_BELIEVED: Final = 7 * DAY


def hosted(api: GiteaApi, one: OwnRepository) -> HostedRepository:
    """A repository of a listing, as every code host lists them."""
    branch = one.default_branch or "HEAD"
    return HostedRepository(
        number=one.id,
        slug=one.full_name,
        name=one.full_name.partition("/")[2],
        url=one.html_url,
        tree=f"{one.html_url}/src/branch/{branch}/",
        branch=branch,
        version=_version(one, api.now),
        annotations={_key(api.host, "project-slug"): one.full_name},
        description=one.description,
        topics=one.topics or (),
        language=one.language,
        is_archived=one.archived,
        is_fork=one.fork,
    )


def group(place: Place, team: GiteaTeam) -> Entity:
    """The group of a team."""
    spec: Entity = {"type": "team", "profile": {"displayName": team.name}, "children": []}
    made = metadata(place, "group", team.name, team.description)
    url = f"https://{place.host}/org/{place.login}/teams/{team.name}"
    name = f"{place.login}/{team.name}"
    made["annotations"] = {_key(place.host, "team-slug"): name, VIEW: url}
    return {"apiVersion": VERSION, "kind": "Group", "metadata": made, "spec": spec}


def user(place: Place, member: GiteaMember, groups: Sequence[str]) -> Entity:
    """The user of a member, who is in groups of these references."""
    profile = {"displayName": member.full_name.strip() or member.login}
    if member.avatar_url:
        profile["picture"] = member.avatar_url
    spec = {"profile": profile, "memberOf": groups}
    made = metadata(place, "user", member.login, None)
    url = member.html_url or f"https://{place.host}/{member.login}"
    made["annotations"] = {_key(place.host, "user-login"): member.login, VIEW: url}
    return {"apiVersion": VERSION, "kind": "User", "metadata": made, "spec": spec}


def codeowner(place: Place, text: str, known: KnownOwners) -> str | None:
    """The first known owner that the last line for everything in a CODEOWNERS file names."""
    return known.first(place, owners_of_everything(text, patterns=_PATTERNS))


def _version(one: OwnRepository, now: int) -> str | None:
    """Another text after each push, as Gitea notes its time, and once a week.

    The time says nothing while another push may have the same one, nor for a mirror.
    """
    if one.empty:
        return None
    updated = milliseconds(one.updated_at)
    week = (now + one.id * MINUTE) // _BELIEVED
    text = f"{one.default_branch}:{updated}:{week}"
    is_sure = not one.mirror and now - updated > _SETTLED
    return text if is_sure else f"{text}:{now}"


def _key(host: str, name: str) -> str:
    """The name of an annotation of a host, which cannot have a port."""
    return f"{host.partition(':')[0]}/{name}"
