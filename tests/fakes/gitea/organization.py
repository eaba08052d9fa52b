"""Answers of the fake about an organization, `acme`, and about the account of a token."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tests.fakes.gitea.said import NOT_FOUND, Said, refusal
from tests.fakes.gitea.state import Account, Repository, Team, Token, second

if TYPE_CHECKING:
    from tests.fakes.gitea.app import FakeGitea

NAME, NUMBER = "acme", 500
_ELSEWHERE = Team("core", 9_999)
_KINDS = {
    "search": re.compile(r"/repos/search"),
    "organization": re.compile(r"/orgs/([^/]+)"),
    "teams": re.compile(r"/orgs/([^/]+)/teams"),
    "members": re.compile(r"/orgs/([^/]+)/members"),
    "team_members": re.compile(r"/teams/(\d+)/members"),
    "team_repositories": re.compile(r"/teams/(\d+)/repos"),
    "account_teams": re.compile(r"/user/teams"),
    "account": re.compile(r"/user"),
    "permissions": re.compile(r"/users/factbook/orgs/([^/]+)/permissions"),
}


def kind(path: str) -> str:
    """The kind of a question, as `requests` counts it."""
    return next((name for name, one in _KINDS.items() if one.fullmatch(path)), "other")


def said(fake: "FakeGitea", token: Token, path: str, query: Mapping[str, str]) -> Said:
    """The answer to a question about the organization."""
    name = kind(path)
    match = _KINDS[name].fullmatch(path)
    assert match
    wanted = match[1] if match.groups() else ""
    if name.startswith("team_"):
        return _of_team(fake, int(wanted), name, query)
    if name == "search":
        return _search(fake, token, query)
    bodies = {
        "account": {"id": 99, "login": "factbook"},
        "organization": {"id": NUMBER, "name": NAME, "visibility": "private"},
        "permissions": {"is_owner": token.is_owner, "can_read": True},
    }
    if wanted.lower() not in {NAME, ""}:
        return NOT_FOUND
    if name in bodies:
        return Said(200, bodies[name])
    return _page(fake, token, name, query)


def _page(fake: "FakeGitea", token: Token, name: str, query: Mapping[str, str]) -> Said:
    """A page of people or teams."""
    if name == "members":
        return fake.page(fake.accounts, query, _account)
    if name == "account_teams":
        teams = [one for one in fake.teams if one.name in token.teams]
        return fake.page([*teams, _ELSEWHERE], query, _own_team)
    return fake.page(fake.teams, query, _team)


def _search(fake: "FakeGitea", token: Token, query: Mapping[str, str]) -> Said:
    assert (query["exclusive"], query["sort"]) == ("true", "id")
    if "repository" not in token.scopes:
        return refusal(403, "token does not have at least one of [read:repository]")
    several = [
        one
        for one in fake.repositories
        if one.name.partition("/")[0] == NAME
        and one.name not in token.hidden
        and query["uid"] == str(NUMBER)
    ]
    several.sort(key=lambda one: one.number, reverse=query["order"] == "desc")
    status, rows, total = fake.page(several, query, _repository)
    return Said(status, {"ok": True, "data": rows}, total)


def _of_team(fake: "FakeGitea", number: int, name: str, query: Mapping[str, str]) -> Said:
    found = next((one for one in fake.teams if one.number == number), None)
    if found is None:
        return NOT_FOUND
    if name == "team_members":
        accounts = [one for one in fake.accounts if one.login in found.members]
        return fake.page(accounts, query, _account)
    several = [one for one in fake.repositories if found.has_all or one.name in found.repositories]
    return fake.page(several, query, _repository)


def _repository(one: Repository) -> dict[str, Any]:
    return {
        "id": one.number,
        "full_name": one.name,
        "html_url": f"https://git.example.com/{one.name}",
        "description": one.description,
        "language": max(one.languages, key=lambda name: one.languages[name], default=""),
        "topics": one.topics or None,
        "empty": one.empty,
        "mirror": one.mirror,
        "private": one.is_private,
        "archived": one.is_archived,
        "fork": one.is_fork,
        "default_branch": one.branch,
        "updated_at": second(one.updated_at),
    }


def _team(one: Team) -> dict[str, Any]:
    return {
        "id": one.number,
        "name": one.name,
        "description": one.description,
        "permission": one.permission,
        "includes_all_repositories": one.has_all,
    }


def _own_team(one: Team) -> dict[str, Any]:
    number = NUMBER + 1 if one is _ELSEWHERE else NUMBER
    return {**_team(one), "organization": {"id": number}}


def _account(one: Account) -> dict[str, Any]:
    return {
        "id": one.number,
        "login": one.login,
        "full_name": one.name,
        "avatar_url": f"https://git.example.com/avatars/{one.number}",
        "html_url": f"https://git.example.com/{one.login}",
        "prohibit_login": not one.may_sign_in,
    }
