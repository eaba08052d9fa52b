"""Collection from one account: all services in one batch, whatever their number.

Incident figures come from PagerDuty's analytics, which has a row for each service that had an
incident. For a key without access to analytics, incidents are counted one by one.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from msgspec import UNSET

from factbook.clock import DAY, SECOND
from factbook.integrations.integration import Collected, Leaves, Probe
from factbook.integrations.pagerduty import api
from factbook.integrations.pagerduty.api import (
    BAD_KEY,
    BEYOND,
    FEW,
    HEADERS,
    PAGE,
    AnalyticsRow,
    Incident,
    Service,
    explain_failed_answer,
    format_stamp,
    iterate_pages,
    post_pagerduty,
)
from factbook.outbound.cache import Memory, exceeds_noted_limit, note_exceeded_limit
from factbook.outbound.client import HttpClient
from factbook.outbound.outcomes import UNUSABLE, Missing, Outcome, read_as, report_too_many

MONTH: Final = 30
QUARTER: Final = 90
YEAR: Final = 365
# The longest first: it fails first when there is too much to answer.
WINDOWS: Final = (YEAR, QUARTER, MONTH)
# So many services share a question that has to name them.
PORTION: Final = 1_000

NONE: Final = Missing(Outcome.NOT_APPLICABLE, "nothing in 90 days to take it of")
NO_UPTIME: Final = Missing(Outcome.NOT_APPLICABLE, "PagerDuty gives none for this service")

# By service; Missing where a row of it cannot be read.
Window = dict[str, list[AnalyticsRow] | Missing]
Windows = dict[int, Window]


class IncidentFigures(NamedTuple):
    """Incident figures of one service, each a value or the reason for its absence."""

    total: int
    quarterly: int
    monthly: int
    to_resolve: float | Missing
    to_first_ack: float | Missing
    uptime: float | Missing


async def get_windows(client: HttpClient, targets: Sequence[str], now: int) -> Windows | Missing:
    """The rows of every window that ends now; a failed one makes the others useless."""
    portions: list[Sequence[str]] = [targets] if len(targets) <= FEW else [()]
    found = Windows()
    for days in WINDOWS:
        window = await _get_window(client, portions, days, now)
        if window is None:
            # Keys of users have to name what they ask about.
            portions = [targets[i : i + PORTION] for i in range(0, len(targets), PORTION)]
            window = await _get_window(client, portions, days, now)
        if window is None or isinstance(window, Missing):
            return window or UNUSABLE
        found[days] = window
    return found


async def _get_window(
    client: HttpClient, portions: Iterable[Sequence[str]], days: int, now: int
) -> Window | Missing | None:
    """One window, requested in portions of services, () meaning all; None if that is refused."""
    found: Window = {}
    span = {"created_at_start": format_stamp(now - days * DAY), "created_at_end": format_stamp(now)}
    for portion in portions:
        filters = {**span, "service_ids": portion} if portion else span
        body = {"filters": filters, "time_zone": "Etc/UTC"}
        answer = await post_pagerduty(client, "/analytics/metrics/incidents/services", body)
        if answer.status == 400 and not portion:
            return None
        if not answer.ok:
            return explain_failed_answer(answer)
        data = answer.data if isinstance(answer.data, dict) else {}
        rows = data.get("data")
        if not isinstance(rows, list) or not _add_rows(rows, found):
            return UNUSABLE
    return found


def _add_rows(rows: list[Any], window: Window) -> bool:
    """Add the rows to their services; false if a row does not name its service."""
    for item in rows:
        id_ = item.get("service_id", 0) if isinstance(item, dict) else 0
        if id_ is None:
            continue  # of no service
        if not isinstance(id_, str):
            return False
        row, known = read_as(item, AnalyticsRow), window.setdefault(id_, [])
        if isinstance(row, Missing) or isinstance(known, Missing):
            window[id_] = UNUSABLE
        else:
            known.append(row)
    return True


def make_analytics_figures(found: Windows, target: str) -> IncidentFigures | Missing:
    """The figures of one service; a service without a row had no incident."""
    year, quarter, month = (found[days].get(target, []) for days in WINDOWS)
    if isinstance(year, Missing) or isinstance(quarter, Missing) or isinstance(month, Missing):
        return UNUSABLE
    return IncidentFigures(
        _sum_incidents(year),
        _sum_incidents(quarter),
        _sum_incidents(month),
        _compute_weighted_mean(
            (row.mean_seconds_to_resolve, row.total_incident_count) for row in quarter
        ),
        _compute_weighted_mean(
            (row.mean_seconds_to_first_ack, _count_acknowledged(row)) for row in quarter
        ),
        _compute_uptime(month),
    )


def _sum_incidents(rows: list[AnalyticsRow]) -> int:
    return sum(row.total_incident_count for row in rows)


def _count_acknowledged(row: AnalyticsRow) -> int:
    """The number of incidents behind the mean time to the first acknowledgement."""
    known = row.total_incidents_acknowledged
    return row.total_incident_count if known is None else min(known, row.total_incident_count)


def _compute_weighted_mean(parts: Iterable[tuple[float | None, int]]) -> float | Missing:
    """The mean of means, each weighted with its number of incidents."""
    known = [(mean, weight) for mean, weight in parts if mean is not None and weight]
    if not known:
        return NONE
    return round(sum(m * weight for m, weight in known) / sum(w for _, w in known), 2)


def _compute_uptime(rows: list[AnalyticsRow]) -> float | Missing:
    """The uptime; the downtimes of a service's teams add up."""
    known = [row.up_time_pct for row in rows if row.up_time_pct is not None]
    if len(known) < len(rows):
        return NO_UPTIME
    return round(max(0.0, 100.0 - sum(100.0 - part for part in known)), 4)


