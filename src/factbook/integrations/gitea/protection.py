"""Protection of the default branch, from the branch itself and the rule that protects it.

Every value is known or Missing. Names of leaves are those of the shape. Source: Gitea's API
description 1.27; Forgejo's differs only in `apply_to_admins`.
"""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from factbook.integrations.gitea.answers import GiteaBranch, ProtectionRule
from factbook.integrations.integration import Leaves
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


def effective(
    branch: GiteaBranch, name: str, rules: Iterable[ProtectionRule]
) -> ProtectionRule | Missing:
    """The rule that protects the branch of this name, among those of the repository."""
    wanted = branch.effective_branch_protection_name or name
    found = (rule for rule in rules if wanted in {rule.rule_name, rule.branch_name})
    return next(found, _NOT_LISTED)


def leaves(branch: GiteaBranch, rule: ProtectionRule | Missing) -> ProtectionLeaves:
    """The protection of the branch; `rule` is ignored if the branch is not protected."""
    if not branch.protected:
        return UNPROTECTED
    return ProtectionLeaves(_protection(rule), _review(branch, rule))


def _protection(rule: ProtectionRule | Missing) -> Leaves:
    return {
        "enabled": True,
        "enforceAdmins": _admins_bound(rule),
        # A protected branch cannot be deleted.
        "allowDeletions": False,
        "requiredLinearHistory": _NO_SUCH_RULE,
        # Where there is no such setting a protected branch refuses all of them.
        "allowForcePushes": (
            rule if isinstance(rule, Missing) else rule.enable_force_push or False
        ),
        "blockCreations": _NO_SUCH_RULE,
        "requiredSignatures": _said(rule, "require_signed_commits"),
    }


def _review(branch: GiteaBranch, rule: ProtectionRule | Missing) -> Leaves:
    required = branch.required_approvals
    return {
        "dismissStaleReviews": _said(rule, "dismiss_stale_approvals"),
        # Code owners are asked to review; here an open request blocks the merge.
        "requireCodeOwnerReviews": _said(rule, "block_on_official_review_requests"),
        "requireLastPushApproval": _NO_SUCH_RULE,
        "strictRequiredStatusChecks": _strict(branch, rule),
        "requiredApprovingReviewCount": (
            _said(rule, "required_approvals") if required is None else required
        ),
    }


def _strict(branch: GiteaBranch, rule: ProtectionRule | Missing) -> bool | Missing:
    """True if checks are required, and so is a branch that is up to date."""
    if branch.enable_status_check is False:
        return False
    checks = _said(rule, "enable_status_check")
    outdated = _said(rule, "block_on_outdated_branch")
    if checks is False or outdated is False:
        return False
    return next((one for one in (checks, outdated) if isinstance(one, Missing)), True)


def _admins_bound(rule: ProtectionRule | Missing) -> bool | Missing:
    bound: bool | Missing = _said(rule, "block_admin_merge_override")
    if bound is _NOT_SAID:
        bound = _said(rule, "apply_to_admins")
    return bound


def _said(rule: ProtectionRule | Missing, name: str) -> Any:
    if isinstance(rule, Missing):
        return rule
    value = getattr(rule, name)
    return _NOT_SAID if value is None else value
