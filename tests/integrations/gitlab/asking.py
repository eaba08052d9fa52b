"""The integration as configured for a fake GitLab, and a project with a value in every leaf."""

from collections.abc import Mapping
from typing import Any

from factbook.clock import DAY, HOUR
from factbook.integrations.gitlab import FACTS, INTEGRATION
from factbook.integrations.integration import Collected
from tests.fakes.gitlab.app import FakeGitLab
from tests.fakes.gitlab.state import Project, Request, Token
from tests.integrations.asking import Asking
from tests.service import NOON, Time

TOKEN = "glpat-a-token-of-tests"
APP = "acme/team/app"


class Collector(Asking):
    """The integration for a GitLab, with a token unless the table says otherwise."""

    def __init__(self, fake: FakeGitLab, time: Time, **table: Any) -> None:
        super().__init__(INTEGRATION, fake, {"token": TOKEN} | table, time=time)

    async def one(self, target: str = APP) -> Collected:
        """What one run brings for one target."""
        return await super().one(target)


def started(
    *projects: Project, token: Token | None = None, **table: Any
) -> tuple[FakeGitLab, Collector]:
    """A fake that holds these, and the integration that asks it with the token."""
    time = Time()
    fake = FakeGitLab(projects, [token or Token(TOKEN)], clock=time)
    return fake, Collector(fake, time, **table)


def full() -> Project:
    """A project of a paying group that has something for every leaf."""
    return Project(
        APP,
        requests=[
            Request(1, "Old", NOON - 90 * DAY, NOON - 89 * DAY, "bob"),
            Request(2, "Quick", NOON - 3 * DAY, NOON - 3 * DAY + HOUR, "alice"),
            Request(3, "Latest", NOON - 9 * DAY, NOON - 2 * DAY, "carol"),
            Request(4, "Refused"),
            Request(5, "Waiting", is_open=True),
        ],
        issues=[None, NOON - 5 * DAY, NOON - 50 * DAY, NOON - 70 * DAY],
        languages={"Shell": 12.5, "Python": 87.5},
        members=["dora", "alice", "bob", "alice", ""],
        files=[
            ".gitlab/CODEOWNERS",
            "Dockerfile",
            "catalog-info.yaml",
            "docs/index.md",
            "src/app.py",
            "web/app.ts",
        ],
        submodules=["vendored"],
        settings={"merge_method": "ff", "only_allow_merge_if_pipeline_succeeds": True},
        protected=[
            {"name": "release/*", "allow_force_push": True},
            {"name": "main", "code_owner_approval_required": True},
        ],
        approval_rules=[
            {"approvals_required": 1, "rule_type": "any_approver", "protected_branches": []},
            {"approvals_required": 2, "protected_branches": [{"name": "main"}]},
            {"approvals_required": 5, "protected_branches": [{"name": "release/*"}]},
            {"approvals_required": 9, "rule_type": "report_approver", "protected_branches": []},
        ],
        push_rule={"reject_unsigned_commits": True},
        codeowners_errors=2,
    )


# What GitLab has no rule for.
NOT_APPLICABLE = {
    "codehost.branchProtection.enforceAdmins": "not-applicable",
    "codehost.branchProtection.blockCreations": "not-applicable",
}

# What is collected of `full` with all rights.
EVERYTHING: Mapping[str, Any] = {
    "codehost.pullRequests.total": 5,
    "codehost.pullRequests.merged": 3,
    "codehost.pullRequests.open": 1,
    "codehost.pullRequests.mergedPercentage": 60.0,
    "codehost.pullRequests.mergedLastMonth": 2,
    "codehost.mergeTime.avgHours": 64.33,
    "codehost.mergeTime.avgLastMonthHours": 84.5,
    "codehost.mergeTime.minHours": 1.0,
    "codehost.mergeTime.maxHours": 168.0,
    "codehost.mergeTime.minLastMonthHours": 1.0,
    "codehost.mergeTime.maxLastMonthHours": 168.0,
    "codehost.issues.total": 4,
    "codehost.issues.open": 1,
    "codehost.issues.closed": 3,
    "codehost.issues.closedLastMonth": 1,
    "codehost.latestMergedPR.title": "Latest",
    "codehost.latestMergedPR.author": "carol",
    "codehost.collaboration.languages": ["Python", "Shell"],
    "codehost.collaboration.collaborators": ["alice", "bob", "dora"],
    "codehost.collaboration.collaboratorCount": 3,
    "codehost.branchProtection.enabled": True,
    "codehost.branchProtection.allowDeletions": False,
    "codehost.branchProtection.requiredLinearHistory": True,
    "codehost.branchProtection.allowForcePushes": False,
    "codehost.branchProtection.requiredSignatures": True,
    "codehost.codeReview.dismissStaleReviews": True,
    "codehost.codeReview.requireCodeOwnerReviews": True,
    "codehost.codeReview.requireLastPushApproval": False,
    "codehost.codeReview.strictRequiredStatusChecks": True,
    "codehost.codeReview.usesCodeowners": True,
    "codehost.codeReview.codeownersHasErrors": True,
    "codehost.codeReview.requiredApprovingReviewCount": 2,
    "codehost.codeReview.codeownersErrorCount": 2,
    "security.branchProtection": True,
    "repository.filePaths": [
        ".gitlab/CODEOWNERS",
        "Dockerfile",
        "catalog-info.yaml",
        "docs/index.md",
        "src/app.py",
        "web/app.ts",
    ],
    "repository.totalFiles": 6,
    "repository.inCatalog": True,
    "repository.fileTypes.docker": 1,
    "repository.fileTypes.yaml": 1,
    "repository.fileTypes.javascript": 1,
    "repository.fileTypes.python": 1,
    "repository.fileTypes.docs": 1,
    "repository.fileTypes.config": 0,
}

_NAMES = {fact.name for fact in FACTS}


def differences(collected: Collected) -> tuple[dict[str, Any], dict[str, str]]:
    """The values that a full collection would not have, and the words of the other reasons."""
    covered = set(collected.values) | {
        name
        for name in _NAMES
        if any(name == place or name.startswith(f"{place}.") for place in collected.missing)
    }
    assert covered == _NAMES, _NAMES - covered
    assert not set(collected.values) & set(collected.missing)
    values = {
        name: value
        for name, value in collected.values.items()
        if name not in EVERYTHING or EVERYTHING[name] != value
    }
    words = {place: text.split(":")[0] for place, text in collected.reasons.items()}
    return values, {place: words[place] for place in words if place not in NOT_APPLICABLE}
