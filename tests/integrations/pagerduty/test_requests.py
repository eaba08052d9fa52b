"""How few requests are made, and what is left when PagerDuty answers some of them badly."""

import itertools

import pytest

from factbook.clock import MINUTE
from factbook.integrations import pagerduty as vendor
from factbook.integrations.pagerduty import FEW, MOST_ALONE
from tests.fakes import faults, pagerduty
from tests.fakes.faults import saying
from tests.fakes.pagerduty import FakePagerDuty, Incident, Key, Service
from tests.integrations.asking import Asking
from tests.integrations.pagerduty.asking import (
    APP,
    EVERY,
    EVERYTHING,
    INFO,
    KEY,
    METRICS,
    SERVICES,
    incident,
    started,
    words,
)
from tests.service import NOON

FAULTS = [
    faults.bad_gateway,
    faults.unavailable,
    faults.not_json,
    faults.cut_off,
    saying([]),
    saying({}),
    saying({"data": {}, "services": 7, "incidents": [], "more": 1}),
    saying({"data": [7], "services": [7], "incidents": [7], "more": False}),
    saying({"data": [{}], "services": [{}], "incidents": [{}], "more": False}),
    saying({"data": None, "services": [], "incidents": [], "more": True}),
]


def many(count: int) -> tuple[list[Service], list[str]]:
    """Services, and their ids."""
    services = [Service(f"P{number:05d}", named=f"{number:05d}") for number in range(count)]
    return services, [one.id for one in services]


def account(count: int, key: Key | None = None) -> tuple[FakePagerDuty, Asking, list[str]]:
    """An account of so many services, of which every third had an incident."""
    services, ids = many(count)
    incidents = [incident(id_, 3, resolved=60) for id_ in ids[::3]]
    fake, asking = started(services, incidents, key=key)
    return fake, asking, ids


async def test_the_number_of_entities_does_not_change_the_number_of_requests() -> None:
    asked = []
    for wanted in (FEW + 1, 950):
        fake, asking, ids = account(950)
        assert len(asking.integration.batches(ids)) == 1
        found = await asking.collect(*ids[:wanted])
        assert sum(one.values[f"{METRICS}.monthlyIncidents"] for one in found.values()) == len(
            ids[:wanted:3]
        )
        asked.append(dict(fake.requests))
    assert asked == [{"services": 10, "analytics": 3}] * 2


async def test_few_entities_cost_a_request_each_and_are_all_that_is_asked_about() -> None:
    fake, asking, ids = account(950)
    await asking.collect(*ids[:2])
    assert fake.requests == {"service": 2, "analytics": 3}
    asked = [one.sent["filters"]["service_ids"] for one in fake.exchanges if one.sent]
    assert asked == [ids[:2]] * 3


def test_a_target_that_is_named_twice_is_asked_for_once() -> None:
    _, asking = started()
    assert asking.integration.batches([APP, APP]) == [[APP]]


async def test_a_server_with_shorter_pages_hides_no_service() -> None:
    fake, asking, ids = account(95)
    fake.page = 25
    found = await asking.collect(*ids)
    assert all(words(one).get("") is None for one in found.values())
    assert fake.requests["services"] == 4


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> int:
    """PagerDuty lists 10,000; here 1,000 make the same a tenth of the work."""
    most = 1_000
    for module in (vendor, pagerduty):
        monkeypatch.setattr(module, "MOST_LISTED", most)
    return most


async def test_beyond_the_longest_listing_services_are_listed_from_the_other_end(
    listed: int,
) -> None:
    fake, asking, ids = account(listed + 200)
    found = await asking.collect(*ids)
    assert all(words(one).get("") is None for one in found.values())
    # A page of those known already shows that there are no more.
    assert fake.requests == {"services": 10 + 3, "analytics": 3}


async def test_what_no_listing_reaches_is_asked_for_alone_up_to_a_bound(listed: int) -> None:
    _, asking, ids = account(2 * listed + 2 * MOST_ALONE)
    found = await asking.collect(*ids)
    lacking = [id_ for id_, one in found.items() if words(one).get("")]
    # Half of those in the middle; of the others, those with an incident are known to be there.
    assert {words(found[id_])[""] for id_ in lacking} == {"upstream-error"}
    reached = [id_ for id_ in ids if f"{INFO}.hasDescription" in found[id_].values]
    assert len(ids) - len(reached) == MOST_ALONE
    assert MOST_ALONE // 2 <= len(lacking) < MOST_ALONE


async def test_services_that_are_gone_are_made_sure_of_up_to_a_bound() -> None:
    fake, asking, ids = account(300)
    gone = [f"PGONE{number}" for number in range(MOST_ALONE + 20)]
    found = await asking.collect(*ids, *gone)
    assert {words(found[id_])[""] for id_ in gone} == {"not-found"}
    assert fake.requests["service"] == MOST_ALONE


async def test_a_broken_listing_leaves_the_rest_of_it_to_the_next_run(
    subtests: pytest.Subtests,
) -> None:
    for number, fault in enumerate(FAULTS):
        with subtests.test(number=number):
            fake, asking, ids = account(250)
            fake.fail("services", fault, times=3, after=1)
            found = await asking.collect(*ids)
            assert sum(f"{INFO}.hasDescription" in one.values for one in found.values()) == 100
            # Of those that are not known to be there some had an incident.
            assert found[ids[240]].values[f"{METRICS}.totalIncidents"] == 1
            assert words(found[ids[241]]) == {"": "upstream-error"}
            assert found[ids[241]].passing == {""}
            assert fake.requests["service"] == 0


