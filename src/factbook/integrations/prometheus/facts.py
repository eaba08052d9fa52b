"""Facts from answers: pure functions, each for one group of a shape and one service."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

from factbook.integrations.integration import Collected, Leaves
from factbook.integrations.prometheus.api import PrometheusRule, Routing, Sample, Series
from factbook.integrations.prometheus.options import PrometheusOptions
from factbook.outbound.outcomes import Missing, Outcome

# The moments of events, in seconds since the epoch, by service and alert.
Events = Mapping[str, Mapping[str, set[int]]]

DAY: Final = 86_400
MONTH: Final = 30
QUARTER: Final = 90
YEAR: Final = 365
WINDOWS: Final = (MONTH, QUARTER, YEAR)

UNKNOWN_SERVICE: Final = Missing(
    Outcome.NOT_FOUND, "no series and no rule has this value of the label"
)
NO_ALERTMANAGER: Final = Missing(Outcome.FEATURE_OFF, "alertmanager_url is not set")
_NO_RULES: Final = Missing(Outcome.NOT_APPLICABLE, "this Prometheus evaluates no rules")
_NO_ALERTS: Final = Missing(Outcome.NOT_APPLICABLE, "no alerting rule that could make an incident")
_NO_OWN_RULE: Final = Missing(Outcome.NOT_APPLICABLE, "no alerting rule has the service's label")
_NO_END: Final = Missing(Outcome.NOT_APPLICABLE, "no incident of the last 90 days has ended")
_NO_ACK: Final = Missing(Outcome.NOT_APPLICABLE, "alerts are not acknowledged in Prometheus")
_NO_TYPE: Final = Missing(Outcome.NOT_APPLICABLE, "Prometheus has no such setting")
_NO_UP: Final = Missing(
    Outcome.NOT_APPLICABLE, "no sample of the up metric has the service's label"
)
_NOT_UP: Final = Missing(Outcome.NOT_APPLICABLE, "the up metric is not always 0 or 1")


@dataclass(frozen=True)
class RulesByService:
    """Rules by the service that they name; `watching`: an alert of one could be an incident."""

    by_service: Mapping[str, Sequence[PrometheusRule]]
    count: int
    watching: bool


@dataclass(frozen=True)
class PrometheusSnapshot:
    """Data collected about the services of a batch; each is a value or the reason for its absence.

    `moment` is the time of the collection, in seconds. `covered` tells for each window if the
    storage reaches back to its start. `began` and `ended` hold the events of 30 days each, newest
    first.
    """

    moment: int
    services: frozenset[str]
    rules: RulesByService | Missing
    covered: Mapping[int, bool | Missing]
    began: Sequence[Events | Missing]
    ended: Sequence[Events | Missing]
    up: Mapping[str, float] | Missing
    routing: Routing | Missing


def group_rules_by_service(
    options: PrometheusOptions, rules: Sequence[PrometheusRule]
) -> RulesByService:
    """The rules by the service that they name."""
    found: dict[str, list[PrometheusRule]] = {}
    for rule in rules:
        if owner := _find_service_of_rule(options, rule):
            found.setdefault(owner, []).append(rule)
    watching = any(rule.is_alerting and _may_be_incident(options, rule) for rule in rules)
    return RulesByService(found, len(rules), watching)


def group_events(options: PrometheusOptions, series: Sequence[Series]) -> Events:
    """The times in the answer to a query for events."""
    found: dict[str, dict[str, set[int]]] = {}
    for one in series:
        service, alert = (one.metric.get(name, "") for name in (options.label, "alertname"))
        moments = found.setdefault(service, {}).setdefault(alert, set())
        moments.update(round(moment) for moment, _ in one.values)
    return found


def list_percentages(options: PrometheusOptions, samples: Sequence[Sample]) -> dict[str, float]:
    """The values of an answer by service, unchanged."""
    return {one.metric.get(options.label, ""): float(one.value[1]) for one in samples}


def make_prometheus_facts(
    options: PrometheusOptions, known: PrometheusSnapshot, service: str
) -> Collected:
    """The facts about one service."""
    if service not in known.services:
        return Collected(missing={"": UNKNOWN_SERVICE})
    return Collected.of(
        {
            "incident.incidentMetrics": _make_incidents(known, service),
            "incident.serviceInfo": _make_prometheus_service_info(options, known, service),
            "observability": _make_observability(known, service),
        }
    )


def _make_incidents(known: PrometheusSnapshot, service: str) -> Leaves:
    return {
        "totalIncidents": _count_alerts(known, service, YEAR),
        "monthlyIncidents": _count_alerts(known, service, MONTH),
        "quarterlyIncidents": _count_alerts(known, service, QUARTER),
        "meanTimeToResolve": _compute_mean_time(known, service),
        "meanTimeToFirstAck": _NO_ACK,
        "upTimePercentage": _get_uptime(known, service),
    }


def _count_alerts(known: PrometheusSnapshot, service: str, days: int) -> int | Missing:
    """The number of times an alert of the service began firing in a window."""
    found = _make_window(known, service, known.began, days)
    if isinstance(found, Missing):
        return found
    since = known.moment - days * DAY
    return sum(len(moments) for moments in _merge_events(found, service, since).values())


def _compute_mean_time(known: PrometheusSnapshot, service: str) -> float | Missing:
    """The mean duration of alerts that ended in the last 90 days, in seconds."""
    ends = _make_window(known, service, known.ended, QUARTER)
    if isinstance(ends, Missing):
        return ends
    starts = _make_window(known, service, known.began, QUARTER)
    if isinstance(starts, Missing):
        return starts
    # An incident may have begun before the window.
    known_starts = _merge_events(list(_take_unbroken(known.began)), service, 0)
    times = [
        end - max(before)
        for alert, moments in _merge_events(ends, service, known.moment - QUARTER * DAY).items()
        for end in moments
        if (before := [start for start in known_starts.get(alert, ()) if start < end])
    ]
    return round(sum(times) / len(times), 2) if times else _NO_END


def _make_window(
    known: PrometheusSnapshot, service: str, chunks: Sequence[Events | Missing], days: int
) -> list[Events] | Missing:
    """The events of a window, or the reason that they are incomplete."""
    covered = known.covered[days]
    if isinstance(covered, Missing):
        return covered
    if not covered:
        return Missing(Outcome.NOT_APPLICABLE, f"the storage does not reach back {days} days")
    needed = list(_take_unbroken(chunks[: -(-days // MONTH)]))
    if len(needed) < -(-days // MONTH):
        missing = chunks[len(needed)]
        assert isinstance(missing, Missing)
        return missing
    return _explain_unwatched(known, service) or needed


def _explain_unwatched(known: PrometheusSnapshot, service: str) -> Missing | None:
    """The reason that a count of zero means nothing: no alert could have been an incident."""
    if any(service in chunk for chunk in _take_unbroken(known.began)):
        return None
    if isinstance(known.rules, Missing):
        return known.rules
    return None if known.rules.watching else _NO_ALERTS


def _may_be_incident(options: PrometheusOptions, rule: PrometheusRule) -> bool:
    severity = rule.labels.get(options.severity_label, "")
    return not options.severities or severity in options.severities or "{{" in severity


def _take_unbroken(chunks: Sequence[Events | Missing]) -> Iterator[Events]:
    """The newest events up to the first gap."""
    for chunk in takewhile(lambda one: not isinstance(one, Missing), chunks):
        assert not isinstance(chunk, Missing)
        yield chunk


def _merge_events(chunks: Sequence[Events], service: str, since: int) -> dict[str, set[int]]:
    """The times of a service's alerts; the border shared by two chunks counts once."""
    found: dict[str, set[int]] = {}
    for chunk in chunks:
        for alert, moments in chunk.get(service, {}).items():
            found.setdefault(alert, set()).update(one for one in moments if one >= since)
    return found


