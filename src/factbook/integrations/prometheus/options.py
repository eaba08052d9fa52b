"""Settings of a Prometheus instance, and the service there that annotations name."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final

import msgspec

from factbook.integrations.integration import (
    InstanceOptions,
    get_annotations,
    report_bad_annotation,
    report_no_annotation,
)
from factbook.outbound.outcomes import Missing
from factbook.settings.option_tables import about, is_web_address

SERVICE: Final = "prometheus.io/service"
# What people's portals filter alerts by: `service=checkout,env=production`.
LABELS: Final = "prometheus.io/labels"
LONGEST: Final = 200

LONGEST_RESOLUTION: Final = 3_600
_LABEL: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]{0,99}", re.ASCII)
_METRIC: Final = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]{0,199}", re.ASCII)
_HOSTS: Final = ("", "alertmanager_")


class PrometheusOptions(InstanceOptions, frozen=True, kw_only=True):
    """Prometheus, or a server with its API, and the Alertmanager that it sends alerts to."""

    base_url: Annotated[
        str, about("Address of Prometheus, such as `https://prometheus.example.com`.")
    ] = ""
    token: Annotated[str, about("Secret. A bearer token.")] = ""
    username: Annotated[str, about("User name, instead of a token.")] = ""
    password: Annotated[str, about("Secret. The user's password.")] = ""
    alertmanager_url: Annotated[
        str, about("Address of Alertmanager. Empty: what its routes say is unknown.")
    ] = ""
    alertmanager_token: Annotated[
        str, about("Secret. A bearer token for Alertmanager, which is sent no other secret.")
    ] = ""
    alertmanager_username: Annotated[str, about("User name at Alertmanager.")] = ""
    alertmanager_password: Annotated[str, about("Secret. That user's password.")] = ""
    label: Annotated[
        str, about("Label of alerts, rules and targets whose value is the service.")
    ] = "service"
    severities: Annotated[
        list[str],
        about("Severities of the alerts that are incidents. Empty: every alert is one."),
    ] = msgspec.field(default_factory=list)
    severity_label: Annotated[str, about("Label that holds an alert's severity.")] = "severity"
    team_label: Annotated[str, about("Label that names the team of an alerting rule.")] = "team"
    up_metric: Annotated[
        str,
        about("Metric that is 1 while a target of the service is up, otherwise 0."),
    ] = "up"
    resolution: Annotated[
        int,
        about("Seconds between the moments at which it is looked whether an alert was firing."),
    ] = 60

    def problems(self) -> Iterator[str]:
        """The mistakes in the table."""
        if not is_web_address(self.base_url):
            yield "base_url has to be like https://prometheus.example.com"
        if self.alertmanager_url and not is_web_address(self.alertmanager_url):
            yield "alertmanager_url has to be like https://alertmanager.example.com"
        for host in _HOSTS:
            yield from _check_user(self, host)
        for name in ("label", "severity_label", "team_label"):
            if not _LABEL.fullmatch(getattr(self, name)):
                yield f"{name} has to be the name of a label, such as service"
        if not _METRIC.fullmatch(self.up_metric):
            yield "up_metric has to be the name of a metric, such as up"
        if not 1 <= self.resolution <= LONGEST_RESOLUTION:
            yield f"resolution has to be from 1 to {LONGEST_RESOLUTION}"


def _check_user(options: PrometheusOptions, host: str) -> Iterator[str]:
    token, username, password = (
        getattr(options, f"{host}{name}") for name in ("token", "username", "password")
    )
    if token and (username or password):
        yield f"{host}token and {host}username exclude each other"
    if bool(username) != bool(password):
        yield f"{host}username and {host}password are needed, both"
    if ":" in username:
        yield f"{host}username cannot have a colon"


def find_prometheus_target(options: PrometheusOptions, entity: Mapping[str, Any]) -> str | Missing:
    """The value of the service's label, or the reason that there is none.

    It may contain any printable character, as it is only used as a quoted string in a query.
    """
    known = get_annotations(entity)
    found = known.get(SERVICE) or _find_label(known.get(LABELS), options.label)
    if not isinstance(found, str) or not found.strip():
        return report_no_annotation("no value of the service's label")
    value = found.strip()
    if len(value) > LONGEST or not value.isprintable():
        return report_bad_annotation("what the annotation holds is no value of a label")
    return value


def _find_label(labels: Any, name: str) -> str:
    """The value of one label in a comma-separated list."""
    pairs = labels.split(",") if isinstance(labels, str) else []
    parts = (pair.partition("=") for pair in pairs)
    return next((value.strip() for key, _, value in parts if key.strip() == name), "")
