"""How few requests are made, in what portions, and what is remembered between runs."""

from typing import Any

import pytest

from factbook.clock import DAY, HOUR, MINUTE
from factbook.integrations.github import BATCH
from factbook.integrations.github.facts import MOST_PAGES, MOST_ROWS
from tests.fakes import faults
from tests.fakes.github.app import FakeGitHub
from tests.fakes.github.state import Issue, Pull, Ruleset, Token
from tests.integrations.github.asking import APP, EVERYTHING, TOKEN, Collector, full, started
from tests.integrations.github.many import every, many, quiet, words
from tests.service import NOON, Time

# Once


@pytest.mark.slow
async def test_a_first_run_stays_below_the_points_that_github_allows_a_minute() -> None:
    repositories = quiet(320)
    for one in repositories:
        one.classic, one.alerts = None, {}
    time = Time()
    token = Token(TOKEN, is_app=True, reads_administration=True)
    fake = FakeGitHub(repositories, [token], clock=time)
    fake.points_a_minute = 900
    collected = await every(fake, Collector(fake, time, paced=True))
    assert fake.requests["tree"] + fake.requests["protection"] + fake.requests["alerts"] == 960
    assert fake.too_fast == 0
    assert not any(one.missing for one in collected.values())
    # No slower than it has to be.
    assert time.now - NOON < 1.6 * MINUTE


@pytest.mark.slow
async def test_probes_of_one_run_are_made_again_in_several() -> None:
    repositories = quiet(40)
    for one in repositories:
        one.classic = None
    fake = FakeGitHub(repositories, [Token(TOKEN, is_app=True, reads_administration=True)])
    collector = Collector(fake, Time())
    made = []
    for _ in range(8):
        fake.requests.clear()
        await every(fake, collector)
        made.append(fake.requests["protection"])
        collector.time.advance(6 * HOUR)
    assert made[:4] == [40, 0, 0, 0]
    assert sum(made[4:]) == 40
    assert max(made[4:]) < 30


@pytest.mark.slow
async def test_80_repositories_take_6_requests_and_again_none_of_rest() -> None:
    fake, collector = started(*many(80))
    collected = await every(fake, collector)
    assert words(collected) == {"": 80}
    assert all(not one.missing for one in collected.values())
    assert fake.requests == {"graphql": 6, "tree": 80}
    fake.requests.clear()
    collector.time.advance(HOUR)
    again = await every(fake, collector)
    assert fake.requests == {"graphql": 6}
    assert [one.values["repository.totalFiles"] for one in again.values()] == [1] * 80


@pytest.mark.system
async def test_1000_repositories_take_at_most_100_graphql_requests() -> None:
    fake, collector = started(*many(1_000), whole_schema=True)
    assert words(await every(fake, collector)) == {"": 1_000}
    assert fake.requests["graphql"] <= 100
    assert fake.requests["tree"] == 1_000


async def test_only_a_moved_head_costs_a_call_for_the_tree() -> None:
    repositories = many(5)
    fake, collector = started(*repositories)
    await every(fake, collector)
    fake.requests.clear()
    repositories[3].commits += 1
    repositories[3].files.append("new.py")
    collected = await every(fake, collector)
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
    collector.time.advance(DAY // 2)
    await collector.one()
    assert fake.requests["protection"] == 2
    assert fake.not_modified == 1


async def test_a_refused_probe_is_remembered_for_the_day_too() -> None:
    fake, collector = started(full(), token=Token(TOKEN, permission="READ"))
    first = await collector.one()
    second = await collector.one()
    assert first == second
    assert fake.requests["protection"] == 1


@pytest.mark.parametrize(
    "stored",
    [b'{"at": 1795262400000, "value": {"gone": true}}', b'{"outcome": "gone"}', b"{", b"null"],
)
async def test_a_probe_that_another_version_remembered_is_made_again(stored: bytes) -> None:
    fake, collector = started(full(), token=Token(TOKEN, permission="READ"))
    first = await collector.one()
    for key in collector.memory.kept:
        collector.memory.kept[key] = stored.replace(b"1795262400000", b"%d" % collector.time())
    assert await collector.one() == first
    assert fake.requests["protection"] == 2


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


async def test_what_is_remembered_is_a_tree_and_probes() -> None:
    _, collector = started(full(), token=Token(TOKEN, permission="READ"))
    await collector.one()
    kinds = {key.partition(":")[0] for key in collector.memory.kept}
    assert kinds == {"tree", "protection", "alerts"}


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


# In portions


@pytest.mark.slow
async def test_a_batch_shrinks_until_github_can_answer_it() -> None:
    fake, collector = started(*many(40))
    fake.most_repositories = 6
    assert words(await every(fake, collector)) == {"": 40}
    # 20 and twice 10 are too many; then 5 at a time, and the second pages of all.
    assert fake.requests["graphql"] == 3 + 8 + 1


async def test_one_repository_that_is_too_heavy_is_read_in_parts() -> None:
    repositories = many(20)
    repositories[7].too_heavy = True
    fake, collector = started(*repositories)
    assert words(await every(fake, collector)) == {"": 20}
    assert fake.requests["graphql"] <= 12


async def test_partial_results_are_kept_and_the_rest_is_asked_again() -> None:
    fake, collector = started(*many(20))
    fake.most_with_limits = 18
    assert words(await every(fake, collector)) == {"": 20}
    # The two that were left out share the second request; the third is for further pages.
    assert fake.requests["graphql"] == 3


# Lists that are long


async def test_more_than_a_thousand_collaborators_are_counted_and_not_listed() -> None:
    repository = full()
    repository.collaborators = [f"user-{number:04}" for number in range(1_250)]
    fake, collector = started(repository)
    collected = await collector.one()
    assert collected.reasons == {
        "codehost.collaboration.collaborators": "too-large: more than 1,000 collaborators to list"
    }
    assert collected.values["codehost.collaboration.collaboratorCount"] == 1_250
    assert fake.requests["graphql"] == 1
    repository.collaborators = repository.collaborators[:1_000]
    collected = await collector.one()
    assert collected.values["codehost.collaboration.collaborators"] == repository.collaborators


async def test_languages_beyond_a_hundred_are_read_on() -> None:
    repository = full()
    repository.languages = [f"Language {number}" for number in range(150)]
    _, collector = started(repository)
    collected = await collector.one()
    assert collected.values["codehost.collaboration.languages"] == repository.languages


@pytest.mark.slow
async def test_more_than_is_read_is_too_large_and_is_not_read_again_for_days() -> None:
    repository = full()
    repository.pulls = [
        Pull(number, merged_at=NOON - DAY, updated_at=NOON - DAY) for number in range(MOST_ROWS + 1)
    ]
    fake, collector = started(repository)
    reason = f"too-large: more than {MOST_ROWS:,} merged pull requests to read for 30 days"
    for requests in (MOST_PAGES, MOST_PAGES + 1):
        collected = await collector.one()
        assert collected.reasons == {
            **dict.fromkeys(("codehost.mergeTime", "codehost.latestMergedPR"), reason),
            "codehost.pullRequests.mergedLastMonth": reason,
        }
        assert collected.passing == frozenset()
        assert collected.values["codehost.pullRequests.merged"] == MOST_ROWS + 1
        assert fake.requests["graphql"] == requests
        collector.time.advance(6 * HOUR)
    repository.pulls = full().pulls
    collector.time.advance(7 * DAY)
    assert "codehost.mergeTime.avgHours" in (await collector.one()).values


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
