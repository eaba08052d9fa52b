"""Teams and members of an organization, each team with all its members and repositories."""

from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from factbook.importers.github import queries
from factbook.importers.github.answers import (
    AccessPage,
    ListedMember,
    ListedTeam,
    LoginPage,
    TeamAnswer,
)
from factbook.importers.github.lists import Listing, ListingQuery, listing
from factbook.integrations.code_host import ConnectionPosition
from factbook.integrations.github.answers import decoded
from factbook.integrations.github.graphql import GithubApi
from factbook.outbound.outcomes import UNUSABLE, Missing, too_many

Page = TypeVar("Page", LoginPage, AccessPage)

_TEAMS_IN_PAGE: Final = 25
_MEMBERS_IN_PAGE: Final = 100
# What a team has more of than so many pages of a hundred says nothing about who owns it.
_MOST_PAGES: Final = 20


@dataclass
class Team:
    """Team with everything that was read of it; `permissions` are by repository."""

    listed: ListedTeam
    logins: set[str] = field(default_factory=set)
    permissions: dict[int, str] = field(default_factory=dict)


@dataclass
class People:
    """The teams by slug and the members of an organization.

    `missing` says what was not read of the teams, and `missing_members` of the members. Secret
    teams are counted alone.
    """

    teams: dict[str, Team]
    members: list[ListedMember]
    missing: list[Missing]
    missing_members: list[Missing]
    rights: set[str]
    secret: int

    @property
    def logins(self) -> set[str] | None:
        """The logins of the members in lower case; None if some may be hidden.

        Whoever sees teams sees all members. Others see those who show that they are members.
        """
        if self.missing_members or not (self.teams or self.secret):
            return None
        return {one.login.lower() for one in self.members}


async def read_people(api: GithubApi, login: str) -> People:
    """The teams and members of an organization."""
    query = ListingQuery(queries.TEAMS, {}, _TEAMS_IN_PAGE)
    teams = await listing(api, login, query, ListedTeam)
    missing = [teams.missing] if teams.missing else []
    found: dict[str, Team] = {}
    shown = [one for one in teams.nodes.values() if one.privacy == "VISIBLE"]
    for one in shown:
        team, lost = await _whole(api, login, one)
        found[one.slug] = team
        missing += lost
    query = ListingQuery(queries.MEMBERS, {}, _MEMBERS_IN_PAGE)
    members = await listing(api, login, query, ListedMember)
    missing += [error.missing for error in _errors(teams)]
    lost = [members.missing] if members.missing else []
    lost += [error.missing for error in _errors(members)]
    secret = len(teams.nodes) - len(shown)
    return People(found, list(members.nodes.values()), missing, lost, teams.rights, secret)


def _errors(found: Listing[Any]) -> list[Any]:
    return [error for errors in found.errors.values() for error in errors]


async def _whole(api: GithubApi, login: str, listed: ListedTeam) -> tuple[Team, list[Missing]]:
    """A team with the further pages of its members and repositories."""
    team = Team(listed)
    rest = _Rest(api, login, listed.slug)
    logins = await rest.pages(queries.TEAM_MEMBERS, listed.members, LoginPage)
    for page in logins:
        team.logins |= {node.login for node in page.nodes if node}
    access = await rest.pages(queries.TEAM_REPOSITORIES, listed.repositories, AccessPage)
    for each in access:
        for edge in each.edges:
            if edge and edge.node.database_id is not None:
                team.permissions[edge.node.database_id] = edge.permission
    return team, rest.missing


class _Rest:
    """Reader of the further pages of one team."""

    def __init__(self, api: GithubApi, login: str, slug: str) -> None:
        self._api = api
        self._variables = {"login": login, "team": slug}
        self.missing: list[Missing] = []

    async def pages(self, document: str, first: Page, type_: type[Page]) -> list[Page]:
        """The first page and all after it."""
        found = [first]
        position: ConnectionPosition = first.page_info
        while position.has_next_page:
            if len(found) == _MOST_PAGES:
                self.missing.append(too_many(_MOST_PAGES * 100, "entries of one team"))
                break
            page = await self._page(document, position.end_cursor, type_)
            if isinstance(page, Missing):
                self.missing.append(page)
                break
            found.append(page)
            position = page.page_info
        return found

    async def _page(self, document: str, after: str | None, type_: type[Page]) -> Page | Missing:
        told = await self._api.ask(document, {**self._variables, "after": after})
        answer = decoded(told.data.get("organization", b""), TeamAnswer)
        if answer is None or answer.team is None:
            return told.failure or (told.errors[0].missing if told.errors else UNUSABLE)
        page = decoded(answer.team.page, type_)
        return page if isinstance(page, type_) else UNUSABLE


def owner_of(repository: int, teams: dict[str, Team]) -> str | None:
    """The only team that administers a repository, else the only one that maintains it."""
    for permission in ("ADMIN", "MAINTAIN"):
        slugs = [
            slug for slug, team in teams.items() if team.permissions.get(repository) == permission
        ]
        if len(slugs) == 1:
            return slugs[0]
        if slugs:
            return None
    return None
