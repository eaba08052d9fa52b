"""Types of Gitea's answers, limited to the fields that are read."""

from datetime import datetime
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from factbook.integrations.code_host import Slug

# Source: models/user/user_system.go of Gitea and Forgejo: the ghost, and below it their own actors.
_GHOST: Final = -1

Moment = Annotated[datetime, Meta(tz=True)]
Commit = Annotated[str, Meta(pattern=r"\A(?:[0-9a-f]{40}|[0-9a-f]{64})\Z")]


class GiteaRepository(msgspec.Struct):
    """Repository; `full_name` is its present one."""

    id: int
    full_name: Slug
    empty: bool
    default_branch: str = ""
    mirror: bool = False
    has_issues: bool = True
    has_pull_requests: bool = True
    external_tracker: Any = None


class GiteaUser(msgspec.Struct):
    """Account; the server's own accounts have negative ids."""

    login: str
    id: int = 0

    @property
    def is_gone(self) -> bool:
        """True if it stands for all deleted accounts."""
        return self.id == _GHOST

    @property
    def is_bot(self) -> bool:
        """True if it is one of the server's own, such as that of its actions."""
        return self.id < _GHOST


class GiteaPullRequest(msgspec.Struct):
    """Pull request; `merged_at` is None if it was not merged."""

    number: int
    title: str
    created_at: Moment
    updated_at: Moment
    merged_at: Moment | None = None
    user: GiteaUser | None = None


class PullOfIssue(msgspec.Struct):
    """Pull request as a list of issues shows it."""

    merged: bool


class GiteaIssue(msgspec.Struct):
    """Issue, or a pull request if `pull_request` is not None."""

    number: int
    closed_at: Moment | None = None
    pull_request: PullOfIssue | None = None


class BranchCommit(msgspec.Struct):
    """Commit at the head of a branch."""

    id: Commit


class GiteaBranch(msgspec.Struct):
    """Branch, as it appears to everyone with read access to the code.

    `effective_branch_protection_name` is empty unless the credential may administer the repository.
    """

    commit: BranchCommit
    protected: bool
    required_approvals: int | None = None
    enable_status_check: bool | None = None
    effective_branch_protection_name: str = ""


class ProtectionRule(msgspec.Struct):
    """Branch protection rule; None for fields that this version does not have.

    `block_admin_merge_override` is Gitea's name and `apply_to_admins` Forgejo's.
    """

    rule_name: str = ""
    branch_name: str = ""
    enable_force_push: bool | None = None
    enable_status_check: bool | None = None
    required_approvals: int | None = None
    block_on_official_review_requests: bool | None = None
    block_on_outdated_branch: bool | None = None
    dismiss_stale_approvals: bool | None = None
    require_signed_commits: bool | None = None
    block_admin_merge_override: bool | None = None
    apply_to_admins: bool | None = None


class GiteaTreeEntry(msgspec.Struct):
    """Entry of a tree: a file (`blob`), a folder (`tree`) or a submodule (`commit`)."""

    path: str
    type: str


class GiteaTreePage(msgspec.Struct):
    """Page of a tree; `truncated` if there are more, `total_count` if the server states it."""

    tree: list[GiteaTreeEntry]
    truncated: bool = False
    total_count: int | None = None