async def test_a_broken_window_leaves_all_three_to_the_next_run(subtests: pytest.Subtests) -> None:
    info = {name for name in EVERYTHING if name.startswith(INFO)}
    for (number, fault), window in itertools.product(enumerate(FAULTS), (0, 1, 2)):
        with subtests.test(number=number, window=window):
            fake, asking = started()
            fake.fail("analytics", fault, times=3, after=window)
            found = await asking.collect(*EVERY)
            assert words(found[APP]) == {METRICS: "upstream-error"}
            assert found[APP].passing == {METRICS}
            assert found[APP].values.keys() == info
            assert fake.requests["analytics"] <= window + 3
            assert fake.requests["incidents"] == 0


async def test_broken_incidents_are_counted_at_the_next_run(subtests: pytest.Subtests) -> None:
    for number, fault in enumerate(FAULTS):
        with subtests.test(number=number):
            fake, asking = started(key=Key(KEY, reads={"services", "incidents"}))
            fake.fail("incidents", fault, times=3, after=1)
            found = await asking.collect(*EVERY)
            assert words(found[APP]) == {METRICS: "upstream-error"}
            assert found[APP].passing == {METRICS}


async def test_a_broken_service_costs_no_other_one(subtests: pytest.Subtests) -> None:
    for number, fault in enumerate(FAULTS):
        with subtests.test(number=number):
            fake, asking = started()
            fake.fail("service", fault, times=3 if fault in FAULTS[:4] else 1)
            found = await asking.collect("POTHER5", APP)
            assert words(found["POTHER5"]) == {"": "upstream-error"}
            assert found[APP].values == EVERYTHING


@pytest.mark.parametrize("part", [{"teams": 7}, {"escalation_policy": []}, {"description": {}}])
async def test_one_service_of_an_unknown_form_costs_the_others_nothing(
    part: dict[str, object],
) -> None:
    fake, asking = started()
    shown = [one.render() | (part if one.id == "POTHER1" else {}) for one in SERVICES]
    fake.fail("services", saying({"services": shown, "more": False}))
    found = await asking.collect(*EVERY)
    assert words(found["POTHER1"]) == {"": "upstream-error"}
    assert found[APP].values == EVERYTHING


async def test_one_row_of_an_unknown_form_costs_the_others_nothing(
    subtests: pytest.Subtests,
) -> None:
    parts: list[dict[str, object]] = [
        {"total_incident_count": -1},
        {"total_incident_count": None},
        {"total_incident_count": 2.5},
        {"mean_seconds_to_resolve": "1 hour"},
        {"mean_seconds_to_resolve": -1},
        {"up_time_pct": 100.5},
        {"total_incident_count": 10**400},
    ]
    for part in parts:
        with subtests.test(part=part):
            fake, asking = started()
            good = {"service_id": APP, "total_incident_count": 1, "up_time_pct": 99.0}
            fake.fail(
                "analytics",
                saying({"data": [good | {"service_id": "POTHER1"} | part, good]}),
                times=3,
            )
            found = await asking.collect(*EVERY)
            assert words(found["POTHER1"]) == {METRICS: "upstream-error"}
            assert found[APP].values[f"{METRICS}.totalIncidents"] == 1


@pytest.mark.parametrize(("limit", "listed"), [(1, 100), (3, 250), (4, 250)])
async def test_a_limit_in_the_middle_leaves_the_rest_to_the_next_try(
    limit: int, listed: int
) -> None:
    fake, asking, ids = account(250, Key(KEY, limit=limit))
    found = await asking.collect(*ids)
    assert sum(f"{INFO}.hasDescription" in one.values for one in found.values()) == listed
    assert not any(f"{METRICS}.totalIncidents" in one.values for one in found.values())
    reasons = {word for one in found.values() for word in words(one).values()}
    assert reasons == {"rate-limited"}
    assert all(one.passing == one.missing.keys() for one in found.values())
    fake.key.limit = 1_000
    asking.time.advance(2 * MINUTE)
    assert all(len(one.values) >= 8 for one in (await asking.collect(*ids)).values())


async def test_more_incidents_than_a_listing_shows_are_read_in_parts(listed: int) -> None:
    # 200 more than a page may go to, in one of the three spans.
    step = 100 * 60 * 1000 // 12
    busy = [Incident(APP, NOON - 200_000 - i * step) for i in range(listed + 200)]
    fake, asking = started(
        incidents=busy, key=Key(KEY, reads={"services", "incidents"}, limit=5_000)
    )
    found = await asking.one(APP)
    assert found.values[f"{METRICS}.totalIncidents"] == len(busy)
    assert fake.requests["incidents"] <= 22


async def test_too_many_incidents_to_count_are_too_large(
    listed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The message has the real bound.
    assert vendor.MOST_INCIDENTS == 20_000
    pages = 20
    monkeypatch.setattr(vendor, "MOST_PAGES", pages)
    busy = [Incident(APP, NOON - 200_000 - i * 60_000) for i in range(100 * pages + 1)]
    key = Key(KEY, reads={"services", "incidents"}, limit=5_000)
    fake, asking = started(incidents=busy, key=key)
    reason = "too-large: more than 20,000 incidents a year to count without analytics"
    for _ in range(2):
        found = await asking.one(APP)
        assert found.reasons == {METRICS: reason}
        # The second run remembers it.
        assert fake.requests["incidents"] <= pages + 4
