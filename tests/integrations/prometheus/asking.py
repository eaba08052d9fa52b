"""The integration as configured for a fake Prometheus, and services with a value in every leaf."""

from collections.abc import Mapping
from typing import Any

from factbook.clock import SECOND
from factbook.integrations.prometheus import INTEGRATION
from tests.fakes.prometheus import (
    ALERTMANAGER,
    Episode,
    FakePrometheus,
    Server,
    alerting,
    recording,
)
from tests.integrations.asking import Asking
from tests.service import NOON, Time

NOW = NOON // SECOND
HOUR = 3_600
DAY = 24 * HOUR
TOKEN = "a token of Prometheus"
OTHER = "a token of Alertmanager"
TABLE = {
    "base_url": "https://prometheus.example.com/",
    "token": TOKEN,
    "alertmanager_url": f"https://{ALERTMANAGER}",
    "alertmanager_token": OTHER,
}

CONFIGURATION = """
route:
  receiver: everybody
  routes:
  - receiver: pager
    matchers:
    - service=~"checkout|search"
    - severity="critical"
  - receiver: nobody
    match: {service: quiet}
receivers:
- name: everybody
  webhook_configs: [{url: <secret>}]
- name: pager
  pagerduty_configs: [{routing_key: <secret>}]
- name: nobody
"""


def full() -> Server:
    """A Prometheus of more than a year, with something for every leaf of `checkout`."""
    return Server(
        oldest=NOW - 400 * DAY,
        episodes=[
            # Two instances of one alert at once are one incident of 30 minutes.
            Episode("checkout", "Down", NOW - 2 * DAY, NOW - 2 * DAY + 1_200),
            Episode("checkout", "Down", NOW - 2 * DAY + 600, NOW - 2 * DAY + 1_800),
            Episode("checkout", "Slow", NOW - 2 * DAY, NOW - 2 * DAY + 600, "warning"),
            # It began before the last 30 days and ended within them.
            Episode("checkout", "Down", NOW - 31 * DAY, NOW - 29 * DAY),
            # It began before the last 90 days and ended within them.
            Episode("checkout", "Slow", NOW - 91 * DAY, NOW - 89 * DAY, "warning"),
            Episode("checkout", "Down", NOW - 200 * DAY, NOW - 200 * DAY + HOUR),
            Episode("checkout", "Down", NOW - 366 * DAY, NOW - 366 * DAY + HOUR),
            # It has not ended.
            Episode("checkout", "Full", NOW - HOUR, NOW + DAY),
            Episode("search", "Down", NOW - 60 * DAY, NOW - 60 * DAY + 120),
        ],
        up={"checkout": 99.123456, "search": 100, "quiet": 0},
        rules=[
            alerting("Down", {"summary": "It is down."}, service="checkout", severity="critical"),
            alerting("Slow", service="checkout", severity="warning", team="shop"),
            alerting("Full", service="checkout", severity="{{ $labels.severity }}"),
            alerting("Down", service="search", severity="critical"),
            alerting("Any", service="{{ $labels.service }}", severity="critical"),
            recording("slo:sli_error:ratio_rate30d", sloth_service="checkout", sloth_slo="up"),
            recording("slo:sli_error:ratio_rate1h", sloth_service="checkout", sloth_slo="up"),
            recording("requests:increase4w", service="checkout", slo="latency"),
            recording("requests:sum", service="checkout"),
        ],
        configuration=CONFIGURATION,
    )


# What is collected of `checkout`. The times to resolve: 1,800 s and 600 s, and twice 2 days.
EVERYTHING: Mapping[str, Any] = {
    "incident.incidentMetrics.totalIncidents": 6,
    "incident.incidentMetrics.monthlyIncidents": 3,
    "incident.incidentMetrics.quarterlyIncidents": 4,
    "incident.incidentMetrics.meanTimeToResolve": (1_800 + 600 + 2 * 2 * DAY) / 4,
    "incident.incidentMetrics.upTimePercentage": 99.1235,
    "incident.serviceInfo.hasEscalationPolicy": True,
    "incident.serviceInfo.hasTeamsAssigned": True,
    "incident.serviceInfo.hasDescription": True,
    "observability.sloCount": 2,
    "observability.monitorCount": 3,
}
# What is never known here.
NEVER = {
    "incident.incidentMetrics.meanTimeToFirstAck": "not-applicable",
    "incident.serviceInfo.alertCreationType": "not-applicable",
}


def started(server: Server | None = None, **table: Any) -> tuple[FakePrometheus, Asking]:
    """A fake, and the integration that asks it with its tokens unless the table says otherwise."""
    time = Time()
    wanted = {"prometheus": f"Bearer {TOKEN}", "alertmanager": f"Bearer {OTHER}"}
    fake = FakePrometheus(server or full(), clock=time, **wanted)
    return fake, Asking(INTEGRATION, fake, TABLE | table, time=time)
