"""Expectations that hold for every code host: its facts of one repository, and slugs of its own.

The fakes of the hosts hold the same repository, each in the forms of its vendor.
"""

from collections.abc import Callable
from typing import Any

from factbook.outbound.outcomes import Missing, Outcome


def facts(codeowners: str) -> dict[str, Any]:
    """The facts about the repository that all hosts know; its owners stand in this file."""
    return {
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
        "codehost.branchProtection.allowForcePushes": False,
        "codehost.branchProtection.requiredSignatures": True,
        "codehost.codeReview.dismissStaleReviews": True,
        "codehost.codeReview.requireCodeOwnerReviews": True,
        "codehost.codeReview.strictRequiredStatusChecks": True,
        "codehost.codeReview.usesCodeowners": True,
        "codehost.codeReview.requiredApprovingReviewCount": 2,
        "security.branchProtection": True,
        "repository.filePaths": [
            codeowners,
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


def addresses(host: str, below: str) -> list[str]:
    """Ways to write `acme/app` at the host; `below` leads on in the addresses of its pages."""
    return [
        f"https://{host}/acme/app",
        f"https://{host}/acme/app.git",
        f"http://{host}/acme/app/",
        f" https://{host}/acme/app/{below} ",
        f"ssh://git@{host}/acme/app.git",
        f"git@{host}:acme/app.git",
        f"{host}/acme/app",
        "acme/app.git",
        "acme/app/",
    ]


def unreadable(host: str) -> list[str]:
    """Slugs that name no repository of the host."""
    return [
        "https://evil.example.com/acme/app.git",
        f"https://token@{host}/acme/app",
        f"https://{host}:8443/acme/app",
        f"https://{host}@evil.example.com/acme/app",
        "git@evil.example.com:acme/app.git",
        f"git@{host}:../acme/app",
        f"ftp://{host}/acme/app",
        f"https://{host}/",
        "acme",
    ]


def reasons(
    target: Callable[[dict[str, Any]], str | Missing], annotation: str, slug: str
) -> list[tuple[Outcome, str] | None]:
    """The reasons for an annotation, for none at all and for a blank one; None for a target."""
    found = [target(given) for given in ({annotation: slug}, {}, {annotation: " "})]
    return [(one.outcome, one.detail) if isinstance(one, Missing) else None for one in found]
