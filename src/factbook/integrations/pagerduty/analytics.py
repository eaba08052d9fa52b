"""Incident figures from PagerDuty's analytics: a row for each service that had an incident."""

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from factbook.clock import DAY
from factbook.integrations.pagerduty.answers import AnalyticsRow, missing_of, post, stamp
from factbook.integrations.pagerduty.services import FEW
from factbook.outbound.client import HttpClient
from factbook.outbound.outcomes import UNUSABLE, Missing, Outcome, read_as

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


async def windows(client: HttpClient, targets: Sequence[str], now: int) -> Windows | Missing:
    """The rows of every window that ends now; a failed one makes the others useless."""
    portions: list[Sequence[str]] = [targets] if len(targets) <= FEW else [()]
    found = Windows()
    for days in WINDOWS:
        window = await _window(client, portions, days, now)
        if window is None:
            # Keys of users have to name what they ask about.
            portions = [targets[i : i + PORTION] for i in range(0, len(targets), PORTION)]
            window = await _window(client, portions, days, now)
        if window is None or isinstance(window, Missing):
            return window or UNUSABLE
        found[days] = window
    return found


async def _window(
    client: HttpClient, portions: Iterable[Sequence[str]], days: int, now: int
) -> Window | Missing | None:
    """One window, requested in portions of services, () meaning all; None if that is refused."""
    found: Window = {}
    span = {"created_at_start": stamp(now - days * DAY), "created_at_end": stamp(now)}
    for portion in portions:
        filters = {**span, "service_ids": portion} if portion else span
        body = {"filters": filters, "time_zone": "Etc/UTC"}
        answer = await post(client, "/analytics/metrics/incidents/services", body)
        if answer.status == 400 and not portion:
            return None
        if not answer.ok:
            return missing_of(answer)
        data = answer.data if isinstance(answer.data, dict) else {}
        rows = data.get("data")
        if not isinstance(rows, list) or not _take(rows, found):
            return UNUSABLE
    return found


def _take(rows: list[Any], window: Window) -> bool:
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


def figures(found: Windows, target: str) -> IncidentFigures | Missing:
    """The figures of one service; a service without a row had no incident."""
    year, quarter, month = (found[days].get(target, []) for days in WINDOWS)
    if isinstance(year, Missing) or isinstance(quarter, Missing) or isinstance(month, Missing):
        return UNUSABLE
    return IncidentFigures(
        _count(year),
        _count(quarter),
        _count(month),
        _mean((row.mean_seconds_to_resolve, row.total_incident_count) for row in quarter),
        _mean((row.mean_seconds_to_first_ack, _acknowledged(row)) for row in quarter),
        _uptime(month),
    )


def _count(rows: list[AnalyticsRow]) -> int:
    return sum(row.total_incident_count for row in rows)


def _acknowledged(row: AnalyticsRow) -> int:
    """The number of incidents behind the mean time to the first acknowledgement."""
    known = row.total_incidents_acknowledged
    return row.total_incident_count if known is None else min(known, row.total_incident_count)


def _mean(parts: Iterable[tuple[float | None, int]]) -> float | Missing:
    """The mean of means, each weighted with its number of incidents."""
    known = [(mean, weight) for mean, weight in parts if mean is not None and weight]
    if not known:
        return NONE
    return round(sum(m * weight for m, weight in known) / sum(w for _, w in known), 2)


def _uptime(rows: list[AnalyticsRow]) -> float | Missing:
    """The uptime; the downtimes of a service's teams add up."""
    known = [row.up_time_pct for row in rows if row.up_time_pct is not None]
    if len(known) < len(rows):
        return NO_UPTIME
    return round(max(0.0, 100.0 - sum(100.0 - part for part in known)), 4)