MOST_PAGES: Final = 200
# A question may span six months, which have 181 days at least.
_SPAN: Final = 180 * DAY
MOST_INCIDENTS: Final = PAGE * MOST_PAGES
TOO_MANY: Final = report_too_many(MOST_INCIDENTS, "incidents a year to count without analytics")
_NO_END: Final = Missing(Outcome.INCOMPLETE, "a resolved incident came without the time of its end")

Incidents = dict[str, list[Incident]]


async def get_incidents(
    client: HttpClient, targets: Sequence[str], now: int
) -> Incidents | Missing:
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
            ("since", format_stamp(start)),
            ("until", format_stamp(end)),
            ("time_zone", "UTC"),
            ("sort_by", "created_at:asc"),
            *(("service_ids[]", id_) for id_ in self._services),
        ]
        last = start
        async for page in iterate_pages(self._client, "incidents", query):
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
                last = max(last, _get_creation_time(incident))
        return end


def make_incident_figures(
    incidents: Iterable[Incident], now: int, refusal: Missing
) -> IncidentFigures:
    """Figures from one service's incidents; `refusal` is the reason for those without a value."""
    days = [((now - _get_creation_time(one)) / DAY, one) for one in incidents]
    quarter = [one for age, one in days if age <= QUARTER]
    return IncidentFigures(
        sum(age <= YEAR for age, _ in days),
        len(quarter),
        sum(age <= MONTH for age, _ in days),
        _compute_mean_to_resolve([one for one in quarter if one.is_resolved]),
        refusal if quarter else NONE,
        refusal,
    )


def _compute_mean_to_resolve(resolved: Sequence[Incident]) -> float | Missing:
    """The mean time to resolve; missing if any resolved incident lacks its end."""
    times = [
        (one.ended_at - one.created_at).total_seconds()
        for one in resolved
        if one.ended_at is not None and one.ended_at >= one.created_at
    ]
    if len(times) < len(resolved):
        return _NO_END
    return round(sum(times) / len(times), 2) if times else NONE


def _get_creation_time(incident: Incident) -> int:
    return int(incident.created_at.timestamp()) * SECOND


