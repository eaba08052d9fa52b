"""Settings of a Prometheus instance, its HTTP API, and the status and alert routes of Alertmanager.

Answers of both are validated.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Generic, Literal, NamedTuple, TypeVar

import msgspec
import yaml
from msgspec import Meta

from factbook import safe_yaml, user_patterns
from factbook.errors import InputError
from factbook.integrations.integration import (
    InstanceOptions,
    get_annotations,
    report_bad_annotation,
    report_no_annotation,
)
from factbook.outbound.client import HttpClient, build_path
from factbook.outbound.outcomes import UNUSABLE, Answer, Missing, Outcome
from factbook.settings.option_tables import about, is_web_address
from factbook.user_patterns import UserPattern

SERVICE: Final = "prometheus.io/service"
# Portals filter alerts by these labels: `service=checkout,env=production`.
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

    Any printable character is allowed, as queries quote the value.
    """
    annotations = get_annotations(entity)
    service = annotations.get(SERVICE)
    if not service:
        labels = annotations.get(LABELS)
        pairs = labels.split(",") if isinstance(labels, str) else []
        parts = (pair.partition("=") for pair in pairs)
        service = next((text for key, _, text in parts if key.strip() == options.label), "")
    if not isinstance(service, str) or not service.strip():
        return report_no_annotation("no value of the service's label")
    value = service.strip()
    if len(value) > LONGEST or not value.isprintable():
        return report_bad_annotation("what the annotation holds is no value of a label")
    return value


Data = TypeVar("Data")
Labels = dict[str, str]

_PARTIAL: Final = Missing(Outcome.TRANSIENT, "answered with warnings, so perhaps in part")
_ELSEWHERE: Final = Missing(Outcome.TRANSIENT, "answered 404; is the address the right one?")
_TOO_MUCH: Final = Missing(Outcome.TRANSIENT, "refused the query; a longer resolution asks less")


class Sample(msgspec.Struct):
    """Value of a series at one time."""

    metric: Labels
    value: tuple[float, str]


class Series(msgspec.Struct):
    """Values of a series at many times, in seconds since the epoch."""

    metric: Labels
    values: list[tuple[float, str]]


class PrometheusRule(msgspec.Struct):
    """Rule of type `alerting` or `recording`."""

    name: str
    type: str
    labels: Labels = {}
    annotations: Labels = {}

    @property
    def is_alerting(self) -> bool:
        """True if it is an alerting rule."""
        return self.type == "alerting"

    def label(self, name: str) -> str:
        """A label's value; empty if it is absent or a template over the rule's result."""
        value = self.labels.get(name, "").strip()
        return "" if "{{" in value else value


class _RuleGroup(msgspec.Struct):
    rules: list[PrometheusRule]


class _Groups(msgspec.Struct):
    groups: list[_RuleGroup]


class _Result(msgspec.Struct, Generic[Data]):
    result: list[Data]


class _Success(msgspec.Struct, Generic[Data]):
    status: Literal["success"]
    data: Data
    warnings: list[Any] | None = None


class _AlertmanagerConfig(msgspec.Struct):
    original: Annotated[str, Meta(max_length=1024 * 1024)]


class _Status(msgspec.Struct):
    config: _AlertmanagerConfig


