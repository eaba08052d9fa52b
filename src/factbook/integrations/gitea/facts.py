"""Facts from answers: one function for each group of the shapes, without any request.

Protection of the default branch is that of the branch itself and of the rule that protects it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

from factbook.integrations import code_host
from factbook.integrations.gitea.api import Closed, GiteaBranch, GiteaRepository, ProtectionRule
from factbook.integrations.integration import Collected, Leaves, sum_counts
from factbook.outbound.outcomes import Missing, Outcome

_NO_SUCH_RULE: Final = Missing(Outcome.NOT_APPLICABLE, "Gitea has no such rule")
_NOT_SAID: Final = Missing(Outcome.NOT_APPLICABLE, "this version of the server does not say")
_NOT_LISTED: Final = Missing(Outcome.TRANSIENT, "the branch's rule is not among those listed")


class ProtectionLeaves(NamedTuple):
    """The leaves of both groups."""

    protection: Leaves
    review: Leaves


# No rule restricts anything. Gitea refuses to delete a default branch even so, as other code hosts
# do; the leaf is about rules.
UNPROTECTED: Final = ProtectionLeaves(
    {
        "enabled": False,
        "enforceAdmins": False,
        "allowDeletions": True,
        "requiredLinearHistory": False,
        "allowForcePushes": True,
        "blockCreations": False,
        "requiredSignatures": False,
    },
    {
        "dismissStaleReviews": False,
        "requireCodeOwnerReviews": False,
        "requireLastPushApproval": False,
        "strictRequiredStatusChecks": False,
        "requiredApprovingReviewCount": 0,
    },
)


def find_effective_rule(
    branch: GiteaBranch, name: str, rules: Iterable[ProtectionRule]
) -> ProtectionRule | Missing:
    """The rule that protects the branch of this name, among those of the repository."""
    wanted = branch.effective_branch_protection_name or name
    found = (rule for rule in rules if wanted in {rule.rule_name, rule.branch_name})
    return next(found, _NOT_LISTED)


def make_protection_leaves(branch: GiteaBranch, rule: ProtectionRule | Missing) -> ProtectionLeaves:
    """The protection of the branch; `rule` is ignored if the branch is not protected."""
    if not branch.protected:
        return UNPROTECTED
    return ProtectionLeaves(_make_gitea_protection(rule), _make_gitea_review(branch, rule))


def _make_gitea_protection(rule: ProtectionRule | Missing) -> Leaves:
    return {
        "enabled": True,
        "enforceAdmins": _binds_admins(rule),
        # A protected branch cannot be deleted.
        "allowDeletions": False,
        "requiredLinearHistory": _NO_SUCH_RULE,
        # Where there is no such setting a protected branch refuses all of them.
        "allowForcePushes": (
            rule if isinstance(rule, Missing) else rule.enable_force_push or False
        ),
        "blockCreations": _NO_SUCH_RULE,
        "requiredSignatures": _get_rule_value(rule, "require_signed_commits"),
    }


def _make_gitea_review(branch: GiteaBranch, rule: ProtectionRule | Missing) -> Leaves:
    required = branch.required_approvals
    return {
        "dismissStaleReviews": _get_rule_value(rule, "dismiss_stale_approvals"),
        # Code owners are asked to review; here an open request blocks the merge.
        "requireCodeOwnerReviews": _get_rule_value(rule, "block_on_official_review_requests"),
        "requireLastPushApproval": _NO_SUCH_RULE,
        "strictRequiredStatusChecks": _requires_up_to_date(branch, rule),
        "requiredApprovingReviewCount": (
            _get_rule_value(rule, "required_approvals") if required is None else required
        ),
    }


def _requires_up_to_date(branch: GiteaBranch, rule: ProtectionRule | Missing) -> bool | Missing:
    """True if checks are required, and so is a branch that is up to date."""
    if branch.enable_status_check is False:
        return False
    checks = _get_rule_value(rule, "enable_status_check")
    outdated = _get_rule_value(rule, "block_on_outdated_branch")
    if checks is False or outdated is False:
        return False
    return next((one for one in (checks, outdated) if isinstance(one, Missing)), True)


def _binds_admins(rule: ProtectionRule | Missing) -> bool | Missing:
    bound: bool | Missing = _get_rule_value(rule, "block_admin_merge_override")
    if bound is _NOT_SAID:
        bound = _get_rule_value(rule, "apply_to_admins")
    return bound


def _get_rule_value(rule: ProtectionRule | Missing, name: str) -> Any:
    if isinstance(rule, Missing):
        return rule
    value = getattr(rule, name)
    return _NOT_SAID if value is None else value


# The last is Forgejo's own.
CODEOWNERS: Final = frozenset(
    {"CODEOWNERS", "docs/CODEOWNERS", ".gitea/CODEOWNERS", ".forgejo/CODEOWNERS"}
)

_NOT_ASKED: Final = Missing(Outcome.TRANSIENT, "not asked for")
_PULLS_OFF: Final = Missing(Outcome.FEATURE_OFF, "pull requests are switched off")
_NO_PULLS: Final = Missing(
    Outcome.FEATURE_OFF, "a mirror or an empty repository takes no pull requests"
)
_ISSUES_OFF: Final = Missing(Outcome.FEATURE_OFF, "issues are switched off")
_ISSUES_ELSEWHERE: Final = Missing(Outcome.FEATURE_OFF, "issues are kept in another tracker")
_NO_CHECK: Final = Missing(Outcome.NOT_APPLICABLE, "Gitea does not say what is wrong with the file")


@dataclass
class GiteaSnapshot:
    """Data collected about one repository; `cutoff` is 30 days ago."""

    repository: GiteaRepository
    cutoff: int
    closed_pulls: Closed | Missing = _NOT_ASKED
    open_pulls: int | Missing = _NOT_ASKED
    open_issues: int | Missing = _NOT_ASKED
    closed_issues: int | Missing = _NOT_ASKED
    closed_last_month: int | Missing = _NOT_ASKED
    languages: dict[str, int] | Missing = _NOT_ASKED
    collaborators: Leaves | Missing = _NOT_ASKED
    branch: GiteaBranch | Missing = _NOT_ASKED
    rule: ProtectionRule | Missing = _NOT_ASKED
    paths: list[str] | Missing = _NOT_ASKED

    @cached_property
    def merging(self) -> Leaves | Missing:
        """The facts of the merged pull requests, by group."""
        closed = self.closed_pulls
        if off := explain_no_pulls(self.repository):
            return off
        return (
            closed
            if isinstance(closed, Missing)
            else code_host.make_merge_figures(closed.merged, self.cutoff)
        )

    @cached_property
    def protection(self) -> ProtectionLeaves | Missing:
        """The leaves of branchProtection, and those of codeReview that rules decide."""
        branch = self.branch
        return branch if isinstance(branch, Missing) else make_protection_leaves(branch, self.rule)


def explain_no_pulls(repository: GiteaRepository) -> Missing | None:
    """The reason that the repository has no pull requests, if it cannot have any."""
    if not repository.has_pull_requests:
        return _PULLS_OFF
    return _NO_PULLS if repository.mirror or repository.empty else None


def explain_no_issues(repository: GiteaRepository) -> Missing | None:
    """The reason that the repository has no issues, if it cannot have any."""
    if not repository.has_issues:
        return _ISSUES_OFF
    return None if repository.external_tracker is None else _ISSUES_ELSEWHERE


def make_gitea_facts(known: GiteaSnapshot) -> Collected:
    """The facts of all shapes that Gitea fills."""
    found = known.protection
    return Collected.of(
        code_host.make_code_host_groups(
            merging=known.merging,
            pull_requests=_make_gitea_pull_requests(known),
            issues=explain_no_issues(known.repository)
            or code_host.make_issue_leaves(
                known.open_issues, known.closed_issues, known.closed_last_month
            ),
            collaboration=_make_gitea_collaboration(known),
            protection=found if isinstance(found, Missing) else found.protection,
            review=_make_gitea_code_review(known),
            paths=known.paths,
        )
    )


def _make_gitea_pull_requests(known: GiteaSnapshot) -> Leaves | Missing:
    closed = known.closed_pulls
    if off := explain_no_pulls(known.repository):
        return off
    if isinstance(closed, Missing):
        every, merged = sum_counts((known.open_pulls, closed)), closed
        return code_host.make_pull_request_leaves(every, merged, known.open_pulls, known.merging)
    every = sum_counts((known.open_pulls, closed.total))
    return code_host.make_pull_request_leaves(
        every, closed.ever_merged, known.open_pulls, known.merging
    )


def _make_gitea_collaboration(known: GiteaSnapshot) -> Leaves:
    sizes, who = known.languages, known.collaborators
    languages: list[str] | Missing = sizes if isinstance(sizes, Missing) else []
    if not isinstance(sizes, Missing):
        languages = sorted(sizes, key=lambda language: (-sizes[language], language))
    listed = code_host.make_collaborator_leaves(who, who) if isinstance(who, Missing) else who
    return {"languages": languages, **listed}


def _make_gitea_code_review(known: GiteaSnapshot) -> Leaves:
    found = known.protection
    review = UNPROTECTED.review
    rules = dict.fromkeys(review, found) if isinstance(found, Missing) else found.review
    return {**rules, **code_host.make_codeowners_leaves(known.paths, CODEOWNERS, _NO_CHECK)}
