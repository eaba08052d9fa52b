"""Facts from answers: one function for each group of the shapes, without any request.

Protection of a branch merges the classic rule and the rules of rulesets, strictest first.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Final, NamedTuple

import msgspec

from factbook.integrations import code_host
from factbook.integrations.github.api import (
    COLLABORATORS,
    ISSUES,
    LANGUAGES,
    PULLS,
    BranchRule,
    GithubBranch,
    Parameters,
    RepositoryData,
    RuleNode,
    UpdateRule,
)
from factbook.integrations.github.repositories import (
    MOST_COLLABORATORS,
    Bypasses,
    list_github_merged_pulls,
)
from factbook.integrations.integration import Collected, Leaves
from factbook.outbound.outcomes import UNUSABLE, Missing, Outcome, report_too_many


class Switch(msgspec.Struct, frozen=True):
    """On-off setting of REST."""

    enabled: bool = False


class RestReviews(msgspec.Struct):
    """Required reviews of a rule, in REST."""

    dismiss_stale_reviews: bool = False
    require_code_owner_reviews: bool = False
    require_last_push_approval: bool = False
    required_approving_review_count: int = 0


class RestChecks(msgspec.Struct):
    """Required status checks of a rule, in REST."""

    strict: bool = False


class RestRule(msgspec.Struct):
    """Classic rule of a branch, in REST; a requirement that is not set is absent."""

    enforce_admins: Switch = Switch()
    allow_deletions: Switch = Switch()
    required_linear_history: Switch = Switch()
    allow_force_pushes: Switch = Switch()
    block_creations: Switch = Switch()
    required_signatures: Switch = Switch()
    required_pull_request_reviews: RestReviews | None = None
    required_status_checks: RestChecks | None = None


@dataclass(frozen=True)
class Classic:
    """Classic rule that matches the branch; None for values that are not readable."""

    exists: bool | None = None
    enforces_admins: bool | None = None
    allows_deletions: bool | None = None
    requires_linear_history: bool | None = None
    allows_force_pushes: bool | None = None
    blocks_creations: bool | None = None
    requires_signatures: bool | None = None
    dismisses_stale_reviews: bool | None = None
    requires_code_owner_reviews: bool | None = None
    requires_last_push_approval: bool | None = None
    requires_strict_checks: bool | None = None
    approving_reviews: int | None = None


UNREADABLE = Classic()
NO_RULE = Classic(
    **{field.name: False for field in fields(Classic) if field.name != "approving_reviews"}
    | {"allows_deletions": True, "allows_force_pushes": True},
    approving_reviews=0,
)


class Merged(NamedTuple):
    """Leaves of both groups; None for unknown values."""

    protection: dict[str, bool | None]
    review: dict[str, bool | int | None]


def merge_protection(
    classic: Classic, rules: Sequence[RuleNode] | None, bypassed: Mapping[str, bool | None]
) -> Merged:
    """The protection of the branch under both kinds of rules.

    `rules` is None if they are not readable; `bypassed` maps a ruleset's id to true if
    administrators may bypass it, and to None, or has no entry, if that is not readable.
    """
    types = None if rules is None else {rule.type for rule in rules}
    reviews = _list_parameters(rules, "PULL_REQUEST")
    checks = _list_parameters(rules, "REQUIRED_STATUS_CHECKS")
    return Merged(
        {
            "enabled": _either_true(classic.exists, None if types is None else bool(types)),
            "enforceAdmins": _are_admins_bound(classic, rules, bypassed),
            "allowDeletions": _both_true(
                classic.allows_deletions, _lacks_rule_type(types, "DELETION")
            ),
            "requiredLinearHistory": _either_true(
                classic.requires_linear_history, _has_rule_type(types, "REQUIRED_LINEAR_HISTORY")
            ),
            "allowForcePushes": _both_true(
                classic.allows_force_pushes, _lacks_rule_type(types, "NON_FAST_FORWARD")
            ),
            "blockCreations": _either_true(
                classic.blocks_creations, _has_rule_type(types, "CREATION")
            ),
            "requiredSignatures": _either_true(
                classic.requires_signatures, _has_rule_type(types, "REQUIRED_SIGNATURES")
            ),
        },
        {
            "dismissStaleReviews": _either_true(
                classic.dismisses_stale_reviews,
                _any_demands(reviews, lambda one: one.dismiss_stale_reviews_on_push),
            ),
            "requireCodeOwnerReviews": _either_true(
                classic.requires_code_owner_reviews,
                _any_demands(reviews, lambda one: one.require_code_owner_review),
            ),
            "requireLastPushApproval": _either_true(
                classic.requires_last_push_approval,
                _any_demands(reviews, lambda one: one.require_last_push_approval),
            ),
            "strictRequiredStatusChecks": _either_true(
                classic.requires_strict_checks, _any_demands(checks, _is_strict)
            ),
            "requiredApprovingReviewCount": _choose_most_approvals(
                classic.approving_reviews, reviews
            ),
        },
    )


def convert_graphql_rule(rule: BranchRule) -> Classic:
    """The classic rule as administrators see it."""
    return Classic(
        exists=True,
        enforces_admins=rule.is_admin_enforced,
        allows_deletions=rule.allows_deletions,
        requires_linear_history=rule.requires_linear_history,
        allows_force_pushes=rule.allows_force_pushes,
        blocks_creations=rule.blocks_creations,
        requires_signatures=rule.requires_commit_signatures,
        dismisses_stale_reviews=rule.dismisses_stale_reviews,
        requires_code_owner_reviews=rule.requires_code_owner_reviews,
        requires_last_push_approval=rule.require_last_push_approval,
        # The second alone is said to be true although no checks are required.
        requires_strict_checks=rule.requires_status_checks and rule.requires_strict_status_checks,
        approving_reviews=rule.required_approving_review_count or 0,
    )


def convert_update_rule(rule: UpdateRule) -> Classic:
    """The reduced view that everybody may read."""
    return Classic(
        exists=True,
        allows_deletions=rule.allows_deletions,
        requires_linear_history=rule.requires_linear_history,
        allows_force_pushes=rule.allows_force_pushes,
        blocks_creations=rule.blocks_creations,
        requires_signatures=rule.requires_signatures,
        requires_code_owner_reviews=rule.requires_code_owner_reviews,
        approving_reviews=rule.required_approving_review_count or 0,
    )


def convert_rest_rule(rule: RestRule) -> Classic:
    """The classic rule as REST returns it."""
    reviews = rule.required_pull_request_reviews or RestReviews()
    return Classic(
        exists=True,
        enforces_admins=rule.enforce_admins.enabled,
        allows_deletions=rule.allow_deletions.enabled,
        requires_linear_history=rule.required_linear_history.enabled,
        allows_force_pushes=rule.allow_force_pushes.enabled,
        blocks_creations=rule.block_creations.enabled,
        requires_signatures=rule.required_signatures.enabled,
        dismisses_stale_reviews=reviews.dismiss_stale_reviews,
        requires_code_owner_reviews=reviews.require_code_owner_reviews,
        requires_last_push_approval=reviews.require_last_push_approval,
        requires_strict_checks=(rule.required_status_checks or RestChecks()).strict,
        approving_reviews=reviews.required_approving_review_count,
    )


def _are_admins_bound(
    classic: Classic, rules: Sequence[RuleNode] | None, bypassed: Mapping[str, bool | None]
) -> bool | None:
    """True if the classic rule binds administrators, or they may bypass none of the rulesets."""
    return _either_true(classic.enforces_admins, _are_bound_by_rulesets(rules, bypassed))


def _are_bound_by_rulesets(
    rules: Sequence[RuleNode] | None, bypassed: Mapping[str, bool | None]
) -> bool | None:
    if rules is None:
        return None
    rulesets = [rule.repository_ruleset for rule in rules]
    may_bypass = [bypassed.get(ruleset.id) if ruleset else None for ruleset in rulesets]
    if any(may_bypass):
        return False
    return None if None in may_bypass else bool(rules)


def _list_parameters(rules: Sequence[RuleNode] | None, type_: str) -> list[Parameters] | None:
    if rules is None:
        return None
    return [rule.parameters for rule in rules if rule.type == type_ and rule.parameters]


def _any_demands(
    parameters: Iterable[Parameters] | None, demands: Callable[[Parameters], bool]
) -> bool | None:
    return None if parameters is None else any(demands(one) for one in parameters)


def _is_strict(checks: Parameters) -> bool:
    return checks.strict_required_status_checks_policy and bool(checks.required_status_checks)


def _choose_most_approvals(classic: int | None, reviews: list[Parameters] | None) -> int | None:
    if classic is None or reviews is None:
        return None
    return max([classic, *(one.required_approving_review_count for one in reviews)])


def _has_rule_type(types: set[str] | None, type_: str) -> bool | None:
    return None if types is None else type_ in types


def _lacks_rule_type(types: set[str] | None, type_: str) -> bool | None:
    return None if types is None else type_ not in types


def _either_true(one: bool | None, other: bool | None) -> bool | None:
    if one or other:
        return True
    return None if None in {one, other} else False


def _both_true(one: bool | None, other: bool | None) -> bool | None:
    if one is False or other is False:
        return False
    return None if None in {one, other} else True


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
        return code_host.make_merge_figures(
            list_github_merged_pulls(self.found), self.cutoff, bots=self.bots
        )

    @cached_property
    def protection(self) -> tuple[Leaves, Leaves] | Missing:
        """The leaves of branchProtection, and those of codeReview that rules decide."""
        return _make_github_protection(self)


def make_github_facts(known: GithubSnapshot) -> Collected:
    """The facts of all shapes that GitHub fills."""
    merged = known.protection
    found = code_host.make_code_host_groups(
        merging=known.merging,
        pull_requests=_make_github_pull_requests(known),
        issues=_make_github_issues(known),
        collaboration=_make_github_collaboration(known),
        protection=merged if isinstance(merged, Missing) else merged[0],
        review=_make_github_code_review(known),
        paths=known.paths,
    )
    return Collected.of({**found, "security.dependencyAlerts": _make_dependency_alerts(known)})


def _make_github_pull_requests(known: GithubSnapshot) -> Leaves | Missing:
    repository = known.found.repository
    return code_host.make_pull_request_leaves(
        _count_connection(known, repository.pull_requests, "pullRequests"),
        _count_connection(known, repository.merged_pulls, PULLS),
        _count_connection(known, repository.open_pulls, "openPulls"),
        known.merging,
    )


def _make_github_issues(known: GithubSnapshot) -> Leaves | Missing:
    repository = known.found.repository
    if repository.has_issues_enabled is False:
        return _ISSUES_OFF
    return code_host.make_issue_leaves(
        _count_connection(known, repository.open_issues, "openIssues"),
        _count_connection(known, repository.all_closed_issues, "allClosedIssues"),
        _count_closed_issues(known),
    )


def _count_closed_issues(known: GithubSnapshot) -> int | Missing:
    connection = known.found.repository.closed_issues
    if connection is None or known.found.missing(ISSUES):
        return known.found.missing(ISSUES) or UNUSABLE
    return len(
        {
            issue.number
            for issue in connection.known
            if code_host.convert_to_milliseconds(issue.closed_at) >= known.cutoff
        }
    )


def _make_github_collaboration(known: GithubSnapshot) -> Leaves:
    repository = known.found.repository
    languages: Any = known.found.missing(LANGUAGES)
    if languages is None:
        listed = repository.languages
        is_told = listed is not None and listed.nodes is not None
        languages = [one.name for one in listed.known] if listed and is_told else UNUSABLE
    return {"languages": languages, **_make_github_collaborators(known)}


def _make_github_collaborators(known: GithubSnapshot) -> Leaves:
    connection = known.found.repository.collaborators
    missing = known.found.missing(COLLABORATORS)
    if connection is None or connection.total_count is None:
        return code_host.make_collaborator_leaves(missing or _NO_ACCESS, missing or _NO_ACCESS)
    logins: Any = sorted({user.login for user in connection.known})
    if connection.total_count > MOST_COLLABORATORS:
        logins = _TOO_MANY_COLLABORATORS
    return code_host.make_collaborator_leaves(missing or logins, connection.total_count)


def _make_github_code_review(known: GithubSnapshot) -> Leaves:
    merged = known.protection
    review: Leaves
    if isinstance(merged, Missing):
        review = dict.fromkeys(merge_protection(NO_RULE, [], {}).review, merged)
    else:
        review = merged[1]
    return {**review, **_make_github_codeowners(known)}


def _make_github_protection(known: GithubSnapshot) -> tuple[Leaves, Leaves] | Missing:
    found = known.found
    branch = found.repository.default_branch_ref
    if branch is None:
        return _explain_no_branch(found)
    classic = _find_classic_rule(known, branch)
    rules = None
    if branch.rules is not None and not found.missing("defaultBranchRef.rules"):
        rules = branch.rules.known
    bypassed = {id_: known.bypassed.get(id_) for id_ in _list_ruleset_ids(rules or ())}
    readable = {id_: may for id_, may in bypassed.items() if isinstance(may, bool)}
    merged = merge_protection(
        UNREADABLE if isinstance(classic, Missing) else classic, rules, readable
    )
    why = _explain_unreadable(known, classic)
    hidden = next((may for may in bypassed.values() if isinstance(may, Missing)), None)
    leaves = _fill_unknown(merged.protection, why), _fill_unknown(merged.review, why)
    if merged.protection["enforceAdmins"] is None and not isinstance(classic, Missing):
        leaves[0]["enforceAdmins"] = hidden or why
    return leaves


def _explain_unreadable(known: GithubSnapshot, classic: Classic | Missing) -> Missing:
    if isinstance(classic, Missing):
        return classic
    return known.found.missing("defaultBranchRef.rules") or _NO_RULES


def _find_classic_rule(known: GithubSnapshot, branch: GithubBranch) -> Classic | Missing:
    """The classic rule from its most complete view; `NO_RULE` only if that is certain."""
    if branch.branch_protection_rule is not None:
        return convert_graphql_rule(branch.branch_protection_rule)
    if missing := known.found.missing("defaultBranchRef.branchProtectionRule"):
        return missing
    if branch.ref_update_rule is not None:
        return convert_update_rule(branch.ref_update_rule)
    if known.found.repository.viewer_permission == "ADMIN":
        return NO_RULE
    return known.classic or _NO_RULES


def _list_ruleset_ids(rules: Iterable[RuleNode]) -> Iterable[str]:
    return (rule.repository_ruleset.id for rule in rules if rule.repository_ruleset)


def _fill_unknown(leaves: Mapping[str, Any], why: Missing) -> Leaves:
    return {name: why if value is None else value for name, value in leaves.items()}


def _explain_no_branch(found: RepositoryData) -> Missing:
    missing = found.missing("defaultBranchRef")
    return missing or (_NO_BRANCH if found.repository.is_empty else _NO_CONTENTS)


def _make_github_codeowners(known: GithubSnapshot) -> Leaves:
    missing = known.found.missing("codeowners")
    owners = known.found.repository.codeowners
    if owners is not None and not missing:
        return code_host.make_codeowners_leaves(CODEOWNERS, CODEOWNERS, len(owners.errors))
    # Without a right to the contents GitHub finds no file either.
    return code_host.make_codeowners_leaves(missing or known.paths, CODEOWNERS, _NOT_CHECKED)


def _make_dependency_alerts(known: GithubSnapshot) -> Leaves | Missing:
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


def _count_connection(known: GithubSnapshot, connection: Any, place: str) -> int | Missing:
    if connection is None or connection.total_count is None:
        return known.found.missing(place) or _HIDDEN
    return int(connection.total_count)
