"""From what is known of a service to its facts."""

from typing import Any, Final

from msgspec import UNSET

from factbook.integrations.integration import Collected
from factbook.integrations.pagerduty.analytics import IncidentFigures
from factbook.integrations.pagerduty.answers import Service
from factbook.outbound.outcomes import UNUSABLE, Missing, Outcome

Leaves = dict[str, Any]

_NO_TYPE: Final = Missing(Outcome.NOT_APPLICABLE, "PagerDuty gives none for this service")


def collected(service: Service | Missing, figures: IncidentFigures | Missing) -> Collected:
    """The facts of one service.

    Of a service that could not be read nobody knows whether it is there. If it has no incident
    either, that it had none is not known.
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
