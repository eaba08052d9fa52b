"""What is left when GitHub answers some requests badly, late, or not at all."""

from dataclasses import replace

import pytest
from starlette.requests import Request
from starlette.responses import Response

from factbook.clock import HOUR, MINUTE
from tests.fakes import faults
from tests.fakes.faults import Answer, Fault
from tests.fakes.github.faults import of_another_form, secondary_limit
from tests.fakes.github.state import Token
from tests.integrations.github.asking import (
    APP,
    CODEOWNERS,
    EVERYTHING,
    TOKEN,
    differences,
    full,
    started,
)
from tests.integrations.github.many import every, many, words

by_fault = pytest.mark.parametrize(
    "fault",
    [faults.unavailable, faults.not_json, faults.cut_off, of_another_form],
    ids=lambda fault: fault.__name__,
)

# Parts of an answer


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


# Requests that fail


async def test_a_host_that_leaves_every_answer_empty_is_soon_left_alone() -> None:
    repositories = many(60)
    for one in repositories:
        one.failing = {"id": None}
    fake, collector = started(*repositories)
    assert words(await every(fake, collector)) == {"upstream-error": 60}
    assert fake.requests["graphql"] <= 60


async def test_an_answer_that_comes_too_late_is_as_none() -> None:
    fake, collector = started(full(), seconds=0.2)
    fake.fail("graphql", faults.slow(60), times=3)
    assert (await collector.one()).passing == {""}
    assert (await collector.one()).values == EVERYTHING


async def test_a_host_that_only_fails_is_soon_left_alone() -> None:
    fake, collector = started(*many(60))
    fake.fail("graphql", faults.bad_gateway, times=1_000)
    assert words(await every(fake, collector)) == {"upstream-error": 60}
    assert fake.requests["graphql"] <= 10


@by_fault
async def test_broken_answers_leave_everything_to_the_next_run(fault: Fault) -> None:
    fake, collector = started(full(), replace(full(), name="acme/other"))
    fake.fail("graphql", fault, times=1_000)
    collected = await collector.collect(APP, "acme/other")
    assert words(collected) == {"upstream-error": 2}
    assert all(one.passing == {""} for one in collected.values())
    assert fake.requests["graphql"] <= 4


@by_fault
async def test_a_broken_tree_costs_the_files_alone(fault: Fault) -> None:
    fake, collector = started(full())
    fake.fail("tree", fault, times=3)
    collected = await collector.one()
    expected = {name: value for name, value in EVERYTHING.items() if "repository." not in name}
    assert collected.values == expected
    assert collected.passing == {"repository"}


async def test_a_tree_of_odd_names_costs_the_files_alone() -> None:
    fake, collector = started(full())
    odd = {"tree": [{"path": "below", "type": "tree", "sha": ".."}], "truncated": True}
    fake.fail("tree", faults.saying(odd), times=2)
    collected = await collector.one()
    assert collected.reasons == {"repository": "upstream-error: answered in an unknown format"}


@pytest.mark.parametrize(
    ("said", "odd"),
    [(b'"name":"main"', b'"name":".."'), (b'"acme/app"', b'"../app"')],
    ids=["branch", "owner"],
)
async def test_names_that_no_address_can_have_are_not_asked_for(said: bytes, odd: bytes) -> None:
    async def renaming(request: Request, answer: Answer) -> Response:
        body = bytes((await answer(request)).body)
        return Response(body.replace(said, odd), media_type="application/json")

    repository = full()
    repository.classic = None
    fake, collector = started(repository, token=Token(TOKEN, is_app=True))
    fake.fail("graphql", renaming, times=1_000)
    collected = await collector.one()
    assert collected.passing == {""}


async def test_languages_that_github_does_not_tell_are_unknown_and_the_rest_is_known() -> None:
    told = b'"languages":{"nodes":[{"name":"Python"},{"name":"Shell"}]'

    async def hiding(request: Request, answer: Answer) -> Response:
        body = bytes((await answer(request)).body)
        assert told in body
        return Response(body.replace(told, b'"languages":{"nodes":null'), 200)

    fake, collector = started(full())
    fake.fail("graphql", hiding)
    values, reasons = differences(await collector.one())
    assert values == {}
    assert reasons == {"codehost.collaboration.languages": "upstream-error"}


async def test_a_passing_failure_is_asked_again_at_once() -> None:
    fake, collector = started(full())
    fake.fail("graphql", faults.unavailable)
    assert (await collector.one()).values == EVERYTHING
    assert fake.requests["graphql"] == 2


