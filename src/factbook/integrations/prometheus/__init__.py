"""Prometheus, with Alertmanager: the incident and the observability shape."""

from collections.abc import Mapping
from functools import partial
from typing import Final

from factbook.integrations.integration import Instance, Integration, Probe, make_vendor
from factbook.integrations.prometheus.client import collect_prometheus
from factbook.integrations.prometheus.options import (
    LABELS,
    SERVICE,
    PrometheusOptions,
    find_prometheus_target,
)
from factbook.outbound.git import make_git_headers

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
        # Queries about a year of samples are heavy.
        calls_at_once=2,
        target=partial(find_prometheus_target, options),
        collect=partial(collect_prometheus, options),
        probes=_make_alertmanager_probes(url),
    )


def _make_auth_headers(token: str, username: str, password: str) -> Mapping[str, str]:
    if token:
        return {"authorization": f"Bearer {token}"}
    return make_git_headers(username, password) if username else {}


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
