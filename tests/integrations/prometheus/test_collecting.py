"""What is collected of services, by figures made by hand, and from answers that nobody expects."""

import itertools
from typing import Any

import pytest

from factbook.integrations.integration import Collected
from factbook.integrations.prometheus import INTEGRATION
from tests.fakes.faults import Fault, bad_gateway, cut_off, not_json, saying
from tests.fakes.prometheus import ALERTMANAGER, Episode, Server, alerting
from tests.integrations.prometheus.asking import (
    DAY,
    EVERYTHING,
    HOUR,
    NEVER,
    NOW,
    OTHER,
    TOKEN,
    full,
    started,
)

NAMES = {fact.name for fact in INTEGRATION.facts}
COUNTS = {f"incident.incidentMetrics.{name}Incidents" for name in ("total", "monthly", "quarterly")}
MEAN = "incident.incidentMetrics.meanTimeToResolve"
UP = "incident.incidentMetrics.upTimePercentage"
POLICY = "incident.serviceInfo.hasEscalationPolicy"
OF_RULES = {
    POLICY,
    "incident.serviceInfo.hasTeamsAssigned",
    "incident.serviceInfo.hasDescription",
    "observability.monitorCount",
    "observability.sloCount",
}


def words(collected: Collected) -> dict[str, str]:
    """The word of every reason; every fact has a value or a reason, never both."""
    missing = {
        name: text.split(":")[0]
        for place, text in collected.reasons.items()
        for name in NAMES
        if place in {"", name}
    }
    assert missing.keys() | collected.values.keys() == NAMES
    assert not missing.keys() & collected.values.keys()
    return missing


async def test_every_leaf_has_the_figure_made_by_hand() -> None:
    fake, asking = started()
    collected = await asking.one("checkout")
    assert collected.values == EVERYTHING
    assert words(collected) == NEVER
    assert asking.integration.source.check(collected.values).reasons == {}
    assert fake.requests == {
        "rules": 1, "values": 1, "covers": 3, "up": 1, "alertmanager": 1, "began": 13, "ended": 3
    }  # fmt: skip


async def test_a_hundred_services_cost_as_many_requests_as_one() -> None:
    server = full()
    server.series = {f"part-{number}" for number in range(100)}
    fake, asking = started(server)
    collected = await asking.collect("checkout", *server.series)
    assert collected["checkout"].values == EVERYTHING
    assert collected["part-7"].values == {
        **dict.fromkeys(COUNTS, 0),
        POLICY: False,
        "observability.monitorCount": 0,
        "observability.sloCount": 0,
    }
    assert fake.requests.total() == 23


async def test_services_differ_by_what_is_theirs() -> None:
    _, asking = started()
    collected = await asking.collect("search", "quiet", "gone", "check")
    search, quiet = collected["search"], collected["quiet"]
    assert (search.values[MEAN], search.values[UP]) == (120, 100)
    assert [search.values[name] for name in sorted(COUNTS)] == [0, 1, 1]
    assert search.values["incident.serviceInfo.hasTeamsAssigned"] is False
    assert search.values["incident.serviceInfo.hasDescription"] is False
    assert search.values[POLICY] is True
    # A receiver that tells nobody is no policy, and no rule says nothing of teams.
    assert (quiet.values[POLICY], quiet.values[UP]) == (False, 0)
    assert words(quiet)["incident.serviceInfo.hasTeamsAssigned"] == "not-applicable"
    for name in ("gone", "check"):
        assert set(words(collected[name]).values()) == {"not-found"}
        assert collected[name].values == {}


async def test_nothing_more_is_asked_for_services_that_are_not_known() -> None:
    fake, asking = started()
    await asking.one("gone")
    assert fake.requests == {"rules": 1, "values": 1}


async def test_only_alerts_of_the_configured_severities_are_incidents() -> None:
    _, asking = started(severities="critical,page")
    values = (await asking.one("checkout")).values
    assert [values[name] for name in sorted(COUNTS)] == [2, 3, 4]
    assert values[MEAN] == (1_800 + 2 * DAY) / 2
    assert values["observability.monitorCount"] == 3