class PrometheusApi:
    """Client for the API of a Prometheus instance."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client

    async def samples(self, expression: str, moment: int) -> list[Sample] | Missing:
        """The value of an expression at a time, in seconds since the epoch."""
        answer = await self._query(expression, moment)
        found = _validate_answer(answer, _Result[Sample])
        return found if isinstance(found, Missing) else found.result

    async def series(self, expression: str, moment: int) -> list[Series] | Missing:
        """The values of an expression over a range that ends at the time."""
        answer = await self._query(expression, moment)
        found = _validate_answer(answer, _Result[Series])
        return found if isinstance(found, Missing) else found.result

    async def values(self, label: str, matcher: str, since: int, until: int) -> set[str] | Missing:
        """The values of a label in the matching series, between two times."""
        query: dict[str, str | int] = {"match[]": f"{{{matcher}}}", "start": since, "end": until}
        found = _validate_answer(
            await self._client.get(f"/api/v1{build_path('label', label, 'values')}", query=query),
            list[str],
        )
        return found if isinstance(found, Missing) else set(found)

    async def rules(self) -> list[PrometheusRule] | Missing:
        """All rules, without their current alerts if the server supports leaving them out."""
        query = {"exclude_alerts": "true"}
        found = _validate_answer(await self._client.get("/api/v1/rules", query=query), _Groups)
        if isinstance(found, Missing):
            return found
        return [rule for group in found.groups for rule in group.rules]

    async def _query(self, expression: str, moment: int) -> Answer:
        query: dict[str, str | int] = {"query": expression, "time": moment}
        return await self._client.get("/api/v1/query", query=query)


async def get_alertmanager_configuration(client: HttpClient) -> str | Missing:
    """The configuration of a running Alertmanager, in YAML, without its secrets."""
    answer = await client.get("/api/v2/status")
    if not answer.ok:
        return _explain_failed_answer(answer)
    found = answer.read_as(_Status)
    return found if isinstance(found, Missing) else found.config.original


def _validate_answer(answer: Answer, type_: type[Data]) -> Data | Missing:
    """The data of an answer, or the reason that they are missing. Partial answers are failures."""
    if not answer.ok:
        return _explain_failed_answer(answer)
    found = answer.read_as(_Success[type_])  # type: ignore[valid-type]
    if isinstance(found, Missing):
        return found
    return _PARTIAL if found.warnings else found.data


def _explain_failed_answer(answer: Answer) -> Missing:
    """The reason for a failed answer. "Not found" refers to the URL here, never to a service."""
    if answer.outcome is Outcome.NOT_FOUND:
        return _ELSEWHERE
    return _TOO_MUCH if answer.status == 422 else answer.missing


MOST_NESTED: Final = 100
LONGEST_CONFIGURATION: Final = 256 * 1024

_QUOTED: Final = r'(?P<q>"?)(?P<label>[^=!~"\s]+)(?P=q)\s*(?P<kind>=~|!~|!=|=)\s*"(?P<value>.*)"'
_BARE: Final = r'(?P<label>[^=!~"\s]+)\s*(?P<kind>=~|!~|!=|=)\s*(?P<value>[^"]*)'
_MATCHERS: Final = (re.compile(_QUOTED, re.DOTALL), re.compile(_BARE))
_ESCAPED: Final = re.compile(r'\\([n"\\])')


class UnreadableRoutingError(Exception):
    """The configuration, or a matcher in it, is not understood."""


class _Matcher(NamedTuple):
    """Label matcher; `pattern` is None if the value is compared literally."""

    label: str
    is_positive: bool
    value: str
    pattern: UserPattern | None = None

    def fits(self, labels: Mapping[str, str]) -> bool:
        found = labels.get(self.label, "")
        same = self.pattern.is_whole(found) if self.pattern else found == self.value
        return same is self.is_positive


class _Node(NamedTuple):
    """Node of the routing tree."""

    receiver: str
    matchers: tuple[_Matcher, ...]
    goes_on: bool
    children: "tuple[_Node, ...]"


class Routing(NamedTuple):
    """Routes of a configuration, and the receivers that notify someone."""

    root: _Node
    telling: frozenset[str]

    def leads_on(self, labels: Mapping[str, str]) -> bool:
        """True if an alert reaches a receiver that notifies someone and is not the default one."""
        wanted = self.telling - {self.root.receiver}
        return any(receiver in wanted for receiver in _list_reached(self.root, labels))


class _Route(msgspec.Struct, rename={"goes_on": "continue"}):
    receiver: str = ""
    match: dict[str, str] = {}
    match_re: dict[str, str] = {}
    matchers: list[str] = []
    goes_on: bool = False
    routes: list["_Route"] = []


class _Configuration(msgspec.Struct):
    route: _Route
    receivers: list[dict[str, Any]] = []


def read_alert_routes(text: str) -> Routing | Missing:
    """The routes of a configuration in YAML, or the reason that a part of it is not understood.

    Patterns are in RE2 syntax.
    """
    try:
        if len(text) > LONGEST_CONFIGURATION:
            return UNUSABLE
        safe_yaml.check(text, MOST_NESTED)
        found = msgspec.convert(safe_yaml.load(text), _Configuration)
        telling = frozenset(
            str(one.get("name"))
            for one in found.receivers
            if any(str(name).endswith("_configs") and found for name, found in one.items())
        )
        return Routing(_make_node(found.route, ""), telling)
    except (yaml.YAMLError, msgspec.ValidationError, UnreadableRoutingError, ValueError):
        return UNUSABLE


def _make_node(route: _Route, inherited: str) -> _Node:
    """A node of the tree; a route without a receiver inherits its parent's."""
    receiver = route.receiver or inherited
    matchers = (
        *(_make_matcher(label, "=", value) for label, value in route.match.items()),
        *(_make_matcher(label, "=~", value) for label, value in route.match_re.items()),
        *map(_parse_matcher, route.matchers),
    )
    children = tuple(_make_node(child, receiver) for child in route.routes)
    return _Node(receiver, matchers, route.goes_on, children)


def _parse_matcher(text: str) -> _Matcher:
    found = next(filter(None, (form.fullmatch(text.strip()) for form in _MATCHERS)), None)
    if found is None:
        raise UnreadableRoutingError
    value = _ESCAPED.sub(lambda one: "\n" if one[1] == "n" else one[1], found["value"])
    return _make_matcher(found["label"], found["kind"], value)


def _make_matcher(label: str, kind: str, value: str) -> _Matcher:
    pattern = None
    if kind.endswith("~"):
        try:
            pattern = user_patterns.compile_whole(value)
        except InputError:
            raise UnreadableRoutingError from None
    return _Matcher(label, kind.startswith("="), value, pattern)


def _list_reached(node: _Node, labels: Mapping[str, str]) -> Iterator[str]:
    """The receivers of the deepest matching routes below a node that an alert has reached."""
    deeper = False
    for child in node.children:
        if not all(matcher.fits(labels) for matcher in child.matchers):
            continue
        deeper = True
        yield from _list_reached(child, labels)
        if not child.goes_on:
            break
    if not deeper:
        yield node.receiver
