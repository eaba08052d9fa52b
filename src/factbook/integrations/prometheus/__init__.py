"""Prometheus, with Alertmanager: the incident and the observability shape.

A few queries serve all services of a batch. Pure functions make the facts, each for one group of a
shape and one service.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from typing import Final

from factbook.clock import SECOND
from factbook.integrations.integration import (
    Collected,
    Instance,
    Integration,
    Leaves,
    Probe,
    make_vendor,
)
from factbook.integrations.prometheus import api
from factbook.integrations.prometheus.api import (
    LABELS,
    SERVICE,
    PrometheusApi,
    PrometheusOptions,
    PrometheusRule,
    Routing,
    Sample,
    Series,
    find_prometheus_target,
    get_alertmanager_configuration,
)
from factbook.outbound.cache import Memory
from factbook.outbound.client import HttpClient
from factbook.outbound.git import make_basic_auth
from factbook.outbound.outcomes import UNUSABLE, Missing, Outcome

# Times of events, in seconds since the epoch, by service and alert.
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
    """Rules by service; `watching`: alerts of some rule could be incidents."""

    by_service: Mapping[str, Sequence[PrometheusRule]]
    count: int
    watching: bool


@dataclass(frozen=True)
class PrometheusSnapshot:
    """Data collected about the services of a batch; each is a value or the reason for its absence.

    `moment` is the time of the collection, in seconds. `covered` maps each window to true if the
    storage reaches back to its start. `began` and `ended` hold events in portions of 30 days,
    newest first.
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
    by_service: dict[str, list[PrometheusRule]] = {}
    severities = options.severities
    watching = False
    for rule in rules:
        if service := rule.label(options.label) or rule.label("sloth_service"):
            by_service.setdefault(service, []).append(rule)
        severity = rule.labels.get(options.severity_label, "")
        if rule.is_alerting and (not severities or severity in severities or "{{" in severity):
            watching = True
    return RulesByService(by_service, len(rules), watching)


def group_events(options: PrometheusOptions, series: Sequence[Series]) -> Events:
    """The event times in an answer, by service and alert."""
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
    """The reason not to trust a count of zero: no alert could have been an incident."""
    if any(service in chunk for chunk in _take_unbroken(known.began)):
        return None
    if isinstance(known.rules, Missing):
        return known.rules
    return None if known.rules.watching else _NO_ALERTS


def _take_unbroken(chunks: Sequence[Events | Missing]) -> Iterator[Events]:
    """The newest events up to the first gap."""
    for chunk in takewhile(lambda one: not isinstance(one, Missing), chunks):
        assert not isinstance(chunk, Missing)
        yield chunk


def _merge_events(chunks: Sequence[Events], service: str, since: int) -> dict[str, set[int]]:
    """The event times of a service by alert; a time that two chunks share counts once."""
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
        "hasDescription": _any_flag(
            any(rule.annotations.get(name, "").strip() for name in ("description", "summary"))
            for rule in own
        ),
        "alertCreationType": _NO_TYPE,
    }


def _any_flag(flags: Iterator[bool]) -> bool | Missing:
    found = list(flags)
    return any(found) if found else _NO_OWN_RULE


def _has_policy(
    options: PrometheusOptions,
    known: PrometheusSnapshot,
    own: Sequence[PrometheusRule],
    service: str,
) -> bool | Missing:
    """True if an alert of the service reaches a receiver other than the default one.

    Tests the alerts of its rules, or without rules an alert with only its label.
    """
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


# Builds a query from the settings, the services and the window's length in seconds.
Query = Callable[[PrometheusOptions, Sequence[str], int], str]

# If the services need a longer matcher, queries cover all services instead.
_LONGEST: Final = 600
_PATTERN_ESCAPES: Final = str.maketrans(
    {character: f"\\{character}" for character in "\\.+*?()|[]{}^$"}
)
_ESCAPES: Final = {"\\": "\\\\", '"': '\\"', "\n": "\\n"}


def quote_text(value: str) -> str:
    """A value as a quoted string in a query."""
    return f'"{"".join(_ESCAPES.get(character, character) for character in value)}"'


def build_label_matcher(label: str, values: Sequence[str]) -> str:
    """Matcher for series whose label has one of the values."""
    alternatives = "|".join(value.translate(_PATTERN_ESCAPES) for value in values)
    return f"{label}=~{quote_text(alternatives)}"