async def test_no_incident_is_counted_only_where_an_alert_could_be_one(
    subtests: pytest.Subtests,
) -> None:
    cases: dict[str, tuple[list[str], list[dict[str, Any]], bool]] = {
        "another severity": (
            ["page"],
            [alerting("Down", service="quiet", severity="critical")],
            False,
        ),
        "any severity": (["page"], [alerting("Down", severity="{{ $labels.severity }}")], True),
        "a rule of it": (["page"], [alerting("Down", severity="page")], True),
        "any rule": ([], [alerting("Any")], True),
        "no rules": ([], [], False),
    }
    for case, (severities, rules, known) in cases.items():
        with subtests.test(case):
            server = Server(NOW - 400 * DAY, series={"quiet"}, rules=rules)
            _, asking = started(server, severities=severities)
            collected = await asking.one("quiet")
            expected = dict.fromkeys(COUNTS, 0) if known else {}
            assert {
                name: collected.values[name] for name in COUNTS & collected.values.keys()
            } == expected
            assert words(collected)[MEAN] == "not-applicable"
            assert ("observability.monitorCount" in collected.values) is bool(rules)


@pytest.mark.parametrize(
    ("days", "known"),
    [
        (365, {*COUNTS, MEAN, UP}),
        (364, {*COUNTS, MEAN, UP} - {"incident.incidentMetrics.totalIncidents"}),
        (89, {"incident.incidentMetrics.monthlyIncidents", UP}),
        (15, set()),
    ],
)
async def test_a_window_that_the_storage_does_not_cover_has_no_figure(
    days: int, known: set[str]
) -> None:
    server = full()
    server.oldest = NOW - days * DAY
    fake, asking = started(server)
    collected = await asking.one("checkout")
    told = collected.values.keys() & {*COUNTS, MEAN, UP}
    assert told == known
    assert {words(collected)[name] for name in {*COUNTS, MEAN, UP} - told} <= {"not-applicable"}
    for name in told - {MEAN}:
        assert collected.values[name] == EVERYTHING[name]
    # Of what began before the storage did, nobody knows how long it took.
    if days == 364:
        assert collected.values[MEAN] == (1_800 + 600 + 2 * DAY) / 3
        assert collected.reasons["incident.incidentMetrics.totalIncidents"] == (
            "not-applicable: the storage does not reach back 365 days"
        )
    assert fake.requests["began"] == {365: 13, 364: 3, 89: 1, 15: 0}[days]


async def test_windows_begin_exactly_so_many_days_ago() -> None:
    server = full()
    server.episodes = [
        Episode("checkout", f"{days} days and {late} s", began, began + HOUR)
        for days in (30, 90, 365)
        for late in (-60, 0)
        for began in [NOW - days * DAY + late]
    ]
    _, asking = started(server)
    values = (await asking.one("checkout")).values
    assert [values[name] for name in sorted(COUNTS)] == [1, 3, 5]


async def test_without_alertmanager_its_routes_are_unknown_and_the_rest_is_not() -> None:
    fake, asking = started(alertmanager_url="", alertmanager_token="")
    collected = await asking.one("checkout")
    expected = {name: value for name, value in EVERYTHING.items() if name != POLICY}
    assert collected.values == expected
    assert words(collected) == NEVER | {POLICY: "feature-off"}
    assert "alertmanager" not in fake.requests


@pytest.mark.parametrize(
    ("table", "proof", "other"),
    [
        ({}, f"Bearer {TOKEN}", f"Bearer {OTHER}"),
        ({"alertmanager_token": ""}, f"Bearer {TOKEN}", None),
        (
            {"token": "", "username": "me", "password": "x:y"},
            "Basic bWU6eDp5",
            f"Bearer {OTHER}",
        ),
        ({"token": ""}, None, f"Bearer {OTHER}"),
    ],
)
async def test_each_host_is_sent_its_own_credential_alone(
    table: dict[str, Any], proof: str | None, other: str | None
) -> None:
    fake, asking = started(**table)
    fake.wanted = {}
    await asking.one("checkout")
    assert fake.proofs == {"prometheus.example.com": {proof}, ALERTMANAGER: {other}}


