"""GraphQL and REST requests to a GitHub instance: documents, types of answers, meaning of errors.

Owners, names and cursors are variables, never part of a document. An answer of another form is
rejected on decoding.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Annotated, Any, Final, Generic, NamedTuple, TypedDict, TypeVar

import msgspec

from factbook.integrations import code_host
from factbook.integrations.code_host import (
    CodeHostApi,
    ConnectionPosition,
    GraphqlStruct,
    NodePage,
    Slug,
)
from factbook.integrations.github.options import GithubOptions
from factbook.outbound.outcomes import UNUSABLE, Answer, Missing, Outcome, judge_graphql_error

# What GitHub answers to a query that takes more than its ten seconds.
_TOO_HEAVY: Final = frozenset({502, 504})
_REST_HEADERS: Final = {
    "accept": "application/vnd.github+json",
    "x-github-api-version": "2022-11-28",
}
_VERSION: Final = re.compile(r"\d{1,3}(?:\.\d{1,4}){1,2}", re.ASCII)
_NULL: Final = msgspec.Raw(b"null")
_LIMITS: Final = frozenset({"RESOURCE_LIMITS_EXCEEDED", "MAX_NODE_LIMIT_EXCEEDED"})


class GithubQueryError(NamedTuple):
    """Error of an answer: its path, and the reason that it gives."""

    path: tuple[object, ...]
    missing: Missing
    too_heavy: bool


class _Body(TypedDict, total=False):
    """Body of an answer; the fields are decoded where their types are known."""

    data: dict[str, msgspec.Raw] | None
    errors: Any
    message: Any


@dataclass
class GithubQueryResult:
    """Result of one query: non-null data by field, and errors; or the reason for its failure.

    `too_heavy`: a smaller query may succeed.
    """

    data: dict[str, msgspec.Raw] = field(default_factory=dict)
    errors: list[GithubQueryError] = field(default_factory=list)
    failure: Missing | None = None
    too_heavy: bool = False


class GithubApi(CodeHostApi[GithubOptions]):
    """Client for a GitHub instance, with the time of one collection."""

    async def ask(self, document: str, variables: Mapping[str, Any]) -> GithubQueryResult:
        """Send a GraphQL query. A transient failure is retried, unless the query was too heavy."""
        told = await self._ask(document, variables, attempts=1)
        if told.failure and told.failure.outcome is Outcome.TRANSIENT and not told.too_heavy:
            return await self._ask(document, variables, attempts=2)
        return told

    async def get(self, target: str, form: Any = Any, **query: str | int) -> Answer:
        """Send a REST request; data that match the form are decoded as it."""
        address = f"{self._options.rest}{target}"
        return await self._client.get(
            address, query=query, headers=_REST_HEADERS, budget="core", form=form
        )

    async def get_again(self, target: str, **query: str | int) -> Answer:
        """Send a conditional REST request; an earlier answer that is still valid uses no quota."""
        return await self._client.get(
            f"{self._options.rest}{target}",
            query=query,
            headers=_REST_HEADERS,
            budget="core",
            memory=self.memory,
        )

    async def _ask(
        self, document: str, variables: Mapping[str, Any], attempts: int
    ) -> GithubQueryResult:
        answer = await self._client.post(
            self._options.graphql,
            json={"query": document, "variables": variables},
            budget="graphql",
            attempts=attempts,
            form=_Body,
        )
        return _make_github_result(answer, document)


def _make_github_result(answer: Answer, document: str) -> GithubQueryResult:
    """The data and errors of a GraphQL answer; data beside errors are kept."""
    if not answer.ok:
        return GithubQueryResult(failure=answer.missing, too_heavy=answer.status in _TOO_HEAVY)
    if not isinstance(answer.data, dict):
        return GithubQueryResult(failure=UNUSABLE)
    found = answer.data.get("errors")
    listed = found if isinstance(found, list) else []
    errors = [_make_query_error(error) for error in listed if isinstance(error, dict)]
    data = answer.data.get("data")
    if isinstance(data, dict):
        return GithubQueryResult({name: raw for name, raw in data.items() if raw != _NULL}, errors)
    if refused := code_host.list_unknown_fields(found):
        fields = code_host.name_refused_fields(document, refused) or "a field"
        version = _VERSION.fullmatch(answer.headers.get("x-github-enterprise-version", ""))
        host = f"GitHub Enterprise Server {version[0]}" if version else "this GitHub"
        cause = Missing(Outcome.FEATURE_OFF, f"{host} lacks {fields} in GraphQL")
        return GithubQueryResult(failure=cause)
    too_heavy = any(error.too_heavy for error in errors)
    return GithubQueryResult(failure=errors[0].missing if errors else UNUSABLE, too_heavy=too_heavy)


def _make_query_error(error: Mapping[str, Any]) -> GithubQueryError:
    path = error.get("path")
    outcome, cause = judge_graphql_error(error)
    too_heavy = error.get("type") in _LIMITS
    detail = "GitHub could not answer this" if outcome is Outcome.TRANSIENT else cause
    return GithubQueryError(
        tuple(path) if isinstance(path, list) else (), Missing(outcome, detail), too_heavy
    )


PULLS: Final = "mergedPulls"
ISSUES: Final = "closedIssues"
COLLABORATORS: Final = "collaborators"
RULES: Final = "rules"
LANGUAGES: Final = "languages"
KINDS: Final = (PULLS, ISSUES, COLLABORATORS, RULES, LANGUAGES)

_PAGE: Final = "pageInfo { hasNextPage endCursor }"
_PULL_NODES: Final = (
    "nodes { number title createdAt mergedAt updatedAt author { __typename login } }"
)
_RULE_NODES: Final = """nodes {
      type
      repositoryRuleset { id }
      parameters {
        ... on PullRequestParameters {
          dismissStaleReviewsOnPush requireCodeOwnerReview requireLastPushApproval
          requiredApprovingReviewCount
        }
        ... on RequiredStatusChecksParameters {
          strictRequiredStatusChecksPolicy
          requiredStatusChecks { context }
        }
      }
    }"""

# The connections that may go on over many pages, with their arguments and what is read of them.
_PULLS: Final = (
    "states: MERGED, first: 100, orderBy: {field: UPDATED_AT, direction: DESC}",
    f"totalCount {_PULL_NODES} {_PAGE}",
)
_ISSUES: Final = (
    "states: CLOSED, filterBy: {since: $since}, first: 100, "
    "orderBy: {field: UPDATED_AT, direction: DESC}",
    f"nodes {{ number closedAt }} {_PAGE}",
)
_COLLABORATORS: Final = (
    "first: 100, affiliation: ALL",
    f"totalCount nodes {{ login }} {_PAGE}",
)
_LANGUAGES: Final = (
    "first: 100, orderBy: {field: SIZE, direction: DESC}",
    f"nodes {{ name }} {_PAGE}",
)
_RULES: Final = ("first: 100", f"{_RULE_NODES} {_PAGE}")

_BYPASSING: Final = f"nodes {{ bypassMode deployKey actor {{ __typename }} }} {_PAGE}"

_IDENTITY: Final = "id nameWithOwner isEmpty viewerPermission"

_REST_FIELDS: Final = f"""
  hasIssuesEnabled
  hasVulnerabilityAlertsEnabled
  languages({_LANGUAGES[0]}) {{ {_LANGUAGES[1]} }}
  collaborators({_COLLABORATORS[0]}) {{ {_COLLABORATORS[1]} }}
  codeowners {{ errors {{ kind path line }} }}
  openAlerts: vulnerabilityAlerts(states: OPEN) {{ totalCount }}
  fixedAlerts: vulnerabilityAlerts(states: FIXED) {{ totalCount }}
  dismissedAlerts: vulnerabilityAlerts(states: [DISMISSED, AUTO_DISMISSED]) {{ totalCount }}
  defaultBranchRef {{
    name
    target {{ oid }}
    branchProtectionRule {{
      allowsDeletions allowsForcePushes blocksCreations dismissesStaleReviews isAdminEnforced
      requireLastPushApproval requiredApprovingReviewCount requiresCodeOwnerReviews
      requiresCommitSignatures requiresLinearHistory requiresStatusChecks
      requiresStrictStatusChecks
    }}
    refUpdateRule {{
      allowsDeletions allowsForcePushes blocksCreations requiredApprovingReviewCount
      requiresCodeOwnerReviews requiresLinearHistory requiresSignatures
    }}
    rules({_RULES[0]}) {{ {_RULES[1]} }}
  }}"""

_PULL_REQUESTS: Final = f"""
  pullRequests {{ totalCount }}
  openPulls: pullRequests(states: OPEN) {{ totalCount }}
  {PULLS}: pullRequests({_PULLS[0]}) {{ {_PULLS[1]} }}"""

_ALL_ISSUES: Final = f"""
  openIssues: issues(states: OPEN) {{ totalCount }}
  allClosedIssues: issues(states: CLOSED) {{ totalCount }}
  {ISSUES}: issues({_ISSUES[0]}) {{ {_ISSUES[1]} }}"""

_LIMIT: Final = "rateLimit { cost remaining resetAt nodeCount }"


# The least question there is, which a GitHub that works at all answers.
LEAST_QUERY: Final = f"query Least {{ {_LIMIT} }}"


class GithubPageRequest(NamedTuple):
    """A request for the next page of one repository's connection."""

    kind: str
    node_id: str
    cursor: str


