"""What a fake GitLab holds: projects, groups, people, and tokens with what they may see."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from factbook.clock import DAY, HOUR, iso
from tests.service import NOON


@dataclass
class Request:
    """A merge request; times are milliseconds since the epoch."""

    iid: int
    title: str = "A change"
    created_at: int = NOON - 2 * DAY
    merged_at: int | None = None
    author: str | None = "alice"
    is_bot: bool = False
    is_open: bool = False
    # Of very old ones GitLab has no time of merging.
    lost_its_time: bool = False

    @property
    def state(self) -> str:
        """As GitLab calls it."""
        if self.merged_at is not None or self.lost_its_time:
            return "merged"
        return "opened" if self.is_open else "closed"


@dataclass
class Project:
    """One project; `issues` are the times of closing, None of open ones.

    `approvals`, `approval_rules`, `push_rule` and `codeowners_errors` are shown with `premium`
    alone. `failing` are fields of GraphQL whose resolver fails, with what GitLab then says.
    """

    name: str
    number: int = 7
    old_names: list[str] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    has_requests: bool = True
    issues: list[int | None] = field(default_factory=list)
    has_issues: bool = True
    languages: dict[str, float] = field(default_factory=dict)
    members: list[str] = field(default_factory=list)
    branch: str = "main"
    commits: int = 1
    files: list[str] = field(default_factory=list)
    texts: dict[str, bytes] = field(default_factory=dict)
    submodules: list[str] = field(default_factory=list)
    settings: Mapping[str, Any] = field(default_factory=dict)
    protected: list[dict[str, Any]] = field(default_factory=list)
    premium: bool = True
    enterprise: bool = True
    approvals: Mapping[str, Any] = field(default_factory=dict)
    approval_rules: list[dict[str, Any]] = field(default_factory=list)
    push_rule: Mapping[str, Any] | None = None
    codeowners_errors: int = 0
    description: str | None = None
    topics: list[str] = field(default_factory=list)
    visibility: str = "private"
    is_archived: bool = False
    is_fork: bool = False
    shared_with: dict[str, int] = field(default_factory=dict)
    shared_until: str | None = None
    has_repository: bool = True
    failing: dict[str, str] = field(default_factory=dict)
    marked_for_deletion_on: str | None = None

    @property
    def head(self) -> str:
        """The commit at the tip of the default branch."""
        text = f"{self.number}/{self.commits}"
        return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


@dataclass
class Account:
    """One account."""

    username: str
    number: int
    name: str = ""
    state: str = "active"


@dataclass
class Group:
    """One group, with the names of its direct members."""

    path: str
    number: int
    members: list[str] = field(default_factory=list)
    name: str = ""
    description: str | None = None
    visibility: str = "private"
    # Groups that are invited into it by path, with their level of access.
    invited: dict[str, int] = field(default_factory=dict)
    invited_until: str | None = None
    marked_for_deletion_on: str | None = None


@dataclass
class Token:
    """A credential; `limit` calls until `reset_at`.

    What is `hidden` are projects and groups, by their paths; of a public group, what is in it. The
    token is of an account with the number one.
    """

    value: str
    is_maintainer: bool = True
    is_member: bool = True
    reads_repository: bool = True
    hidden: set[str] = field(default_factory=set)
    limit: int = 2_000
    used: int = 0
    reset_at: int = NOON + HOUR


def stamp(moment: int) -> str:
    """The time in GitLab's form."""
    return f"{iso(moment)[:19]}Z"
