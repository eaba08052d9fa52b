"""Settings and credentials of a GitHub instance, and GraphQL and REST requests to it.

A credential is a token, or an app, which fetches tokens valid for one hour. Source: GitHub's
documentation of app authentication: a JSON Web Token signed with RS256, valid for at most ten
minutes, is exchanged for the token of an installation.

Owners, names and cursors are variables, never part of a query. Answers in an unexpected form are
rejected on decoding.
"""

import asyncio
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Final, Generic, NamedTuple, TypedDict, TypeVar

import msgspec
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import RSAKey

from factbook.clock import MINUTE, SECOND, Clock
from factbook.integrations import code_host
from factbook.integrations.code_host import (
    CodeHostApi,
    CodeHostOptions,
    ConnectionPosition,
    GraphqlStruct,
    NodePage,
    Slug,
)
from factbook.integrations.integration import find_location, get_annotations, report_no_annotation
from factbook.outbound.client import ANONYMOUS, Credential, HttpClient, build_path
from factbook.outbound.git import make_basic_auth
from factbook.outbound.outcomes import UNUSABLE, Answer, Missing, Outcome, judge_graphql_error
from factbook.settings.option_tables import about, url_origin

GITHUB: Final = "github.com"
SLUG: Final = "github.com/project-slug"
_TENANT: Final = ".ghe.com"
# Marks of encrypted PEM keys: in PKCS #8, and in the older format.
_ENCRYPTED_MARKS: Final = ("BEGIN ENCRYPTED PRIVATE KEY", "4,ENCRYPTED")


class GithubOptions(CodeHostOptions, frozen=True, kw_only=True):
    """Instance of GitHub with one credential: a token, or an app's installation."""

    EXAMPLE: ClassVar[str] = "github.example.com"
    # Names that GitHub allows; no other text of an annotation gets into a request.
    PATTERN: ClassVar[re.Pattern[str]] = re.compile(
        r"[a-z0-9][a-z0-9_-]{0,98}/[a-z0-9._-]{1,100}", re.ASCII
    )

    host: Annotated[str, about("Host that people and annotations name.")] = GITHUB
    api_url: Annotated[
        str,
        about(
            "Address of the REST interface. Empty: `https://api.<host>` of github.com and GHE.com, "
            "`https://<host>/api/v3` of an Enterprise server."
        ),
    ] = ""
    graphql_url: Annotated[
        str, about("Address of the GraphQL interface. Empty: it follows from `api_url`.")
    ] = ""
    clone_url: Annotated[
        str,
        about(
            "Address that repositories whose tree is too large for the interface are cloned from. "
            "Empty: `https://<host>`."
        ),
    ] = ""
    token: Annotated[str, about("Secret. A personal access token.")] = ""
    app_id: Annotated[str, about("Id or client id of an app, instead of a token.")] = ""
    installation_id: Annotated[str, about("Id of the app's installation.")] = ""
    private_key: Annotated[str, about("Secret. The app's private key, in PEM.")] = ""
    organizations: Annotated[
        list[str], about("Owners to ask for. Empty: every owner that annotations name.")
    ] = msgspec.field(default_factory=list)
    exclude_bots: Annotated[bool, about("Leave pull requests of bots out of merge times.")] = False

    @property
    def rest(self) -> str:
        """The URL of the REST API, without a trailing slash."""
        is_cloud = self.host == GITHUB or self.host.endswith(_TENANT)
        default = f"https://api.{self.host}" if is_cloud else f"https://{self.host}/api/v3"
        return (self.api_url or default).rstrip("/")

    @property
    def graphql(self) -> str:
        """The URL of the GraphQL API: `/api/graphql` on a server, else `/graphql`."""
        return self.graphql_url or f"{self.rest.removesuffix('/v3')}/graphql"

    @property
    def git(self) -> str:
        """The base URL of the host's repositories, without a trailing slash."""
        return (self.clone_url or f"https://{self.host}").rstrip("/")

    @property
    def owners(self) -> Sequence[str]:
        """The organizations."""
        return self.organizations

    def problems(self) -> Iterator[str]:
        """The mistakes in the table."""
        yield from super().problems()
        app = (self.app_id, self.installation_id, self.private_key)
        if not self.git.startswith(("https://", "http://")):
            yield "clone_url has to begin with https://"
        if url_origin(self.graphql) != self.origin:
            yield "graphql_url has to be on the same host as api_url"
        if bool(self.token) == any(app):
            yield "either a token or an app is needed"
        elif any(app) and not all(app):
            yield "an app needs app_id, installation_id and private_key"
        elif any(mark in self.private_key for mark in _ENCRYPTED_MARKS):
            yield "private_key is encrypted; use the output of `openssl rsa -in app.pem` instead"


