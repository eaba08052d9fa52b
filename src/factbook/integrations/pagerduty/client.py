"""Collection from one account: all services in one batch, whatever their number."""

from collections.abc import Sequence
from typing import Final

from msgspec import UNSET

from factbook.integrations.integration import Collected, Leaves, Probe
from factbook.integrations.pagerduty import analytics, incidents, services
from factbook.integrations.pagerduty.analytics import IncidentFigures
from factbook.integrations.pagerduty.answers import BAD_KEY, HEADERS, Service
from factbook.outbound.cache import Memory, exceeds_noted_limit, note_exceeded_limit
from factbook.outbound.client import HttpClient
from factbook.outbound.outcomes import UNUSABLE, Missing, Outcome

# After these nothing more is asked.
_FINAL: Final = (services.NOT_FOUND, BAD_KEY)
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


async def collect(
    targets: Sequence[str], client: HttpClient, memory: Memory, now: int
) -> dict[str, Collected]:
    """The facts about each target (a service id) at this time, or the reason for their absence."""
    found = await services.of(client, targets)
    refused = {target: one for target, one in found.items() if one in _FINAL}
    asked = [target for target in found if target not in refused]
    figures = await _figures(client, memory, asked, now) if asked else {}
    return {
        target: collected(one, refused.get(target) or figures[target])
        for target, one in found.items()
    }


async def _figures(
    client: HttpClient, memory: Memory, targets: Sequence[str], now: int
) -> dict[str, IncidentFigures | Missing]:
    """Figures of each service: from analytics, or from single incidents without access to it."""
    windows = await analytics.windows(client, targets, now)
    if not isinstance(windows, Missing):
        return {target: analytics.figures(windows, target) for target in targets}
    if windows == BAD_KEY or windows.outcome not in _REFUSED:
        return dict.fromkeys(targets, windows)
    what = f"incidents of {','.join(targets) if len(targets) <= services.FEW else 'all'}"
    known: incidents.Incidents | Missing = incidents.TOO_MANY
    if not await exceeds_noted_limit(memory, what, incidents.MOST_INCIDENTS, now):
        known = await incidents.of(client, targets, now)
        if known is incidents.TOO_MANY:
            await note_exceeded_limit(memory, what, incidents.MOST_INCIDENTS, now)
    if isinstance(known, Missing):
        return dict.fromkeys(targets, known)
    return {one: incidents.figures(known.get(one, ()), now, windows) for one in targets}


def collected(service: Service | Missing, figures: IncidentFigures | Missing) -> Collected:
    """The facts of one service.

    A service that could not be read may not exist. If no incident is known of it either, its number
    of incidents is unknown, not zero.
    """
    if isinstance(service, Missing) and (figures == service or _is_in_doubt(service, figures)):
        return Collected(missing={"": service})
    return Collected.of(
        {"incident.incidentMetrics": _metrics(figures), "incident.serviceInfo": _info(service)}
    )


def _is_in_doubt(service: Missing, figures: IncidentFigures | Missing) -> bool:
    if service.outcome is Outcome.NOT_FOUND:
        return True
    return isinstance(figures, IncidentFigures) and figures.total == 0


def _metrics(figures: IncidentFigures | Missing) -> Leaves | Missing:
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


def _info(service: Service | Missing) -> Leaves | Missing:
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
