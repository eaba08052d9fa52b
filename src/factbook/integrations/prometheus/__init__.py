"""Prometheus, with Alertmanager: the incident and the observability shape."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from factbook.clock import Clock, now
from factbook.facts.datasource import DataSource
from factbook.facts.schema import Fact
from factbook.facts.shapes import INCIDENT, OBSERVABILITY
from factbook.integrations.integration import Integration, Vendor, facts_of, portions, source_of
from factbook.integrations.probes import Probe
from factbook.integrations.prometheus.client import collect, credential
from factbook.integrations.prometheus.options import PrometheusOptions
from factbook.integrations.prometheus.targets import LABELS, SERVICE, target
from factbook.settings import option_tables as configuring

ID: Final = "prometheus"
FILLS: Final = ("incident", "observability")
FACTS: Final[tuple[Fact, ...]] = (*facts_of(INCIDENT), *facts_of(OBSERVABILITY))
# Queries about a year of samples are heavy.
_CALLS_AT_ONCE: Final = 2
_OF_RULES: Final = (
    "observability",
    "incident.serviceInfo.hasTeamsAssigned",
    "incident.serviceInfo.hasDescription",
)


def configured(name: str, values: Mapping[str, Any], *, clock: Clock = now) -> Integration:
    """The integration that the table `[integrations.prometheus.<name>]` of the settings describes.

    The one named `default` is the source `prometheus`, another one `prometheus-<name>`. Raises
    ConfigurationError for what is wrong with the table.
    """
    options = configuring.read(ID, name, values, PrometheusOptions)
    id_ = configuring.source_id(ID, name)
    user, other = (
        partial(credential, id_, options.token, options.username, options.password),
        partial(
            credential,
            f"{id_} alertmanager",
            options.alertmanager_token,
            options.alertmanager_username,
            options.alertmanager_password,
        ),
    )
    return Integration(
        source=_source(id_, configuring.title("Prometheus", name)),
        fills=FILLS,
        credential=id_,
        authorize=user,
        base_url=options.base_url,
        further={options.alertmanager_url: other} if options.alertmanager_url else {},
        calls_at_once=_CALLS_AT_ONCE,
        target=partial(target, options),
        # Each query is about all of them.
        batches=portions,
        collect=partial(collect, options),
        probes=_probes(options),
    )


def _probes(options: PrometheusOptions) -> tuple[Probe, ...]:
    found = [
        Probe(right="queries", target="/api/v1/query", query={"query": "vector(1)"}),
        Probe(right="rules", target="/api/v1/rules", facts=_OF_RULES),
    ]
    if options.alertmanager_url:
        status = "/api/v2/status"
        facts = ("incident.serviceInfo.hasEscalationPolicy",)
        found.append(
            Probe(
                right="Alertmanager's status",
                target=status,
                facts=facts,
                further=options.alertmanager_url,
            )
        )
    return tuple(found)


def _source(id_: str, title: str) -> DataSource:
    return source_of(
        ID,
        id_,
        title,
        "Incidents, availability, alerting rules and service level objectives.",
        (SERVICE, LABELS),
        FACTS,
    )


INTEGRATION: Final = Vendor(
    id=ID,
    title="Prometheus",
    options=PrometheusOptions,
    facts=FACTS,
    fills=FILLS,
    configured=configured,
)
