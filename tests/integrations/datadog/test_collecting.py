"""What is counted, and what is unknown, in each situation that keys and answers make."""

from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response

from factbook.clock import HOUR, MINUTE
from factbook.integrations import datadog
from factbook.integrations.datadog import INTEGRATION, MOST_PAGES, PAGE, make_datadog_facts
from factbook.integrations.integration import Collected
from tests.fakes.datadog import Monitor, Objective
from tests.fakes.faults import (
    Answer,
    Fault,
    as_json,
    bad_gateway,
    cut_off,
    not_json,
    saying,
    unavailable,
)
from tests.integrations.datadog.asking import APP, COUNTS, MONITORS, OBJECTIVES, known, started
from tests.service import NOON
from tests.steps import steps

MONITOR_COUNT = "observability.monitorCount"
SLO_COUNT = "observability.sloCount"
KINDS = {"monitors": MONITOR_COUNT, "slos": SLO_COUNT}


def words(found: Collected) -> dict[str, str]:
    """The words of the reasons; every fact has either a value or one of them."""
    assert found.values.keys() | found.missing.keys() == {fact.name for fact in INTEGRATION.facts}
    assert not found.values.keys() & found.missing.keys()
    return {place: text.split(":")[0] for place, text in found.reasons.items()}


async def test_each_kind_is_counted_by_its_tags_in_any_case() -> None:
    _, asking = started()
    found = await asking.one(APP)
    assert found.values == COUNTS
    assert words(found) == {}
    assert asking.integration.source.check(found.values).reasons == {}


async def test_what_has_every_tag_counts(subtests: pytest.Subtests) -> None:
    cases = [
        ("service:app-two service:app-two", 1, 1),
        ("app app", 1, 0),
        ("service:ap service:appp", 0, 0),
        ("service:app,team:one service:app,team:one", 2, 1),
        ("env:prod,service:app,team:one env:prod,service:app", 1, 1),
        ("env:prod,service:app-two env:test", 0, 0),
    ]
    for wanted, monitors, objectives in cases:
        with subtests.test(wanted=wanted, monitors=monitors):
            _, asking = started()
            found = await asking.one(wanted)
            assert found.values == {MONITOR_COUNT: monitors, SLO_COUNT: objectives}


@pytest.mark.parametrize(
    ("wanted", "values", "missing"),
    [
        (" service:app", {SLO_COUNT: 3}, MONITOR_COUNT),
        ("service:app ", {MONITOR_COUNT: 2}, SLO_COUNT),
    ],
)
async def test_a_kind_without_tags_is_not_counted(
    wanted: str, values: dict[str, int], missing: str
) -> None:
    _, asking = started()
    found = await asking.one(wanted)
    assert (found.values, words(found)) == (values, {missing: "no-annotation"})


async def test_pages_are_read_to_a_short_one(subtests: pytest.Subtests) -> None:
    for kind in KINDS:
        for count, pages in ((0, 1), (PAGE - 1, 1), (PAGE, 2), (PAGE + 1, 2), (2 * PAGE + 7, 3)):
            with subtests.test(kind=kind, count=count):
                fake, asking = started(
                    [Monitor(number, ("service:app",)) for number in range(count)],
                    [Objective(str(number), ("service:app",)) for number in range(count)],
                )
                found = await asking.one(APP)
                assert found.values[KINDS[kind]] == count
                assert fake.requests[kind] == pages


async def test_what_moves_to_the_next_page_between_two_counts_once() -> None:
    fake, asking = started([Monitor(number, ("service:app",)) for number in range(PAGE + 2)], ())
    pages = [fake.monitors[:PAGE], fake.monitors[PAGE - 1 :]]
    for page in pages:
        body = [{"id": one.id, "tags": list(one.tags)} for one in page]
        fake.fail("monitors", saying(body))
    assert (await asking.one(APP)).values[MONITOR_COUNT] == PAGE + 2


@pytest.mark.parametrize("entities", [1, 2_000])
async def test_calls_do_not_grow_with_the_number_of_targets(entities: int) -> None:
    fake, asking = started()
    found = await asking.collect(APP, *(f"service:s{i} service:s{i}" for i in range(entities)))
    assert len(found) == 1 + entities
    assert found[APP].values == COUNTS
    assert fake.requests == {"monitors": 1, "slos": 1}


def test_targets_and_monitors_are_not_multiplied() -> None:
    def collect(count: int) -> None:
        targets = [f"service:s{i},team:all service:s{i}" for i in range(count)]
        listed = [frozenset({f"service:s{i}", "team:all", "env:prod"}) for i in range(count)]
        found = make_datadog_facts(targets, listed, listed)
        one = {MONITOR_COUNT: 1, SLO_COUNT: 1}
        assert all(found[target].values == one for target in targets)

    # Twice as many of both take twice the steps, where their product would take four times.
    assert steps(datadog, lambda: collect(2_000)) < 2.1 * steps(datadog, lambda: collect(1_000))