async def test_pages_that_fail_cost_only_what_needs_them() -> None:
    fake, collector = started(*many(4))
    fake.fail("graphql", faults.unavailable, times=10, after=1)
    collected = await every(fake, collector)
    assert collected["acme/app-0003"].missing == {}
    assert collected["acme/app-0000"].passing == {
        "codehost.pullRequests.mergedLastMonth",
        "codehost.mergeTime",
        "codehost.latestMergedPR",
    }
    assert collected["acme/app-0000"].values["codehost.pullRequests.merged"] == 120


@pytest.mark.parametrize("value", ["", "ghp_another"])
async def test_a_token_that_is_not_accepted_is_forbidden_everything(value: str) -> None:
    fake, collector = started(full())
    fake.tokens = {value: Token(value)}
    collected = await collector.one()
    assert collected.reasons[""].startswith("forbidden: ")
    assert fake.requests == {"graphql": 1}


@pytest.mark.slow
@pytest.mark.spec("collecting.one-target-costs-no-other")
async def test_repositories_that_always_fail_cost_the_others_nothing() -> None:
    """Ten of sixty that GitHub answers 502 for, whatever is asked about them."""
    repositories = many(60)
    broken = {one.name.encode().partition(b"/")[2] for one in repositories[10:20]}

    async def failing(request: Request, answer: Answer) -> Response:
        body = await request.body()
        if any(name in body for name in broken):
            return await faults.bad_gateway(request, answer)
        return await answer(request)

    fake, collector = started(*repositories)
    fake.fail("graphql", failing, times=1_000)
    assert words(await every(fake, collector)) == {"": 50, "upstream-error": 10}


# Limits


@pytest.mark.slow
async def test_what_was_read_before_the_limit_is_kept() -> None:
    fake, collector = started(*many(60))
    fake.tokens[TOKEN].limits["graphql"] = 2
    collected = await every(fake, collector)
    assert words(collected) == {"": 40, "rate-limited": 20}
    assert all(one.passing == {""} for one in collected.values() if "" in one.missing)
    unread = [one for one in collected.values() if "codehost.mergeTime" in one.missing]
    assert {one.reasons["codehost.mergeTime"].split(":")[0] for one in unread} == {"rate-limited"}
    fake.tokens[TOKEN].used["graphql"] = 0
    collector.time.advance(2 * HOUR)
    fake.tokens[TOKEN].limits["graphql"] = 5_000
    assert words(await every(fake, collector)) == {"": 60}


async def test_a_rate_limit_of_rest_costs_only_what_the_files_tell() -> None:
    fake, collector = started(*many(10))
    fake.tokens[TOKEN].limits["core"] = 4
    collected = await every(fake, collector)
    limited = [one for one in collected.values() if one.missing]
    assert len(limited) >= 6
    owners = {f"codehost.codeReview.{name}" for name in CODEOWNERS}
    assert all(one.passing == {"repository", *owners} for one in limited)
    assert fake.requests["tree"] <= 10


@pytest.mark.slow
async def test_a_secondary_limit_is_respected() -> None:
    fake, collector = started(*many(60))
    fake.fail("graphql", secondary_limit, times=1)
    assert words(await every(fake, collector)) == {"rate-limited": 60}
    assert fake.requests["graphql"] == 1
    collector.time.advance(MINUTE)
    assert words(await every(fake, collector)) == {"": 60}


# Credentials


async def test_no_answer_and_no_reason_holds_the_token() -> None:
    fake, collector = started(full())
    fake.tokens = {}
    collected = await collector.one()
    shown = f"{collected!r} {collector.integration!r} {collector.memory.kept!r}"
    assert TOKEN not in shown


async def test_a_server_that_lacks_a_field_is_named_with_its_version(
    subtests: pytest.Subtests,
) -> None:
    refused = {
        "message": "Field 'mergeQueue' doesn't exist on type 'Repository'",
        "path": ["query Repositories", "r0", "languages"],
        "extensions": {"code": "undefinedField", "fieldName": "languages"},
    }
    for version, name in [("3.4.1", "GitHub Enterprise Server 3.4.1"), ("", "this GitHub")]:
        with subtests.test(version):
            fake, collector = started(full())
            headers = {"x-github-enterprise-version": version}
            fake.fail("graphql", faults.saying({"errors": [refused]}, 200, headers), times=9)
            reason = f"feature-off: {name} lacks languages in GraphQL"
            assert (await collector.one()).reasons == {"": reason}
