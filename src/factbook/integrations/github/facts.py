"""Facts from answers: one function for each group of the shapes, without any request.

Each returns its leaves, each a value or the reason that it is missing, or one reason for all.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from factbook.integrations import code_host, merge_times
from factbook.integrations.github import protection
from factbook.integrations.github.answers import GithubBranch, RepositoryData, RuleNode
from factbook.integrations.github.pages import MOST_COLLABORATORS, Bypasses, merged_pulls
from factbook.integrations.github.protection import Classic
from factbook.integrations.github.queries import COLLABORATORS, ISSUES, LANGUAGES, PULLS
from factbook.integrations.integration import Collected, Leaves
from factbook.outbound.outcomes import UNUSABLE, Missing, Outcome, report_too_many

CODEOWNERS: Final = frozenset({".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS"})

_NO_ACCESS: Final = Missing(Outcome.DENIED, "collaborators need push access")
_TOO_MANY_COLLABORATORS: Final = report_too_many(MOST_COLLABORATORS, "collaborators to list")
_NO_ALERTS: Final = Missing(Outcome.DENIED, "the credential may not read dependency alerts")
_NO_CONTENTS: Final = Missing(Outcome.DENIED, "the credential may not read the contents")
_NO_RULES: Final = Missing(Outcome.DENIED, "the credential may not read all rules of the branch")
_NO_BRANCH: Final = Missing(Outcome.NOT_APPLICABLE, "the repository is empty")
_ISSUES_OFF: Final = Missing(Outcome.FEATURE_OFF, "issues are switched off")
_ALERTS_OFF: Final = Missing(Outcome.FEATURE_OFF, "dependency alerts are switched off")
_HIDDEN: Final = Missing(Outcome.DENIED, "hidden from the credential")
# For instance for its size.
_NOT_CHECKED: Final = Missing(Outcome.INCOMPLETE, "GitHub does not check the CODEOWNERS file")


@dataclass
class GithubSnapshot:
    """Data collected about one repository.

    `classic`: result of the probe for the classic rule; `no_alerts`: the reason that a lack of
    alerts is not certain. Both are None if no probe was needed or its answer was good. `cutoff` is
    30 days ago.
    """

    found: RepositoryData
    paths: list[str] | Missing
    cutoff: int
    classic: Classic | Missing | None = None
    no_alerts: Missing | None = None
    bypassed: Bypasses = field(default_factory=dict)
    bots: bool = True

    @cached_property
    def merging(self) -> Leaves | Missing:
        """The facts of the merged pull requests, by group."""
        if self.found.repository.merged_pulls is None or self.found.missing(PULLS):
            return self.found.missing(PULLS) or UNUSABLE
        return merge_times.figures(merged_pulls(self.found), self.cutoff, bots=self.bots)

    @cached_property
    def protection(self) -> tuple[Leaves, Leaves] | Missing:
        """The leaves of branchProtection, and those of codeReview that rules decide."""
        return _protection(self)


def collected(known: GithubSnapshot) -> Collected:
    """The facts of all shapes that GitHub fills."""
    merged = known.protection
    found = code_host.groups(
        merging=known.merging,
        pull_requests=_pull_requests(known),
        issues=_issues(known),
        collaboration=_collaboration(known),
        protection=merged if isinstance(merged, Missing) else merged[0],
        review=_code_review(known),
        paths=known.paths,
    )
    return Collected.of({**found, "security.dependencyAlerts": _dependency_alerts(known)})


def _pull_requests(known: GithubSnapshot) -> Leaves | Missing:
    repository = known.found.repository
    return code_host.pull_requests(
        _count(known, repository.pull_requests, "pullRequests"),
        _count(known, repository.merged_pulls, PULLS),
        _count(known, repository.open_pulls, "openPulls"),
        known.merging,
    )


def _issues(known: GithubSnapshot) -> Leaves | Missing:
    repository = known.found.repository
    if repository.has_issues_enabled is False:
        return _ISSUES_OFF
    return code_host.issues(
        _count(known, repository.open_issues, "openIssues"),
        _count(known, repository.all_closed_issues, "allClosedIssues"),
        _closed_last_month(known),
    )


def _closed_last_month(known: GithubSnapshot) -> int | Missing:
    connection = known.found.repository.closed_issues
    if connection is None or known.found.missing(ISSUES):
        return known.found.missing(ISSUES) or UNUSABLE
    return len(
        {
            issue.number
            for issue in connection.known
            if merge_times.milliseconds(issue.closed_at) >= known.cutoff
        }
    )


def _collaboration(known: GithubSnapshot) -> Leaves:
    repository = known.found.repository
    languages: Any = known.found.missing(LANGUAGES)
    if languages is None:
        listed = repository.languages
        is_told = listed is not None and listed.nodes is not None
        languages = [one.name for one in listed.known] if listed and is_told else UNUSABLE
    return {"languages": languages, **_collaborators(known)}


def _collaborators(known: GithubSnapshot) -> Leaves:
    connection = known.found.repository.collaborators
    missing = known.found.missing(COLLABORATORS)
    if connection is None or connection.total_count is None:
        return code_host.collaborators(missing or _NO_ACCESS, missing or _NO_ACCESS)
    logins: Any = sorted({user.login for user in connection.known})
    if connection.total_count > MOST_COLLABORATORS:
        logins = _TOO_MANY_COLLABORATORS
    return code_host.collaborators(missing or logins, connection.total_count)


def _code_review(known: GithubSnapshot) -> Leaves:
    merged = known.protection
    review: Leaves
    if isinstance(merged, Missing):
        review = dict.fromkeys(protection.merge(protection.NO_RULE, [], {}).review, merged)
    else:
        review = merged[1]
    return {**review, **_codeowners(known)}


def _protection(known: GithubSnapshot) -> tuple[Leaves, Leaves] | Missing:
    found = known.found
    branch = found.repository.default_branch_ref
    if branch is None:
        return _no_branch(found)
    classic = _classic(known, branch)
    rules = None
    if branch.rules is not None and not found.missing("defaultBranchRef.rules"):
        rules = branch.rules.known
    bypassed = {id_: known.bypassed.get(id_) for id_ in _rulesets(rules or ())}
    readable = {id_: may for id_, may in bypassed.items() if isinstance(may, bool)}
    merged = protection.merge(
        protection.UNREADABLE if isinstance(classic, Missing) else classic, rules, readable
    )
    why = _why_unreadable(known, classic)
    hidden = next((may for may in bypassed.values() if isinstance(may, Missing)), None)
    leaves = _known(merged.protection, why), _known(merged.review, why)
    if merged.protection["enforceAdmins"] is None and not isinstance(classic, Missing):
        leaves[0]["enforceAdmins"] = hidden or why
    return leaves


def _why_unreadable(known: GithubSnapshot, classic: Classic | Missing) -> Missing:
    if isinstance(classic, Missing):
        return classic
    return known.found.missing("defaultBranchRef.rules") or _NO_RULES


def _classic(known: GithubSnapshot, branch: GithubBranch) -> Classic | Missing:
    """The classic rule from its most complete view; `NO_RULE` only if that is certain."""
    if branch.branch_protection_rule is not None:
        return protection.from_graphql(branch.branch_protection_rule)
    if missing := known.found.missing("defaultBranchRef.branchProtectionRule"):
        return missing
    if branch.ref_update_rule is not None:
        return protection.from_update_rule(branch.ref_update_rule)
    if known.found.repository.viewer_permission == "ADMIN":
        return protection.NO_RULE
    return known.classic or _NO_RULES


def _rulesets(rules: Iterable[RuleNode]) -> Iterable[str]:
    return (rule.repository_ruleset.id for rule in rules if rule.repository_ruleset)


def _known(leaves: Mapping[str, Any], why: Missing) -> Leaves:
    return {name: why if value is None else value for name, value in leaves.items()}


def _no_branch(found: RepositoryData) -> Missing:
    missing = found.missing("defaultBranchRef")
    return missing or (_NO_BRANCH if found.repository.is_empty else _NO_CONTENTS)


def _codeowners(known: GithubSnapshot) -> Leaves:
    missing = known.found.missing("codeowners")
    owners = known.found.repository.codeowners
    if owners is not None and not missing:
        return code_host.codeowners(CODEOWNERS, CODEOWNERS, len(owners.errors))
    # Without a right to the contents GitHub finds no file either.
    return code_host.codeowners(missing or known.paths, CODEOWNERS, _NOT_CHECKED)


def _dependency_alerts(known: GithubSnapshot) -> Leaves | Missing:
    found = known.found
    repository = found.repository
    if missing := found.missing("openAlerts", "fixedAlerts", "dismissedAlerts"):
        return missing
    if repository.has_vulnerability_alerts_enabled is False:
        return _ALERTS_OFF
    if known.no_alerts:
        return known.no_alerts
    counts = {
        "open": repository.open_alerts,
        "dismissed": repository.dismissed_alerts,
        "fixed": repository.fixed_alerts,
    }
    read = {name: count.total_count for name, count in counts.items() if count}
    return read if len(read) == len(counts) else _NO_ALERTS


def _count(known: GithubSnapshot, connection: Any, place: str) -> int | Missing:
    if connection is None or connection.total_count is None:
        return known.found.missing(place) or _HIDDEN
    return int(connection.total_count)
