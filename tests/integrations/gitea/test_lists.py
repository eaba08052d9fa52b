"""Lists in pages: how many pull requests were ever merged, merge times, issues, people, files."""

import random
import zlib
from dataclasses import replace
from typing import Any

import pytest

from factbook.clock import DAY, HOUR
from factbook.integrations import code_host
from factbook.integrations.code_host import MergedPull
from factbook.integrations.gitea import MOST_TREE_PAGES
from factbook.integrations.gitea.api import MOST_CLOSED, MOST_PAGES
from tests.fakes.faults import saying, unavailable
from tests.fakes.gitea import state
from tests.fakes.gitea.app import FakeGitea
from tests.fakes.gitea.state import ACTIONS, Issue, Pull, Repository, Token
from tests.integrations.gitea.asking import APP, TOKEN, Collector, full, started
from tests.service import NOON

MERGED = "codehost.pullRequests.merged"
TOTAL = "codehost.pullRequests.total"
SHARE = "codehost.pullRequests.mergedPercentage"


def history(count: int, *, unmerged_every: int = 4) -> list[Pull]:
    """Closed pull requests, one a day backwards, of which every fourth was refused."""
    return [
        Pull(
            number,
            created_at=NOON - (number + 2) * DAY,
            merged_at=None if number % unmerged_every == 0 else NOON - number * DAY - HOUR,
            updated_at=NOON - number * DAY,
        )
        for number in range(1, count + 1)
    ]


def of(pulls: list[Pull], **changes: Any) -> tuple[FakeGitea, Collector]:
    """A Gitea with one repository of these pull requests."""
    return started(replace(full(), pulls=pulls, **changes))


async def collected(collector: Collector, *names: str) -> list[Any]:
    """The values of these facts, or the reasons."""
    found = await collector.one()
    return [found.values.get(name, found.reasons.get(name)) for name in names]


async def test_all_are_counted_once_and_then_only_what_changed_is_listed() -> None:
    pulls = history(420)
    fake, collector = of(pulls)
    assert await collected(collector, MERGED, TOTAL, SHARE) == [315, 420, 75.0]
    # Three pages for the merge times of the last 100, nine to count, and three calls for issues.
    assert (fake.requests["pulls"], fake.requests["issues"]) == (3 + 1, 9 + 3)
    fake.requests.clear()
    pulls.append(Pull(421, merged_at=NOON + HOUR, updated_at=NOON + HOUR))
    pulls[399] = replace(pulls[399], merged_at=NOON + HOUR, updated_at=NOON + 2 * HOUR)
    collector.time.advance(3 * HOUR)
    assert await collected(collector, MERGED, TOTAL) == [317, 421]
    assert (fake.requests["pulls"], fake.requests["issues"]) == (3 + 1, 1 + 3)


async def test_what_is_kept_is_listed_anew_after_30_days_or_when_something_was_deleted() -> None:
    pulls = history(420, unmerged_every=1_000)
    fake, collector = of(pulls)
    assert await collected(collector, MERGED, SHARE) == [420, 100.0]
    del pulls[300]
    assert await collected(collector, MERGED, SHARE) == [419, 100.0]
    pulls[-1] = replace(pulls[-1], merged_at=None)  # as if one was deleted and one was refused
    assert await collected(collector, MERGED) == [419]
    collector.time.advance(30 * DAY)
    fake.requests.clear()
    assert await collected(collector, MERGED) == [418]
    assert fake.requests["issues"] == 9 + 3


@pytest.mark.slow
async def test_too_many_to_count_are_unknown_and_merge_times_known_all_the_same() -> None:
    pulls = history(MOST_CLOSED + 1)
    fake, collector = of(pulls)
    reason = "too-large: more than 5,000 closed pull requests to count"
    assert await collected(collector, MERGED, SHARE, TOTAL) == [reason, reason, 5_001]
    assert (fake.requests["pulls"], fake.requests["issues"]) == (3 + 1, 3)
    removed = pulls.pop()
    assert await collected(collector, MERGED) == [3_750]
    # Once counted it is counted on, beyond the bound and after 30 days.
    pulls.append(removed)
    collector.time.advance(31 * DAY)
    assert await collected(collector, MERGED) == [3_750]