@pytest.mark.spec("unknown.reasons-of-collections")
@pytest.mark.parametrize("kind", KINDS)
async def test_a_kind_that_the_keys_may_not_read_leaves_the_other_known(kind: str) -> None:
    fake, asking = started(keys=known(*(KINDS.keys() - {kind})))
    found = await asking.one(APP)
    [other] = KINDS.keys() - {kind}
    assert found.values == {KINDS[other]: COUNTS[KINDS[other]]}
    assert words(found) == {KINDS[kind]: "forbidden"}
    assert fake.requests == {"monitors": 1, "slos": 1}


async def test_keys_that_datadog_does_not_know_make_everything_forbidden() -> None:
    keys = known()
    keys.application = "another"
    _, asking = started(keys=keys)
    found = await asking.one(APP)
    assert found.values == {}
    assert words(found) == dict.fromkeys(KINDS.values(), "forbidden")


SHAPES: dict[str, Any] = {
    "monitors": [
        {"data": []},
        [{"tags": ["service:app"]}],
        [{"id": 1, "tags": "service:app"}],
        [{"id": 1, "tags": [7]}],
        [["id", 1]],
        None,
    ],
    "slos": [
        [],
        {},
        {"data": None, "errors": ["partial"]},
        {"data": [], "errors": ["SLOs of one cluster could not be read"]},
        {"data": [{"id": "a", "tags": {"service": "app"}}]},
        {"data": [{"tags": []}]},
    ],
}


async def test_a_broken_answer_is_told_and_leaves_the_other_kind_known(
    subtests: pytest.Subtests,
) -> None:
    cases: list[tuple[str, Fault, str]] = [
        *((kind, saying(body), "upstream-error") for kind in KINDS for body in SHAPES[kind]),
        *(
            (kind, fault, word)
            for kind in KINDS
            for fault, word in [
                (not_json, "upstream-error"),
                (cut_off, "upstream-error"),
                (bad_gateway, "upstream-error"),
                (unavailable, "upstream-error"),
                (saying({"errors": ["Bad Request"]}, 400), "upstream-error"),
                (saying({"errors": ["Unauthorized"]}, 401), "forbidden"),
                (saying({"errors": ["Not found"]}, 404), "not-found"),
                (saying({"errors": ["Too many requests"]}, 429), "rate-limited"),
            ]
        ),
    ]
    for number, (kind, fault, word) in enumerate(cases):
        with subtests.test(number=number, kind=kind, word=word):
            fake, asking = started()
            fake.fail(kind, fault, times=10)
            found = await asking.one(APP)
            [other] = KINDS.keys() - {kind}
            assert found.values == {KINDS[other]: COUNTS[KINDS[other]]}
            assert words(found) == {KINDS[kind]: word}
            assert not any("cluster" in reason for reason in found.reasons.values())


async def test_a_page_that_fails_in_the_middle_makes_no_smaller_count() -> None:
    fake, asking = started([Monitor(number, ("service:app",)) for number in range(3 * PAGE)])
    fake.fail("monitors", saying({"errors": ["Too many requests"]}, 429), after=2, times=9)
    assert words(await asking.one(APP)) == {MONITOR_COUNT: "rate-limited"}
    asking.time.advance(2 * MINUTE)
    fake.recover()
    assert (await asking.one(APP)).values[MONITOR_COUNT] == 3 * PAGE


async def test_a_limit_is_kept_with_a_reserve_until_the_seconds_that_it_names_are_over() -> None:
    monitors = [Monitor(number, ("service:app",)) for number in range(12 * PAGE)]
    fake, asking = started(monitors, keys=known(limit=10))
    asking.time.now = NOON + 10 * MINUTE
    found = await asking.one(APP)
    assert words(found) == {MONITOR_COUNT: "rate-limited"}
    assert found.values == {SLO_COUNT: 3}
    assert fake.requests["monitors"] == 9
    allowance = asking.client.health.allowances["monitors"]
    assert (allowance.remaining, allowance.reset_at) == (1, NOON + HOUR)
    asking.time.now = NOON + HOUR
    fake.keys.used.clear()
    fake.keys.limit = 100
    assert (await asking.one(APP)).values[MONITOR_COUNT] == 12 * PAGE


async def endless(request: Request, _: Answer) -> Response:
    """A full page, whichever is asked for."""
    start = int(request.query_params["page"]) * PAGE
    return as_json([{"id": number} for number in range(start, start + PAGE)])


@pytest.mark.slow
async def test_a_listing_that_has_no_end_is_not_read_for_ever() -> None:
    page = [{"id": number, "tags": ["service:app"]} for number in range(PAGE)]
    fake, asking = started()
    fake.fail("monitors", saying(page), times=2)
    assert words(await asking.one(APP)) == {MONITOR_COUNT: "upstream-error"}
    assert fake.requests["monitors"] == 2
    fake.fail("monitors", endless, times=MOST_PAGES + 1)
    for _ in range(2):
        assert words(await asking.one(APP)) == {MONITOR_COUNT: "too-large"}
        assert fake.requests["monitors"] == 2 + MOST_PAGES


async def test_monitors_and_objectives_that_come_and_go_are_counted_anew() -> None:
    fake, asking = started()
    await asking.one(APP)
    fake.monitors = [*MONITORS, Monitor(9, ("service:app",))]
    fake.objectives = [OBJECTIVES[0]]
    assert (await asking.one(APP)).values == {MONITOR_COUNT: 3, SLO_COUNT: 1}