async def test_a_credential_that_is_refused_is_told_as_such() -> None:
    _, asking = started(token="wrong")
    assert set(words(await asking.one("checkout")).values()) == {"forbidden"}
    _, asking = started(alertmanager_token="wrong")
    assert words(await asking.one("checkout")) == NEVER | {POLICY: "forbidden"}


CONCERNED = {
    "values": NAMES,
    "rules": OF_RULES,
    "up": {UP},
    "alertmanager": {POLICY},
    "covers": {*COUNTS, MEAN, UP},
    "began": {*COUNTS, MEAN},
    "ended": {MEAN},
}
UNEXPECTED: list[tuple[str, Fault]] = [
    ("not JSON", not_json),
    ("cut off", cut_off),
    ("bad gateway", bad_gateway),
    ("another form", saying({"status": "success", "data": {"result": [{"metric": 7}]}})),
    ("a list", saying([])),
    ("an error", saying({"status": "error", "errorType": "internal", "error": "x"})),
    ("refused", saying({"status": "error", "errorType": "execution", "error": "x"}, 422)),
    ("no such address", saying({"message": "not found"}, 404)),
    ("no figures", saying({"status": "success", "data": {"result": [{"metric": {"service":
        "checkout"}, "value": [1, "many"], "values": [[1, 2]]}]}})),
]  # fmt: skip


@pytest.mark.slow
async def test_an_answer_that_cannot_be_used_costs_what_it_was_about(
    subtests: pytest.Subtests,
) -> None:
    for (kind, concerned), (answer, fault) in itertools.product(CONCERNED.items(), UNEXPECTED):
        with subtests.test(answer, kind=kind):
            fake, asking = started()
            fake.fail(kind, fault, times=1_000)
            collected = await asking.one("checkout")
            if kind == "covers" and fault is UNEXPECTED[-1][1]:
                # Any value says that there are samples.
                assert collected.values == EVERYTHING
                continue
            assert collected.values == {
                name: value for name, value in EVERYTHING.items() if name not in concerned
            }
            reasons = words(collected)
            assert {reasons[name] for name in concerned - NEVER.keys()} == {"upstream-error"}
            assert "many" not in str(collected.reasons)


async def test_a_failure_in_the_middle_keeps_the_windows_before_it() -> None:
    fake, asking = started()
    fake.fail("began", bad_gateway, after=3, times=1_000)
    collected = await asking.one("checkout")
    assert words(collected) == NEVER | {"incident.incidentMetrics.totalIncidents": "upstream-error"}
    assert collected.values["incident.incidentMetrics.quarterlyIncidents"] == 4
    # What began in the part that is not known is left out.
    assert collected.values[MEAN] == (1_800 + 600 + 2 * DAY) / 3


async def test_a_rate_limit_in_the_middle_is_told_as_such() -> None:
    fake, asking = started()
    fake.fail("began", saying({}, 429, {"retry-after": "900"}), after=1, times=1)
    collected = await asking.one("checkout")
    assert collected.values["incident.incidentMetrics.monthlyIncidents"] == 3
    reasons = {name: words(collected)[name] for name in (COUNTS | {MEAN}) & words(collected).keys()}
    assert set(reasons.values()) == {"rate-limited"}
    assert "incident.incidentMetrics.monthlyIncidents" not in reasons


async def test_an_answer_in_part_counts_as_none() -> None:
    server = full()
    server.warnings = ["receive series from store-2: deadline exceeded"]
    _, asking = started(server)
    collected = await asking.one("checkout")
    assert collected.values == {}
    assert set(words(collected).values()) == {"upstream-error"}
    assert "store-2" not in str(collected.reasons)


@pytest.mark.parametrize("value", ["101", "-1", "NaN", "+Inf"])
async def test_a_metric_that_is_no_share_is_no_percentage(value: str) -> None:
    server = full()
    server.up["checkout"] = float(value)
    _, asking = started(server)
    assert words(await asking.one("checkout"))[UP] == "not-applicable"
