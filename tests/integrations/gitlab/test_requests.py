"""How few requests are made, and what is left when GitLab answers some of them badly."""

import itertools
from dataclasses import replace

import pytest

from factbook.clock import DAY, HOUR, MINUTE
from tests.fakes import faults
from tests.fakes.faults import Fault
from tests.fakes.gitlab.state import Request, Token
from tests.integrations.gitlab.asking import APP, EVERYTHING, TOKEN, full, started
from tests.service import NOON

EACH = {"graphql": 2, "project": 1, "protected": 1, "approvals": 1, "approval_rules": 1}
FIRST = {**EACH, "push_rule": 1, "tree": 1}


async def test_files_are_asked_for_when_head_has_moved() -> None:
    project = full()
    fake, collector = started(project)
    await collector.one()
    assert fake.requests == FIRST
    collector.time.advance(HOUR)
    again = await collector.one()
    assert again.values == EVERYTHING
    assert fake.requests["tree"] == 1
    project.commits, project.files = 2, ["README.md"]
    moved = await collector.one()
    assert moved.values["repository.filePaths"] == ["README.md"]
    assert fake.requests["tree"] == 2


async def test_pages_of_everything_are_read_on() -> None:
    project = full()
    project.files = [f"folder-{i % 7}/file-{i:03}.py" for i in range(450)]
    project.members = [f"user-{number:03}" for number in range(230)]
    project.protected = [{"name": f"branch-{i}"} for i in range(150)] + project.protected
    project.requests = [
        Request(number, created_at=NOON - DAY - HOUR, merged_at=NOON - DAY) for number in range(250)
    ]
    fake, collector = started(project)
    values = (await collector.one()).values
    assert values["repository.filePaths"] == sorted(project.files)
    assert values["codehost.collaboration.collaborators"] == project.members
    assert values["codehost.collaboration.collaboratorCount"] == 230
    assert values["codehost.branchProtection.enabled"] is True
    assert values["codehost.mergeTime.avgLastMonthHours"] == 1.0
    assert fake.requests == {**FIRST, "graphql": 1 + 2 + 2, "protected": 2, "tree": 5}


async def test_merge_requests_are_read_as_far_as_the_figures_need_them() -> None:
    project = full()
    project.requests = [
        Request(n, created_at=NOON - 40 * DAY - n * HOUR, merged_at=NOON - 31 * DAY - n * HOUR)
        for n in range(1_000)
    ]
    fake, collector = started(project)
    collected = await collector.one()
    assert collected.values["codehost.pullRequests.merged"] == 1_000
    assert collected.values["codehost.mergeTime.maxHours"] == 9 * 24.0
    assert fake.requests["graphql"] == 2


async def test_more_than_a_thousand_members_are_counted_and_not_listed() -> None:
    project = full()
    project.members = [f"user-{number:05}" for number in range(1_250)]
    fake, collector = started(project)
    for requests in (11, 11 + 2):
        collected = await collector.one()
        reason = "too-large: more than 1,000 members to list"
        assert collected.reasons["codehost.collaboration.collaborators"] == reason
        assert collected.values["codehost.collaboration.collaboratorCount"] == 1_250
        # The second run remembers it.
        assert fake.requests["graphql"] == requests
    # GitLab does not count further.
    project.members = [f"user-{number:05}" for number in range(10_001)]
    reasons = (await collector.one()).reasons
    assert reasons["codehost.collaboration.collaboratorCount"].startswith("too-large: ")


@pytest.mark.slow
async def test_without_git_a_tree_of_too_many_pages_leaves_the_files_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "")
    project = full()
    project.files = [f"file-{number:05}.py" for number in range(20_050)]
    fake, collector = started(project)
    collected = await collector.one()
    assert collected.reasons["repository"].startswith("too-large: ")
    assert collected.reasons["codehost.codeReview.usesCodeowners"].startswith("too-large: ")
    assert fake.requests["tree"] == 200


