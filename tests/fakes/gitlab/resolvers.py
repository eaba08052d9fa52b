"""Values for the fields of GitLab's schema, and the complexity that GitLab reckons."""

from collections.abc import Callable, Sequence
from typing import Any

from graphql import (
    FieldNode,
    GraphQLError,
    IntValueNode,
    OperationDefinitionNode,
    SelectionSetNode,
    VariableNode,
)
from graphql import GraphQLResolveInfo as ResolveInfo

from tests.fakes.gitlab.state import Project, Request, Token, stamp

Value = dict[str, Any]
Info = ResolveInfo[Any]

_CONNECTIONS = {"mergeRequests", "issues", "projectMembers", "projects", "blobs"}
# What a field adds, beside one for each path of files.
_MORE = {"projects": 10}
_GITALY = {"empty", "rootRef", "tree", "lastCommit", "validateCodeownerFile", "blobs"}
# Of files that a variable names.
_PATHS = 20
PAGE = 100


def complexity(document: Any, variables: Value | None = None) -> int:
    """One for each field, one for each call of Gitaly, and 1 % more for each item of a page."""
    operations = [one for one in document.definitions if isinstance(one, OperationDefinitionNode)]
    return sum(_complexity(one.selection_set, variables or {}) for one in operations)


def _complexity(selections: SelectionSetNode | None, variables: Value) -> int:
    fields = selections.selections if selections else ()
    return sum(_of_field(node, variables) for node in fields if isinstance(node, FieldNode))


def _of_field(node: FieldNode, variables: Value) -> int:
    below = _complexity(node.selection_set, variables)
    name = node.name.value
    if name not in _CONNECTIONS:
        return below + 1 + (name in _GITALY)
    arguments = {one.name.value: one.value for one in node.arguments or ()}
    first = arguments.get("first")
    items = int(first.value) if isinstance(first, IntValueNode) else PAGE
    more = ("sort" in arguments) + _MORE.get(name, 0) + (name in _GITALY)
    if isinstance(paths := arguments.get("paths"), VariableNode):
        more += len(variables.get(paths.name.value, range(_PATHS)))
    return int((below + 1 + more) * (1 + min(items, PAGE) / 100))


def project(found: Project, token: Token) -> Value:
    """Every field of a project that is asked for."""
    reads = token.reads_repository and found.has_repository
    values: Value = {
        "id": f"gid://gitlab/Project/{found.number}",
        "fullPath": found.name,
        "mergeRequestsEnabled": found.has_requests,
        "issuesEnabled": found.has_issues,
        "languages": [{"name": name, "share": share} for name, share in found.languages.items()],
        "repository": _repository(found) if reads else None,
        "mergeRequests": _requests(found),
        "issues": _issues(found),
        "projectMembers": _members(found, token),
    }
    for name, message in found.failing.items():
        values[name] = _failing(message)
    return values


def _failing(message: str) -> Callable[..., None]:
    def fail(_: Info, **_arguments: Any) -> None:
        raise GraphQLError(message)

    return fail


def _repository(found: Project) -> Value:
    if found.commits == 0:
        nothing = {"empty": True, "rootRef": None, "tree": None, "validateCodeownerFile": None}
        return {**nothing, "blobs": lambda _, **_arguments: connection([], dict)}
    validation = {"total": found.codeowners_errors} if found.premium else None
    return {
        "empty": False,
        "rootRef": found.branch,
        "tree": {"lastCommit": {"sha": found.head}},
        "validateCodeownerFile": validation,
        "blobs": _blobs(found),
    }


def projects(
    several: Sequence[Project], token: Token, ids: Sequence[str] | None, **arguments: Any
) -> Value:
    """A page of the projects of a group."""
    chosen = [one for one in several if ids is None or f"gid://gitlab/Project/{one.number}" in ids]
    return connection(chosen, lambda one: project(one, token), **arguments)


def _blobs(found: Project) -> Callable[..., Value]:
    def blobs(_: Info, paths: Sequence[str], ref: str | None = None, **arguments: Any) -> Value:
        known = ref in {None, "HEAD", found.branch, found.head}
        chosen = [path for path in paths if known and path in found.files]
        return connection(chosen, lambda path: _blob(path, found.texts.get(path, b"")), **arguments)

    return blobs


def _blob(path: str, data: bytes) -> Value:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = None
    return {"path": path, "rawTextBlob": text, "size": str(len(data))}


def _requests(found: Project) -> Callable[..., Value]:
    def requests(
        _: Info, state: str = "all", mergedAfter: str = "", sort: str = "", **arguments: Any
    ) -> Value:
        chosen = [
            one
            for one in found.requests
            if found.has_requests
            and state in {"all", one.state}
            and (not mergedAfter or (one.merged_at and stamp(one.merged_at) >= mergedAfter))
        ]
        if sort == "MERGED_AT_DESC":
            chosen.sort(key=lambda one: one.merged_at or 0, reverse=True)
        return connection(chosen, _request, **arguments)

    return requests


def _request(one: Request) -> Value:
    return {
        "iid": str(one.iid),
        "title": one.title,
        "createdAt": stamp(one.created_at),
        "mergedAt": None if one.merged_at is None else stamp(one.merged_at),
        "author": one.author and {"username": one.author, "bot": one.is_bot},
    }


def _issues(found: Project) -> Callable[..., Value]:
    def issues(_: Info, state: str = "all", closedAfter: str = "", **arguments: Any) -> Value:
        chosen = [
            closed
            for closed in found.issues
            if found.has_issues
            and state in {"all", "opened" if closed is None else "closed"}
            and (not closedAfter or (closed and stamp(closed) >= closedAfter))
        ]
        return connection(chosen, dict, **arguments)

    return issues


def _members(found: Project, token: Token) -> Callable[..., Value | None]:
    def members(_: Info, relations: Sequence[str] = (), **arguments: Any) -> Value | None:
        assert "INHERITED" in relations
        return connection(found.members, _member, **arguments) if token.is_member else None

    return members


def _member(name: str) -> Value:
    """A membership; "" is an invitation that nobody has accepted."""
    user = {"username": name, "bot": False} if name else None
    return {"__typename": "ProjectMember", "user": user}


def connection(
    items: Sequence[Any],
    render: Callable[[Any], Value],
    first: int = PAGE,
    after: str | None = None,
) -> Value:
    """One page of the items, of at most a hundred."""
    start = int(after) if after else 0
    end = min(start + min(first, PAGE), len(items))

    def nodes(_: Info) -> list[Value]:
        return [render(item) for item in items[start:end]]

    cursor = str(end) if end > start else None
    info = {"hasNextPage": end < len(items), "endCursor": cursor, "hasPreviousPage": start > 0}
    return {"count": len(items), "nodes": nodes, "pageInfo": info}