async def test_counting_needs_the_scope_of_issues_only_where_there_are_many() -> None:
    for count, expected in (
        (90, 68),
        (420, "forbidden: counting merged pull requests needs read:issue"),
    ):
        fake, collector = of(history(count))
        fake.tokens = {TOKEN: Token(TOKEN, scopes=frozenset({"repository"}))}
        assert await collected(collector, MERGED, TOTAL) == [expected, count]


async def test_what_an_instance_has_counted_on_one_host_is_not_taken_for_another() -> None:
    _, collector = of(history(420))
    await collector.one()
    _, other = started(replace(full(), pulls=history(300)), host="other.example.com")
    other.memory = collector.memory
    assert await collected(other, MERGED) == [225]


async def test_what_was_kept_in_a_form_that_nobody_reads_any_more_counts_as_nothing() -> None:
    _, collector = of(history(420))
    first = await collector.one()
    kept = collector.memory.kept
    assert {key.partition(":")[0] for key in kept} == {"tree", "merged"}
    for garbage in (b"", b"{}", zlib.compress(b"[7]")):
        kept.update(dict.fromkeys(kept, garbage))
        assert (await collector.one()).values == first.values


@pytest.mark.slow
async def test_no_more_than_a_hundred_pages_are_read() -> None:
    fake, collector = of(history(1_050))
    fake.most = 10
    found = await collector.one()
    assert fake.requests["issues"] == MOST_PAGES + 3
    reason = "too-large: more than 100 pages of closed pull requests to count"
    assert found.reasons[MERGED] == reason
    assert found.values["codehost.pullRequests.mergedLastMonth"] == 22
    fake.requests.clear()
    assert await collected(collector, MERGED) == [reason]
    assert fake.requests["issues"] == 1 + 3


@pytest.mark.parametrize("most", [1, 7, 50])
async def test_a_server_with_smaller_pages_gives_the_same(most: int) -> None:
    whole = await of(history(60))[1].one()
    fake, collector = of(history(60))
    fake.most = most
    found = await collector.one()
    assert (found.values, found.missing) == (whole.values, whole.missing)


async def test_a_server_that_gives_no_totals_has_unknown_totals() -> None:
    fake, collector = of(history(120))
    fake.totals = False
    found = await collector.one()
    assert found.values[MERGED] == 90
    assert found.values["codehost.collaboration.collaboratorCount"] == 3
    assert found.values["codehost.issues.closedLastMonth"] == 1
    reason = "upstream-error: no total in the answer"
    totals = (TOTAL, SHARE, "codehost.pullRequests.open", "codehost.issues.open")
    assert [found.reasons[name] for name in totals] == [reason] * 4