@lru_cache(maxsize=64)
def build_batch_query(size: int) -> str:
    """Query for `size` repositories r0, r1 …; variables: since, o0, n0, o1, n1 …"""
    owners = " ".join(f"$o{i}: String! $n{i}: String!" for i in range(size))
    repositories = "\n".join(
        f"  r{i}: repository(owner: $o{i}, name: $n{i}, followRenames: true) {{ ...Repository }}"
        for i in range(size)
    )
    return f"""query Batch($since: DateTime! {owners}) {{
{repositories}
  {_LIMIT}
}}
fragment Repository on Repository {{
  {_IDENTITY}{_REST_FIELDS}{_PULL_REQUESTS}{_ALL_ISSUES}
}}
"""


def make_batch_variables(targets: Sequence[str], since: str) -> dict[str, str]:
    """The variables of `batch` for targets of the form owner/name."""
    variables = {"since": since}
    for i, target in enumerate(targets):
        variables[f"o{i}"], _, variables[f"n{i}"] = target.partition("/")
    return variables


PARTS: Final = ("rest", "pulls", "issues")

ALONE_QUERY: Final = f"""query Alone($since: DateTime! $o0: String! $n0: String!) {{
  rest: repository(owner: $o0, name: $n0, followRenames: true) {{
    {_IDENTITY}{_REST_FIELDS}
  }}
  pulls: repository(owner: $o0, name: $n0, followRenames: true) {{
    {_IDENTITY}{_PULL_REQUESTS}
  }}
  issues: repository(owner: $o0, name: $n0, followRenames: true) {{
    {_IDENTITY}{_ALL_ISSUES}
  }}
  {_LIMIT}
}}
"""

