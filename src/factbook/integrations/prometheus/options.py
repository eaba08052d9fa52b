"""Settings of a Prometheus instance, and the service there that annotations name."""

import re
from typing import Annotated, Final
from urllib.parse import urlsplit

import msgspec

from factbook.errors import ConfigurationError
from factbook.settings.option_tables import about

LONGEST_RESOLUTION: Final = 3_600
_LABEL: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]{0,99}", re.ASCII)
_METRIC: Final = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]{0,199}", re.ASCII)
_HOSTS: Final = ("", "alertmanager_")


class PrometheusOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
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
    ] = []
    severity_label: Annotated[str, about("Label that holds an alert's severity.")] = "severity"
    team_label: Annotated[str, about("Label that names the team of an alerting rule.")] = "team"
    up_metric: Annotated[
        str, about("Metric that is 1 while a target of the service is up, otherwise 0.")
    ] = "up"
    resolution: Annotated[
        int,
        about("Seconds between the moments at which it is looked whether an alert was firing."),
    ] = 60

    def __post_init__(self) -> None:
        for problem in _problems(self):
            raise ConfigurationError(problem)

    def __repr__(self) -> str:
        """Without the secrets."""
        return f"Options(base_url={self.base_url!r}, alertmanager_url={self.alertmanager_url!r})"


def _problems(options: PrometheusOptions) -> list[str]:
    problems = []
    if not _is_address(options.base_url):
        problems.append("base_url has to be like https://prometheus.example.com")
    if options.alertmanager_url and not _is_address(options.alertmanager_url):
        problems.append("alertmanager_url has to be like https://alertmanager.example.com")
    for host in _HOSTS:
        problems += _problems_of_user(options, host)
    for name in ("label", "severity_label", "team_label"):
        if not _LABEL.fullmatch(getattr(options, name)):
            problems.append(f"{name} has to be the name of a label, such as service")
    if not _METRIC.fullmatch(options.up_metric):
        problems.append("up_metric has to be the name of a metric, such as up")
    if not 1 <= options.resolution <= LONGEST_RESOLUTION:
        problems.append(f"resolution has to be from 1 to {LONGEST_RESOLUTION}")
    return problems


def _problems_of_user(options: PrometheusOptions, host: str) -> list[str]:
    token, username, password = (
        getattr(options, f"{host}{name}") for name in ("token", "username", "password")
    )
    problems = []
    if token and (username or password):
        problems.append(f"{host}token and {host}username exclude each other")
    if bool(username) != bool(password):
        problems.append(f"{host}username and {host}password are needed, both")
    if ":" in username:
        problems.append(f"{host}username cannot have a colon")
    return problems


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    plain = bool(parts.hostname) and "@" not in parts.netloc and not parts.query
    return parts.scheme in {"https", "http"} and plain
