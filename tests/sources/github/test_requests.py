"""How few requests are made, and what is left when GitHub answers some of them badly."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from factbook.clock import DAY, HOUR, MINUTE
from factbook.sources.github.client import BATCH
from factbook.sources.integration import Collected
from tests.fakes import faults
from tests.fakes.faults import Fault
from tests.fakes.github.app import FakeGitHub
from tests.fakes.github.faults import of_another_form, secondary_limit
from tests.fakes.github.state import Pull, Repository, Token
from tests.service import NOON
from tests.sources.github.asking import APP, EVERYTHING, TOKEN, Collector, full, started


def many(count: int) -> list[Repository]:
    """Repositories of which three of ten need a second page of pull requests."""
    busy = [
        Pull(number, "Busy", NOON - 9 * DAY, merged_at, merged_at)
        for number in range(120)
        for merged_at in [NOON - number * HOUR]
    ]
    quiet = [Pull(1, "Quiet", NOON - 5 * DAY, NOON - 4 * DAY, NOON - 4 * DAY)]
    return [
        Repository(
            f"acme/app-{number:04}",
            pulls=busy if number % 10 < 3 else quiet,
            files=["README.md"],
            classic={},
            alerts={"OPEN": 1},
        )
        for number in range(count)
    ]


def names(repositories: list[Repository]) -> list[str]:
    return [one.name for one in repositories]


def words(collected: dict[str, Collected]) -> Counter[str]:
    """How many targets are complete (""), or missing altogether by which word."""
    return Counter(
        one.missing[""].reason.split(":")[0] if "" in one.missing else ""
        for one in collected.values()
    )


async def test_300_repositories_take_20_requests_and_again_none_of_rest() -> None:
    repositories = many(300)
    fake, collector = started(*repositories)
    collected = await collector.collect(*names(repositories))
    assert words(collected) == {"": 300}
    assert all(not one.missing for one in collected.values())
    assert fake.requests == {"graphql": 20, "tree": 300}
    fake.requests.clear()
    collector.time.advance(HOUR)
    again = await collector.collect(*names(repositories))
    assert fake.requests == {"graphql": 20}
    assert [one.values["repository.totalFiles"] for one in again.values()] == [1] * 300


@pytest.mark.system
async def test_1000_repositories_take_at_most_100_graphql_requests() -> None:
    repositories = many(1_000)
    fake, collector = started(*repositories, whole_schema=True)
    collected = await collector.collect(*names(repositories))
    assert words(collected) == {"": 1_000}
    assert fake.requests["graphql"] <= 100
    assert fake.requests["tree"] == 1_000


async def test_only_a_moved_head_costs_a_call_for_the_tree() -> None:
    repositories = many(5)
    fake, collector = started(*repositories)
    await collector.collect(*names(repositories))
    fake.requests.clear()
    repositories[3].commits += 1
    repositories[3].files.append("new.py")
    collected = await collector.collect(*names(repositories))
    assert fake.requests["tree"] == 1
    assert collected["acme/app-0003"].values["repository.totalFiles"] == 2


async def test_a_probe_is_made_at_most_once_a_day() -> None:
    repository = full()
    repository.classic, repository.rulesets, repository.alerts = None, [], {}
    token = Token(TOKEN, is_app=True, reads_administration=True)
    fake, collector = started(repository, token=token)
    for _ in range(24):
        await collector.one()
        collector.time.advance(HOUR - 1)
    assert fake.requests["protection"] == 1
    assert fake.requests["alerts"] == 1
    collector.time.advance(HOUR)
    await collector.one()
    assert fake.requests["protection"] == 2
    assert fake.not_modified == 1


async def test_a_refused_probe_is_remembered_for_the_day_too() -> None:
    fake, collector = started(full(), token=Token(TOKEN, permission="READ"))
    first = await collector.one()
    second = await collector.one()
    assert first == second
    assert fake.requests["protection"] == 1


async def test_a_probe_that_failed_in_passing_is_made_again() -> None:
    repository = full()
    repository.alerts = {}
    fake, collector = started(repository)
    fake.fail("alerts", faults.unavailable, times=3)
    collected = await collector.one()
    assert collected.reasons["security.dependencyAlerts"].startswith("upstream-error")
    assert collected.passing == {"security.dependencyAlerts"}
    assert (await collector.one()).missing == {}


async def test_a_target_that_is_named_twice_is_asked_for_once() -> None:
    _, collector = started(full())
    batches = collector.integration.batches([APP, APP, *(f"acme/{i}" for i in range(BATCH))])
    assert [len(batch) for batch in batches] == [BATCH, 1]


async def test_a_batch_shrinks_until_github_can_answer_it() -> None:
    repositories = many(40)
    fake, collector = started(*repositories)
    fake.most_repositories = 6
    collected = await collector.collect(*names(repositories))
    assert words(collected) == {"": 40}
    # 20 and twice 10 are too many; then 5 at a time, and the second pages of all.
    assert fake.requests["graphql"] == 3 + 8 + 1


async def test_one_repository_that_is_too_heavy_is_read_in_parts() -> None:
    repositories = many(20)
    repositories[7].too_heavy = True
    fake, collector = started(*repositories)
    collected = await collector.collect(*names(repositories))
    assert words(collected) == {"": 20}
    assert fake.requests["graphql"] <= 12


async def test_partial_results_are_kept_and_the_rest_is_asked_again() -> None:
    repositories = many(20)
    fake, collector = started(*repositories)
    fake.most_with_limits = 18
    collected = await collector.collect(*names(repositories))
    assert words(collected) == {"": 20}
    # The two that were left out share the second request; the third is for further pages.
    assert fake.requests["graphql"] == 3


async def test_a_host_that_leaves_every_answer_empty_is_soon_left_alone() -> None:
    repositories = many(60)
    for one in repositories:
        one.failing = {"id": None}
    fake, collector = started(*repositories)
    collected = await collector.collect(*names(repositories))
    assert words(collected) == {"upstream-error": 60}
    assert fake.requests["graphql"] <= 10


async def test_an_answer_that_comes_too_late_is_as_none() -> None:
    fake, collector = started(full(), seconds=0.2)
    fake.fail("graphql", faults.slow(60), times=3)
    assert (await collector.one()).passing == {""}
    assert (await collector.one()).values == EVERYTHING


async def test_what_is_remembered_is_a_tree_and_probes() -> None:
    _, collector = started(full(), token=Token(TOKEN, permission="READ"))
    await collector.one()
    kinds = {key.partition(":")[0] for key in collector.memory.kept}
    assert kinds == {"tree", "protection", "alerts"}


async def test_a_host_that_only_fails_is_soon_left_alone() -> None:
    repositories = many(60)
    fake, collector = started(*repositories)
    fake.fail("graphql", faults.bad_gateway, times=1_000)
    collected = await collector.collect(*names(repositories))
    assert words(collected) == {"upstream-error": 60}
    assert fake.requests["graphql"] <= 10


@pytest.mark.parametrize(
    "fault",
    [faults.unavailable, faults.not_json, faults.cut_off, of_another_form],
    ids=lambda fault: fault.__name__,
)
async def test_broken_answers_leave_everything_to_the_next_run(fault: Fault) -> None:
    fake, collector = started(full(), replace(full(), name="acme/other"))
    fake.fail("graphql", fault, times=1_000)
    collected = await collector.collect(APP, "acme/other")
    assert words(collected) == {"upstream-error": 2}
    assert all(one.passing == {""} for one in collected.values())
    assert fake.requests["graphql"] <= 4


@pytest.mark.parametrize(
    "fault",
    [faults.unavailable, faults.not_json, faults.cut_off, of_another_form],
    ids=lambda fault: fault.__name__,
)
async def test_a_broken_tree_costs_the_files_alone(fault: Fault) -> None:
    fake, collector = started(full())
    fake.fail("tree", fault, times=3)
    collected = await collector.one()
    expected = {name: value for name, value in EVERYTHING.items() if "repository." not in name}
    assert collected.values == expected
    assert collected.passing == {"repository"}


async def test_a_passing_failure_is_asked_again_at_once() -> None:
    fake, collector = started(full())
    fake.fail("graphql", faults.unavailable)
    assert (await collector.one()).values == EVERYTHING
    assert fake.requests["graphql"] == 2


async def test_pages_that_fail_cost_only_what_needs_them() -> None:
    repositories = many(4)
    fake, collector = started(*repositories)
    fake.fail("graphql", faults.unavailable, times=10, after=1)
    collected = await collector.collect(*names(repositories))
    assert collected["acme/app-0003"].missing == {}
    assert collected["acme/app-0000"].passing == {
        "codehost.pullRequests.mergedLastMonth",
        "codehost.mergeTime",
        "codehost.latestMergedPR",
    }
    assert collected["acme/app-0000"].values["codehost.pullRequests.merged"] == 120


async def test_what_was_read_before_the_limit_is_kept() -> None:
    repositories = many(60)
    fake, collector = started(*repositories)
    fake.tokens[TOKEN].limits["graphql"] = 2
    collected = await collector.collect(*names(repositories))
    assert words(collected) == {"": 40, "rate-limited": 20}
    assert all(one.passing == {""} for one in collected.values() if "" in one.missing)
    unread = [one for one in collected.values() if "codehost.mergeTime" in one.missing]
    assert {one.reasons["codehost.mergeTime"].split(":")[0] for one in unread} == {"rate-limited"}
    fake.tokens[TOKEN].used["graphql"] = 0
    collector.time.advance(2 * HOUR)
    fake.tokens[TOKEN].limits["graphql"] = 5_000
    assert words(await collector.collect(*names(repositories))) == {"": 60}


async def test_a_rate_limit_of_rest_costs_the_files_alone() -> None:
    repositories = many(10)
    fake, collector = started(*repositories)
    fake.tokens[TOKEN].limits["core"] = 4
    collected = await collector.collect(*names(repositories))
    limited = [one for one in collected.values() if one.missing]
    assert len(limited) >= 6
    assert all(one.passing == {"repository"} for one in limited)
    assert fake.requests["tree"] <= 10


async def test_a_secondary_limit_is_respected() -> None:
    repositories = many(60)
    fake, collector = started(*repositories)
    fake.fail("graphql", secondary_limit, times=1)
    assert words(await collector.collect(*names(repositories))) == {"rate-limited": 60}
    assert fake.requests["graphql"] == 1
    collector.time.advance(MINUTE)
    assert words(await collector.collect(*names(repositories))) == {"": 60}


@pytest.mark.parametrize("value", ["", "ghp_another"])
async def test_a_token_that_is_not_accepted_is_forbidden_everything(value: str) -> None:
    fake, collector = started(full())
    fake.tokens = {value: Token(value)}
    collected = await collector.one()
    assert collected.reasons[""].startswith("forbidden: ")
    assert fake.requests == {"graphql": 1}


async def test_an_enterprise_server_is_asked_at_its_own_address() -> None:
    time_and_fake: Any = started(full(), api_url="https://github.example.com/api/v3")
    fake, collector = time_and_fake
    assert isinstance(fake, FakeGitHub)
    enterprise = FakeGitHub(
        fake.repositories, fake.tokens.values(), enterprise=True, clock=collector.time
    )
    collector = Collector(enterprise, collector.time, host="github.example.com")
    assert collector.integration.base_url == "https://github.example.com"
    assert (await collector.one()).values == EVERYTHING


async def test_no_answer_and_no_reason_holds_the_token() -> None:
    fake, collector = started(full())
    fake.tokens = {}
    collected = await collector.one()
    shown = f"{collected!r} {collector.integration!r} {collector.memory.kept!r}"
    assert TOKEN not in shown
