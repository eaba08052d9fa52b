"""Teams and members of an organization, and what the credential may see of it."""

from dataclasses import dataclass, field
from typing import Final

from factbook.importers.code_host.rows import RowListing, agreed
from factbook.importers.gitea.answers import (
    GiteaAccount,
    GiteaMember,
    GiteaPermissions,
    GiteaTeam,
    JoinedTeam,
    TeamRepository,
)
from factbook.importers.gitea.lists import listing
from factbook.integrations.gitea.api import GiteaApi
from factbook.integrations.integration import each
from factbook.outbound import path
from factbook.outbound.outcomes import Missing

# What says that a team is responsible for a repository, the most telling first.
_PERMISSIONS: Final = ("admin", "write")


@dataclass
class Teams:
    """Teams by id, with the ids of their members and of their repositories.

    `missing` says what was not read. `rights` are those of the credential: an owner sees
    everything, anybody else what its teams may see, each of which is a right. `doubt` is the reason
    if they are not known.
    """

    teams: dict[int, GiteaTeam] = field(default_factory=dict)
    members: dict[int, set[int]] = field(default_factory=dict)
    repositories: dict[int, set[int]] = field(default_factory=dict)
    missing: list[Missing] = field(default_factory=list)
    rights: set[str] = field(default_factory=set)
    doubt: Missing | None = None

    def of_member(self, member: GiteaMember) -> list[GiteaTeam]:
        """The teams of a member."""
        return [team for id_, team in self.teams.items() if member.id in self.members[id_]]

    def owner_of(self, repository: int) -> GiteaTeam | None:
        """The only team that administers a repository, else the only one that may write to it.

        A team that has all repositories says nothing about one.
        """
        for permission in _PERMISSIONS:
            found = [
                team
                for id_, team in self.teams.items()
                if team.permission == permission and repository in self.repositories[id_]
            ]
            if found:
                return found[0] if len(found) == 1 else None
        return None


async def read_teams(api: GiteaApi, organization: str, number: int, *, whole: bool) -> Teams:
    """The teams of an organization with this number.

    With their members and repositories if they are `whole`.
    """
    # One that went while the list was read is not found by its members.
    listed = await listing(api, path("orgs", organization, "teams"), GiteaTeam)
    found = Teams(listed.rows)
    owner = await _is_owner(api, organization)
    if isinstance(owner, Missing):
        found.doubt = owner
    elif owner:
        found.rights = {"ownership"}
    else:
        # Teams that are listed may be shown to everybody, without what is theirs.
        joined = await listing(api, "/user/teams", JoinedTeam)
        own = (one for one in joined.rows.values() if one.organization.id == number)
        found.rights = {f"team {team.name}" for team in own}
        # One who may not ask for them has none, and sees what is public.
        found.doubt = joined.missing if joined.missing and joined.missing.passing else None
    found.missing += [one for one in (listed.missing, found.doubt) if one and whole]
    if whole:
        await _complete(api, found)
    return found


async def read_organization_members(api: GiteaApi, organization: str) -> RowListing[GiteaMember]:
    """The members of an organization."""
    target = path("orgs", organization, "members")
    return await agreed(lambda: listing(api, target, GiteaMember))


async def _complete(api: GiteaApi, found: Teams) -> None:
    """Add the members and repositories of every team."""

    async def members(id_: int) -> RowListing[GiteaMember]:
        target = path("teams", str(id_), "members")
        return await agreed(lambda: listing(api, target, GiteaMember))

    async def repositories(id_: int) -> RowListing[TeamRepository]:
        if found.teams[id_].includes_all_repositories:
            return RowListing()
        target = path("teams", str(id_), "repos")
        return await agreed(lambda: listing(api, target, TeamRepository))

    for id_, people in (await each(found.teams, members)).items():
        found.members[id_] = set(people.rows)
        found.missing += [people.missing] if people.missing else []
    for id_, owned in (await each(found.teams, repositories)).items():
        found.repositories[id_] = set(owned.rows)
        found.missing += [owned.missing] if owned.missing else []


async def _is_owner(api: GiteaApi, organization: str) -> bool | Missing:
    """True if the account of the credential is an owner; false if that is not told."""
    account = await api.one("/user", GiteaAccount)
    found: GiteaPermissions | Missing
    if isinstance(account, Missing):
        found = account
    else:
        target = path("users", account.login, "orgs", organization, "permissions")
        found = await api.one(target, GiteaPermissions)
    if isinstance(found, Missing):
        return found if found.passing else False
    return found.is_owner