def build_services_matcher(options: PrometheusOptions, services: Sequence[str]) -> str:
    """Matcher for series of these services; for any service if there are many."""
    matcher = build_label_matcher(options.label, services)
    return matcher if len(matcher) <= _LONGEST else f'{options.label}!=""'


def build_began_query(options: PrometheusOptions, services: Sequence[str], seconds: int) -> str:
    """Query for the times when an alert started firing, compared to one step earlier."""
    firing, before = _build_firing_selector(options, services)
    return f"(({firing}) unless ({before}))[{seconds}s:{options.resolution}s]"


def build_ended_query(options: PrometheusOptions, services: Sequence[str], seconds: int) -> str:
    """Query for the times when an alert stopped firing, compared to one step earlier."""
    firing, before = _build_firing_selector(options, services)
    return f"(({before}) unless ({firing}))[{seconds}s:{options.resolution}s]"


def build_up_query(options: PrometheusOptions, services: Sequence[str], seconds: int) -> str:
    """Query for the average of the up metric in percent, by service."""
    window = f"{options.up_metric}{{{build_services_matcher(options, services)}}}[{seconds}s]"
    total, samples = (
        f"sum by ({options.label}) ({function}_over_time({window}))"
        for function in ("sum", "count")
    )
    return f"100 * {total} / {samples}"


def build_anything_query(options: PrometheusOptions, seconds: int) -> str:
    """Query with a result if the storage has a sample of any metric in use."""
    names = build_label_matcher("__name__", ("ALERTS", options.up_metric))
    return f"count(count_over_time({{{names}}}[{seconds}s]))"


def _build_firing_selector(options: PrometheusOptions, services: Sequence[str]) -> tuple[str, str]:
    """Queries for the alerts firing at a time, and one step earlier, by service and name.

    Other labels differ by instance, and by the Prometheus replica that evaluates the rule.
    """
    matchers = ['alertstate="firing"', build_services_matcher(options, services)]
    if options.severities:
        matchers.append(build_label_matcher(options.severity_label, options.severities))
    alerts = f"ALERTS{{{','.join(matchers)}}}"
    group = f"group by ({options.label}, alertname)"
    return f"{group} ({alerts})", f"{group} ({alerts} offset {options.resolution}s)"


# The first sample may be this many seconds after the start of a window.
_SLACK: Final = 3_600