async def test_a_project_that_is_missing_costs_the_others_nothing() -> None:
    others = [replace(full(), name=f"acme/app-{number}", number=number) for number in range(1, 4)]
    fake, collector = started(*others)
    names = [one.name for one in others]
    collected = await collector.collect(names[0], "acme/nowhere", *names[1:])
    assert collected["acme/nowhere"].reasons == {
        "": "not-found: no such project, or hidden from the credential"
    }
    assert all(collected[name].values == EVERYTHING for name in names)
    assert fake.requests["project"] == 4


@pytest.mark.parametrize("name", ["acme/old", APP.title()])
async def test_a_project_is_found_by_a_former_name_and_in_another_case(name: str) -> None:
    project = full()
    project.old_names = ["acme/old"]
    fake, collector = started(project)
    collected = await collector.collect(name, APP)
    assert collected[name].values == EVERYTHING
    assert collected[APP].values == EVERYTHING
    assert fake.requests["graphql"] == 3 + 2


@pytest.mark.spec("sources.credential-stays-with-its-host")
async def test_a_former_name_never_leads_to_another_host() -> None:
    fake, collector = started(full())
    elsewhere = {"location": "https://evil.example.net/api/v4/projects/7"}
    fake.fail("project", faults.saying({}, 302, elsewhere))
    collected = await collector.one("acme/old")
    assert list(collected.reasons) == [""]
    assert collected.reasons[""].startswith("upstream-error: ")
    assert fake.requests == {"graphql": 1, "project": 1}


async def test_a_project_that_hides_behind_its_own_name_is_asked_for_once() -> None:
    fake, collector = started(full())
    fake.fail("graphql", faults.saying({"data": {"project": None}}), times=9)
    collected = await collector.one()
    assert collected.reasons[""].startswith("not-found: ")
    assert fake.requests == {"graphql": 1, "project": 1}


async def test_a_field_that_fails_costs_only_its_own_leaves() -> None:
    project = full()
    project.failing = {
        "languages": "Timeout on Project.languages",
        "projectMembers": "The resource that you are attempting to access does not exist or you "
        "don't have permission to perform this action",
        "mergeRequests": "Timeout on MergeRequestConnection.count",
    }
    _, collector = started(project)
    collected = await collector.one()
    reasons = {place: text.split(":")[0] for place, text in collected.reasons.items()}
    counts = ("total", "merged", "open", "mergedPercentage", "mergedLastMonth")
    assert (
        reasons.items()
        >= {
            **{f"codehost.pullRequests.{name}": "upstream-error" for name in counts},
            "codehost.mergeTime": "upstream-error",
            "codehost.latestMergedPR": "upstream-error",
            "codehost.collaboration.languages": "upstream-error",
            "codehost.collaboration.collaborators": "forbidden",
            "codehost.collaboration.collaboratorCount": "forbidden",
        }.items()
    )
    assert collected.values["codehost.issues.total"] == 4
    assert collected.values["repository.totalFiles"] == 6


forbidden = faults.saying({"message": "403 Forbidden"}, 403)
limited = faults.saying("Retry later", 429, {"retry-after": "60"})
FAULTS: list[tuple[Fault, str]] = [
    (faults.bad_gateway, "upstream-error"),
    (faults.not_json, "upstream-error"),
    (faults.cut_off, "upstream-error"),
    (faults.saying({"data": {"project": {"id": 1}}, "name": 7}), "upstream-error"),
    (faults.saying({"data": {"project": [1]}}), "upstream-error"),
    (faults.saying([{"name": None, "path": 7, "approvals_required": -1}]), "upstream-error"),
    (faults.saying("text"), "upstream-error"),
    (limited, "rate-limited"),
    (forbidden, "forbidden"),
]


async def test_without_an_answer_of_graphql_nothing_is_made_up(subtests: pytest.Subtests) -> None:
    for number, (fault, word) in enumerate(FAULTS):
        with subtests.test(number=number, word=word):
            fake, collector = started(full())
            fake.fail("graphql", fault, times=10)
            collected = await collector.one()
            assert collected.values == {}
            assert [text.split(":")[0] for text in collected.reasons.values()] == [word]


