"""Collection from a Prometheus instance: the same few queries for all services of a batch."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from factbook.clock import SECOND
from factbook.integrations.integration import Collected
from factbook.integrations.prometheus import api, facts
from factbook.integrations.prometheus.api import (
    PrometheusApi,
    Routing,
    get_alertmanager_configuration,
)
from factbook.integrations.prometheus.facts import (
    DAY,
    MONTH,
    QUARTER,
    WINDOWS,
    YEAR,
    Events,
    PrometheusSnapshot,
    RulesByService,
)
from factbook.integrations.prometheus.options import PrometheusOptions
from factbook.outbound.cache import Memory
from factbook.outbound.client import HttpClient
from factbook.outbound.outcomes import UNUSABLE, Missing

# A query by the settings, the services and the length of its window in seconds.
Query = Callable[[PrometheusOptions, Sequence[str], int], str]

# More services than fit in here are not named: then the queries are about all.
_LONGEST: Final = 600
_SPECIAL: Final = frozenset("\\.+*?()|[]{}^$")
_ESCAPES: Final = {"\\": "\\\\", '"': '\\"', "\n": "\\n"}


def quote_text(value: str) -> str:
    """A value as a quoted string."""
    return f'"{"".join(_ESCAPES.get(character, character) for character in value)}"'


def build_label_matcher(label: str, values: Sequence[str]) -> str:
    """Matcher for series whose label has one of the values."""
    alternatives = "|".join(map(_escape_literal, values))
    return f"{label}=~{quote_text(alternatives)}"


def build_services_matcher(options: PrometheusOptions, services: Sequence[str]) -> str:
    """Matcher for series of these services; for any service if there are many."""
    matcher = build_label_matcher(options.label, services)
    return matcher if len(matcher) <= _LONGEST else f'{options.label}!=""'


def build_began_query(options: PrometheusOptions, services: Sequence[str], seconds: int) -> str:
    """Query for the times at which an alert was firing and one step earlier was not."""
    firing, before = _build_firing_selector(options, services)
    return f"(({firing}) unless ({before}))[{seconds}s:{options.resolution}s]"


def build_ended_query(options: PrometheusOptions, services: Sequence[str], seconds: int) -> str:
    """Query for the times at which an alert was not firing and one step earlier was."""
    firing, before = _build_firing_selector(options, services)
    return f"(({before}) unless ({firing}))[{seconds}s:{options.resolution}s]"


def build_up_query(options: PrometheusOptions, services: Sequence[str], seconds: int) -> str:
    """Query for the share of samples with the value up, in percent, by service."""
    window = f"{options.up_metric}{{{build_services_matcher(options, services)}}}[{seconds}s]"
    total, samples = (
        f"sum by ({options.label}) ({function}_over_time({window}))"
        for function in ("sum", "count")
    )
    return f"100 * {total} / {samples}"


def build_anything_query(options: PrometheusOptions, seconds: int) -> str:
    """Query with a result if the storage has a sample of any series that the queries use."""
    names = build_label_matcher("__name__", ("ALERTS", options.up_metric))
    return f"count(count_over_time({{{names}}}[{seconds}s]))"


def _build_firing_selector(options: PrometheusOptions, services: Sequence[str]) -> tuple[str, str]:
    """Queries for the alerts firing at a time, and one step earlier, merged over other labels.

    Labels differ by instance, and by the replica of the Prometheus that evaluates the rule.
    """
    matchers = ['alertstate="firing"', build_services_matcher(options, services)]
    if options.severities:
        matchers.append(build_label_matcher(options.severity_label, options.severities))
    alerts = f"ALERTS{{{','.join(matchers)}}}"
    group = f"group by ({options.label}, alertname)"
    return f"{group} ({alerts})", f"{group} ({alerts} offset {options.resolution}s)"


def _escape_literal(value: str) -> str:
    """A value as a pattern that matches nothing else."""
    return "".join(f"\\{one}" if one in _SPECIAL else one for one in value)


# A storage reaches back to a moment when it has a sample from about then.
_SLACK: Final = 3_600


async def collect_prometheus(
    options: PrometheusOptions, targets: Sequence[str], client: HttpClient, memory: Memory, now: int
) -> dict[str, Collected]:
    """The facts about each target, a value of the service's label, or the reason for no facts."""
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
        collected[target] = facts.make_prometheus_facts(options, known, target)
        # Thousands of services and of routes take a while, in which others have their turn.
        await asyncio.sleep(0)
    return collected


class _Asking:
    """Queries of one collection, all for the same time."""

    def __init__(self, options: PrometheusOptions, client: HttpClient, now: int) -> None:
        self._api = PrometheusApi(client)
        self._options = options
        self._client = client
        # Where the steps of queries are too: at whole multiples of the resolution.
        self._moment = now // options.resolution * options.resolution

    async def rules(self) -> RulesByService | Missing:
        """All rules."""
        found = await self._api.rules()
        return (
            found
            if isinstance(found, Missing)
            else facts.group_rules_by_service(self._options, found)
        )

    async def values(self, targets: Sequence[str]) -> set[str] | Missing:
        """The services of series in the last year; others than the targets may be among them."""
        matcher = build_services_matcher(self._options, targets)
        since = self._moment - YEAR * DAY
        return await self._api.values(self._options.label, matcher, since, self._moment)

    async def known(
        self, services: Sequence[str], rules: RulesByService | Missing
    ) -> PrometheusSnapshot:
        """The data collected about the services. Without any service, nothing is queried."""
        covered: dict[int, bool | Missing] = dict.fromkeys(WINDOWS, False)
        up: dict[str, float] | Missing = {}
        routes: Routing | Missing = facts.NO_ALERTMANAGER
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
        """True for each window that the storage covers, also if it covers a longer one.

        A time without samples may only mean that Prometheus was down then.
        """
        found = await asyncio.gather(*map(self._covers, WINDOWS))
        pairs = list(zip(WINDOWS, found, strict=True))
        furthest = max((days for days, covers in pairs if covers is True), default=0)
        return {days: days <= furthest or covers for days, covers in pairs}

    async def _covers(self, days: int) -> bool | Missing:
        """True if the storage reaches back `days` days."""
        moment = self._moment - days * DAY + _SLACK
        found = await self._api.samples(build_anything_query(self._options, DAY), moment)
        return found if isinstance(found, Missing) else bool(found)

    async def _up(self, services: Sequence[str]) -> dict[str, float] | Missing:
        expression = build_up_query(self._options, services, MONTH * DAY)
        found = await self._api.samples(expression, self._moment)
        if isinstance(found, Missing):
            return found
        try:
            return facts.list_percentages(self._options, found)
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
            portions.append(facts.group_events(self._options, found))
        return portions

    async def _routing(self) -> Routing | Missing:
        url = self._options.alertmanager_url
        if not url:
            return facts.NO_ALERTMANAGER
        text = await get_alertmanager_configuration(self._client.further[url])
        return text if isinstance(text, Missing) else api.read_alert_routes(text)
