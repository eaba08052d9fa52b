"""What is collected, leaf by leaf, in each situation that a credential and a repository make."""

from dataclasses import replace
from typing import Any

import pytest

from factbook.clock import DAY, HOUR
from factbook.sources.github import FACTS
from factbook.sources.integration import Collected
from tests.fakes.github.state import Issue, Pull, Repository, Ruleset, Token
from tests.service import NOON
from tests.sources.github.asking import APP, EVERYTHING, TOKEN, full, started

NAMES = {fact.name for fact in FACTS}
CODEOWNERS = ("usesCodeowners", "codeownersHasErrors", "codeownersErrorCount")
RULES = {
    *(name for name in NAMES if name.startswith("codehost.branchProtection.")),
    *(name for name in NAMES if name.startswith("codehost.codeReview.")),
} - {f"codehost.codeReview.{name}" for name in CODEOWNERS}


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


async def test_every_leaf_has_a_value_with_all_rights() -> None:
    _, collector = started(full())
    collected = await collector.one()
    assert collected.values == EVERYTHING
    assert collected.missing == {}
    checked = collector.integration.source.check(collected.values)
    assert checked.reasons == {}
    assert set(checked.stored) == NAMES


async def test_an_app_with_all_rights_gets_every_leaf_too() -> None:
    token = Token(TOKEN, is_app=True, reads_administration=True)
    _, collector = started(full(), token=token)
    collected = await collector.one()
    assert collected.values == EVERYTHING


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


@pytest.mark.parametrize(
    ("actors", "permission", "expected"),
    [(0, "ADMIN", True), (1, "ADMIN", False)],
)
async def test_rulesets_bind_administrators_when_nobody_may_bypass_them(
    actors: int, permission: Any, expected: bool
) -> None:
    repository = full()
    repository.classic = None
    repository.rulesets = [Ruleset("RS_1", [("DELETION", {})], bypass_actors=actors)]
    _, collector = started(repository, token=Token(TOKEN, permission))
    collected = await collector.one()
    assert collected.values["codehost.branchProtection.enforceAdmins"] is expected
    assert collected.values["codehost.branchProtection.allowDeletions"] is False
    assert collected.values["codehost.branchProtection.allowForcePushes"] is True


async def test_who_may_bypass_a_ruleset_is_unknown_when_it_is_hidden() -> None:
    repository = full()
    repository.classic = None
    token = Token(TOKEN, permission="ADMIN", reads_administration=False, reads_alerts=True)
    _, collector = started(repository, token=token)
    _, reasons = differences(await collector.one())
    assert reasons == {"codehost.branchProtection.enforceAdmins": "forbidden"}


async def test_alerts_that_are_switched_off_are_no_zeros() -> None:
    repository = full()
    repository.has_alerts = False
    repository.alerts = {}
    fake, collector = started(repository)
    values, reasons = differences(await collector.one())
    assert values == {}
    assert reasons == {"security.dependencyAlerts": "feature-off"}
    assert "alerts" not in fake.requests


async def test_zeros_count_when_rest_confirms_them() -> None:
    repository = full()
    repository.alerts = {}
    fake, collector = started(repository)
    values, reasons = differences(await collector.one())
    assert values == {
        "security.dependencyAlerts.open": 0,
        "security.dependencyAlerts.dismissed": 0,
        "security.dependencyAlerts.fixed": 0,
    }
    assert reasons == {}
    assert fake.requests["alerts"] == 1


@pytest.mark.parametrize("refused", [True, False])
async def test_alerts_that_may_not_be_read_are_no_zeros(refused: bool) -> None:
    token = Token(TOKEN, reads_alerts=False, alerts_refused=refused)
    fake, collector = started(full(), token=token)
    values, reasons = differences(await collector.one())
    assert values == {}
    assert reasons == {"security.dependencyAlerts": "forbidden"}
    assert fake.requests["alerts"] == (0 if refused else 1)


async def test_issues_that_are_switched_off_are_unknown() -> None:
    repository = full()
    repository.has_issues = False
    _, collector = started(repository)
    _, reasons = differences(await collector.one())
    assert reasons == {"codehost.issues": "feature-off"}


async def test_a_repository_without_pull_requests_has_counts_but_no_times() -> None:
    repository = full()
    repository.pulls = []
    _, collector = started(repository)
    values, reasons = differences(await collector.one())
    counts = ("total", "merged", "open", "mergedLastMonth")
    assert values == {f"codehost.pullRequests.{name}": 0 for name in counts}
    times = [name for name in NAMES if name.startswith("codehost.mergeTime.")]
    latest = ["codehost.latestMergedPR.title", "codehost.latestMergedPR.author"]
    absent = [*times, *latest, "codehost.pullRequests.mergedPercentage"]
    assert reasons == dict.fromkeys(absent, "not-applicable")


