"""Types of GitLab's answers; an answer of another form is rejected on decoding.

Fields that may be null for lack of permission are null here; `ProjectData.errors` has the reason.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Final, Generic, TypeVar

import msgspec
from msgspec import Meta

from factbook.integrations.code_host import GraphqlStruct, NodePage
from factbook.outbound.outcomes import Missing, Outcome

T = TypeVar("T")

HIDDEN: Final = Missing(Outcome.DENIED, "hidden from the credential")
NO_REPOSITORY: Final = Missing(Outcome.DENIED, "the credential may not read the repository")
NO_BRANCH: Final = Missing(Outcome.NOT_FOUND, "there is no default branch")
NO_PREMIUM: Final = Missing(Outcome.FEATURE_OFF, "not part of the plan, or of this edition")

Number = Annotated[int, Meta(ge=0, le=2_147_483_647)]
Moment = Annotated[datetime, Meta(tz=True)]


class GitlabCount(GraphqlStruct):
    """The size of a connection."""

    count: Number


class GitlabNodePage(NodePage[T], Generic[T]):
    """Page of a connection, with the size of the whole where that was asked for."""

    count: Number | None = None


class Author(GraphqlStruct):
    """Account that opened a merge request."""

    username: str
    bot: bool = False


class MergeRequest(GraphqlStruct):
    """Merged merge request; very old ones have no known merge time."""

    iid: str
    title: str
    created_at: Moment
    merged_at: Moment | None
    author: Author | None


class GitlabUser(GraphqlStruct):
    """An account."""

    username: str


class Member(GraphqlStruct):
    """Membership; without a user while an invitation is pending."""

    user: GitlabUser | None


class Language(GraphqlStruct):
    """A language and its share."""

    name: str
    share: float | None = None


class GitlabCommit(GraphqlStruct):
    """A commit."""

    sha: Annotated[str, Meta(pattern=r"^[0-9a-f]{40,64}\Z")]


class GitlabTree(GraphqlStruct):
    """The root folder of the default branch."""

    last_commit: GitlabCommit | None


class GitlabRepository(GraphqlStruct):
    """The repository of a project."""

    empty: bool
    root_ref: str | None
    tree: GitlabTree | None

    @property
    def head(self) -> str | None:
        """The commit at the head of the default branch."""
        commit = self.tree.last_commit if self.tree else None
        return commit.sha if commit else None


class GitlabProject(GraphqlStruct):
    """Fields that the first query requests of one project."""

    id: Annotated[str, Meta(pattern=r"^gid://gitlab/Project/[0-9]+\Z")]
    full_path: str
    merge_requests_enabled: bool | None
    issues_enabled: bool | None
    languages: list[Language] | None
    repository: GitlabRepository | None
    requests: GitlabCount | None
    open_requests: GitlabCount | None
    last_month: GitlabCount | None
    merged: GitlabNodePage[MergeRequest] | None
    issues: GitlabCount | None
    open_issues: GitlabCount | None
    closed_issues: GitlabCount | None
    closed_last_month: GitlabCount | None
    members: GitlabNodePage[Member] | None

    @property
    def number(self) -> str:
        """The id in REST, which survives a renaming."""
        return self.id.rpartition("/")[2]


@dataclass
class ProjectData:
    """Project, and by field of `GitlabProject`, in GraphQL's spelling, the missing data.

    `members`: the number of members if not all of them were read.
    """

    project: GitlabProject
    errors: dict[str, Missing] = field(default_factory=dict)
    members: int | Missing | None = None


class Validation(GraphqlStruct):
    """Errors in the CODEOWNERS file."""

    total: Number


class ValidatedRepository(GraphqlStruct):
    """Repository with its validated CODEOWNERS file; null if the plan excludes validation."""

    validate_codeowner_file: Validation | None


# REST


class ProjectSettings(msgspec.Struct):
    """Settings of a project; some are absent for an account that may not see them."""

    path_with_namespace: str
    merge_method: str | None = None
    only_allow_merge_if_pipeline_succeeds: bool | None = None
    merge_trains_enabled: bool | None = None


class ProtectedBranch(msgspec.Struct):
    """Rule for the branches that match its name, in which a star stands for any text."""

    name: str
    allow_force_push: bool
    code_owner_approval_required: bool | None = None
    inherited: bool = False


class Approvals(msgspec.Struct):
    """Settings for approvals in a project; null if never set."""

    reset_approvals_on_push: bool | None
    merge_requests_disable_committers_approval: bool | None


class BranchRef(msgspec.Struct):
    """Something with a name."""

    name: str


class ApprovalRule(msgspec.Struct):
    """Number of approvals that a merge needs, on these branches or on all."""

    approvals_required: Number
    rule_type: str = ""
    applies_to_all_protected_branches: bool = False
    protected_branches: list[BranchRef] = []


class PushRule(msgspec.Struct):
    """Conditions for pushes; a condition that the plan does not include is absent."""

    id: int
    reject_unsigned_commits: bool | msgspec.UnsetType | None = msgspec.UNSET


class GitlabTreeEntry(msgspec.Struct):
    """Entry of a tree: a file (`blob`), a folder (`tree`) or a submodule (`commit`)."""

    path: str
    type: str


def part(data: Mapping[str, Any], *names: str) -> Any:
    """The value below these names; None if there is none."""
    found: Any = data
    for name in names:
        found = found.get(name) if isinstance(found, dict) else None
    return found