# After these nothing more is asked.
_FINAL: Final = (api.NOT_FOUND, BAD_KEY)
PROBES: Final = (
    Probe(
        right="reading services",
        target="/services",
        facts=("incident.serviceInfo",),
        query={"limit": 1, "sort_by": "name:asc"},
        headers=HEADERS,
        budget="rest",
    ),
    Probe(
        right="reading incidents",
        target="/incidents",
        facts=("incident.incidentMetrics",),
        query={"limit": 1},
        headers=HEADERS,
        budget="rest",
    ),
)
_REFUSED: Final = frozenset({Outcome.DENIED, Outcome.FEATURE_OFF})

_NO_TYPE: Final = Missing(Outcome.NOT_APPLICABLE, "PagerDuty gives none for this service")


async def collect_pagerduty(
    targets: Sequence[str], client: HttpClient, memory: Memory, now: int
) -> dict[str, Collected]:
    """The facts about each target (a service id) at this time, or the reason for their absence."""
    found = await api.get_services(client, targets)
    refused = {target: one for target, one in found.items() if one in _FINAL}
    asked = [target for target in found if target not in refused]
    figures = await _get_figures(client, memory, asked, now) if asked else {}
    return {
        target: make_pagerduty_facts(one, refused.get(target) or figures[target])
        for target, one in found.items()
    }


async def _get_figures(
    client: HttpClient, memory: Memory, targets: Sequence[str], now: int
) -> dict[str, IncidentFigures | Missing]:
    """Figures of each service: from analytics, or from single incidents without access to it."""
    windows = await get_windows(client, targets, now)
    if not isinstance(windows, Missing):
        return {target: make_analytics_figures(windows, target) for target in targets}
    if windows == BAD_KEY or windows.outcome not in _REFUSED:
        return dict.fromkeys(targets, windows)
    what = f"incidents of {','.join(targets) if len(targets) <= api.FEW else 'all'}"
    known: Incidents | Missing = TOO_MANY
    if not await exceeds_noted_limit(memory, what, MOST_INCIDENTS, now):
        known = await get_incidents(client, targets, now)
        if known is TOO_MANY:
            await note_exceeded_limit(memory, what, MOST_INCIDENTS, now)
    if isinstance(known, Missing):
        return dict.fromkeys(targets, known)
    return {one: make_incident_figures(known.get(one, ()), now, windows) for one in targets}


def make_pagerduty_facts(
    service: Service | Missing, figures: IncidentFigures | Missing
) -> Collected:
    """The facts of one service.

    A service that could not be read may not exist. If no incident is known of it either, its number
    of incidents is unknown, not zero.
    """
    if isinstance(service, Missing) and (figures == service or _is_in_doubt(service, figures)):
        return Collected(missing={"": service})
    return Collected.of(
        {
            "incident.incidentMetrics": _make_metrics(figures),
            "incident.serviceInfo": _make_service_info(service),
        }
    )


def _is_in_doubt(service: Missing, figures: IncidentFigures | Missing) -> bool:
    if service.outcome is Outcome.NOT_FOUND:
        return True
    return isinstance(figures, IncidentFigures) and figures.total == 0


def _make_metrics(figures: IncidentFigures | Missing) -> Leaves | Missing:
    if isinstance(figures, Missing):
        return figures
    return {
        "totalIncidents": figures.total,
        "monthlyIncidents": figures.monthly,
        "quarterlyIncidents": figures.quarterly,
        "meanTimeToResolve": figures.to_resolve,
        "meanTimeToFirstAck": figures.to_first_ack,
        "upTimePercentage": figures.uptime,
    }


def _make_service_info(service: Service | Missing) -> Leaves | Missing:
    if isinstance(service, Missing):
        return service
    if service.escalation_policy is UNSET or service.teams is UNSET:
        return UNUSABLE
    return {
        "hasEscalationPolicy": service.escalation_policy is not None,
        "hasTeamsAssigned": bool(service.teams),
        "hasDescription": bool((service.description or "").strip()),
        "alertCreationType": service.alert_creation or _NO_TYPE,
    }