async def test_last_month_has_no_times_when_nothing_was_merged_in_it() -> None:
    repository = full()
    repository.pulls = repository.pulls[:1]
    _, collector = started(repository)
    _, reasons = differences(await collector.one())
    months = ("avgLastMonthHours", "minLastMonthHours", "maxLastMonthHours")
    assert reasons == {f"codehost.mergeTime.{name}": "not-applicable" for name in months}


@pytest.mark.spec("tools.codehost.windows")
async def test_the_month_ends_exactly_thirty_days_ago() -> None:
    edge = NOON - 30 * DAY
    repository = full()
    repository.pulls = [
        Pull(1, created_at=edge - HOUR, merged_at=edge, updated_at=edge),
        Pull(2, created_at=edge - HOUR, merged_at=edge - 1_000, updated_at=edge - 1_000),
    ]
    repository.issues = [
        Issue(3, closed_at=edge, updated_at=edge),
        Issue(4, closed_at=edge - 1_000, updated_at=NOON),
    ]
    _, collector = started(repository)
    collected = await collector.one()
    assert collected.values["codehost.pullRequests.mergedLastMonth"] == 1
    assert collected.values["codehost.issues.closedLastMonth"] == 1


async def test_the_author_of_the_latest_pull_request_may_be_gone() -> None:
    repository = full()
    repository.pulls[2].author = None
    _, collector = started(repository)
    _, reasons = differences(await collector.one())
    assert reasons == {"codehost.latestMergedPR.author": "not-applicable"}


async def test_bots_count_in_merge_times_unless_they_are_left_out() -> None:
    repository = full()
    repository.pulls[2].is_bot = True
    _, collector = started(repository)
    assert (await collector.one()).values == EVERYTHING
    _, collector = started(repository, exclude_bots=True)
    values, _ = differences(await collector.one())
    assert values == {
        "codehost.mergeTime.avgHours": 12.5,
        "codehost.mergeTime.avgLastMonthHours": 1.0,
        "codehost.mergeTime.maxHours": 24.0,
        "codehost.mergeTime.maxLastMonthHours": 1.0,
    }


async def test_an_empty_repository_has_no_files_and_no_branch_to_protect() -> None:
    _, collector = started(Repository(APP, commits=0, alerts={"OPEN": 1}))
    collected = await collector.one()
    assert collected.values["repository.filePaths"] == []
    assert collected.values["repository.totalFiles"] == 0
    assert collected.values["repository.inCatalog"] is False
    assert collected.missing["codehost.branchProtection"].reason.startswith("not-applicable")
    assert collected.missing["security.branchProtection"].reason.startswith("not-applicable")
    assert collected.values["codehost.codeReview.usesCodeowners"] is False


async def test_contents_that_may_not_be_read_are_not_an_empty_repository() -> None:
    _, collector = started(full(), token=Token(TOKEN, reads_contents=False))
    _, reasons = differences(await collector.one())
    assert {place for place, word in reasons.items() if word == "forbidden"} >= {
        "codehost.branchProtection",
        "security.branchProtection",
        "repository",
    }


async def test_without_a_codeowners_file_there_are_no_errors_in_it() -> None:
    repository = full()
    repository.codeowners_errors = None
    repository.files.remove(".github/CODEOWNERS")
    _, collector = started(repository)
    collected = await collector.one()
    assert collected.missing == {}
    assert collected.values["codehost.codeReview.usesCodeowners"] is False
    assert collected.values["codehost.codeReview.codeownersHasErrors"] is False
    assert collected.values["codehost.codeReview.codeownersErrorCount"] == 0


async def test_a_codeowners_file_that_github_does_not_read_has_unknown_errors() -> None:
    repository = full()
    repository.codeowners_errors = None
    _, collector = started(repository)
    _, reasons = differences(await collector.one())
    assert reasons == {
        "codehost.codeReview.codeownersHasErrors": "upstream-error",
        "codehost.codeReview.codeownersErrorCount": "upstream-error",
    }


