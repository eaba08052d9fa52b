"""REST answers of the fake about groups, and about the account of a token."""

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from starlette.responses import Response

from tests.fakes.faults import as_json
from tests.fakes.gitlab.state import Account, Group, Project, Token

if TYPE_CHECKING:
    from tests.fakes.gitlab.app import FakeGitLab

_HOST = "https://gitlab.com"
_MOST_COUNTED = 10_000
_GROUP = re.compile(r"/api/v4/groups/([^/]+)(?:/(.+))?")
_KINDS = {
    None: "group",
    "descendant_groups": "subgroups",
    "projects": "group_projects",
    "members": "group_members",
    "members/all/1": "membership",
}
_NOT_FOUND = {"message": "404 Group Not Found"}


def kind(path: str) -> str:
    """The kind of a question, as `requests` counts it."""
    if path == "/api/v4/user":
        return "user"
    match = _GROUP.fullmatch(path)
    return _KINDS.get(match[2], "other") if match else "other"


def find(fake: "FakeGitLab", name: str, token: Token) -> Group | None:
    """The group of this number or path, if the token sees it."""
    for one in fake.groups:
        if name.lower() in {str(one.number), one.path.lower()} and _is_shown(one, token):
            return one
    return None


def projects_of(fake: "FakeGitLab", group: Group, token: Token) -> list[Project]:
    """The projects of a group and those below it that the token sees."""
    below = (one for one in fake.projects if _is_below(one.name, group.path))
    return [one for one in below if not _hidden(one.name, token)]


def said(fake: "FakeGitLab", token: Token, path: str, query: Mapping[str, str]) -> Response:
    """The answer to a question about a group."""
    if kind(path) == "user":
        return as_json({"id": 1, "username": "factbook"})
    match = _GROUP.fullmatch(path)
    found = match and find(fake, unquote(match[1]), token)
    if not (match and found):
        return as_json(_NOT_FOUND, 404)
    if kind(path) == "group":
        return as_json(
            {
                **_group(fake, found),
                "shared_with_groups": _shared(fake, found.invited, found.invited_until),
            }
        )
    if kind(path) == "membership":
        membership = {"id": 1, "username": "factbook", "access_level": 20}
        return as_json(membership) if token.is_member else as_json(_NOT_FOUND, 404)
    return _page(_rows(fake, token, found, kind(path), query), query)


def _rows(
    fake: "FakeGitLab", token: Token, found: Group, kind: str, query: Mapping[str, str]
) -> list[dict[str, Any]]:
    """The rows of a list of a group."""
    if kind == "subgroups":
        below = [one for one in fake.groups if _is_below(one.path, found.path)]
        if "min_access_level" in query:
            below = [one for one in below if not _hidden(one.path, token)]
        shown = [_group(fake, one) for one in below if _is_shown(one, token)]
        if "order_by" not in query:
            return sorted(shown, key=lambda one: str(one["name"]))
        assert query["order_by"] == "id"
        return sorted(shown, key=lambda one: int(one["id"]), reverse=query["sort"] == "desc")
    if kind == "group_projects":
        assert query["order_by"] == "id"
        several = projects_of(fake, found, token)
        several.sort(key=lambda one: one.number, reverse=query["sort"] == "desc")
        return [_project(fake, one) for one in several]
    return list(_members(fake, found))


def _is_below(path: str, group: str) -> bool:
    return path.startswith(f"{group}/")


def _is_shown(group: Group, token: Token) -> bool:
    return group.visibility == "public" or not _hidden(group.path, token)


def _hidden(path: str, token: Token) -> bool:
    parts = path.split("/")
    return any("/".join(parts[:depth]) in token.hidden for depth in range(1, len(parts) + 1))


def _group(fake: "FakeGitLab", one: Group) -> dict[str, Any]:
    return {
        "id": one.number,
        "name": one.name or one.path.rpartition("/")[2],
        "path": one.path.rpartition("/")[2],
        "full_path": one.path,
        "description": one.description or "",
        "visibility": one.visibility,
        "web_url": f"{_HOST}/groups/{one.path}",
        "parent_id": _number(fake, one.path.rpartition("/")[0]),
        "marked_for_deletion_on": one.marked_for_deletion_on,
    }


def _number(fake: "FakeGitLab", path: str) -> int | None:
    return next((one.number for one in fake.groups if one.path == path), None)


def _project(fake: "FakeGitLab", one: Project) -> dict[str, Any]:
    path = one.name.rpartition("/")[0]
    shown: dict[str, Any] = {
        "id": one.number,
        "path_with_namespace": one.name,
        "namespace": {"id": _number(fake, path) or 0, "kind": "group", "full_path": path},
        "web_url": f"{_HOST}/{one.name}",
        "description": one.description,
        "default_branch": one.branch if one.commits else None,
        "visibility": one.visibility,
        "archived": one.is_archived,
        "marked_for_deletion_on": one.marked_for_deletion_on,
        "topics": one.topics,
        "shared_with_groups": _shared(fake, one.shared_with, one.shared_until),
        "repository_access_level": "enabled" if one.has_repository else "disabled",
    }
    return shown | ({"forked_from_project": {"id": 9_999}} if one.is_fork else {})


def _shared(
    fake: "FakeGitLab", levels: Mapping[str, int], until: str | None = None
) -> list[dict[str, Any]]:
    return [
        {
            "group_id": _number(fake, group),
            "group_full_path": group,
            "group_access_level": level,
            "expires_at": until,
        }
        for group, level in levels.items()
    ]


def _members(fake: "FakeGitLab", group: Group) -> Iterator[dict[str, Any]]:
    accounts = {one.username: one for one in fake.accounts}
    for name in group.members:
        one: Account = accounts[name]
        yield {
            "id": one.number,
            "username": name,
            "name": one.name or name,
            "state": one.state,
            "access_level": 30,
            "web_url": f"{_HOST}/{name}",
            "avatar_url": f"{_HOST}/uploads/{name}.png",
        }


def _page(rows: list[dict[str, Any]], query: Mapping[str, str]) -> Response:
    size, number = int(query["per_page"]), int(query.get("page", 1))
    assert size <= 100
    response = as_json(rows[(number - 1) * size : number * size])
    if len(rows) <= _MOST_COUNTED:
        response.headers["x-total"] = str(len(rows))
    if number * size < len(rows):
        more = f"https://internal.example.com/api/v4/x?page={number + 1}&per_page={size}"
        response.headers["link"] = f'<{more}>; rel="next"'
    return response
