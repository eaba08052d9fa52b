"""The integration as configured for a fake PagerDuty, and an account that counts by hand."""

from collections.abc import Iterable, Mapping
from typing import Any

from factbook.clock import DAY, HOUR, MINUTE, SECOND
from factbook.integrations.integration import Collected
from factbook.integrations.pagerduty import INTEGRATION
from tests.fakes.pagerduty import FakePagerDuty, Incident, Key, Service
from tests.integrations.asking import Asking
from tests.service import NOON, Time

KEY = "u+a_key_of_tests"
APP = "PAPP001"
QUIET = "PQUIET1"
METRICS = "incident.incidentMetrics"
INFO = "incident.serviceInfo"

SERVICES = (
    Service(APP, " Payments ", teams=("PTEAM01", "PTEAM02")),
    Service(QUIET, "  ", policy=None, alert_creation="create_incidents", named="b"),
    *(Service(f"POTHER{i}", named=f"c{i}") for i in range(6)),
)


def incident(service: str, days: float, **options: Any) -> Incident:
    """An incident so many days ago; `resolved` and `acknowledged` are seconds after it."""
    created_at = NOON - int(days * DAY)
    for name in ("resolved", "acknowledged"):
        if name in options:
            options[f"{name}_at"] = created_at + options.pop(name) * SECOND
    return Incident(service, created_at, **options)


INCIDENTS = (
    incident(APP, 1, team="PTEAM01", resolved=600, acknowledged=60),
    incident(APP, 10, team="PTEAM01", resolved=7 * HOUR // SECOND, is_major=True),
    incident(APP, 20, team="PTEAM02", resolved=36 * MINUTE // SECOND, acknowledged=200),
    incident(APP, 60, team="PTEAM02", resolved=300, acknowledged=100),
    incident(APP, 89, team="PTEAM02"),
    incident(APP, 91, team="PTEAM02", resolved=9),
    incident(APP, 364, resolved=5),
    incident(APP, 366, resolved=5),
    incident("POTHER0", 3, resolved=10),
)
# What is collected of APP. The mean of PTEAM01 is (600 + 25,200) / 2 = 12,900 of two incidents,
# that of PTEAM02 (2,160 + 300) / 2 = 1,230 of three, of which PagerDuty does not say that one is
# not resolved. It was acknowledged after 60 once, and after (200 + 100) / 2 = 150 twice. Seven of
# the 720 hours of 30 days are down.
EVERYTHING: Mapping[str, Any] = {
    f"{METRICS}.totalIncidents": 7,
    f"{METRICS}.monthlyIncidents": 3,
    f"{METRICS}.quarterlyIncidents": 5,
    f"{METRICS}.meanTimeToResolve": (2 * 12_900 + 3 * 1_230) / 5,
    f"{METRICS}.meanTimeToFirstAck": (60 + 2 * 150) / 3,
    f"{METRICS}.upTimePercentage": 99.0278,
    f"{INFO}.hasEscalationPolicy": True,
    f"{INFO}.hasTeamsAssigned": True,
    f"{INFO}.hasDescription": True,
    f"{INFO}.alertCreationType": "create_alerts_and_incidents",
}
NOTHING_HAPPENED = {
    f"{METRICS}.totalIncidents": 0,
    f"{METRICS}.monthlyIncidents": 0,
    f"{METRICS}.quarterlyIncidents": 0,
    f"{METRICS}.upTimePercentage": 100.0,
}
# All that are listed: more than are asked for one by one.
EVERY = tuple(one.id for one in SERVICES)


def started(
    services: Iterable[Service] = SERVICES,
    incidents: Iterable[Incident] = INCIDENTS,
    *,
    key: Key | None = None,
    **table: Any,
) -> tuple[FakePagerDuty, Asking]:
    """A fake that holds these, and the integration that asks it with KEY."""
    time = Time()
    fake = FakePagerDuty(services, incidents, key or Key(KEY), clock=time)
    return fake, Asking(INTEGRATION, fake, {"api_key": KEY} | table, time=time)


def words(found: Collected) -> dict[str, str]:
    """The words of the reasons; every fact has either a value or one of them."""
    names = {fact.name for fact in INTEGRATION.facts}
    covered = {
        name
        for name in names - found.values.keys()
        for place in found.missing
        if name == place or name.startswith(f"{place}.") or not place
    }
    assert found.values.keys() | covered == names
    assert not found.values.keys() & found.missing.keys()
    return {place: text.split(":")[0] for place, text in found.reasons.items()}