@pytest.mark.parametrize(
    ("field", "type_", "expected"),
    [
        ("languages", None, {"codehost.collaboration.languages": "upstream-error"}),
        (
            "codeowners",
            "FORBIDDEN",
            {f"codehost.codeReview.{name}": "forbidden" for name in CODEOWNERS},
        ),
        ("vulnerabilityAlerts", "FORBIDDEN", {"security.dependencyAlerts": "forbidden"}),
        (
            "collaborators",
            None,
            {
                "codehost.collaboration.collaborators": "upstream-error",
                "codehost.collaboration.collaboratorCount": "upstream-error",
            },
        ),
    ],
)
async def test_an_error_in_one_field_costs_only_what_it_tells(
    field: str, type_: str | None, expected: dict[str, str]
) -> None:
    repository = full()
    repository.failing = {field: type_}
    _, collector = started(repository)
    values, reasons = differences(await collector.one())
    assert values == {}
    assert reasons == expected


async def test_an_error_that_wipes_a_repository_costs_only_its_own_part() -> None:
    repository = full()
    repository.failing = {"pullRequests": None}
    other = replace(full(), name="acme/other")
    fake, collector = started(repository, other)
    collected = await collector.collect(APP, "acme/other")
    assert collected["acme/other"].values == EVERYTHING
    values, reasons = differences(collected[APP])
    assert values == {}
    assert reasons == {
        **{
            f"codehost.pullRequests.{name}": "upstream-error"
            for name in ("total", "merged", "open", "mergedPercentage", "mergedLastMonth")
        },
        "codehost.mergeTime": "upstream-error",
        "codehost.latestMergedPR": "upstream-error",
    }
    assert fake.requests["graphql"] == 2
    assert collected[APP].passing == frozenset(reasons)


async def test_a_repository_that_is_missing_from_a_batch_costs_no_other_its_facts() -> None:
    others = [replace(full(), name=f"acme/app-{number}") for number in range(3)]
    fake, collector = started(*others)
    names = [one.name for one in others]
    collected = await collector.collect(names[0], "acme/nowhere", *names[1:])
    assert collected["acme/nowhere"].reasons[""].startswith("not-found: ")
    assert collected["acme/nowhere"].values == {}
    assert not collected["acme/nowhere"].passing
    assert all(collected[name].values == EVERYTHING for name in names)
    assert fake.requests["graphql"] == 1


async def test_a_renamed_repository_is_followed_without_a_redirect() -> None:
    repository = full()
    fake, collector = started(repository)
    await collector.one()
    repository.name, repository.old_names = "acme/renamed", [APP]
    collector.time.advance(HOUR)
    collected = await collector.collect(APP, "acme/renamed")
    assert collected[APP].values == EVERYTHING
    assert collected["acme/renamed"].values == EVERYTHING
    assert fake.requests["moved"] == 0
    assert fake.requests["tree"] == 1


async def test_collaborators_are_listed_up_to_a_thousand_and_counted_beyond() -> None:
    repository = full()
    repository.collaborators = [f"user-{number:04}" for number in range(1_250)]
    fake, collector = started(repository)
    collected = await collector.one()
    listed = collected.values["codehost.collaboration.collaborators"]
    assert listed == repository.collaborators[:1_000]
    assert collected.values["codehost.collaboration.collaboratorCount"] == 1_250
    assert fake.requests["graphql"] == 10


async def test_rules_and_issues_beyond_a_hundred_are_read_on() -> None:
    repository = full()
    repository.classic = None
    repository.rulesets = [
        Ruleset(f"RS_{number}", [("CREATION", {}), ("DELETION", {})]) for number in range(60)
    ]
    repository.rulesets.append(Ruleset("RS_last", [("NON_FAST_FORWARD", {})]))
    repository.issues = [Issue(number, closed_at=NOON - DAY) for number in range(230)]
    fake, collector = started(repository)
    collected = await collector.one()
    assert collected.values["codehost.branchProtection.allowForcePushes"] is False
    assert collected.values["codehost.issues.closedLastMonth"] == 230
    assert fake.requests["graphql"] == 3


async def test_a_tree_that_is_cut_off_is_walked_folder_by_folder() -> None:
    repository = full()
    repository.files = [f"folder-{i}/below/file-{j}.py" for i in range(5) for j in range(6)]
    repository.files.append("README.md")
    fake, collector = started(repository)
    fake.most_tree_entries = 20
    collected = await collector.one()
    assert collected.values["repository.filePaths"] == sorted(repository.files)
    assert fake.requests["tree"] == 2 + 5


async def test_a_folder_with_too_many_files_leaves_the_files_unknown() -> None:
    repository = full()
    repository.files = [f"file-{number}.py" for number in range(30)]
    fake, collector = started(repository)
    fake.most_tree_entries = 20
    collected = await collector.one()
    assert collected.reasons["repository"].startswith("upstream-error: ")
