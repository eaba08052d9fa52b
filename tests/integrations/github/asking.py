"""The integration as configured for a fake GitHub, and a repository with a value in every leaf."""

from collections.abc import Mapping
from typing import Any

from factbook.clock import DAY, HOUR
from factbook.integrations.github import INTEGRATION
from factbook.integrations.integration import Collected
from factbook.outbound.network import Sender
from tests.fakes.github.app import FakeGitHub
from tests.fakes.github.state import Issue, Pull, Repository, Ruleset, Token
from tests.integrations import code_hosts
from tests.integrations.asking import Asking
from tests.service import NOON, Time

TOKEN = "ghp_a_token_of_tests"
APP = "acme/app"


class Collector(Asking):
    """The integration for a GitHub, with a token unless the table says otherwise."""

    def __init__(
        self,
        fake: FakeGitHub,
        time: Time,
        *,
        seconds: float = 5,
        others: Sender | None = None,
        paced: bool = False,
        **table: Any,
    ) -> None:
        given = {"token": TOKEN} | table
        super().__init__(
            INTEGRATION, fake, given, time=time, seconds=seconds, others=others, paced=paced
        )

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
    **code_hosts.facts(".github/CODEOWNERS"),
    "codehost.branchProtection.enforceAdmins": True,
    "codehost.branchProtection.requiredLinearHistory": True,
    "codehost.branchProtection.blockCreations": False,
    "codehost.codeReview.requireLastPushApproval": False,
    "codehost.codeReview.codeownersHasErrors": True,
    "codehost.codeReview.codeownersErrorCount": 2,
    "security.dependencyAlerts.open": 3,
    "security.dependencyAlerts.dismissed": 6,
    "security.dependencyAlerts.fixed": 5,
}

NAMES = {fact.name for fact in INTEGRATION.facts}
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
