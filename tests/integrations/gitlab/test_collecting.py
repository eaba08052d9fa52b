"""What is collected, leaf by leaf, in each situation that a token and a project make."""

import pytest

from factbook.clock import DAY, HOUR
from factbook.integrations.gitlab import INTEGRATION
from tests.fakes.gitlab.state import Project, Request, Token
from tests.integrations.gitlab.asking import (
    APP,
    EVERYTHING,
    NOT_APPLICABLE,
    TOKEN,
    differences,
    full,
    started,
)
from tests.service import NOON

NAMES = {fact.name for fact in INTEGRATION.facts}
PROTECTION = "codehost.branchProtection"
REVIEW = "codehost.codeReview"


def leaves(group: str, *names: str) -> list[str]:
    return [f"{group}.{name}" for name in names]


async def test_every_leaf_that_gitlab_has_is_there_with_all_rights() -> None:
    _, collector = started(full())
    collected = await collector.one()
    assert collected.values == EVERYTHING
    assert differences(collected) == ({}, {})
    reasons = {place: text.split(":")[0] for place, text in collected.reasons.items()}
    assert reasons == NOT_APPLICABLE
    checked = collector.integration.source.check(collected.values)
    assert checked.reasons == {}


RULES_OF_MAINTAINERS = {
    **dict.fromkeys(
        leaves(PROTECTION, "enabled", "allowDeletions", "allowForcePushes", "requiredSignatures"),
        "forbidden",
    ),
    **dict.fromkeys(
        leaves(
            REVIEW,
            "dismissStaleReviews",
            "requireCodeOwnerReviews",
            "requireLastPushApproval",
            "requiredApprovingReviewCount",
        ),
        "forbidden",
    ),
    "security.branchProtection": "forbidden",
}


async def test_a_token_below_maintainer_makes_no_rule_up() -> None:
    _, collector = started(full(), token=Token(TOKEN, is_maintainer=False))
    assert differences(await collector.one()) == ({}, RULES_OF_MAINTAINERS)


async def test_a_stranger_to_a_public_project_sees_neither_members_nor_settings() -> None:
    token = Token(TOKEN, is_maintainer=False, is_member=False)
    _, collector = started(full(), token=token)
    values, reasons = differences(await collector.one())
    hidden = [
        *leaves("codehost.collaboration", "collaborators", "collaboratorCount"),
        f"{PROTECTION}.requiredLinearHistory",
        f"{REVIEW}.strictRequiredStatusChecks",
    ]
    assert values == {}
    assert reasons == RULES_OF_MAINTAINERS | dict.fromkeys(hidden, "forbidden")


async def test_a_repository_that_may_not_be_read_is_not_an_empty_one() -> None:
    _, collector = started(full(), token=Token(TOKEN, reads_repository=False))
    values, reasons = differences(await collector.one())
    places = [*(name for name in NAMES if name.startswith(f"{REVIEW}.")), PROTECTION]
    assert values == {}
    assert reasons == dict.fromkeys(
        [*places, "repository", "security.branchProtection"], "forbidden"
    )


@pytest.mark.parametrize("enterprise", [True, False])
async def test_what_the_plan_or_the_edition_lacks_is_switched_off(enterprise: bool) -> None:
    project = full()
    project.premium, project.enterprise = False, enterprise
    _, collector = started(project)
    values, reasons = differences(await collector.one())
    absent = leaves(
        REVIEW,
        "dismissStaleReviews",
        "requireLastPushApproval",
        "requiredApprovingReviewCount",
        "codeownersHasErrors",
        "codeownersErrorCount",
    )
    del project.protected[1]["code_owner_approval_required"]
    _, plain = started(project)
    assert values == {}
    assert reasons == dict.fromkeys([*absent, f"{PROTECTION}.requiredSignatures"], "feature-off")
    _, reasons = differences(await plain.one())
    assert reasons[f"{REVIEW}.requireCodeOwnerReviews"] == "feature-off"


async def test_features_that_are_switched_off_have_no_zeros() -> None:
    project = full()
    project.has_requests = project.has_issues = False
    _, collector = started(project)
    places = ["pullRequests", "mergeTime", "latestMergedPR", "issues"]
    expected = dict.fromkeys((f"codehost.{place}" for place in places), "feature-off")
    assert differences(await collector.one()) == ({}, expected)


async def test_an_empty_repository_has_no_files_and_no_branch_to_protect() -> None:
    _, collector = started(Project(APP, commits=0))
    collected = await collector.one()
    assert collected.values["repository.filePaths"] == []
    assert collected.values["repository.inCatalog"] is False
    assert collected.values[f"{REVIEW}.usesCodeowners"] is False
    for place in (PROTECTION, "security.branchProtection", f"{REVIEW}.dismissStaleReviews"):
        assert collected.reasons[place] == "not-applicable: the repository is empty"
    assert collected.values["codehost.pullRequests.total"] == 0
    for place in ("codehost.pullRequests.mergedPercentage", "codehost.mergeTime.avgHours"):
        assert collected.reasons[place].startswith("not-applicable: ")


async def test_without_a_codeowners_file_there_are_no_errors_in_it() -> None:
    project = full()
    project.files.remove(".gitlab/CODEOWNERS")
    fake, collector = started(project)
    values = (await collector.one()).values
    assert values[f"{REVIEW}.usesCodeowners"] is False
    assert values[f"{REVIEW}.codeownersHasErrors"] is False
    assert values[f"{REVIEW}.codeownersErrorCount"] == 0
    assert fake.requests["graphql"] == 1


@pytest.mark.spec("tools.codehost.windows")
async def test_the_month_ends_exactly_thirty_days_ago() -> None:
    edge = NOON - 30 * DAY
    project = full()
    project.requests = [
        Request(1, created_at=edge - HOUR, merged_at=edge),
        Request(2, created_at=edge - HOUR, merged_at=edge - 1_000),
    ]
    project.issues = [edge, edge - 1_000]
    _, collector = started(project)
    values = (await collector.one()).values
    assert values["codehost.pullRequests.mergedLastMonth"] == 1
    assert values["codehost.mergeTime.maxLastMonthHours"] == 1.0
    assert values["codehost.issues.closedLastMonth"] == 1


async def test_bots_count_in_merge_times_unless_they_are_left_out() -> None:
    project = full()
    project.requests[2].is_bot = True
    _, collector = started(project)
    assert (await collector.one()).values == EVERYTHING
    _, collector = started(project, exclude_bots=True)
    values, _ = differences(await collector.one())
    assert values == {
        "codehost.mergeTime.avgHours": 12.5,
        "codehost.mergeTime.avgLastMonthHours": 1.0,
        "codehost.mergeTime.maxHours": 24.0,
        "codehost.mergeTime.maxLastMonthHours": 1.0,
    }


async def test_an_author_may_be_gone_and_the_time_of_an_old_merge_lost() -> None:
    project = full()
    project.requests[2].author = None
    project.requests.append(Request(6, lost_its_time=True))
    _, collector = started(project)
    values, reasons = differences(await collector.one())
    assert values == {
        "codehost.pullRequests.total": 6,
        "codehost.pullRequests.merged": 4,
        "codehost.pullRequests.mergedPercentage": 66.67,
    }
    assert reasons == {"codehost.latestMergedPR.author": "not-applicable"}