def find_github_target(options: GithubOptions, entity: Mapping[str, Any]) -> str | Missing:
    """`owner/name` in lower case, or the reason that there is none at this host.

    A slug belongs to the host of the entity's location, else to the host in its key. Without a
    slug, the location has to be on this host.
    """
    known = get_annotations(entity)
    place = find_location(entity)
    own = known.get(options.slug)
    is_here = place is None or place.host == options.host
    if isinstance(own, str) and (options.host != GITHUB or is_here):
        return options.named(own)
    if place is None or place.host != options.host:
        return report_no_annotation(f"no repository on {options.host}")
    given = known.get(SLUG)
    return options.named(given) if isinstance(given, str) else options.located(place)


# GitHub recommends an issue time one minute in the past, as clocks differ.
_ISSUED_BEFORE: Final = 60
_VALID: Final = 9 * 60
_RENEWED_BEFORE: Final = MINUTE
_NO_APP: Final = "the app or its installation is not accepted"


class Credentials:
    """Credentials of one instance, for the API and for the host of its Git repositories."""

    def __init__(self, name: str, options: GithubOptions, clock: Clock) -> None:
        self._name = name
        self._options = options
        self._clock = clock
        self._interface = ANONYMOUS

    def interface(self, anonymous: HttpClient) -> Credential:
        """The credential for the API; an app fetches its tokens through the anonymous client."""
        self._interface = self._made(anonymous)
        return self._interface

    def git(self, _: HttpClient) -> Credential:
        """The same token in the form that Git sends."""
        return Credential(self._name, f"{self._name} git", self._shown_by_git)

    def _made(self, anonymous: HttpClient) -> Credential:
        options = self._options
        if options.token:
            return Credential.fixed(self._name, {"authorization": f"Bearer {options.token}"})
        tokens = _InstallationToken(options, self._clock, anonymous)
        identity = f"app {options.app_id} {options.installation_id}"
        return Credential(self._name, identity, tokens.authorize)

    async def _shown_by_git(self) -> Mapping[str, str] | Answer:
        proof = await self._interface.authorize()
        if isinstance(proof, Answer):
            return proof
        token = proof.get("authorization", "").partition(" ")[2]
        return make_basic_auth("x-access-token", token)


class _InstallationToken:
    """Token of an app installation, renewed a minute before it expires."""

    def __init__(self, options: GithubOptions, clock: Clock, anonymous: HttpClient) -> None:
        self._options = options
        self._clock = clock
        self._anonymous = anonymous
        self._token = ""
        self._renewed_at = 0
        self._expires_at = 0
        self._renewing = asyncio.Lock()

    async def authorize(self) -> Mapping[str, str] | Answer:
        """The headers of a call, or the failed answer of the token request."""
        async with self._renewing:
            now = self._clock()
            # A clock that was set back would make the token seem valid for longer.
            if not self._renewed_at <= now < self._expires_at - _RENEWED_BEFORE:
                answer = await self._renew(now)
                if not answer.ok:
                    return answer
        return {"authorization": f"Bearer {self._token}"}

    async def _renew(self, now: int) -> Answer:
        installation = build_path(
            "app", "installations", self._options.installation_id, "access_tokens"
        )
        try:
            proof = sign_app_token(self._options.app_id, self._options.private_key, now)
        except (JoseError, TypeError, ValueError):
            return Answer(Outcome.REFUSED, detail="the app's private key cannot be used")
        answer = await self._anonymous.post(
            f"{self._options.rest}{installation}",
            json={},
            headers={"authorization": f"Bearer {proof}"},
        )
        if answer.outcome in {Outcome.DENIED, Outcome.NOT_FOUND}:
            # GitHub rejected the app, which says nothing about the entity.
            return replace(answer, outcome=Outcome.REFUSED, detail=f"{answer.detail}; {_NO_APP}")
        if not answer.ok:
            return answer
        try:
            self._token = str(answer.data["token"])
            expires = datetime.fromisoformat(answer.data["expires_at"])
        except (KeyError, TypeError, ValueError):
            return Answer(Outcome.TRANSIENT, answer.status, detail="no token in the answer")
        self._expires_at = round(expires.timestamp() * SECOND)
        self._renewed_at = now
        return answer


def sign_app_token(app_id: str, private_key: str, now: int) -> str:
    """The JSON Web Token that authenticates an app at this time.

    Raises JoseError or ValueError for an invalid key, TypeError for an encrypted SSH key.
    """
    issued = now // SECOND
    claims = {"iat": issued - _ISSUED_BEFORE, "exp": issued + _VALID, "iss": app_id}
    # Keys in environment variables often have escaped line breaks.
    key = RSAKey.import_key(private_key.replace("\\n", "\n"))
    return jwt.encode({"alg": "RS256"}, claims, key, ["RS256"])


