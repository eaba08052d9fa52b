"""What is collected with fewer rights: what a credential may not read is unknown, never a zero."""

from dataclasses import replace

import pytest

from tests.fakes.github.state import Ruleset, Token
from tests.integrations.github.asking import (
    CODEOWNERS,
    EVERYTHING,
    NAMES,
    TOKEN,
    differences,
    full,
    started,
)

RULES = {
    *(name for name in NAMES if name.startswith("codehost.branchProtection.")),
    *(name for name in NAMES if name.startswith("codehost.codeReview.")),
} - {f"codehost.codeReview.{name}" for name in CODEOWNERS}


async def test_a_token_without_admin_makes_no_figure_up() -> None:
    fake, collector = started(full(), token=Token(TOKEN, permission="READ"))
    values, reasons = differences(await collector.one())
    assert values == {}
    decided = {"enabled", "requiredSignatures", "strictRequiredStatusChecks"}
    assert reasons == {
        "codehost.collaboration.collaborators": "forbidden",
        "codehost.collaboration.collaboratorCount": "forbidden",
        "security.dependencyAlerts": "forbidden",
        **{name: "forbidden" for name in RULES if name.rpartition(".")[2] not in decided},
    }
    assert fake.requests == {"graphql": 2, "tree": 1, "protection": 1, "alerts": 1}


async def test_a_token_that_sees_the_update_rule_knows_what_that_tells() -> None:
    repository = full()
    repository.rulesets = []
    token = Token(TOKEN, permission="WRITE", sees_update_rule=True, reads_alerts=True)
    fake, collector = started(repository, token=token)
    values, reasons = differences(await collector.one())
    assert values == {
        "codehost.branchProtection.requiredSignatures": False,
        "codehost.codeReview.requiredApprovingReviewCount": 1,
    }
    assert reasons == {
        "codehost.branchProtection.enforceAdmins": "forbidden",
        "codehost.codeReview.dismissStaleReviews": "forbidden",
        "codehost.codeReview.requireLastPushApproval": "forbidden",
        "codehost.codeReview.strictRequiredStatusChecks": "forbidden",
    }
    assert "protection" not in fake.requests


UNPROTECTED = {
    "codehost.branchProtection.enabled": False,
    "codehost.branchProtection.enforceAdmins": False,
    "codehost.branchProtection.allowDeletions": True,
    "codehost.branchProtection.requiredLinearHistory": False,
    "codehost.branchProtection.allowForcePushes": True,
    "codehost.branchProtection.requiredSignatures": False,
    "codehost.codeReview.dismissStaleReviews": False,
    "codehost.codeReview.requireCodeOwnerReviews": False,
    "codehost.codeReview.strictRequiredStatusChecks": False,
    "codehost.codeReview.requiredApprovingReviewCount": 0,
    "security.branchProtection": False,
}


@pytest.mark.parametrize(
    ("token", "probes"),
    [
        (Token(TOKEN), 0),
        (Token(TOKEN, is_app=True, reads_administration=True), 1),
        (Token(TOKEN, permission="WRITE", reads_administration=True, reads_alerts=True), 1),
    ],
    ids=["administrator", "app", "right without role"],
)
async def test_an_unprotected_branch_is_known_to_be_one(token: Token, probes: int) -> None:
    repository = full()
    repository.classic, repository.rulesets = None, []
    fake, collector = started(repository, token=replace(token))
    values, reasons = differences(await collector.one())
    assert values == UNPROTECTED
    assert reasons == {}
    assert fake.requests["protection"] == probes


@pytest.mark.parametrize("is_app", [True, False])
async def test_an_unprotected_branch_is_unknown_without_the_right(is_app: bool) -> None:
    repository = full()
    repository.classic, repository.rulesets = None, []
    token = Token(
        TOKEN,
        permission="WRITE",
        is_app=is_app,
        reads_administration=False,
        reads_alerts=True,
    )
    _, collector = started(repository, token=token)
    values, reasons = differences(await collector.one())
    assert values == {}
    assert reasons == dict.fromkeys(RULES | {"security.branchProtection"}, "forbidden")


