"""Rules of a project from REST, and the selection of those that apply to its default branch."""

import asyncio
from dataclasses import dataclass
from typing import Final, TypeVar

from factbook.integrations.gitlab.answers import (
    NO_PREMIUM,
    ApprovalRule,
    Approvals,
    ProjectSettings,
    ProtectedBranch,
    PushRule,
)
from factbook.integrations.gitlab.api import GitlabApi
from factbook.outbound.client import build_path
from factbook.outbound.outcomes import Missing, Outcome

T = TypeVar("T")

# A thousand rules.
MOST_PAGES: Final = 10

_NO_PUSH_RULE: Final = PushRule(0, None)


@dataclass
class ProjectRules:
    """Rules of one project; each kind is a value or the reason for its absence."""

    settings: ProjectSettings | Missing
    branches: list[ProtectedBranch] | Missing
    approvals: Approvals | Missing
    approval_rules: list[ApprovalRule] | Missing
    push_rule: PushRule | Missing


async def rules(api: GitlabApi, number: str) -> ProjectRules:
    """The rules of the project with this id."""
    project = build_path("projects", number)
    settings, branches, approvals, approval_rules, push_rule = await asyncio.gather(
        api.one(project, ProjectSettings),
        api.every(f"{project}/protected_branches", list[ProtectedBranch], pages=MOST_PAGES),
        api.one(f"{project}/approvals", Approvals),
        api.every(f"{project}/approval_rules", list[ApprovalRule], pages=MOST_PAGES),
        _push_rule(api, project),
    )
    return ProjectRules(
        _refused(settings, "the project's settings"),
        _refused(branches, "protected branches"),
        _of_premium(approvals, "settings of approvals"),
        _of_premium(approval_rules, "approval rules"),
        _of_premium(push_rule, "push rules"),
    )


def fitting(branches: list[ProtectedBranch], branch: str) -> list[ProtectedBranch]:
    """The protected branches whose name or wildcard matches the branch."""
    return [one for one in branches if fits(one.name, branch)]


def fits(pattern: str, name: str) -> bool:
    """True if the name matches the pattern, in which each star stands for any text."""
    first, *rest = pattern.split("*")
    if not rest:
        return pattern == name
    *middle, last = rest
    if not name.startswith(first):
        return False
    at = len(first)
    for text in middle:
        found = name.find(text, at)
        if found < 0:
            return False
        at = found + len(text)
    return name.endswith(last) and at + len(last) <= len(name)


def force_pushes(fitting: list[ProtectedBranch]) -> bool:
    """True without any rule, or if one allows it; rules inherited from a group take precedence."""
    of_groups = [one for one in fitting if one.inherited]
    return not fitting or any(one.allow_force_push for one in of_groups or fitting)


def code_owners(fitting: list[ProtectedBranch]) -> bool | None:
    """True if a code owner has to approve: one rule suffices. None if GitLab does not say."""
    demands = {one.code_owner_approval_required for one in fitting}
    return True if True in demands else None if None in demands else False


def approvals(rules: list[ApprovalRule], branch: str, *, protected: bool) -> int:
    """The highest number of approvals that a rule for merges into the branch requires.

    Rules about reports apply only to the findings of a report, so they do not count.
    """
    counted = [
        rule.approvals_required
        for rule in rules
        if rule.rule_type != "report_approver" and _applies(rule, branch, protected=protected)
    ]
    return max(counted, default=0)


def _applies(rule: ApprovalRule, branch: str, *, protected: bool) -> bool:
    if rule.applies_to_all_protected_branches:
        return protected
    named = [one.name for one in rule.protected_branches]
    return not named or any(fits(name, branch) for name in named)


async def _push_rule(api: GitlabApi, project: str) -> PushRule | Missing:
    """The push rule; one never set is null and requires nothing."""
    answer = await api.get(f"{project}/push_rule")
    if answer.ok and answer.data is None:
        return _NO_PUSH_RULE
    return answer.read_as(PushRule)


def _of_premium(found: T | Missing, what: str) -> T | Missing:
    """The result, with 404 read as a feature that the plan or edition lacks."""
    if isinstance(found, Missing) and found.outcome is Outcome.NOT_FOUND:
        return NO_PREMIUM
    return _refused(found, what)


def _refused(found: T | Missing, what: str) -> T | Missing:
    """The result, with 404 read as hidden, since the project exists."""
    if isinstance(found, Missing) and found.outcome in {Outcome.DENIED, Outcome.NOT_FOUND}:
        return Missing(Outcome.DENIED, f"the credential may not read {what}")
    return found
