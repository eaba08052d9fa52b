"""Values for the fields of an organization: its repositories, teams and members."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphql import GraphQLError
from graphql import GraphQLResolveInfo as ResolveInfo

from tests.fakes.github.state import Member, Repository, Team, Token

Value = dict[str, Any]
Info = ResolveInfo[Any]
Page = Callable[..., Value]

# GitHub says of larger files what they have, and gives a part of the text.
_LONGEST_TEXT = 512 * 1024


class Organization:
    """One organization, as a token sees it."""

    def __init__(
        self,
        login: str,
        repositories: Sequence[Repository],
        teams: Sequence[Team],
        members: Sequence[Member],
        token: Token,
    ) -> None:
        self._login = login
        self._repositories = [
            one
            for one in repositories
            if one.name.lower().startswith(f"{login.lower()}/") and one.name not in token.hidden
        ]
        self._teams = [one for one in teams if one.organization in ("", login)]
        self._members = [one for one in members if login in (one.organizations or [login])]
        self._token = token

    def fields(self, pages: Callable[..., Page], repository: Callable[..., Value]) -> Value:
        """Every field that is asked for; `pages` makes a connection."""
        numbers = {one.name: one.database_id for one in self._repositories}
        token = self._token
        by_slug = {team.slug: _team(team, numbers, pages) for team in self._teams}

        def teams(info: Info, **arguments: Any) -> Value:
            self._check()
            ordered = [by_slug[slug] for slug in sorted(by_slug)]
            return pages(ordered)(info, **arguments)

        def members(info: Info, **arguments: Any) -> Value:
            self._check()
            return pages([_member(one) for one in self._members])(info, **arguments)

        return {
            "login": self._login,
            "viewerIsAMember": token.is_member,
            "viewerCanAdminister": False,
            "repositories": pages(self._repositories, lambda one: repository(one, token)),
            "teams": teams,
            "membersWithRole": members,
            "team": lambda _, slug: by_slug.get(slug),
        }

    def _check(self) -> None:
        if not self._token.reads_teams:
            text = f"Resource not accessible by {self._token.kind}"
            raise GraphQLError(text, extensions={"type": "FORBIDDEN"})


def listed(found: Repository, token: Token) -> Value:
    """The fields of a repository that only listings and files ask for."""
    language = {"name": found.languages[0]} if found.languages else None
    topics = {"nodes": [{"topic": {"name": name}} for name in found.topics]}
    return {
        "databaseId": found.database_id,
        "isArchived": found.is_archived,
        "isFork": found.is_fork,
        "visibility": found.visibility,
        "description": found.description,
        "url": f"https://github.com/{found.name}",
        "primaryLanguage": language,
        "repositoryTopics": lambda _, **arguments: topics,
        "object": _object(found, token),
    }


def _object(found: Repository, token: Token) -> Callable[..., Value | None]:
    def file(_: Info, expression: str) -> Value | None:
        ref, path = expression.split(":", 1)
        if found.is_empty or not token.reads_contents:
            return None
        is_default = ref in {"HEAD", found.branch, found.head}
        texts = found.texts if is_default else found.branches.get(ref, {})
        return _blob(texts[path]) if path in texts else None

    return file


def _blob(data: bytes) -> Value:
    try:
        text: str | None = data[:_LONGEST_TEXT].decode()
    except UnicodeDecodeError:
        text = None
    is_truncated = len(data) > _LONGEST_TEXT
    size = {"byteSize": len(data), "isTruncated": is_truncated}
    return {"__typename": "Blob", "text": text, **size}


def _team(team: Team, numbers: Mapping[str, int], pages: Callable[..., Page]) -> Value:
    edges = [
        {"permission": permission, "node": {"databaseId": numbers.get(name)}}
        for name, permission in team.permissions.items()
        if name in numbers
    ]

    def repositories(info: Info, **arguments: Any) -> Value:
        page = pages(edges)(info, **arguments)
        return {**page, "edges": page["nodes"]}

    return {
        "databaseId": team.number,
        "slug": team.slug,
        "name": team.slug.title(),
        "description": team.description,
        "privacy": "SECRET" if team.is_secret else "VISIBLE",
        "url": f"https://github.com/orgs/acme/teams/{team.slug}",
        "parentTeam": team.parent and {"slug": team.parent},
        "members": pages([{"login": login} for login in team.members]),
        "repositories": repositories,
    }


def _member(member: Member) -> Value:
    url = f"https://github.com/{member.login}"
    fields = {"databaseId": member.number, "login": member.login, "name": member.name, "url": url}
    return {**fields, "avatarUrl": lambda _, **arguments: f"{url}.png"}