async def test_a_list_that_loses_rows_while_it_is_read_is_not_counted() -> None:
    for count, kind, after in ((420, "issues", 5), (90, "pulls", 1)):
        fake, collector = of(history(count))
        fake.fail(kind, saying([], headers={"x-total-count": f"{count}"}), after=after)
        reason = "upstream-error: the list changed while it was read"
        assert await collected(collector, MERGED) == [reason]
        assert await collected(collector, MERGED) == [count - count // 4]


async def test_a_failure_after_the_pages_of_merge_times_costs_the_count_alone() -> None:
    fake, collector = of(history(420))
    fake.fail("issues", unavailable, times=3, after=4)
    found = await collector.one()
    assert found.passing == {MERGED, SHARE}


async def test_figures_are_those_of_the_whole_history(subtests: pytest.Subtests) -> None:
    for seed in range(6):
        with subtests.test(seed=seed):
            chance = random.Random(seed)
            pulls = []
            for number in range(chance.choice([0, 1, 49, 50, 51, 100, 300])):
                opened = NOON - chance.randrange(1, 120 * 24) * HOUR
                closed = min(NOON, opened + chance.randrange(1, 600) * HOUR)
                updated = min(NOON, closed + chance.choice([0, 0, 5, 500]) * HOUR)
                merged = closed if chance.random() < 0.7 else None
                pulls.append(Pull(number + 1, f"{number}", opened, merged, updated))
            _, collector = of(pulls)
            found = await collector.one()
            whole = [
                MergedPull(
                    p.number, p.title, p.author, False, p.created_at, p.merged_at, p.updated_at
                )
                for p in pulls
                if p.merged_at is not None
            ]
            expected = code_host.make_merge_figures(whole, NOON - code_host.MONTH)
            for group in ("mergeTime", "pullRequests"):
                for name, value in expected[group].items():
                    path = f"codehost.{group}.{name}"
                    assert found.values.get(path, found.missing.get(path)) == value
            assert found.values[MERGED] == len(whole)


async def test_the_server_s_own_actions_are_an_author() -> None:
    _, collector = of([Pull(1, merged_at=NOON, author=ACTIONS)])
    assert await collected(collector, "codehost.latestMergedPR.author") == [ACTIONS]


async def test_an_author_whose_account_is_gone_is_unknown() -> None:
    _, collector = of([Pull(1, merged_at=NOON, author=None)])
    assert await collected(collector, "codehost.latestMergedPR.author") == [
        "not-applicable: the author's account is gone"
    ]


async def test_without_pull_requests_counts_are_zero_and_the_rest_is_not_applicable() -> None:
    _, collector = of([])
    assert await collected(collector, MERGED, TOTAL) == [0, 0]
    found = await collector.one()
    words = {
        found.reasons[name].partition(":")[0] for name in (SHARE, "codehost.mergeTime.minHours")
    }
    assert words == {"not-applicable"}


async def test_issues_closed_in_the_last_month_are_counted_over_pages() -> None:
    issues = [Issue(number, closed_at=NOON - number * 6 * HOUR) for number in range(1, 200)]
    repository = Repository(APP, issues=[*issues, *(Issue(900 + n) for n in range(9))])
    _, collector = started(repository)
    names = [f"codehost.issues.{name}" for name in ("total", "open", "closed", "closedLastMonth")]
    assert await collected(collector, *names) == [208, 9, 199, 120]


async def test_pull_requests_and_repetitions_among_issues_do_not_count() -> None:
    rows = [state.issue(Issue(7, closed_at=NOON)), state.pull_as_issue(Pull(8, updated_at=NOON))]
    fake, collector = started(full())
    fake.fail("issues", saying([*rows, *rows], headers={"x-total-count": "4"}), after=2)
    assert await collected(collector, "codehost.issues.closedLastMonth") == [1]


async def test_more_than_1000_collaborators_are_counted_and_not_listed() -> None:
    names = [f"user-{number:04}" for number in range(1_234)]
    fake, collector = started(replace(full(), collaborators=names[::-1]))
    found = await collector.one()
    reason = "too-large: more than 1,000 collaborators to list"
    assert found.reasons["codehost.collaboration.collaborators"] == reason
    assert found.values["codehost.collaboration.collaboratorCount"] == 1_234
    assert fake.requests["collaborators"] == 1


async def test_a_tree_is_read_page_by_page_and_again_only_when_head_has_moved() -> None:
    repository = replace(full(), files=[f"src/{number:04}.py" for number in range(2_500)])
    fake, collector = started(repository)
    assert await collected(collector, "repository.totalFiles") == [2_500]
    assert fake.requests["tree"] == 3
    await collector.one()
    assert fake.requests["tree"] == 3
    repository.commits += 1
    repository.files.append("catalog-info.yaml")
    names = ("repository.totalFiles", "repository.inCatalog")
    assert await collected(collector, *names) == [2_501, True]
    assert fake.requests["tree"] == 6


async def test_without_git_a_tree_of_too_many_pages_is_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "")
    fake, collector = started(full())
    fake.fail("tree", saying({"tree": [], "truncated": True}), times=1_000)
    found = await collector.one()
    assert found.reasons["repository"] == (
        "too-large: the tree takes too many calls, and a clone failed: "
        "this server lacks the program git"
    )
    assert fake.requests["tree"] == MOST_TREE_PAGES
