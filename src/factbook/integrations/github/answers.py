"""Types of GraphQL answers; an answer of another form is rejected on decoding.

A field may be null for lack of permission; then `RepositoryData.errors` has the reason.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Final, Generic, TypeVar

import msgspec

from factbook.integrations.code_host import ConnectionPosition, GraphqlStruct, NodePage, Slug
from factbook.integrations.github.queries import COLLABORATORS, ISSUES, LANGUAGES, PULLS, RULES
from factbook.outbound.outcomes import Missing

T = TypeVar("T")

Oid = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{40,64}\Z")]
BranchName = Annotated[str, msgspec.Meta(pattern=r"\A(?!\.{1,2}\Z).")]


class GithubCount(GraphqlStruct):
    """The size of a connection."""

    total_count: int


class GithubNodePage(NodePage[T], Generic[T]):
    """Page of a connection, with the size of the whole where that was asked for."""

    total_count: int | None = None


class GithubActor(GraphqlStruct):
    """Account that performed an action: a user, a bot or an organization."""

    login: str
    typename: str = msgspec.field(name="__typename")


class GithubPullRequest(GraphqlStruct):
    """A merged pull request."""

    number: int
    title: str
    created_at: datetime
    merged_at: datetime
    updated_at: datetime
    author: GithubActor | None


class GithubIssue(GraphqlStruct):
    """A closed issue."""

    number: int
    closed_at: datetime


class Login(GraphqlStruct):
    """A user."""

    login: str


class Name(GraphqlStruct):
    """Something with a name."""

    name: str


class Languages(GraphqlStruct):
    """Languages, most used first; null for a repository that GitHub could not analyse."""

    nodes: list[Name | None] | None
    page_info: ConnectionPosition

    @property
    def known(self) -> list[Name]:
        """The visible languages."""
        return [node for node in self.nodes or () if node is not None]


class Codeowners(GraphqlStruct):
    """Errors in the CODEOWNERS file, which exists."""

    errors: list[Any]


class Id(GraphqlStruct):
    """Something with a node id."""

    id: str


class Parameters(GraphqlStruct):
    """Parameters of a ruleset's rule, limited to those that are read."""

    dismiss_stale_reviews_on_push: bool = False
    require_code_owner_review: bool = False
    require_last_push_approval: bool = False
    required_approving_review_count: int = 0
    strict_required_status_checks_policy: bool = False
    required_status_checks: list[Any] = msgspec.field(default_factory=list)


class RuleNode(GraphqlStruct):
    """One active rule of a ruleset that applies to a branch."""

    type: str
    repository_ruleset: Id | None = None
    parameters: Parameters | None = None


class BranchRule(GraphqlStruct):
    """Classic rule of a branch, as administrators see it."""

    allows_deletions: bool
    allows_force_pushes: bool
    blocks_creations: bool
    dismisses_stale_reviews: bool
    is_admin_enforced: bool
    require_last_push_approval: bool
    requires_code_owner_reviews: bool
    requires_commit_signatures: bool
    requires_linear_history: bool
    requires_status_checks: bool
    requires_strict_status_checks: bool
    required_approving_review_count: int | None


class UpdateRule(GraphqlStruct):
    """Reduced view of a branch's rules that everybody may read."""

    allows_deletions: bool
    allows_force_pushes: bool
    blocks_creations: bool
    requires_code_owner_reviews: bool
    requires_linear_history: bool
    requires_signatures: bool
    required_approving_review_count: int | None


class GithubCommit(GraphqlStruct):
    """Commit that a branch points to."""

    oid: Oid


class GithubBranch(GraphqlStruct):
    """The default branch."""

    name: BranchName
    target: GithubCommit | None
    branch_protection_rule: BranchRule | None
    ref_update_rule: UpdateRule | None
    rules: GithubNodePage[RuleNode] | None


class GithubRepository(GraphqlStruct):
    """All fields requested of one repository."""

    id: str
    name_with_owner: Slug
    is_empty: bool
    viewer_permission: str | None
    has_issues_enabled: bool | None = None
    has_vulnerability_alerts_enabled: bool | None = None
    languages: Languages | None = None
    collaborators: GithubNodePage[Login] | None = None
    codeowners: Codeowners | None = None
    open_alerts: GithubCount | None = None
    fixed_alerts: GithubCount | None = None
    dismissed_alerts: GithubCount | None = None
    default_branch_ref: GithubBranch | None = None
    pull_requests: GithubCount | None = None
    open_pulls: GithubCount | None = None
    merged_pulls: GithubNodePage[GithubPullRequest] | None = None
    open_issues: GithubCount | None = None
    all_closed_issues: GithubCount | None = None
    closed_issues: GithubNodePage[GithubIssue] | None = None


class Kind(GraphqlStruct):
    """Object requested with its type only."""

    typename: str = msgspec.field(name="__typename")


class Bypassing(GraphqlStruct):
    """Actor that may bypass a ruleset: an app or a team, deploy keys, or everyone with a role."""

    bypass_mode: str | None
    deploy_key: bool
    actor: Kind | None

    @property
    def frees_administrators(self) -> bool:
        """True if administrators may push in spite of the rules.

        They have the permissions of every role. With a bypass for pull requests only, they still
        have to open one.
        """
        return self.actor is None and not self.deploy_key and self.bypass_mode != "PULL_REQUEST"


class Bypassed(GraphqlStruct):
    """Ruleset, with the actors that may bypass it."""

    id: str
    bypass_actors: GithubNodePage[Bypassing] | None


class Paged(GraphqlStruct, Generic[T]):
    """Repository requested with one further page only."""

    page: GithubNodePage[T] | None = None


class PagedBranch(GraphqlStruct):
    """Repository requested with one further page of its default branch's rules only."""

    default_branch_ref: Paged[RuleNode] | None = None

    @property
    def page(self) -> GithubNodePage[RuleNode] | None:
        """The page."""
        return self.default_branch_ref.page if self.default_branch_ref else None


PAGES: Final[dict[str, Any]] = {
    PULLS: Paged[GithubPullRequest],
    ISSUES: Paged[GithubIssue],
    COLLABORATORS: Paged[Login],
    LANGUAGES: Paged[Name],
    RULES: PagedBranch,
}

# A null there does not spoil what is around it.
_HARMLESS: Final = frozenset({"author", "repositoryRuleset"})


@dataclass
class RepositoryData:
    """Repository, and by field (`collaborators`, `defaultBranchRef.rules`) the missing data."""

    repository: GithubRepository
    errors: dict[str, Missing] = field(default_factory=dict)

    def missing(self, *names: str) -> Missing | None:
        """The reason that one of these fields, or one around it, is missing."""
        for name in names:
            for place in (name, name.partition(".")[0]):
                if place in self.errors:
                    return self.errors[place]
        return None

    @property
    def rules(self) -> GithubNodePage[RuleNode] | None:
        """The rules of the default branch."""
        branch = self.repository.default_branch_ref
        return branch.rules if branch else None


def place_of(path: Iterable[object]) -> str | None:
    """The repository's field that an error refers to, by its path below the repository."""
    names = []
    for part in path:
        if not isinstance(part, str):
            break
        names.append(part)
    if not names or any(part in _HARMLESS for part in path):
        return None
    return ".".join(names[:2]) if names[0] == "defaultBranchRef" else names[0]


def decoded(data: msgspec.Raw | bytes, form: Any) -> Any:
    """The answer as this type; None if it has another form."""
    try:
        return msgspec.json.decode(data, type=form)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