async def test_pages_that_never_end_are_not_read_forever() -> None:
    project = full()
    project.members = [f"user-{number:03}" for number in range(230)]
    merged = [Request(number, merged_at=NOON - DAY) for number in range(150)]
    project.requests = merged
    fake, collector = started(project)
    page = {"nodes": [], "pageInfo": {"hasNextPage": True, "endCursor": "100"}}
    more = faults.saying({"data": {"project": {"members": page, "merged": page}}})
    fake.fail("graphql", more, times=1_000, after=1)
    collected = await collector.one()
    assert fake.requests["graphql"] == 1 + 49 + 9 + 1
    assert collected.values["codehost.pullRequests.mergedLastMonth"] == 150
    assert collected.reasons["codehost.mergeTime"].startswith("too-large: more than 5,000 merged")
    assert collected.reasons["codehost.codeReview.codeownersErrorCount"].startswith("upstream")
    # REST counts them.
    assert collected.values["codehost.collaboration.collaboratorCount"] == 230
    fake.requests.clear()
    fake.recover()
    collected = await collector.one()
    assert collected.reasons["codehost.mergeTime"].startswith("too-large: ")
    assert fake.requests["graphql"] == 1 + 1


# What becomes unknown with each answer of REST.
KINDS: dict[str, set[str]] = {
    "project": {
        "codehost.branchProtection.requiredLinearHistory",
        "codehost.codeReview.strictRequiredStatusChecks",
    },
    "protected": {
        "codehost.branchProtection.enabled",
        "codehost.branchProtection.allowDeletions",
        "codehost.branchProtection.allowForcePushes",
        "codehost.codeReview.requireCodeOwnerReviews",
        "security.branchProtection",
    },
    "approvals": {
        "codehost.codeReview.dismissStaleReviews",
        "codehost.codeReview.requireLastPushApproval",
    },
    "approval_rules": {"codehost.codeReview.requiredApprovingReviewCount"},
    "push_rule": {"codehost.branchProtection.requiredSignatures"},
    "tree": {
        "repository",
        "codehost.codeReview.usesCodeowners",
        "codehost.codeReview.codeownersHasErrors",
        "codehost.codeReview.codeownersErrorCount",
    },
}


@pytest.mark.slow
async def test_an_answer_that_fails_costs_only_its_own_leaves(subtests: pytest.Subtests) -> None:
    cases = itertools.product(KINDS.items(), enumerate(FAULTS))
    for (kind, leaves), (number, (fault, word)) in cases:
        with subtests.test(kind=kind, number=number, word=word):
            fake, collector = started(full())
            fake.fail(kind, fault, times=10)
            collected = await collector.one()
            lost = {place for place, text in collected.reasons.items() if text.startswith(word)}
            assert lost >= leaves
            if fault is limited:
                continue  # All others in the queue are held back too.
            assert lost == leaves
            assert set(collected.values) == {
                name for name in EVERYTHING if not any(name.startswith(place) for place in lost)
            }


async def test_what_is_not_found_is_hidden_or_not_part_of_the_plan(
    subtests: pytest.Subtests,
) -> None:
    for kind in list(KINDS):
        with subtests.test(kind=kind):
            of_premium = kind in {"approvals", "approval_rules", "push_rule"}
            fake, collector = started(full())
            fake.fail(kind, faults.saying({"message": "404 Not Found"}, 404), times=10)
            collected = await collector.one()
            words = {place: collected.reasons[place].split(":")[0] for place in KINDS[kind]}
            assert words == dict.fromkeys(KINDS[kind], "feature-off" if of_premium else "forbidden")
            assert not collected.passing


async def test_a_limit_that_is_reached_on_the_way_keeps_what_was_read() -> None:
    token = Token(TOKEN, limit=1_000, used=1_000 - 104, reset_at=NOON + 30 * MINUTE)
    fake, collector = started(full(), token=token)
    collected = await collector.one()
    assert collected.values["codehost.pullRequests.total"] == 5
    words = {text.split(":")[0] for text in collected.reasons.values()}
    assert words == {"rate-limited", "not-applicable"}
    assert sum(fake.requests.values()) < 8
    token.used = 0
    collector.time.advance(HOUR)
    assert (await collector.one()).values == EVERYTHING
