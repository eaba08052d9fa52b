"""What a fake Gitea holds, and the forms in which it says so: those of Gitea 1.27."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any, Literal

from factbook.clock import DAY, SECOND
from tests.service import NOON

# Who opens pull requests in workflows.
ACTIONS = "gitea-actions"
_ZONE = timezone(timedelta(hours=2))


@dataclass
class Token:
    """An access token; `hidden` names repositories that are not there for it.

    `teams` are those of its account, unless that is an owner of the organization.
    """

    value: str
    permission: Literal["read", "write", "admin"] = "admin"
    scopes: frozenset[str] = frozenset({"repository", "issue"})
    hidden: frozenset[str] = frozenset()
    is_owner: bool = True
    teams: frozenset[str] = frozenset()


@dataclass
class Pull:
    """A pull request; times are milliseconds since the epoch."""

    number: int
    title: str = "A change"
    created_at: int = NOON - 2 * DAY
    merged_at: int | None = None
    updated_at: int = NOON - DAY
    author: str | None = "alice"
    is_open: bool = False


@dataclass
class Issue:
    """An issue; closed when it has a time for that."""

    number: int
    closed_at: int | None = None
    updated_at: int = NOON - DAY


@dataclass
class Account:
    """One account."""

    login: str
    number: int
    name: str = ""
    may_sign_in: bool = True


@dataclass
class Team:
    """A team of the organization, with the names of its members and repositories."""

    name: str
    number: int
    members: list[str] = field(default_factory=list)
    repositories: list[str] = field(default_factory=list)
    permission: str = "write"
    has_all: bool = False
    description: str = ""


# What an administrator of Gitea sees of a rule that demands nothing.
RULE: Mapping[str, Any] = {
    "branch_name": "",
    "rule_name": "main",
    "enable_push": True,
    "enable_force_push": False,
    "enable_status_check": False,
    "status_check_contexts": [],
    "required_approvals": 0,
    "block_on_official_review_requests": False,
    "block_on_outdated_branch": False,
    "dismiss_stale_approvals": False,
    "ignore_stale_approvals": False,
    "require_signed_commits": False,
    "block_admin_merge_override": False,
}


def as_forgejo(**settings: Any) -> dict[str, Any]:
    """A rule as Forgejo gives it, which knows no force pushes and has another word for admins."""
    rule = {**RULE, "apply_to_admins": False} | settings
    giteas = {"enable_force_push", "block_admin_merge_override"}
    return {name: rule[name] for name in rule.keys() - giteas}


@dataclass
class Repository:
    """One repository; `name` is owner/name. `rule` protects the default branch."""

    name: str
    old_names: list[str] = field(default_factory=list)
    pulls: list[Pull] = field(default_factory=list)
    issues: list[Issue] = field(default_factory=list)
    languages: dict[str, int] = field(default_factory=dict)
    collaborators: list[str] = field(default_factory=list)
    branch: str = "main"
    commits: int = 1
    files: list[str] = field(default_factory=list)
    texts: dict[str, bytes] = field(default_factory=dict)
    submodules: list[str] = field(default_factory=list)
    rule: Mapping[str, Any] | None = None
    other_rules: list[Mapping[str, Any]] = field(default_factory=list)
    empty: bool = False
    mirror: bool = False
    has_issues: bool = True
    has_pulls: bool = True
    has_code: bool = True
    external_tracker: bool = False
    number: int = 0
    description: str = ""
    topics: list[str] = field(default_factory=list)
    is_private: bool = True
    is_archived: bool = False
    is_fork: bool = False
    updated_at: int = NOON - DAY

    @property
    def commit(self) -> str:
        """The commit that the default branch is at."""
        return f"{self.commits:040x}"


def second(moment: int) -> str:
    """A time as Gitea gives it, without fractions and in the time zone of the server."""
    return datetime.fromtimestamp(moment // SECOND, _ZONE).isoformat()


def user(name: str | None) -> dict[str, Any]:
    """An account; that of everybody who is gone is Gitea's ghost, and below it are its own."""
    if name is None:
        return {"id": -1, "login": "Ghost"}
    return {"id": -2 if name == ACTIONS else 1, "login": name}


def pull(one: Pull) -> dict[str, Any]:
    """A pull request of a list."""
    return {
        "number": one.number,
        "title": one.title,
        "state": "open" if one.is_open else "closed",
        "user": user(one.author),
        "merged": one.merged_at is not None,
        "merged_at": None if one.merged_at is None else second(one.merged_at),
        "created_at": second(one.created_at),
        "updated_at": second(one.updated_at),
    }


def issue(one: Issue) -> dict[str, Any]:
    """An issue of a list."""
    return {
        "number": one.number,
        "closed_at": None if one.closed_at is None else second(one.closed_at),
        "updated_at": second(one.updated_at),
        "pull_request": None,
    }


def pull_as_issue(one: Pull) -> dict[str, Any]:
    """A pull request of a list of issues."""
    told = pull(one)
    merged = {"merged": told["merged"], "merged_at": told["merged_at"], "draft": False}
    closed = None if one.is_open else told["updated_at"]
    return {"number": one.number, "closed_at": closed, "pull_request": merged}


def entry(path: str, type_: str) -> dict[str, Any]:
    """An entry of a tree."""
    return {"path": path, "type": type_, "mode": "100644", "size": 1, "sha": "0" * 40}
