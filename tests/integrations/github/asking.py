"""The integration as configured for a fake GitHub, and a repository with a value in every leaf."""

from collections.abc import Mapping
from typing import Any

from factbook.clock import DAY, HOUR
from factbook.integrations.github import FACTS, INTEGRATION
from factbook.integrations.integration import Collected
from tests.fakes.github.app import FakeGitHub
from tests.fakes.github.state import Issue, Pull, Repository, Ruleset, Token
from tests.integrations.asking import Asking
from tests.service import NOON, Time

TOKEN = "ghp_a_token_of_tests"
APP = "acme/app"


class Collector(Asking):
    """The integration for a GitHub, with a token unless the table says otherwise."""

    def __init__(self, fake: FakeGitHub, time: Time, *, seconds: float = 5, **table: Any) -> None:
        super().__init__(INTEGRATION, fake, {"token": TOKEN} | table, time=time, seconds=seconds)

    async def one(self, target: str = APP) -> Collected:
        """What one run brings for one target."""
        return await super().one(target)


def started(
    *repositories: Repository,
    token: Token | None = None,
    whole_schema: bool = False,
    **table: Any,
) -> tuple[FakeGitHub, Collector]:
    """A fake that holds these, and the integration that asks it with the token."""
    time = Time()
    fake = FakeGitHub(repositories, [token or Token(TOKEN)], clock=time, whole_schema=whole_schema)
    return fake, Collector(fake, time, **table)


def full() -> Repository:
    """A repository that has something for every leaf."""
    return Repository(
        APP,
        pulls=[
            Pull(1, "Old", NOON - 90 * DAY, NOON - 89 * DAY, NOON - 60 * DAY, "bob"),
            Pull(2, "Quick", NOON - 3 * DAY, NOON - 3 * DAY + HOUR, NOON - DAY, "alice"),
            Pull(3, "Latest", NOON - 9 * DAY, NOON - 2 * DAY, NOON - 2 * DAY, "carol"),
            Pull(4, "Refused"),
            Pull(5, "Waiting", is_open=True),
        ],
        issues=[
            Issue(6),
            Issue(7, closed_at=NOON - 5 * DAY),
            Issue(8, closed_at=NOON - 50 * DAY),
            Issue(9, closed_at=NOON - 70 * DAY, updated_at=NOON - 40 * DAY),
        ],
        languages=["Python", "Shell"],
        collaborators=["dora", "alice", "bob"],
        files=[
            ".github/CODEOWNERS",
            "Dockerfile",
            "catalog-info.yaml",
            "docs/index.md",
            "src/app.py",
            "web/app.ts",
        ],
        submodules=["vendored"],
        classic={
            "isAdminEnforced": True,
            "requiresLinearHistory": True,
            "dismissesStaleReviews": True,
            "requiredApprovingReviewCount": 1,
            "requiresCodeOwnerReviews": True,
        },
        rulesets=[
            Ruleset(
                "RS_1",
                [
                    ("REQUIRED_SIGNATURES", {}),
                    ("PULL_REQUEST", {"requiredApprovingReviewCount": 2}),
                    ("REQUIRED_STATUS_CHECKS", {"strictRequiredStatusChecksPolicy": True}),
                ],
            )
        ],
        codeowners_errors=2,
        alerts={"OPEN": 3, "FIXED": 5, "DISMISSED": 2, "AUTO_DISMISSED": 4},
    )


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
    "codehost.branchProtection.enforceAdmins": True,
    "codehost.branchProtection.allowDeletions": False,
    "codehost.branchProtection.requiredLinearHistory": True,
    "codehost.branchProtection.allowForcePushes": False,
    "codehost.branchProtection.blockCreations": False,
    "codehost.branchProtection.requiredSignatures": True,
    "codehost.codeReview.dismissStaleReviews": True,
    "codehost.codeReview.requireCodeOwnerReviews": True,
    "codehost.codeReview.requireLastPushApproval": False,
    "codehost.codeReview.strictRequiredStatusChecks": True,
    "codehost.codeReview.usesCodeowners": True,
    "codehost.codeReview.codeownersHasErrors": True,
    "codehost.codeReview.requiredApprovingReviewCount": 2,
    "codehost.codeReview.codeownersErrorCount": 2,
    "security.dependencyAlerts.open": 3,
    "security.dependencyAlerts.dismissed": 6,
    "security.dependencyAlerts.fixed": 5,
    "security.branchProtection": True,
    "repository.filePaths": [
        ".github/CODEOWNERS",
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

NAMES = {fact.name for fact in FACTS}
CODEOWNERS = ("usesCodeowners", "codeownersHasErrors", "codeownersErrorCount")


def differences(collected: Collected) -> tuple[dict[str, Any], dict[str, str]]:
    """The values that a full collection would not have, and the words of all reasons."""
    covered = set(collected.values) | {
        name
        for name in NAMES
        if any(name == place or name.startswith(f"{place}.") for place in collected.missing)
    }
    assert covered == NAMES, NAMES - covered
    values = {
        name: value
        for name, value in collected.values.items()
        if name not in EVERYTHING or EVERYTHING[name] != value
    }
    return values, {place: text.split(":")[0] for place, text in collected.reasons.items()}