def _get_uptime(known: PrometheusSnapshot, service: str) -> float | Missing:
    covered = known.covered[MONTH]
    if isinstance(covered, Missing):
        return covered
    if not covered:
        return Missing(Outcome.NOT_APPLICABLE, f"the storage does not reach back {MONTH} days")
    if isinstance(known.up, Missing):
        return known.up
    value = known.up.get(service)
    if value is None:
        return _NO_UP
    return round(value, 4) if 0 <= value <= 100 else _NOT_UP


def _make_prometheus_service_info(
    options: PrometheusOptions, known: PrometheusSnapshot, service: str
) -> Leaves:
    if isinstance(known.rules, Missing):
        names = ("hasEscalationPolicy", "hasTeamsAssigned", "hasDescription")
        return {**dict.fromkeys(names, known.rules), "alertCreationType": _NO_TYPE}
    own = _list_alerting_rules(known.rules, service)
    return {
        "hasEscalationPolicy": _has_policy(options, known, own, service),
        "hasTeamsAssigned": _any_flag(bool(rule.labels.get(options.team_label)) for rule in own),
        "hasDescription": _any_flag(_is_described(rule) for rule in own),
        "alertCreationType": _NO_TYPE,
    }


def _any_flag(flags: Iterator[bool]) -> bool | Missing:
    found = list(flags)
    return any(found) if found else _NO_OWN_RULE


def _is_described(rule: PrometheusRule) -> bool:
    return any(rule.annotations.get(name, "").strip() for name in ("description", "summary"))


def _has_policy(
    options: PrometheusOptions,
    known: PrometheusSnapshot,
    own: Sequence[PrometheusRule],
    service: str,
) -> bool | Missing:
    """True if an alert of the service's rules, or one with its label alone, is routed on."""
    if isinstance(known.routing, Missing):
        return known.routing
    alerts = [
        {"alertname": rule.name} | {name: rule.label(name) for name in rule.labels} for rule in own
    ] or [{options.label: service}]
    return any(map(known.routing.leads_on, alerts))


def _make_observability(known: PrometheusSnapshot, service: str) -> Leaves:
    if isinstance(known.rules, Missing):
        return dict.fromkeys(("monitorCount", "sloCount"), known.rules)
    if not known.rules.count:
        return dict.fromkeys(("monitorCount", "sloCount"), _NO_RULES)
    objectives = {
        (name, rule.label(name))
        for rule in known.rules.by_service.get(service, ())
        for name in ("sloth_slo", "slo")
        if rule.label(name)
    }
    return {
        "monitorCount": len(_list_alerting_rules(known.rules, service)),
        "sloCount": len(objectives),
    }


def _list_alerting_rules(rules: RulesByService, service: str) -> list[PrometheusRule]:
    """The alerting rules that name the service."""
    return [rule for rule in rules.by_service.get(service, ()) if rule.is_alerting]


def _find_service_of_rule(options: PrometheusOptions, rule: PrometheusRule) -> str:
    """The service that a rule names; Sloth uses a label of its own for it."""
    return rule.label(options.label) or rule.label("sloth_service")
