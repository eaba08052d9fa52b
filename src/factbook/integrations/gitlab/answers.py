"""GitLab's answers as types: an answer of another form is refused where it comes in.

What may be null for want of rights is null here; why is in `Found.errors`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Final, Generic, TypeVar

import msgspec
from msgspec import Meta

from factbook.outbound.outcomes import UNUSABLE, Missing, Outcome

T = TypeVar("T")

HIDDEN: Final = Missing(Outcome.DENIED, "hidden from the credential")
NO_REPOSITORY: Final = Missing(Outcome.DENIED, "the credential may not read the repository")
NO_BRANCH: Final = Missing(Outcome.NOT_FOUND, "there is no default branch")
NO_PREMIUM: Final = Missing(Outcome.FEATURE_OFF, "not part of the plan, or of this edition")

Number = Annotated[int, Meta(ge=0, le=2_147_483_647)]
Moment = Annotated[datetime, Meta(tz=True)]


class Wire(msgspec.Struct, rename="camel"):
    """Names in camel case, as GraphQL has them; what was not asked for is ignored."""


class GitlabCount(Wire):
    """The size of a connection."""

    count: Number


class PageInfo(Wire):
    """Where a connection goes on."""

    has_next_page: bool
    end_cursor: str | None


class Connection(Wire, Generic[T]):
    """A page of a connection, or several put together; what may not be seen is null."""

    nodes: list[T | None]
    page_info: PageInfo
    count: Number | None = None

    @property
    def known(self) -> list[T]:
        """The nodes that may be seen."""
        return [node for node in self.nodes if node is not None]


class Author(Wire):
    """Whoever opened a merge request."""

    username: str
    bot: bool = False


class MergeRequest(Wire):
    """A merged one; of very old ones the time is not known."""

    iid: str
    title: str
    created_at: Moment
    merged_at: Moment | None
    author: Author | None


class GitlabUser(Wire):
    """An account."""

    username: str


class Member(Wire):
    """A membership; without a user while an invitation is open."""

    user: GitlabUser | None


class Language(Wire):
    """A language and its share."""

    name: str
    share: float | None = None


class GitlabCommit(Wire):
    """A commit."""

    sha: Annotated[str, Meta(pattern=r"^[0-9a-f]{40,64}\Z")]


class GitlabTree(Wire):
    """The root folder of the default branch."""

    last_commit: GitlabCommit | None


class GitlabRepository(Wire):
    """The repository of a project."""

    empty: bool
    root_ref: str | None
    tree: GitlabTree | None

    @property
    def head(self) -> str | None:
        """The commit whose files the default branch has."""
        commit = self.tree.last_commit if self.tree else None
        return commit.sha if commit else None


class Project(Wire):
    """Everything that the first question asks about one project."""

    id: Annotated[str, Meta(pattern=r"^gid://gitlab/Project/[0-9]+\Z")]
    full_path: str
    merge_requests_enabled: bool | None
    issues_enabled: bool | None
    languages: list[Language] | None
    repository: GitlabRepository | None
    requests: GitlabCount | None
    open_requests: GitlabCount | None
    last_month: GitlabCount | None
    merged: Connection[MergeRequest] | None
    issues: GitlabCount | None
    open_issues: GitlabCount | None
    closed_issues: GitlabCount | None
    closed_last_month: GitlabCount | None
    members: Connection[Member] | None

    @property
    def number(self) -> str:
        """The id that REST knows it by, which survives a new name."""
        return self.id.rpartition("/")[2]


@dataclass
class ProjectData:
    """One project, and by field of `Project`, in GraphQL's spelling, what is not told.

    `members`: the number of members where not all of them were read.
    """

    project: Project
    errors: dict[str, Missing] = field(default_factory=dict)
    members: int | Missing | None = None


class Validation(Wire):
    """What is wrong with the CODEOWNERS file."""

    total: Number


class ValidatedRepository(Wire):
    """A repository whose CODEOWNERS file was looked at; null where the plan does not allow it."""

    validate_codeowner_file: Validation | None


# REST


class ProjectSettings(msgspec.Struct):
    """Those of a project; some are left out for whoever may not see them."""

    path_with_namespace: str
    merge_method: str | None = None
    only_allow_merge_if_pipeline_succeeds: bool | None = None
    merge_trains_enabled: bool | None = None


class ProtectedBranch(msgspec.Struct):
    """A rule for the branches that its name fits, in which a star stands for any text."""

    name: str
    allow_force_push: bool
    code_owner_approval_required: bool | None = None
    inherited: bool = False


class Approvals(msgspec.Struct):
    """How approvals are treated in a project; what was never set is null."""

    reset_approvals_on_push: bool | None
    merge_requests_disable_committers_approval: bool | None


class BranchRef(msgspec.Struct):
    """Something with a name."""

    name: str


class ApprovalRule(msgspec.Struct):
    """How many approvals a merge needs, on these branches or on all."""

    approvals_required: Number
    rule_type: str = ""
    applies_to_all_protected_branches: bool = False
    protected_branches: list[BranchRef] = []


class PushRule(msgspec.Struct):
    """What pushes have to obey; a plan without the demand leaves it out."""

    id: int
    reject_unsigned_commits: bool | msgspec.UnsetType | None = msgspec.UNSET


class GitlabTreeEntry(msgspec.Struct):
    """Something in a tree: a file (`blob`), a folder (`tree`) or a submodule (`commit`)."""

    path: str
    type: str


def read(data: Any, type_: type[T]) -> T | Missing:
    """The data in the form of the type, or that they have another."""
    try:
        return msgspec.convert(data, type_)
    except msgspec.ValidationError:
        return UNUSABLE


def part(data: Mapping[str, Any], *names: str) -> Any:
    """What is found below these names; None where there is nothing."""
    found: Any = data
    for name in names:
        found = found.get(name) if isinstance(found, dict) else None
    return found
