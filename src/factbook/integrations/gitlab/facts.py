"""Facts from answers: one function for each group of the shapes, without any request.

Each returns its leaves, each a value or the reason that it is missing, or one reason for all.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import msgspec

from factbook.integrations import code_host
from factbook.integrations.gitlab import projects
from factbook.integrations.gitlab.api import (
    HIDDEN,
    NO_BRANCH,
    NO_PREMIUM,
    NO_REPOSITORY,
    GitlabCount,
    ProjectData,
    ProtectedBranch,
    PushRule,
)
from factbook.integrations.gitlab.projects import (
    MOST_MEMBERS,
    ProjectRules,
    list_gitlab_merged_pulls,
)
from factbook.integrations.integration import Collected, Leaves
from factbook.outbound.outcomes import Missing, Outcome, report_too_many

CODEOWNERS: Final = frozenset({"CODEOWNERS", "docs/CODEOWNERS", ".gitlab/CODEOWNERS"})
# Alone makes no merge commits; like the other one it demands a branch that is up to date.
_FAST_FORWARD: Final = "ff"
_UP_TO_DATE: Final = frozenset({_FAST_FORWARD, "rebase_merge"})

_OFF: Final = Missing(Outcome.FEATURE_OFF, "switched off, or hidden from the credential")
_EMPTY: Final = Missing(Outcome.NOT_APPLICABLE, "the repository is empty")
_TOO_MANY_MEMBERS: Final = report_too_many(MOST_MEMBERS, "members to list")
_NO_SUCH_RULE: Final = Missing(Outcome.NOT_APPLICABLE, "GitLab has no such rule")


@dataclass
class GitlabSnapshot:
    """Data collected about one project; `cutoff` is 30 days ago.

    `codeowners`: the number of errors in the CODEOWNERS file, if there is one.
    """

    found: ProjectData
    paths: list[str] | Missing
    rules: ProjectRules
    cutoff: int
    codeowners: int | Missing = 0
    bots: bool = True

    @property
    def has_codeowners(self) -> bool:
        """True if there is a CODEOWNERS file where GitLab looks for it."""
        return isinstance(self.paths, list) and not CODEOWNERS.isdisjoint(self.paths)

    @cached_property
    def merging(self) -> Leaves | Missing:
        """The facts of the merged merge requests, by group."""
        project = self.found.project
        if project.merge_requests_enabled is False:
            return _OFF
        if project.merged is None or "merged" in self.found.errors:
            return self.found.errors.get("merged", HIDDEN)
        return code_host.make_merge_figures(
            list_gitlab_merged_pulls(project.merged), self.cutoff, bots=self.bots
        )

    @cached_property
    def branch(self) -> str | Missing:
        """The default branch."""
        repository = self.found.project.repository
        if repository is None:
            return self.found.errors.get("repository", NO_REPOSITORY)
        if repository.empty or not repository.root_ref:
            return _EMPTY if repository.empty else NO_BRANCH
        return repository.root_ref

    @cached_property
    def protection(self) -> list[ProtectedBranch] | Missing:
        """The rules that apply to the default branch."""
        if isinstance(self.branch, Missing):
            return self.branch
        branches = self.rules.branches
        return (
            branches
            if isinstance(branches, Missing)
            else projects.list_fitting_branches(branches, self.branch)
        )


def make_gitlab_facts(known: GitlabSnapshot) -> Collected:
    """The facts of all shapes that GitLab fills."""
    return Collected.of(
        code_host.make_code_host_groups(
            merging=known.merging,
            pull_requests=_make_gitlab_pull_requests(known),
            issues=_make_gitlab_issues(known),
            collaboration=_make_gitlab_collaboration(known),
            protection=_make_gitlab_branch_protection(known),
            review=_make_gitlab_reviews(known)
            | code_host.make_codeowners_leaves(known.paths, CODEOWNERS, known.codeowners),
            paths=known.paths,
        )
    )


def _make_gitlab_pull_requests(known: GitlabSnapshot) -> Leaves | Missing:
    project = known.found.project
    if project.merge_requests_enabled is False:
        return _OFF
    merged: int | Missing = known.found.errors.get("merged", HIDDEN)
    if project.merged is not None and project.merged.count is not None:
        merged = project.merged.count
    return code_host.make_pull_request_leaves(
        _get_gitlab_count(known, project.requests, "requests"),
        merged,
        _get_gitlab_count(known, project.open_requests, "openRequests"),
        _get_gitlab_count(known, project.last_month, "lastMonth"),
    )


def _make_gitlab_issues(known: GitlabSnapshot) -> Leaves | Missing:
    project = known.found.project
    if project.issues_enabled is False:
        return _OFF
    return {
        "total": _get_gitlab_count(known, project.issues, "issues"),
        "open": _get_gitlab_count(known, project.open_issues, "openIssues"),
        "closed": _get_gitlab_count(known, project.closed_issues, "closedIssues"),
        "closedLastMonth": _get_gitlab_count(known, project.closed_last_month, "closedLastMonth"),
    }


def _make_gitlab_collaboration(known: GitlabSnapshot) -> Leaves:
    found = known.found
    languages: Any = found.errors.get("languages", HIDDEN)
    if found.project.languages is not None:
        by_share = sorted(found.project.languages, key=lambda one: one.share or 0, reverse=True)
        languages = [language.name for language in by_share]
    return {"languages": languages, **_make_gitlab_collaborators(known)}


def _make_gitlab_collaborators(known: GitlabSnapshot) -> Leaves:
    members = known.found.project.members
    if members is None or "members" in known.found.errors:
        missing = known.found.errors.get("members", HIDDEN)
        return code_host.make_collaborator_leaves(missing, missing)
    if known.found.members is not None:
        return code_host.make_collaborator_leaves(_TOO_MANY_MEMBERS, known.found.members)
    names = sorted({member.user.username for member in members.known if member.user})
    return code_host.make_collaborator_leaves(names, len(names))


def _make_gitlab_branch_protection(known: GitlabSnapshot) -> Leaves | Missing:
    if isinstance(known.branch, Missing):
        return known.branch
    fitting, settings, push = known.protection, known.rules.settings, known.rules.push_rule
    unread = fitting if isinstance(fitting, Missing) else None
    rule = [] if isinstance(fitting, Missing) else fitting
    method = settings if isinstance(settings, Missing) else settings.merge_method or HIDDEN
    return {
        "enabled": unread or bool(rule),
        "enforceAdmins": _NO_SUCH_RULE,
        # A protected branch cannot be deleted.
        "allowDeletions": unread or not rule,
        "requiredLinearHistory": (
            method if isinstance(method, Missing) else method == _FAST_FORWARD
        ),
        "allowForcePushes": unread or projects.allows_force_pushes(rule),
        "blockCreations": _NO_SUCH_RULE,
        "requiredSignatures": push if isinstance(push, Missing) else _requires_signatures(push),
    }


def _requires_signatures(rule: PushRule) -> bool | Missing:
    demanded = rule.reject_unsigned_commits
    return NO_PREMIUM if demanded is msgspec.UNSET else bool(demanded)


def _make_gitlab_reviews(known: GitlabSnapshot) -> Leaves:
    branch, fitting, told = known.branch, known.protection, known.rules.approvals
    if isinstance(branch, Missing):
        return dict.fromkeys(_REVIEWS, branch)
    owners: Any = (
        fitting if isinstance(fitting, Missing) else projects.requires_code_owners(fitting)
    )
    stale = told if isinstance(told, Missing) else bool(told.reset_approvals_on_push)
    last: Any = told
    if not isinstance(told, Missing):
        last = bool(told.merge_requests_disable_committers_approval)
    values = (
        stale,
        NO_PREMIUM if owners is None else owners,
        last,
        _requires_current_branch(known),
    )
    return dict(zip(_REVIEWS, (*values, _count_approvals(known, branch)), strict=True))


_REVIEWS: Final = (
    "dismissStaleReviews",
    "requireCodeOwnerReviews",
    "requireLastPushApproval",
    "strictRequiredStatusChecks",
    "requiredApprovingReviewCount",
)


def _requires_current_branch(known: GitlabSnapshot) -> bool | Missing:
    """True if a pipeline has to succeed on the merge result with the current branch."""
    settings = known.rules.settings
    if isinstance(settings, Missing):
        return settings
    if not settings.only_allow_merge_if_pipeline_succeeds:
        return HIDDEN if settings.only_allow_merge_if_pipeline_succeeds is None else False
    if settings.merge_trains_enabled:
        return True
    return HIDDEN if settings.merge_method is None else settings.merge_method in _UP_TO_DATE


def _count_approvals(known: GitlabSnapshot, branch: str) -> int | Missing:
    told, fitting = known.rules.approval_rules, known.protection
    if isinstance(told, Missing):
        return told
    if isinstance(fitting, Missing):
        if any(rule.applies_to_all_protected_branches for rule in told):
            return fitting
        fitting = []
    return projects.count_required_approvals(told, branch, protected=bool(fitting))


def _get_gitlab_count(
    known: GitlabSnapshot, count: GitlabCount | None, field: str
) -> int | Missing:
    return known.found.errors.get(field, HIDDEN) if count is None else count.count
