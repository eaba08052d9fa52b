"""What is collected of a service, in each situation that a key and an account make."""

from dataclasses import replace
from typing import Any

import pytest

from factbook.clock import DAY, MINUTE
from factbook.integrations.pagerduty import IncidentFigures, make_pagerduty_facts
from factbook.outbound.outcomes import Missing, Outcome
from tests.fakes.faults import saying
from tests.fakes.pagerduty import Key, Service
from tests.integrations.pagerduty.asking import (
    APP,
    EVERY,
    EVERYTHING,
    INCIDENTS,
    INFO,
    KEY,
    METRICS,
    NOTHING_HAPPENED,
    QUIET,
    SERVICES,
    incident,
    started,
    words,
)
from tests.service import NOON

MEANS = (f"{METRICS}.meanTimeToResolve", f"{METRICS}.meanTimeToFirstAck")
UPTIME = f"{METRICS}.upTimePercentage"
INFO_VALUES = {name: value for name, value in EVERYTHING.items() if name.startswith(INFO)}


@pytest.mark.parametrize("targets", [(APP,), EVERY], ids=["alone", "listed"])
async def test_every_leaf_has_a_value_with_all_rights(targets: tuple[str, ...]) -> None:
    _, asking = started()
    found = (await asking.collect(*targets))[APP]
    assert found.values == EVERYTHING
    assert words(found) == {}
    assert asking.integration.source.check(found.values).reasons == {}


@pytest.mark.parametrize("targets", [(QUIET,), EVERY], ids=["alone", "listed"])
async def test_a_listed_service_without_a_row_had_no_incident(targets: tuple[str, ...]) -> None:
    _, asking = started()
    found = (await asking.collect(*targets))[QUIET]
    assert found.values == {
        **NOTHING_HAPPENED,
        f"{INFO}.hasEscalationPolicy": False,
        f"{INFO}.hasTeamsAssigned": False,
        f"{INFO}.hasDescription": False,
        f"{INFO}.alertCreationType": "create_incidents",
    }
    assert words(found) == dict.fromkeys(MEANS, "not-applicable")


@pytest.mark.parametrize("targets", [("PGONE01",), (*EVERY, "PGONE01")], ids=["alone", "listed"])
async def test_a_service_that_is_not_there_is_not_found(targets: tuple[str, ...]) -> None:
    _, asking = started(incidents=[*INCIDENTS, incident("PGONE01", 3, resolved=5)])
    found = await asking.collect(*targets)
    assert words(found["PGONE01"]) == {"": "not-found"}
    assert all(not one.missing.get("") for id_, one in found.items() if id_ != "PGONE01")


def rows(*parts: dict[str, Any]) -> Any:
    """An answer of analytics about APP, with what each row says besides."""
    least = {"service_id": APP, "total_incident_count": 1}
    return saying({"data": [least | part for part in parts]})


async def test_rows_of_a_service_are_put_together(subtests: pytest.Subtests) -> None:
    cases: list[tuple[list[dict[str, Any]], tuple[float | None, ...]]] = [
        # Nobody acknowledged: a zero that PagerDuty may put there is no time.
        (
            [{"total_incidents_acknowledged": 0, "mean_seconds_to_first_ack": 0}],
            (1, None, None, None),
        ),
        # Without the number of those acknowledged the mean counts as one of all.
        (
            [
                {"total_incident_count": 3, "mean_seconds_to_first_ack": 10.5},
                {"mean_seconds_to_first_ack": 20.5},
            ],
            (4, None, (3 * 10.5 + 20.5) / 4, None),
        ),
        # A row of no incident has no say in a mean.
        (
            [
                {"total_incident_count": 0, "mean_seconds_to_resolve": 900},
                {"mean_seconds_to_resolve": 7},
            ],
            (1, 7, None, None),
        ),
        # Of one row among several no uptime is known.
        ([{"up_time_pct": 99.9}, {}], (2, None, None, None)),
        ([{"up_time_pct": 99.99}, {"up_time_pct": 99.5}], (2, None, None, 99.49)),
        ([{"up_time_pct": 40}, {"up_time_pct": 30.0}], (2, None, None, 0.0)),
        # A row of no service is nobody's.
        ([{}, {"service_id": None, "total_incident_count": 9}], (1, None, None, None)),
    ]
    for parts, expected in cases:
        with subtests.test(parts=parts, expected=expected):
            fake, asking = started()
            fake.fail("analytics", rows(*parts), times=3)
            found = await asking.one(APP)
            names = (f"{METRICS}.quarterlyIncidents", *MEANS, UPTIME)
            assert tuple(found.values.get(name) for name in names) == expected
            lacking = {name for name, value in zip(names, expected, strict=True) if value is None}
            assert words(found) == dict.fromkeys(lacking, "not-applicable")


NO_ANALYTICS = Key(KEY, reads={"services", "incidents"})
NOT_IN_PLAN = Key(KEY, plan_has_analytics=False)


@pytest.mark.parametrize("targets", [(APP, QUIET), EVERY], ids=["few", "all"])
@pytest.mark.parametrize(
    ("key", "word"), [(NO_ANALYTICS, "forbidden"), (NOT_IN_PLAN, "feature-off")]
)
async def test_without_analytics_incidents_are_counted_one_by_one(
    key: Key, word: str, targets: tuple[str, ...]
) -> None:
    fake, asking = started(key=replace(key))
    found = await asking.collect(*targets)
    known = {name: value for name, value in EVERYTHING.items() if name not in {MEANS[1], UPTIME}}
    # Of the five of 90 days four are resolved.
    assert found[APP].values == {**known, MEANS[0]: (600 + 25_200 + 2_160 + 300) / 4}
    assert words(found[APP]) == {MEANS[1]: word, UPTIME: word}
    assert found[QUIET].values[f"{METRICS}.totalIncidents"] == 0
    expected = dict.fromkeys(MEANS, "not-applicable") | {UPTIME: word}
    assert words(found[QUIET]) == expected
    # A year is three spans of at most six months, whatever the number of services.
    assert (fake.requests["analytics"], fake.requests["incidents"]) == (1, 3)


