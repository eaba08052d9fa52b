"""What is collected of one repository, value by value, and why what is missing is missing."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from factbook.integrations.gitea import INTEGRATION
from factbook.integrations.integration import Collected
from tests.fakes.faults import saying
from tests.fakes.gitea.state import RULE, Repository, Token, as_forgejo
from tests.integrations.gitea.asking import APP, EVERYTHING, NEVER_SAID, TOKEN, full, started

PULLS = ("codehost.pullRequests", "codehost.mergeTime", "codehost.latestMergedPR")
RULES = (
    "codehost.branchProtection.allowForcePushes",
    "codehost.branchProtection.enforceAdmins",
    "codehost.branchProtection.requiredSignatures",
    "codehost.codeReview.dismissStaleReviews",
    "codehost.codeReview.requireCodeOwnerReviews",
    "codehost.codeReview.strictRequiredStatusChecks",
)
COLLABORATORS = (
    "codehost.collaboration.collaborators",
    "codehost.collaboration.collaboratorCount",
)
# It refuses force pushes, and the branch says that no checks are required; None is not known.
OF_AN_OLD_SERVER = dict.fromkeys(name.removeprefix("codehost.") for name in RULES) | {
    "branchProtection.allowForcePushes": False,
    "codeReview.strictRequiredStatusChecks": False,
}
NO_PULLS = "feature-off: a mirror or an empty repository takes no pull requests"


def below(*places: str) -> tuple[str, ...]:
    """The facts of groups and shapes."""
    return tuple(fact.name for fact in INTEGRATION.facts if fact.name.startswith(places))


def changed(**values: Any) -> Repository:
    """The full repository with other values."""
    return replace(full(), **values)


def check_whole(collected: Collected) -> None:
    """Every fact has a value or a reason, never both."""
    for fact in INTEGRATION.facts:
        covered = [p for p in collected.missing if f"{fact.name}.".startswith(f"{p}.") or not p]
        assert (fact.name in collected.values) != bool(covered), fact.name


def words(collected: Collected) -> dict[str, str]:
    """The words of the reasons, without those of what Gitea never says."""
    return {
        place: reason.partition(":")[0]
        for place, reason in collected.reasons.items()
        if place not in NEVER_SAID
    }


async def test_every_value_and_a_reason_for_what_gitea_never_says() -> None:
    _, collector = started(full())
    collected = await collector.one()
    assert collected.values == EVERYTHING
    assert set(collected.missing) == set(NEVER_SAID)
    assert {reason.partition(":")[0] for reason in collected.reasons.values()} == {"not-applicable"}
    check_whole(collected)


@pytest.mark.parametrize(
    ("token", "forbidden"),
    [
        (Token(TOKEN, "write"), RULES),
        (
            Token(TOKEN, "read"),
            (
                *RULES,
                *COLLABORATORS,
            ),
        ),
        (
            Token(TOKEN, scopes=frozenset({"repository"})),
            below("codehost.issues"),
        ),
    ],
    ids=["write", "read", "no issues"],
)
async def test_what_the_token_may_not_read_is_forbidden_and_the_rest_is_known(
    token: Token, forbidden: tuple[str, ...]
) -> None:
    _, collector = started(full(), token=token)
    collected = await collector.one()
    assert words(collected) == dict.fromkeys(forbidden, "forbidden")
    assert collected.values == {k: v for k, v in EVERYTHING.items() if k not in forbidden}
    assert collected.passing == frozenset()
    check_whole(collected)


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        (Token("another"), "forbidden"),
        (Token(TOKEN, hidden=frozenset({APP})), "not-found"),
        (Token(TOKEN, scopes=frozenset()), "forbidden"),
    ],
    ids=["unknown token", "hidden", "no scopes"],
)
async def test_a_repository_that_cannot_be_seen_costs_one_call(token: Token, reason: str) -> None:
    fake, collector = started(full(), token=token)
    assert words(await collector.one()) == {"": reason}
    assert fake.requests == {"repository": 1}


@pytest.mark.parametrize(
    ("repository", "reasons"),
    [
        (changed(has_issues=False), {"codehost.issues": "feature-off: issues are switched off"}),
        (
            changed(external_tracker=True),
            {"codehost.issues": "feature-off: issues are kept in another tracker"},
        ),
        (
            changed(has_pulls=False),
            dict.fromkeys(PULLS, "feature-off: pull requests are switched off"),
        ),
        (changed(mirror=True), dict.fromkeys(PULLS, NO_PULLS)),
    ],
    ids=["no issues", "another tracker", "no pull requests", "a mirror"],
)
async def test_what_is_switched_off_is_said_so_and_not_asked_for(
    repository: Repository, reasons: dict[str, str]
) -> None:
    fake, collector = started(repository)
    collected = await collector.one()
    assert {k: v for k, v in collected.reasons.items() if k not in NEVER_SAID} == reasons
    assert fake.requests["issues" if "codehost.issues" in reasons else "pulls"] == 0
    check_whole(collected)


async def test_an_empty_repository_has_no_files_and_no_protection() -> None:
    _, collector = started(Repository(APP, empty=True))
    collected = await collector.one()
    assert collected.values["repository.filePaths"] == []
    assert collected.values["repository.inCatalog"] is False
    assert collected.values["codehost.codeReview.usesCodeowners"] is False
    empty = "not-applicable: the repository is empty"
    assert collected.reasons["codehost.branchProtection"] == empty
    assert collected.reasons["security.branchProtection"] == empty
    assert {collected.reasons[place] for place in PULLS} == {NO_PULLS}
    check_whole(collected)


async def test_code_that_may_not_be_read_leaves_the_rest_known() -> None:
    _, collector = started(changed(has_code=False))
    collected = await collector.one()
    code = below(
        "codehost.collaboration.languages",
        "codehost.branchProtection",
        "codehost.codeReview",
        "security",
        "repository",
    )
    assert collected.values == {k: v for k, v in EVERYTHING.items() if k not in code}
    assert {reason.partition(":")[0] for reason in collected.reasons.values()} == {"forbidden"}
    check_whole(collected)


async def test_a_branch_without_a_rule_is_known_whatever_the_rights() -> None:
    _, collector = started(changed(rule=None), token=Token(TOKEN, "read"))
    collected = await collector.one()
    known = {name: collected.values.get(name) for name in below("codehost.branchProtection")}
    allowed = {"allowDeletions", "allowForcePushes"}
    assert known == {name: name.rpartition(".")[2] in allowed for name in known}
    review = {name: collected.values.get(name) for name in below("codehost.codeReview.require")}
    assert review == dict.fromkeys(review, False) | {
        "codehost.codeReview.requiredApprovingReviewCount": 0
    }
    assert collected.values["security.branchProtection"] is False


async def test_a_rule_says_what_it_demands(subtests: pytest.Subtests) -> None:
    cases: list[tuple[Mapping[str, Any], dict[str, Any]]] = [
        (RULE, {}),
        ({**RULE, "enable_force_push": True}, {"branchProtection.allowForcePushes": True}),
        ({**RULE, "enable_status_check": True}, {}),
        ({**RULE, "block_on_outdated_branch": True}, {}),
        (
            {**RULE, "enable_status_check": True, "block_on_outdated_branch": True},
            {"codeReview.strictRequiredStatusChecks": True},
        ),
        (as_forgejo(), {}),
        (as_forgejo(apply_to_admins=True), {"branchProtection.enforceAdmins": True}),
        (as_forgejo(dismiss_stale_approvals=True), {"codeReview.dismissStaleReviews": True}),
        ({"branch_name": "main", "rule_name": "main"}, OF_AN_OLD_SERVER),
    ]
    for rule, expected in cases:
        with subtests.test(rule=rule):
            _, collector = started(changed(rule=rule))
            collected = await collector.one()
            demands_nothing = dict.fromkeys(
                (name.removeprefix("codehost.") for name in RULES), False
            )
            found = {name: collected.values.get(f"codehost.{name}") for name in demands_nothing}
            assert found == demands_nothing | expected
            assert collected.values["codehost.branchProtection.enabled"] is True
            check_whole(collected)


async def test_a_rule_that_is_not_listed_leaves_its_leaves_to_the_next_run() -> None:
    fake, collector = started(full())
    fake.fail("rules", saying([RULE]))
    collected = await collector.one()
    assert collected.passing == set(RULES)
    assert collected.values["codehost.codeReview.requiredApprovingReviewCount"] == 2


@pytest.mark.parametrize("name", ["CODEOWNERS", "docs/CODEOWNERS", ".forgejo/CODEOWNERS"])
async def test_code_owners_are_where_the_host_looks_for_them(name: str) -> None:
    _, collector = started(changed(files=[name]))
    collected = await collector.one()
    assert collected.values["codehost.codeReview.usesCodeowners"] is True
    assert "codehost.codeReview.codeownersErrorCount" in collected.missing


async def test_without_code_owners_there_is_nothing_wrong_with_them() -> None:
    _, collector = started(changed(files=[".github/CODEOWNERS", "src/CODEOWNERS"]))
    collected = await collector.one()
    names = below("codehost.codeReview.usesCodeowners", "codehost.codeReview.codeowners")
    assert [collected.values[name] for name in names] == [False, False, 0]


async def test_a_renamed_repository_is_followed_with_one_further_call() -> None:
    fake, collector = started(changed(old_names=["acme/old"]))
    collected = await collector.collect("acme/old")
    assert collected["acme/old"].values == EVERYTHING
    assert (fake.requests["repository"], fake.requests["moved"]) == (2, 1)


async def test_a_branch_with_a_slash_is_one_part_of_the_address() -> None:
    fake, collector = started(changed(branch="release/1.x", rule={**RULE, "rule_name": "r*"}))
    collected = await collector.one()
    assert collected.values["repository.totalFiles"] == 6
    assert f"/api/v1/repos/{APP}/branches/release%2F1.x" in {one.path for one in fake.exchanges}
