"""Protection of a branch: the classic rule and the rules of rulesets merged, strictest first.

Every value is true, false or None for "not readable"; a value that one source alone decides is
known even if the other is not readable. Names of leaves are those of the shape.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

import msgspec

from factbook.integrations.github.answers import BranchRule, Parameters, RuleNode, UpdateRule


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


def merge(
    classic: Classic, rules: Sequence[RuleNode] | None, bypassed: Mapping[str, bool | None]
) -> Merged:
    """The protection of the branch under both kinds of rules.

    `rules` is None if they are not readable; `bypassed` maps a ruleset's id to true if
    administrators may bypass it, and to None, or has no entry, if that is not readable.
    """
    types = None if rules is None else {rule.type for rule in rules}
    reviews = _parameters(rules, "PULL_REQUEST")
    checks = _parameters(rules, "REQUIRED_STATUS_CHECKS")
    return Merged(
        {
            "enabled": _either(classic.exists, None if types is None else bool(types)),
            "enforceAdmins": _admins_bound(classic, rules, bypassed),
            "allowDeletions": _both(classic.allows_deletions, _lacks(types, "DELETION")),
            "requiredLinearHistory": _either(
                classic.requires_linear_history, _has(types, "REQUIRED_LINEAR_HISTORY")
            ),
            "allowForcePushes": _both(
                classic.allows_force_pushes, _lacks(types, "NON_FAST_FORWARD")
            ),
            "blockCreations": _either(classic.blocks_creations, _has(types, "CREATION")),
            "requiredSignatures": _either(
                classic.requires_signatures, _has(types, "REQUIRED_SIGNATURES")
            ),
        },
        {
            "dismissStaleReviews": _either(
                classic.dismisses_stale_reviews,
                _any(reviews, lambda one: one.dismiss_stale_reviews_on_push),
            ),
            "requireCodeOwnerReviews": _either(
                classic.requires_code_owner_reviews,
                _any(reviews, lambda one: one.require_code_owner_review),
            ),
            "requireLastPushApproval": _either(
                classic.requires_last_push_approval,
                _any(reviews, lambda one: one.require_last_push_approval),
            ),
            "strictRequiredStatusChecks": _either(
                classic.requires_strict_checks, _any(checks, _is_strict)
            ),
            "requiredApprovingReviewCount": _most(classic.approving_reviews, reviews),
        },
    )


def from_graphql(rule: BranchRule) -> Classic:
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


def from_update_rule(rule: UpdateRule) -> Classic:
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


def from_rest(rule: RestRule) -> Classic:
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


def _admins_bound(
    classic: Classic, rules: Sequence[RuleNode] | None, bypassed: Mapping[str, bool | None]
) -> bool | None:
    """True if the classic rule binds administrators, or they may bypass none of the rulesets."""
    return _either(classic.enforces_admins, _bound_by_rulesets(rules, bypassed))


def _bound_by_rulesets(
    rules: Sequence[RuleNode] | None, bypassed: Mapping[str, bool | None]
) -> bool | None:
    if rules is None:
        return None
    rulesets = [rule.repository_ruleset for rule in rules]
    may_bypass = [bypassed.get(ruleset.id) if ruleset else None for ruleset in rulesets]
    if any(may_bypass):
        return False
    return None if None in may_bypass else bool(rules)


def _parameters(rules: Sequence[RuleNode] | None, type_: str) -> list[Parameters] | None:
    if rules is None:
        return None
    return [rule.parameters for rule in rules if rule.type == type_ and rule.parameters]


def _any(
    parameters: Iterable[Parameters] | None, demands: Callable[[Parameters], bool]
) -> bool | None:
    return None if parameters is None else any(demands(one) for one in parameters)


def _is_strict(checks: Parameters) -> bool:
    return checks.strict_required_status_checks_policy and bool(checks.required_status_checks)


def _most(classic: int | None, reviews: list[Parameters] | None) -> int | None:
    if classic is None or reviews is None:
        return None
    return max([classic, *(one.required_approving_review_count for one in reviews)])


def _has(types: set[str] | None, type_: str) -> bool | None:
    return None if types is None else type_ in types


def _lacks(types: set[str] | None, type_: str) -> bool | None:
    return None if types is None else type_ not in types


def _either(one: bool | None, other: bool | None) -> bool | None:
    if one or other:
        return True
    return None if None in {one, other} else False


def _both(one: bool | None, other: bool | None) -> bool | None:
    if one is False or other is False:
        return False
    return None if None in {one, other} else True
