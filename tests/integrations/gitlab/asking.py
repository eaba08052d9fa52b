"""The integration as configured for a fake GitLab, and a project with a value in every leaf."""

from collections.abc import Mapping
from typing import Any

from factbook.clock import DAY, HOUR
from factbook.integrations.gitlab import INTEGRATION
from factbook.integrations.integration import Collected
from factbook.outbound.network import Sender
from tests.fakes.gitlab.app import FakeGitLab
from tests.fakes.gitlab.state import Project, Request, Token
from tests.integrations import code_hosts
from tests.integrations.asking import Asking
from tests.service import NOON, Time

TOKEN = "glpat-a-token-of-tests"
APP = "acme/team/app"


class Collector(Asking):
    """The integration for a GitLab, with a token unless the table says otherwise."""

    def __init__(
        self, fake: FakeGitLab, time: Time, *, others: Sender | None = None, **table: Any
    ) -> None:
        super().__init__(INTEGRATION, fake, {"token": TOKEN} | table, time=time, others=others)

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
    **code_hosts.facts(".gitlab/CODEOWNERS"),
    "codehost.branchProtection.requiredLinearHistory": True,
    "codehost.codeReview.requireLastPushApproval": False,
    "codehost.codeReview.codeownersHasErrors": True,
    "codehost.codeReview.codeownersErrorCount": 2,
}

_NAMES = {fact.name for fact in INTEGRATION.facts}


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
