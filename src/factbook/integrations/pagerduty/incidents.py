"""Incident figures counted one by one, for a key without access to analytics.

All incidents of the account are read once, whatever the number of services requested.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from factbook.clock import DAY, SECOND
from factbook.integrations.pagerduty.analytics import MONTH, NONE, QUARTER, YEAR, IncidentFigures
from factbook.integrations.pagerduty.answers import BEYOND, PAGE, Incident, pages, stamp
from factbook.integrations.pagerduty.services import FEW
from factbook.outbound.client import HttpClient
from factbook.outbound.outcomes import Missing, Outcome, read_as, report_too_many

MOST_PAGES: Final = 200
# A question may span six months, which have 181 days at least.
_SPAN: Final = 180 * DAY
MOST_INCIDENTS: Final = PAGE * MOST_PAGES
TOO_MANY: Final = report_too_many(MOST_INCIDENTS, "incidents a year to count without analytics")
_NO_END: Final = Missing(Outcome.INCOMPLETE, "a resolved incident came without the time of its end")

Incidents = dict[str, list[Incident]]


async def of(client: HttpClient, targets: Sequence[str], now: int) -> Incidents | Missing:
    """The incidents of the last year by service, or the reason that they cannot be counted."""
    reading = _IncidentReader(client, targets if len(targets) <= FEW else ())
    start = now - YEAR * DAY
    while start < now:
        end = min(start + _SPAN, now)
        last = await reading.span(start, end)
        if isinstance(last, Missing):
            return last
        if last == start:
            return TOO_MANY
        start = last
    found = defaultdict(list)
    for incident in reading.found.values():
        if incident.service is not None:
            found[incident.service.id].append(incident)
    return dict(found)


class _IncidentReader:
    """Incidents read so far, by id; restricted to some services if they are named."""

    def __init__(self, client: HttpClient, services: Sequence[str]) -> None:
        self._client = client
        self._services = services
        self._pages = 0
        self.found: dict[str, Incident] = {}

    async def span(self, start: int, end: int) -> int | Missing:
        """Read the incidents of a time span, oldest first.

        Returns the time up to which all of them are known, or the reason for a failure.
        """
        query = [
            ("since", stamp(start)),
            ("until", stamp(end)),
            ("time_zone", "UTC"),
            ("sort_by", "created_at:asc"),
            *(("service_ids[]", id_) for id_ in self._services),
        ]
        last = start
        async for page in pages(self._client, "incidents", query):
            if isinstance(page, Missing):
                return last if page is BEYOND else page
            self._pages += 1
            if self._pages > MOST_PAGES:
                return TOO_MANY
            for item in page:
                incident = read_as(item, Incident)
                if isinstance(incident, Missing):
                    return incident
                self.found[incident.id] = incident
                last = max(last, _moment(incident))
        return end


def figures(incidents: Iterable[Incident], now: int, refusal: Missing) -> IncidentFigures:
    """Figures from one service's incidents; `refusal` is the reason for those without a value."""
    days = [((now - _moment(one)) / DAY, one) for one in incidents]
    quarter = [one for age, one in days if age <= QUARTER]
    return IncidentFigures(
        sum(age <= YEAR for age, _ in days),
        len(quarter),
        sum(age <= MONTH for age, _ in days),
        _mean_to_resolve([one for one in quarter if one.is_resolved]),
        refusal if quarter else NONE,
        refusal,
    )


def _mean_to_resolve(resolved: Sequence[Incident]) -> float | Missing:
    """The mean time to resolve; missing if any resolved incident lacks its end."""
    times = [
        (one.ended_at - one.created_at).total_seconds()
        for one in resolved
        if one.ended_at is not None and one.ended_at >= one.created_at
    ]
    if len(times) < len(resolved):
        return _NO_END
    return round(sum(times) / len(times), 2) if times else NONE


def _moment(incident: Incident) -> int:
    return int(incident.created_at.timestamp()) * SECOND
