"""GraphQL documents. Owners, names and cursors are variables, never part of a document.

`search` is not used: its field is not nullable, so one failed search would fail the whole batch.
`pullRequests` and `issues` are not nullable either: an error in one fails its repository, which is
then requested alone, in parts.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

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

_REST: Final = f"""
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
LEAST: Final = f"query Least {{ {_LIMIT} }}"


class GithubPageRequest(NamedTuple):
    """A request for the next page of one repository's connection."""

    kind: str
    node_id: str
    cursor: str


@lru_cache(maxsize=64)
def batch(size: int) -> str:
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
  {_IDENTITY}{_REST}{_PULL_REQUESTS}{_ALL_ISSUES}
}}
"""


def batch_variables(targets: Sequence[str], since: str) -> dict[str, str]:
    """The variables of `batch` for targets of the form owner/name."""
    variables = {"since": since}
    for i, target in enumerate(targets):
        variables[f"o{i}"], _, variables[f"n{i}"] = target.partition("/")
    return variables


PARTS: Final = ("rest", "pulls", "issues")

ALONE: Final = f"""query Alone($since: DateTime! $o0: String! $n0: String!) {{
  rest: repository(owner: $o0, name: $n0, followRenames: true) {{
    {_IDENTITY}{_REST}
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
def pages(kinds: tuple[str, ...], rulesets: bool) -> str:
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


def pages_variables(
    asked: Iterable[GithubPageRequest], rulesets: Sequence[str], since: str
) -> dict[str, Any]:
    """The variables of `pages`."""
    variables: dict[str, Any] = {}
    for i, page in enumerate(asked):
        variables |= {f"i{i}": page.node_id, f"c{i}": page.cursor}
        if page.kind == ISSUES:
            variables["since"] = since
    return variables | ({"rulesets": list(rulesets)} if rulesets else {})
