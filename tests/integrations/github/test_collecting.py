"""What is collected, leaf by leaf, with all rights: in a full repository and in emptier ones."""

import pytest

from factbook.clock import DAY, HOUR
from tests.fakes.faults import saying
from tests.fakes.github.state import Issue, Pull, Repository, Token
from tests.integrations.github.asking import (
    APP,
    CODEOWNERS,
    EVERYTHING,
    NAMES,
    TOKEN,
    differences,
    full,
    started,
)
from tests.service import NOON


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


@pytest.mark.usefixtures("no_pauses")
@pytest.mark.parametrize(
    ("status", "reason"), [(403, "forbidden"), (404, "forbidden"), (502, "upstream-error")]
)
async def test_without_the_tree_a_lack_of_code_owners_is_not_certain(
    status: int, reason: str
) -> None:
    repository = full()
    repository.codeowners_errors = None
    fake, collector = started(repository)
    fake.fail("tree", saying({"message": "No"}, status), times=3)
    _, reasons = differences(await collector.one())
    owners = {f"codehost.codeReview.{name}" for name in CODEOWNERS}
    assert reasons == dict.fromkeys({"repository", *owners}, reason)


async def test_a_codeowners_file_that_github_does_not_read_has_unknown_errors() -> None:
    repository = full()
    repository.codeowners_errors = None
    _, collector = started(repository)
    _, reasons = differences(await collector.one())
    assert reasons == {
        "codehost.codeReview.codeownersHasErrors": "upstream-error",
        "codehost.codeReview.codeownersErrorCount": "upstream-error",
    }


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
