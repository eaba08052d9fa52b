"""The integration as configured for a fake Gitea, and a repository with a value in every leaf."""

from collections.abc import Mapping
from typing import Any

from factbook.clock import DAY, HOUR
from factbook.integrations.gitea import INTEGRATION
from factbook.integrations.integration import Collected
from factbook.outbound.network import Sender
from tests.fakes.gitea.app import FakeGitea
from tests.fakes.gitea.state import RULE, Issue, Pull, Repository, Token
from tests.integrations import code_hosts
from tests.integrations.asking import Asking
from tests.service import NOON, Time

TOKEN = "a-gitea-token-of-tests"
HOST = "git.example.com"
APP = "acme/app"


class Collector(Asking):
    """The integration for a Gitea, with its token unless the table says otherwise."""

    def __init__(
        self,
        fake: FakeGitea,
        time: Time,
        *,
        seconds: float = 5,
        others: Sender | None = None,
        **table: Any,
    ) -> None:
        table = {"host": HOST, "token": TOKEN} | table
        super().__init__(INTEGRATION, fake, table, time=time, seconds=seconds, others=others)

    async def one(self, target: str = APP) -> Collected:
        """What one run brings for one target."""
        return await super().one(target)


def started(
    *repositories: Repository, token: Token | None = None, **table: Any
) -> tuple[FakeGitea, Collector]:
    """A fake that holds these, and the integration that asks it with the token."""
    fake = FakeGitea(repositories, [token or Token(TOKEN)])
    return fake, Collector(fake, Time(), **table)


def full() -> Repository:
    """A repository that has something for every leaf that Gitea knows."""
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
        languages={"Shell": 20, "Python": 3_000},
        collaborators=["dora", "alice", "bob"],
        files=[
            ".gitea/CODEOWNERS",
            "Dockerfile",
            "catalog-info.yaml",
            "docs/index.md",
            "src/app.py",
            "web/app.ts",
        ],
        submodules=["vendored"],
        rule={
            **RULE,
            "rule_name": "ma*",
            "required_approvals": 2,
            "enable_status_check": True,
            "block_on_outdated_branch": True,
            "block_on_official_review_requests": True,
            "dismiss_stale_approvals": True,
            "require_signed_commits": True,
            "block_admin_merge_override": True,
        },
        other_rules=[{**RULE, "rule_name": "release", "enable_force_push": True}],
    )


# What is collected of `full` with all rights.
EVERYTHING: Mapping[str, Any] = {
    **code_hosts.facts(".gitea/CODEOWNERS"),
    "codehost.branchProtection.enforceAdmins": True,
}

# What Gitea never says of a repository that is protected and has code owners.
NEVER_SAID = (
    "codehost.branchProtection.blockCreations",
    "codehost.branchProtection.requiredLinearHistory",
    "codehost.codeReview.codeownersErrorCount",
    "codehost.codeReview.codeownersHasErrors",
    "codehost.codeReview.requireLastPushApproval",
)
