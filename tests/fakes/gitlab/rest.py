"""REST answers of the fake about one project."""

import base64
import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from starlette.responses import Response

from tests.fakes.faults import as_json
from tests.fakes.gitlab.state import Project, Token

MOST_COUNTED = 10_000
_KINDS = {
    None: "project",
    "protected_branches": "protected",
    "approvals": "approvals",
    "approval_rules": "approval_rules",
    "push_rule": "push_rule",
    "members/all": "members",
    "repository/tree": "tree",
}
_FILE = re.compile(r"repository/files/([^/]+)/raw")
SETTINGS: Mapping[str, Any] = {
    "merge_method": "merge",
    "only_allow_merge_if_pipeline_succeeds": False,
    "merge_trains_enabled": False,
}
APPROVALS: Mapping[str, Any] = {
    "reset_approvals_on_push": True,
    "merge_requests_disable_committers_approval": False,
    "merge_requests_author_approval": False,
}


def kind(resource: str | None) -> str:
    """What is asked about a project, by the path below it."""
    return "file" if _FILE.fullmatch(resource or "") else _KINDS.get(resource, "other")


def said(found: Project, token: Token, resource: str | None, query: Mapping[str, str]) -> Response:
    """The answer to a question about a project."""
    name = kind(resource)
    if match := _FILE.fullmatch(resource or ""):
        query = {**query, "path": unquote(match[1])}
    if name in _OPEN:
        return _OPEN[name](found, token, query)
    if name == "other" or (name != "protected" and not found.premium):
        return as_json({"message": "404 Not Found"}, 404)
    if not token.is_maintainer:
        return _refused()
    if name == "protected":
        return _page([_protected(found, one) for one in found.protected], query)
    if name == "approval_rules":
        return _page(found.approval_rules, query)
    settings = {**APPROVALS, **found.approvals}
    rule = None if found.push_rule is None else {"id": 1, "member_check": False, **found.push_rule}
    return as_json(settings if name == "approvals" else rule)


def _project(found: Project, token: Token, _: Mapping[str, str]) -> Response:
    names = {"id": found.number, "path_with_namespace": found.name}
    shown = {**SETTINGS, **found.settings} if token.is_member else {}
    return as_json({**names, **shown})


def _refused() -> Response:
    return as_json({"message": "403 Forbidden"}, 403)


def _protected(found: Project, rule: dict[str, Any]) -> dict[str, Any]:
    """A rule as it is shown: what is of Enterprise is left out where it is not."""
    shown = {"id": 1, "name": found.branch, "allow_force_push": False, **rule}
    if found.premium:
        shown = {"code_owner_approval_required": False, "inherited": False} | shown
    return shown


def _page(items: Sequence[Any], query: Mapping[str, str]) -> Response:
    """A page by its number."""
    size, number = int(query["per_page"]), int(query.get("page", 1))
    assert size <= 100
    response = as_json(items[(number - 1) * size : number * size])
    if number * size < len(items):
        _link(response, f"page={number + 1}&per_page={size}")
    return response


def _link(response: Response, query: str) -> None:
    """The host calls itself as its settings say, which behind a proxy is another name."""
    response.headers["link"] = f'<https://internal.example.com/api/v4/x?{query}>; rel="next"'


def _members(found: Project, token: Token, query: Mapping[str, str]) -> Response:
    if not token.is_member:
        return _refused()
    response = _page([{"username": name} for name in found.members], query)
    if len(found.members) <= MOST_COUNTED:
        response.headers["x-total"] = str(len(found.members))
    return response


def _tree(found: Project, token: Token, query: Mapping[str, str]) -> Response:
    if not token.reads_repository:
        return _refused()
    if query["ref"] != found.head:
        return as_json({"message": "404 Tree Not Found"}, 404)
    assert (query["recursive"], query["pagination"]) == ("true", "keyset")
    size = int(query["per_page"])
    assert size <= 100
    entries = _entries(tuple(found.files), tuple(found.submodules))
    after = base64.urlsafe_b64decode(query.get("page_token", "")).decode()
    start = bisect_right(entries, after, key=lambda entry: entry[0])
    page = entries[start : start + size]
    response = as_json([{"id": "1", "path": path, "type": type_} for path, type_ in page])
    if start + size < len(entries):
        last = base64.urlsafe_b64encode(page[-1][0].encode()).decode()
        _link(response, f"page_token={last}&per_page={size}&pagination=keyset")
    return response


def _file(found: Project, token: Token, query: Mapping[str, str]) -> Response:
    """The bytes of a file; its path is one part of the address."""
    if not token.reads_repository:
        return _refused()
    path = query["path"]
    if path not in found.files or query.get("ref", "HEAD") != "HEAD":
        return as_json({"message": "404 File Not Found"}, 404)
    return Response(found.texts.get(path, b""), media_type="text/plain")


@lru_cache(maxsize=8)
def _entries(files: tuple[str, ...], submodules: tuple[str, ...]) -> list[tuple[str, str]]:
    """Everything in the tree by path: files, folders and submodules."""
    entries = dict.fromkeys(files, "blob") | dict.fromkeys(submodules, "commit")
    for path in list(entries):
        parts = path.split("/")
        entries |= {"/".join(parts[:depth]): "tree" for depth in range(1, len(parts))}
    return sorted(entries.items())


_OPEN: Mapping[str, Callable[[Project, Token, Mapping[str, str]], Response]] = {
    "project": _project,
    "members": _members,
    "tree": _tree,
    "file": _file,
}
