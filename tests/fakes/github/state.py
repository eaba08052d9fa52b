"""What a fake GitHub holds: repositories, and tokens with what they may see."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from factbook.clock import DAY, HOUR, iso
from tests.service import NOON

Permission = Literal["ADMIN", "MAINTAIN", "WRITE", "TRIAGE", "READ"]
Visibility = Literal["PUBLIC", "INTERNAL", "PRIVATE"]


@dataclass
class Pull:
    """A pull request; times are milliseconds since the epoch."""

    number: int
    title: str = "A change"
    created_at: int = NOON - 2 * DAY
    merged_at: int | None = None
    updated_at: int = NOON - DAY
    author: str | None = "alice"
    is_bot: bool = False
    is_open: bool = False


@dataclass
class Issue:
    """An issue; closed when it has a time for that."""

    number: int
    closed_at: int | None = None
    updated_at: int = NOON - DAY


@dataclass
class Ruleset:
    """An active ruleset for the default branch: (type, parameters) of its rules.

    `bypass` are those who may bypass it: "App", "Team", "DeployKey", or else a role or an owner,
    with ":PULL_REQUEST" behind it for pull requests only.
    """

    id: str
    rules: list[tuple[str, Mapping[str, Any]]]
    bypass: list[str] = field(default_factory=list)


# What administrators see of a classic rule that demands nothing.
CLASSIC: Mapping[str, Any] = {
    "allowsDeletions": False,
    "allowsForcePushes": False,
    "blocksCreations": False,
    "dismissesStaleReviews": False,
    "isAdminEnforced": False,
    "requireLastPushApproval": False,
    "requiredApprovingReviewCount": None,
    "requiresCodeOwnerReviews": False,
    "requiresCommitSignatures": False,
    "requiresLinearHistory": False,
    "requiresStatusChecks": False,
    # What GitHub says although no checks are required.
    "requiresStrictStatusChecks": True,
}


@dataclass
class Repository:
    """One repository; `name` is owner/name, `classic` overrides parts of CLASSIC."""

    name: str
    old_names: list[str] = field(default_factory=list)
    pulls: list[Pull] = field(default_factory=list)
    issues: list[Issue] = field(default_factory=list)
    has_issues: bool = True
    languages: list[str] = field(default_factory=list)
    collaborators: list[str] = field(default_factory=list)
    branch: str = "main"
    commits: int = 1
    files: list[str] = field(default_factory=list)
    texts: dict[str, bytes] = field(default_factory=dict)
    # Files of other branches, by the name of the branch.
    branches: dict[str, dict[str, bytes]] = field(default_factory=dict)
    submodules: list[str] = field(default_factory=list)
    classic: Mapping[str, Any] | None = None
    rulesets: list[Ruleset] = field(default_factory=list)
    codeowners_errors: int | None = None
    has_alerts: bool = True
    alerts: dict[str, int] = field(default_factory=dict)
    plan_has_protection: bool = True
    # Fields whose resolver fails, as when GitHub is overloaded: {"pullRequests": None}, or with
    # the type of the error: {"codeowners": "FORBIDDEN"}.
    failing: dict[str, str | None] = field(default_factory=dict)
    too_heavy: bool = False
    number: int = 0
    description: str | None = None
    topics: list[str] = field(default_factory=list)
    visibility: Visibility = "PRIVATE"
    is_archived: bool = False
    is_fork: bool = False

    @property
    def database_id(self) -> int:
        """The number, which survives a new name as the node id does."""
        return self.number or int(self.id[2:10], 16) // 2

    @property
    def id(self) -> str:
        """The node id, which survives a new name."""
        first = self.old_names[0] if self.old_names else self.name
        return f"R_{hashlib.sha256(first.encode()).hexdigest()[:16]}"

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever committed."""
        return self.commits == 0

    @property
    def head(self) -> str:
        """The commit at the tip of the default branch."""
        return hashlib.sha1(f"{self.id}{self.commits}".encode(), usedforsecurity=False).hexdigest()


@dataclass
class Team:
    """A team of an organization, or of all: its members by login, its permissions by repository."""

    slug: str
    number: int
    members: list[str] = field(default_factory=list)
    permissions: dict[str, Permission] = field(default_factory=dict)
    parent: str | None = None
    description: str | None = None
    is_secret: bool = False
    organization: str = ""


@dataclass
class Member:
    """A member of some organizations, or of all of them."""

    login: str
    number: int
    name: str | None = None
    organizations: list[str] = field(default_factory=list)


@dataclass
class Token:
    """A credential. What it may read follows from its permission unless said otherwise."""

    value: str
    permission: Permission = "ADMIN"
    is_app: bool = False
    reads_administration: bool | None = None
    sees_update_rule: bool = False
    # GraphQL shows no classic rule although REST does.
    is_kept_from_rules: bool = False
    reads_alerts: bool | None = None
    # What GraphQL does without the right to alerts: count none, or refuse.
    alerts_refused: bool = False
    reads_contents: bool = True
    reads_teams: bool = True
    is_member: bool = True
    hidden: set[str] = field(default_factory=set)
    limits: dict[str, int] = field(default_factory=lambda: {"core": 5_000, "graphql": 5_000})
    used: dict[str, int] = field(default_factory=lambda: {"core": 0, "graphql": 0})
    reset_at: int = NOON + HOUR
    expires_at: int | None = None

    @property
    def administers(self) -> bool:
        """Whether branch protection may be read."""
        if self.reads_administration is not None:
            return self.reads_administration
        return self.permission == "ADMIN"

    @property
    def sees_alerts(self) -> bool:
        """Whether dependency alerts may be read."""
        return self.administers if self.reads_alerts is None else self.reads_alerts

    @property
    def pushes(self) -> bool:
        """Whether collaborators may be read."""
        return self.permission in {"ADMIN", "MAINTAIN", "WRITE"}

    @property
    def kind(self) -> str:
        """What a refusal calls it."""
        return "integration" if self.is_app else "personal access token"


def stamp(moment: int) -> str:
    """The time in GitHub's form."""
    return f"{iso(moment)[:19]}Z"