# GitHub's answers to queries that take more than ten seconds.
_TOO_HEAVY: Final = frozenset({502, 504})
_REST_HEADERS: Final = {
    "accept": "application/vnd.github+json",
    "x-github-api-version": "2022-11-28",
}
_VERSION: Final = re.compile(r"\d{1,3}(?:\.\d{1,4}){1,2}", re.ASCII)
_NULL: Final = msgspec.Raw(b"null")
_LIMITS: Final = frozenset({"RESOURCE_LIMITS_EXCEEDED", "MAX_NODE_LIMIT_EXCEEDED"})


class GithubQueryError(NamedTuple):
    """Error in an answer: its path, and the reason for the missing data."""

    path: tuple[object, ...]
    missing: Missing
    too_heavy: bool


class _Body(TypedDict, total=False):
    """Body of an answer; its fields are decoded later, where their types are known."""

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
    """Client for a GitHub instance, for one collection at the time `now`."""

    async def ask(self, document: str, variables: Mapping[str, Any]) -> GithubQueryResult:
        """Send a GraphQL query. A transient failure is retried, unless the query was too heavy."""
        told = await self._ask(document, variables, attempts=1)
        if told.failure and told.failure.outcome is Outcome.TRANSIENT and not told.too_heavy:
            return await self._ask(document, variables, attempts=2)
        return told

    async def get(self, target: str, form: Any = Any, **query: str | int) -> Answer:
        """Send a REST request; data that match `form` are decoded as this type."""
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

# Connections that may have many pages: their arguments, and the fields to read.
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


# The smallest query: any working GitHub answers it.
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
    """The variables of `build_batch_query` for targets of the form owner/name."""
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
    """The variables of `build_pages_query`."""
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
    """Page of a connection, with the total count if requested."""

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
    """Languages, most used first; null for a repository that GitHub could not analyze."""

    nodes: list[Name | None] | None
    page_info: ConnectionPosition

    @property
    def known(self) -> list[Name]:
        """The visible languages."""
        return [node for node in self.nodes or () if node is not None]


class Codeowners(GraphqlStruct):
    """Errors in an existing CODEOWNERS file."""

    errors: list[Any]


class Id(GraphqlStruct):
    """Something with a node id."""

    id: str


class Parameters(GraphqlStruct):
    """Parameters of a ruleset's rule, limited to those in use."""

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
    """Reduced view of a branch's rules, visible to every reader."""

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
        """True if administrators may push despite the rules.

        Administrators have the permissions of every role. A bypass for pull requests only still
        requires them to open one.
        """
        return self.actor is None and not self.deploy_key and self.bypass_mode != "PULL_REQUEST"


class Bypassed(GraphqlStruct):
    """Ruleset, with the actors that may bypass it."""

    id: str
    bypass_actors: GithubNodePage[Bypassing] | None


class Paged(GraphqlStruct, Generic[T]):
    """Repository with only the requested page."""

    page: GithubNodePage[T] | None = None


class PagedBranch(GraphqlStruct):
    """Repository with only the requested page of its default branch's rules."""

    default_branch_ref: Paged[RuleNode] | None = None

    @property
    def page(self) -> GithubNodePage[RuleNode] | None:
        """The page of rules; None if there is no default branch."""
        return self.default_branch_ref.page if self.default_branch_ref else None


PAGES: Final[dict[str, Any]] = {
    PULLS: Paged[GithubPullRequest],
    ISSUES: Paged[GithubIssue],
    COLLABORATORS: Paged[Login],
    LANGUAGES: Paged[Name],
    RULES: PagedBranch,
}

# A null in these fields doesn't affect the fields around them.
_HARMLESS: Final = frozenset({"author", "repositoryRuleset"})


@dataclass
class RepositoryData:
    """Repository, and reasons for missing data by field, such as `defaultBranchRef.rules`."""

    repository: GithubRepository
    errors: dict[str, Missing] = field(default_factory=dict)

    def missing(self, *names: str) -> Missing | None:
        """The reason that one of these fields, or an enclosing one, is missing."""
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
    """The repository's field that an error refers to; `path` starts below the repository."""
    names = []
    for part in path:
        if not isinstance(part, str):
            break
        names.append(part)
    if not names or any(part in _HARMLESS for part in path):
        return None
    return ".".join(names[:2]) if names[0] == "defaultBranchRef" else names[0]


def decode_github_answer(data: msgspec.Raw | bytes, form: Any) -> Any:
    """The answer decoded as this type; None if it doesn't match."""
    try:
        return msgspec.json.decode(data, type=form)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