_CONNECTIONS: Final[dict[str, str]] = {
    PULLS: f"page: pullRequests({_PULLS[0]}, after: %s) {{ {_PULLS[1]} }}",
    ISSUES: f"page: issues({_ISSUES[0]}, after: %s) {{ {_ISSUES[1]} }}",
    COLLABORATORS: f"page: collaborators({_COLLABORATORS[0]}, after: %s) {{ {_COLLABORATORS[1]} }}",
    LANGUAGES: f"page: languages({_LANGUAGES[0]}, after: %s) {{ {_LANGUAGES[1]} }}",
    RULES: f"defaultBranchRef {{ page: rules({_RULES[0]}, after: %s) {{ {_RULES[1]} }} }}",
}


@lru_cache(maxsize=256)
def build_pages_query(kinds: tuple[str, ...], rulesets: bool) -> str:
    """Query for the next pages p0, p1 … of these kinds; variables: i0, c0 …; since; ruleset ids."""
    given = " ".join(f"$i{i}: ID! $c{i}: String!" for i in range(len(kinds)))
    since = "$since: DateTime! " if ISSUES in kinds else ""
    ids = "$rulesets: [ID!]! " if rulesets else ""
    nodes = "\n".join(
        f"  p{i}: node(id: $i{i}) {{ ... on Repository {{ {_CONNECTIONS[kind] % f'$c{i}'} }} }}"
        for i, kind in enumerate(kinds)
    )
    bypass = (
        "  rulesets: nodes(ids: $rulesets) {"
        f" ... on RepositoryRuleset {{ id bypassActors(first: 100) {{ {_BYPASSING} }} }} }}\n"
    )
    return f"""query Pages({since}{ids}{given}) {{
{nodes}
{bypass if rulesets else ""}  {_LIMIT}
}}
"""


def make_pages_variables(
    asked: Iterable[GithubPageRequest], rulesets: Sequence[str], since: str
) -> dict[str, Any]:
    """The variables of `pages`."""
    variables: dict[str, Any] = {}
    for i, page in enumerate(asked):
        variables |= {f"i{i}": page.node_id, f"c{i}": page.cursor}
        if page.kind == ISSUES:
            variables["since"] = since
    return variables | ({"rulesets": list(rulesets)} if rulesets else {})


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


def find_error_place(path: Iterable[object]) -> str | None:
    """The repository's field that an error refers to, by its path below the repository."""
    names = []
    for part in path:
        if not isinstance(part, str):
            break
        names.append(part)
    if not names or any(part in _HARMLESS for part in path):
        return None
    return ".".join(names[:2]) if names[0] == "defaultBranchRef" else names[0]


def decode_github_answer(data: msgspec.Raw | bytes, form: Any) -> Any:
    """The answer as this type; None if it has another form."""
    try:
        return msgspec.json.decode(data, type=form)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
