"""Collection from a Prometheus instance: the same few queries for all services of a batch."""

import asyncio
from collections.abc import Sequence
from typing import Final

from factbook.clock import SECOND
from factbook.integrations.integration import Collected
from factbook.integrations.prometheus import alert_routes, facts, promql
from factbook.integrations.prometheus.alert_routes import Routing
from factbook.integrations.prometheus.api import PrometheusApi, configuration
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

# A storage reaches back to a moment when it has a sample from about then.
_SLACK: Final = 3_600


async def collect(
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
        collected[target] = facts.collected(options, known, target)
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
        return found if isinstance(found, Missing) else facts.by_service(self._options, found)

    async def values(self, targets: Sequence[str]) -> set[str] | Missing:
        """The services of series in the last year; others than the targets may be among them."""
        matcher = promql.of_services(self._options, targets)
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
            began=await self._events(promql.began, services, days),
            ended=await self._events(promql.ended, services, QUARTER if days >= QUARTER else 0),
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
        found = await self._api.samples(promql.anything(self._options, DAY), moment)
        return found if isinstance(found, Missing) else bool(found)

    async def _up(self, services: Sequence[str]) -> dict[str, float] | Missing:
        expression = promql.up(self._options, services, MONTH * DAY)
        found = await self._api.samples(expression, self._moment)
        if isinstance(found, Missing):
            return found
        try:
            return facts.percentages(self._options, found)
        except ValueError:
            return UNUSABLE

    async def _events(
        self, query: promql.Query, services: Sequence[str], days: int
    ) -> list[Events | Missing]:
        """The events of a window in portions of 30 days, newest first; a failure ends them."""
        portions: list[Events | Missing] = []
        for start in range(0, days, MONTH):
            length = min(MONTH, days - start) * DAY
            expression = query(self._options, services, length)
            found = await self._api.series(expression, self._moment - start * DAY)
            if isinstance(found, Missing):
                return [*portions, found]
            portions.append(facts.events(self._options, found))
        return portions

    async def _routing(self) -> Routing | Missing:
        url = self._options.alertmanager_url
        if not url:
            return facts.NO_ALERTMANAGER
        text = await configuration(self._client.further[url])
        return text if isinstance(text, Missing) else alert_routes.read(text)
