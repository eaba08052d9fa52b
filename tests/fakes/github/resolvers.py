"""Values for the fields of GitHub's schema, from the state and what a token may see."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphql import GraphQLError
from graphql import GraphQLResolveInfo as ResolveInfo

from tests.fakes.github.organization import Organization, listed
from tests.fakes.github.state import CLASSIC, Issue, Pull, Repository, Ruleset, Token, stamp

Value = dict[str, Any]
Info = ResolveInfo[Any]
Find = Callable[[str], Repository | None]

_PARAMETERS: dict[str, Value] = {
    "PULL_REQUEST": {
        "__typename": "PullRequestParameters",
        "dismissStaleReviewsOnPush": False,
        "requireCodeOwnerReview": False,
        "requireLastPushApproval": False,
        "requiredApprovingReviewCount": 0,
    },
    "REQUIRED_STATUS_CHECKS": {
        "__typename": "RequiredStatusChecksParameters",
        "strictRequiredStatusChecksPolicy": False,
        "requiredStatusChecks": [{"context": "build"}],
    },
}


class Root:
    """The root of a query asked with one token."""

    def __init__(
        self,
        find: Find,
        by_id: Mapping[str, Repository],
        token: Token,
        organization: Callable[[str, Token], Organization | None] = lambda login, token: None,
    ) -> None:
        self._find = find
        self._by_id = by_id
        self._token = token
        self._organization = organization

    def organization(self, _: Info, login: str) -> Value | None:
        """The organization of a login."""
        found = self._organization(login, self._token)
        if found is None:
            text = f"Could not resolve to an Organization with the login of '{login}'."
            raise _error(text, "NOT_FOUND")
        return found.fields(_pages, repository)

    def repository(self, _: Info, owner: str, name: str, **_arguments: Any) -> Value | None:
        """The repository of a name, also of one that it had before."""
        found = self._find(f"{owner}/{name}")
        if found is None or found.name in self._token.hidden:
            text = f"Could not resolve to a Repository with the name '{owner}/{name}'."
            raise _error(text, "NOT_FOUND")
        return repository(found, self._token)

    def node(self, _: Info, id: str) -> Value | None:
        """The repository of an id."""
        found = self._by_id.get(id)
        if found is None or found.name in self._token.hidden:
            raise _error(f"Could not resolve to a node with the global id of '{id}'", "NOT_FOUND")
        return {"__typename": "Repository", **repository(found, self._token)}

    def nodes(self, info: Info, ids: Sequence[str]) -> list[Value | GraphQLError | None]:
        """The rulesets and repositories of these ids, an error in the place of any other."""
        rulesets = {one.id: one for found in self._by_id.values() for one in found.rulesets}
        return [
            self._ruleset(rulesets[id_]) if id_ in rulesets else self._repository(info, id_)
            for id_ in ids
        ]

    def _repository(self, info: Info, id_: str) -> Value | GraphQLError:
        try:
            return self.node(info, id_) or {}
        except GraphQLError as error:
            return error

    def _ruleset(self, ruleset: Ruleset) -> Value:
        actors = _pages([_bypassing(one) for one in ruleset.bypass])
        typed = {"__typename": "RepositoryRuleset", "id": ruleset.id}
        return {**typed, "bypassActors": actors if self._token.administers else None}

    def rateLimit(self, _: Info) -> Value:
        """What is left of the limit."""
        left = self._token.limits["graphql"] - self._token.used["graphql"]
        reset = stamp(self._token.reset_at)
        return {"cost": 1, "remaining": left, "resetAt": reset, "nodeCount": 0}


def _bypassing(who: str) -> Value:
    name, _, mode = who.partition(":")
    actor = {"__typename": name} if name in {"App", "Team"} else None
    return {"bypassMode": mode or "ALWAYS", "deployKey": name == "DeployKey", "actor": actor}


def repository(found: Repository, token: Token) -> Value:
    """Every field of a repository that is asked for."""
    branch = None if found.is_empty or not token.reads_contents else _branch(found, token)
    values: Value = {
        "id": found.id,
        "nameWithOwner": found.name,
        "isEmpty": found.is_empty,
        "viewerPermission": None if token.is_app else token.permission,
        "hasIssuesEnabled": found.has_issues,
        "hasVulnerabilityAlertsEnabled": found.has_alerts,
        "languages": _pages([{"name": name} for name in found.languages]),
        "collaborators": _collaborators(found, token),
        "codeowners": _codeowners(found),
        "vulnerabilityAlerts": _alerts(found, token),
        "defaultBranchRef": branch,
        "pullRequests": _pulls(found),
        "issues": _issues(found),
        **listed(found, token),
    }
    for name, type_ in found.failing.items():
        values[name] = _failing(type_)
    return values


def _failing(type_: str | None) -> Callable[..., None]:
    def fail(_: Info, **_arguments: Any) -> None:
        raise _error("Something went wrong while executing your query.", type_)

    return fail


def _error(text: str, type_: str | None) -> GraphQLError:
    return GraphQLError(text, extensions={"type": type_} if type_ else {})


def connection(
    items: Sequence[Any],
    first: int | None = None,
    after: str | None = None,
    render: Callable[[Any], Value] = lambda item: item,
) -> Value:
    """One page of the items."""
    start = int(after) if after else 0
    page = [render(item) for item in items[start : start + (first or 0)]]
    end = start + len(page)
    info = {"hasNextPage": end < len(items), "endCursor": str(end) if page else None}
    return {"totalCount": len(items), "nodes": page, "pageInfo": info}


def _pages(
    items: Sequence[Any], render: Callable[[Any], Value] = lambda item: item
) -> Callable[..., Value]:
    def page(
        _: Info,
        first: int | None = None,
        after: str | None = None,
        **_arguments: Any,
    ) -> Value:
        assert first is None or first <= 100
        return connection(items, first, after, render)

    return page


def _pulls(found: Repository) -> Callable[..., Value]:
    def pulls(info: Info, states: Sequence[str] = (), **arguments: Any) -> Value:
        chosen = [pull for pull in found.pulls if not states or _state(pull) in states]
        if "first" in arguments:
            assert arguments.pop("orderBy") == {"field": "UPDATED_AT", "direction": "DESC"}
            chosen.sort(key=lambda pull: pull.updated_at, reverse=True)
        return _pages(chosen, _LazyPull)(info, **arguments)

    return pulls


class _LazyPull(dict[str, Any]):
    """A pull request whose fields are made when they are read."""

    def __init__(self, pull: Pull) -> None:
        super().__init__()
        self._pull = pull

    def get(self, key: str, default: Any = None) -> Any:
        return _PULL_FIELDS[key](self._pull)


_PULL_FIELDS: dict[str, Callable[[Pull], Any]] = {
    "number": lambda pull: pull.number,
    "title": lambda pull: pull.title,
    "createdAt": lambda pull: stamp(pull.created_at),
    "mergedAt": lambda pull: None if pull.merged_at is None else stamp(pull.merged_at),
    "updatedAt": lambda pull: stamp(pull.updated_at),
    "author": lambda pull: (
        pull.author and {"__typename": "Bot" if pull.is_bot else "User", "login": pull.author}
    ),
}


def _state(pull: Pull) -> str:
    if pull.merged_at is not None:
        return "MERGED"
    return "OPEN" if pull.is_open else "CLOSED"


def _issues(found: Repository) -> Callable[..., Value]:
    def issues(
        info: Info,
        states: Sequence[str] = (),
        filterBy: Mapping[str, Any] | None = None,
        **arguments: Any,
    ) -> Value:
        since = (filterBy or {}).get("since", "")
        chosen = [
            issue
            for issue in found.issues
            if (not states or ("OPEN" if issue.closed_at is None else "CLOSED") in states)
            and stamp(issue.updated_at) >= since
        ]
        chosen.sort(key=lambda issue: issue.updated_at, reverse=True)
        return _pages([_issue(issue) for issue in chosen])(info, **arguments)

    return issues


def _issue(issue: Issue) -> Value:
    closed = None if issue.closed_at is None else stamp(issue.closed_at)
    return {"number": issue.number, "closedAt": closed}


def _collaborators(found: Repository, token: Token) -> Callable[..., Value]:
    def collaborators(info: Info, **arguments: Any) -> Value:
        if not token.pushes:
            text = "Must have push access to view repository collaborators."
            raise _error(text, "FORBIDDEN")
        return _pages([{"login": login} for login in found.collaborators])(info, **arguments)

    return collaborators


def _codeowners(found: Repository) -> Value | None:
    if found.codeowners_errors is None:
        return None
    error = {"kind": "Unknown owner", "path": ".github/CODEOWNERS", "line": 1}
    return {"errors": [error] * found.codeowners_errors}


def _alerts(found: Repository, token: Token) -> Callable[..., Value]:
    def alerts(_: Info, states: Sequence[str], **_arguments: Any) -> Value:
        if not token.sees_alerts:
            if token.alerts_refused:
                raise _error(f"Resource not accessible by {token.kind}", "FORBIDDEN")
            return {"totalCount": 0}
        return {"totalCount": sum(found.alerts.get(state, 0) for state in states)}

    return alerts


def _branch(found: Repository, token: Token) -> Value:
    classic = None if found.classic is None else {**CLASSIC, **found.classic}
    rules = [
        {
            "type": type_,
            "parameters": {**_PARAMETERS[type_], **parameters} if type_ in _PARAMETERS else None,
            "repositoryRuleset": {"id": ruleset.id},
        }
        for ruleset in found.rulesets
        for type_, parameters in ruleset.rules
    ]
    administers = token.administers and not token.is_kept_from_rules
    seen = administers or token.sees_update_rule
    return {
        "name": found.branch,
        "target": {"__typename": "Commit", "oid": found.head},
        "branchProtectionRule": classic if administers else None,
        "refUpdateRule": _update_rule(classic) if classic and seen else None,
        "rules": _pages(rules),
    }


def _update_rule(classic: Value) -> Value:
    """The part of a classic rule that everybody may see."""
    return {**classic, "requiresSignatures": classic["requiresCommitSignatures"]}