async def test_protection_that_the_plan_lacks_is_switched_off_rather_than_none() -> None:
    repository = full()
    repository.classic, repository.rulesets = None, []
    repository.plan_has_protection = False
    token = Token(TOKEN, is_app=True, reads_administration=True)
    _, collector = started(repository, token=token)
    _, reasons = differences(await collector.one())
    assert reasons == dict.fromkeys(RULES | {"security.branchProtection"}, "feature-off")


async def test_a_rule_that_only_rest_shows_counts_in_full() -> None:
    token = Token(TOKEN, is_app=True, reads_administration=True, is_kept_from_rules=True)
    fake, collector = started(full(), token=token)
    collected = await collector.one()
    assert collected.values == EVERYTHING
    assert fake.requests["protection"] == 1


async def test_rulesets_bind_administrators_when_these_may_not_bypass_them(
    subtests: pytest.Subtests,
) -> None:
    cases: list[tuple[list[str], bool]] = [
        ([], True),
        (["App", "Team", "DeployKey"], True),
        (["admin:PULL_REQUEST", "App:PULL_REQUEST"], True),
        (["admin"], False),
        (["write"], False),
        (["OrganizationAdmin"], False),
        (["App"] * 60 + ["admin"], False),
    ]
    for bypass, expected in cases:
        for classic in (None, {"isAdminEnforced": False}):
            with subtests.test(bypass=bypass, classic=classic):
                repository = full()
                repository.classic = classic
                repository.rulesets = [Ruleset("RS_1", [("DELETION", {})], bypass)]
                _, collector = started(repository)
                collected = await collector.one()
                assert collected.values["codehost.branchProtection.enforceAdmins"] is expected


@pytest.mark.parametrize(("bypass", "expected"), [([], True), (["admin"], False)])
async def test_a_ruleset_of_the_second_page_of_rules_counts(
    bypass: list[str], expected: bool
) -> None:
    repository = full()
    repository.classic = None
    repository.rulesets = [
        Ruleset("RS_1", [("REQUIRED_SIGNATURES", {})] * 110),
        Ruleset("RS_2", [("UPDATE", {})] * 20, bypass),
    ]
    fake, collector = started(repository)
    collected = await collector.one()
    assert collected.values["codehost.branchProtection.enforceAdmins"] is expected
    # The page after the first goes with the question about the first ruleset.
    assert fake.requests["graphql"] == 3


async def test_more_than_a_page_of_those_who_may_bypass_is_too_large() -> None:
    repository = full()
    repository.classic = None
    repository.rulesets = [Ruleset("RS_1", [("DELETION", {})], ["App"] * 101)]
    _, collector = started(repository)
    collected = await collector.one()
    reason = "too-large: more than 100 apps, teams and roles may bypass a ruleset"
    assert collected.reasons == {"codehost.branchProtection.enforceAdmins": reason}


async def test_a_rule_of_a_ruleset_tightens_what_is_demanded() -> None:
    repository = full()
    repository.classic = None
    repository.rulesets = [Ruleset("RS_1", [("DELETION", {})])]
    _, collector = started(repository)
    collected = await collector.one()
    assert collected.values["codehost.branchProtection.allowDeletions"] is False
    assert collected.values["codehost.branchProtection.allowForcePushes"] is True


async def test_who_may_bypass_a_ruleset_is_unknown_when_it_is_hidden() -> None:
    repository = full()
    repository.classic = None
    token = Token(TOKEN, permission="ADMIN", reads_administration=False, reads_alerts=True)
    _, collector = started(repository, token=token)
    _, reasons = differences(await collector.one())
    assert reasons == {"codehost.branchProtection.enforceAdmins": "forbidden"}


@pytest.mark.parametrize("refused", [True, False])
async def test_alerts_that_may_not_be_read_are_no_zeros(refused: bool) -> None:
    token = Token(TOKEN, reads_alerts=False, alerts_refused=refused)
    fake, collector = started(full(), token=token)
    values, reasons = differences(await collector.one())
    assert values == {}
    assert reasons == {"security.dependencyAlerts": "forbidden"}
    assert fake.requests["alerts"] == (0 if refused else 1)


async def test_contents_that_may_not_be_read_are_not_an_empty_repository() -> None:
    _, collector = started(full(), token=Token(TOKEN, reads_contents=False))
    _, reasons = differences(await collector.one())
    assert {place for place, word in reasons.items() if word == "forbidden"} >= {
        "codehost.branchProtection",
        "security.branchProtection",
        "repository",
    }