async def collect_prometheus(
    options: PrometheusOptions, targets: Sequence[str], client: HttpClient, memory: Memory, now: int
) -> dict[str, Collected]:
    """Facts about each target (a value of the service's label), or the reason for no facts."""
    del memory
    asking = _Asking(options, client, now // SECOND)
    rules, values = await asyncio.gather(asking.rules(), asking.values(targets))
    if isinstance(values, Missing):
        return {target: Collected(missing={"": values}) for target in targets}
    named = set[str]() if isinstance(rules, Missing) else set(rules.by_service)
    services = frozenset(targets) & (values | named)
    known = await asking.known(sorted(services), rules)
    collected = {}
    for target in targets:
        collected[target] = make_prometheus_facts(options, known, target)
        # Let other tasks run, as thousands of services and routes take a while.
        await asyncio.sleep(0)
    return collected


class _Asking:
    """Queries of one collection, all for the same time."""

    def __init__(self, options: PrometheusOptions, client: HttpClient, now: int) -> None:
        self._api = PrometheusApi(client)
        self._options = options
        self._client = client
        # Queries step at whole multiples of the resolution, too.
        self._moment = now // options.resolution * options.resolution

    async def rules(self) -> RulesByService | Missing:
        """All rules."""
        found = await self._api.rules()
        return found if isinstance(found, Missing) else group_rules_by_service(self._options, found)

    async def values(self, targets: Sequence[str]) -> set[str] | Missing:
        """The services with series in the last year, possibly more than the targets."""
        matcher = build_services_matcher(self._options, targets)
        since = self._moment - YEAR * DAY
        return await self._api.values(self._options.label, matcher, since, self._moment)

    async def known(
        self, services: Sequence[str], rules: RulesByService | Missing
    ) -> PrometheusSnapshot:
        """The data collected about the services. Without services, no query is sent."""
        covered: dict[int, bool | Missing] = dict.fromkeys(WINDOWS, False)
        up: dict[str, float] | Missing = {}
        routes: Routing | Missing = NO_ALERTMANAGER
        if services:
            covered = await self._covered()
            up, routes = await asyncio.gather(self._up(services), self._routing())
        days = max((days for days in WINDOWS if covered[days] is True), default=0)
        return PrometheusSnapshot(
            moment=self._moment,
            services=frozenset(services),
            rules=rules,
            covered=covered,
            began=await self._events(build_began_query, services, days),
            ended=await self._events(
                build_ended_query, services, QUARTER if days >= QUARTER else 0
            ),
            up=up,
            routing=routes,
        )

    async def _covered(self) -> dict[int, bool | Missing]:
        """By window, true if the storage covers the window or a longer one.

        A gap may only mean that Prometheus was down at that time.
        """
        query = build_anything_query(self._options, DAY)
        answers = await asyncio.gather(
            *(self._api.samples(query, self._moment - days * DAY + _SLACK) for days in WINDOWS)
        )
        covered: dict[int, bool | Missing] = {
            days: samples if isinstance(samples, Missing) else bool(samples)
            for days, samples in zip(WINDOWS, answers, strict=True)
        }
        furthest = max((days for days, covers in covered.items() if covers is True), default=0)
        return {days: days <= furthest or covers for days, covers in covered.items()}

    async def _up(self, services: Sequence[str]) -> dict[str, float] | Missing:
        expression = build_up_query(self._options, services, MONTH * DAY)
        found = await self._api.samples(expression, self._moment)
        if isinstance(found, Missing):
            return found
        try:
            return list_percentages(self._options, found)
        except ValueError:
            return UNUSABLE

    async def _events(
        self, query: Query, services: Sequence[str], days: int
    ) -> list[Events | Missing]:
        """The events of a window in portions of 30 days, newest first; a failure ends them."""
        portions: list[Events | Missing] = []
        for start in range(0, days, MONTH):
            length = min(MONTH, days - start) * DAY
            expression = query(self._options, services, length)
            found = await self._api.series(expression, self._moment - start * DAY)
            if isinstance(found, Missing):
                return [*portions, found]
            portions.append(group_events(self._options, found))
        return portions

    async def _routing(self) -> Routing | Missing:
        url = self._options.alertmanager_url
        if not url:
            return NO_ALERTMANAGER
        text = await get_alertmanager_configuration(self._client.further[url])
        return text if isinstance(text, Missing) else api.read_alert_routes(text)


_OF_RULES: Final = (
    "observability",
    "incident.serviceInfo.hasTeamsAssigned",
    "incident.serviceInfo.hasDescription",
)


def _make_prometheus_integration(instance: Instance[PrometheusOptions]) -> Integration:
    options = instance.options
    user = _make_auth_headers(options.token, options.username, options.password)
    other = _make_auth_headers(
        options.alertmanager_token, options.alertmanager_username, options.alertmanager_password
    )
    url = options.alertmanager_url
    return Integration(
        source=instance.source(
            "Incidents, availability, alerting rules and service level objectives.",
            (SERVICE, LABELS),
        ),
        authorize=instance.credential(user),
        base_url=options.base_url,
        further={url: instance.credential(other, "alertmanager")} if url else {},
        # Queries over a year of samples are heavy.
        calls_at_once=2,
        target=partial(find_prometheus_target, options),
        collect=partial(collect_prometheus, options),
        probes=_make_alertmanager_probes(url),
    )


def _make_auth_headers(token: str, username: str, password: str) -> Mapping[str, str]:
    if token:
        return {"authorization": f"Bearer {token}"}
    return make_basic_auth(username, password) if username else {}


def _make_alertmanager_probes(alertmanager: str) -> tuple[Probe, ...]:
    of_prometheus = (
        Probe(right="queries", target="/api/v1/query", query={"query": "vector(1)"}),
        Probe(right="rules", target="/api/v1/rules", facts=_OF_RULES),
    )
    if not alertmanager:
        return of_prometheus
    of_alertmanager = Probe(
        right="Alertmanager's status",
        target="/api/v2/status",
        facts=("incident.serviceInfo.hasEscalationPolicy",),
        further=alertmanager,
    )
    return (*of_prometheus, of_alertmanager)


INTEGRATION: Final = make_vendor(
    "prometheus",
    "Prometheus",
    PrometheusOptions,
    _make_prometheus_integration,
    ("incident", "observability"),
)