async def test_without_a_right_to_incidents_their_group_is_forbidden() -> None:
    _, asking = started(key=Key(KEY, reads={"services"}))
    found = await asking.one(APP)
    assert found.values == INFO_VALUES
    assert words(found) == {METRICS: "forbidden"}


async def test_without_a_right_to_services_zeros_are_not_made_up() -> None:
    _, asking = started(key=Key(KEY, reads={"analytics"}))
    found = await asking.collect(*EVERY)
    assert found[APP].values == {k: v for k, v in EVERYTHING.items() if k.startswith(METRICS)}
    assert words(found[APP]) == {INFO: "forbidden"}
    assert words(found[QUIET]) == {"": "forbidden"}


async def test_with_a_key_that_is_none_nothing_more_is_asked() -> None:
    for targets in ((APP,), EVERY):
        fake, asking = started(key=Key("another"))
        found = await asking.collect(*targets)
        assert {tuple(words(one).items()) for one in found.values()} == {(("", "forbidden"),)}
        assert fake.requests.total() == 1


async def test_the_key_of_a_user_names_the_services_that_it_asks_about() -> None:
    services = [*SERVICES, *(Service(f"PMORE{i:04d}") for i in range(1_500))]
    fake, asking = started(services, key=Key(KEY, is_users=True))
    found = await asking.collect(*(one.id for one in services))
    assert found[APP].values == EVERYTHING
    assert found["PMORE1499"].values[UPTIME] == 100
    # The first question without names is refused; then two portions for each window.
    assert fake.requests["analytics"] == 1 + 3 * 2


async def test_the_key_of_a_user_finds_no_incident_where_there_is_none() -> None:
    _, asking = started(incidents=(), key=Key(KEY, is_users=True))
    found = await asking.collect(*EVERY)
    assert {one.values[f"{METRICS}.totalIncidents"] for one in found.values()} == {0}


@pytest.mark.parametrize(
    ("shown", "missing"),
    [
        ({"id": APP}, {INFO: "upstream-error"}),
        ({"id": APP, "teams": []}, {INFO: "upstream-error"}),
        (
            {"id": APP, "teams": None, "escalation_policy": None},
            {f"{INFO}.alertCreationType": "not-applicable"},
        ),
    ],
)
async def test_what_a_service_leaves_out_is_not_made_up(
    shown: dict[str, Any], missing: dict[str, str]
) -> None:
    fake, asking = started()
    fake.fail("service", saying({"service": shown}))
    found = await asking.one(APP)
    assert words(found) == missing
    told = {name: value for name, value in found.values.items() if name.startswith(INFO)}
    assert set(told.values()) <= {False}


async def test_without_a_resolved_incident_there_is_no_time_to_resolve() -> None:
    _, asking = started(incidents=[incident(APP, 2)], key=replace(NO_ANALYTICS))
    found = await asking.one(APP)
    assert found.values[f"{METRICS}.quarterlyIncidents"] == 1
    assert found.reasons[MEANS[0]] == "not-applicable: nothing in 90 days to take it of"


@pytest.mark.parametrize("end", [None, -MINUTE], ids=["none", "before its begin"])
async def test_a_resolved_incident_that_does_not_tell_its_end_makes_the_mean_unknown(
    end: int | None,
) -> None:
    odd = incident(APP, 3, resolved=60)
    odd.shown_end = None if end is None else odd.created_at + end
    incidents = [odd, incident(APP, 2, resolved=600)]
    _, asking = started(incidents=incidents, key=replace(NO_ANALYTICS))
    found = await asking.one(APP)
    assert found.values[f"{METRICS}.quarterlyIncidents"] == 2
    assert found.reasons[MEANS[0]] == (
        "upstream-error: a resolved incident came without the time of its end"
    )
    assert not found.missing[MEANS[0]].retried


async def test_the_last_change_of_a_resolved_incident_is_its_end() -> None:
    odd = incident(APP, 3, resolved=60)
    odd.shown_end, odd.changed_at = None, odd.resolved_at
    incidents = [odd, incident(APP, 2, resolved=600)]
    _, asking = started(incidents=incidents, key=replace(NO_ANALYTICS))
    assert (await asking.one(APP)).values[MEANS[0]] == (60 + 600) / 2


def test_of_a_service_in_doubt_only_incidents_prove_that_it_is_there() -> None:
    doubt = Missing(Outcome.TRANSIENT)
    none = Missing(Outcome.NOT_APPLICABLE)
    assert words(make_pagerduty_facts(doubt, IncidentFigures(0, 0, 0, none, none, 100.0))) == {
        "": "upstream-error"
    }
    seen = make_pagerduty_facts(doubt, IncidentFigures(1, 0, 0, none, none, 100.0))
    assert seen.values[f"{METRICS}.totalIncidents"] == 1
    assert words(seen)[INFO] == "upstream-error"


async def test_windows_end_at_the_collection() -> None:
    _, asking = started()
    asking.time.now = NOON + 10 * DAY
    found = await asking.one(APP)
    counts = ("totalIncidents", "monthlyIncidents", "quarterlyIncidents")
    assert [found.values[f"{METRICS}.{name}"] for name in counts] == [6, 3, 4]
