"""HTTP API of Prometheus, and the status of Alertmanager, with validated answers.

Source: Prometheus' documentation of its HTTP API, version 1; Alertmanager's API description,
version 2.
"""

from typing import Annotated, Any, Final, Generic, Literal, TypeVar

import msgspec
from msgspec import Meta

from factbook.outbound.client import HttpClient, build_path
from factbook.outbound.outcomes import Answer, Missing, Outcome

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
    """Rule as it is evaluated: `alerting` or `recording`."""

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
        found = _read(answer, _Result[Sample])
        return found if isinstance(found, Missing) else found.result

    async def series(self, expression: str, moment: int) -> list[Series] | Missing:
        """The values of an expression over a range that ends at the time."""
        answer = await self._query(expression, moment)
        found = _read(answer, _Result[Series])
        return found if isinstance(found, Missing) else found.result

    async def values(self, label: str, matcher: str, since: int, until: int) -> set[str] | Missing:
        """The values of a label in the matching series, between two times."""
        query: dict[str, str | int] = {"match[]": f"{{{matcher}}}", "start": since, "end": until}
        found = _read(
            await self._client.get(f"/api/v1{build_path('label', label, 'values')}", query=query),
            list[str],
        )
        return found if isinstance(found, Missing) else set(found)

    async def rules(self) -> list[PrometheusRule] | Missing:
        """All rules, without their current alerts if the server supports leaving them out."""
        query = {"exclude_alerts": "true"}
        found = _read(await self._client.get("/api/v1/rules", query=query), _Groups)
        if isinstance(found, Missing):
            return found
        return [rule for group in found.groups for rule in group.rules]

    async def _query(self, expression: str, moment: int) -> Answer:
        query: dict[str, str | int] = {"query": expression, "time": moment}
        return await self._client.get("/api/v1/query", query=query)


async def configuration(client: HttpClient) -> str | Missing:
    """The configuration of a running Alertmanager, in YAML, without its secrets."""
    answer = await client.get("/api/v2/status")
    if not answer.ok:
        return _missing(answer)
    found = answer.read_as(_Status)
    return found if isinstance(found, Missing) else found.config.original


def _read(answer: Answer, type_: type[Data]) -> Data | Missing:
    """The data of a good answer, or the reason for their absence. A partial one is a failure."""
    if not answer.ok:
        return _missing(answer)
    found = answer.read_as(_Success[type_])  # type: ignore[valid-type]
    if isinstance(found, Missing):
        return found
    return _PARTIAL if found.warnings else found.data


def _missing(answer: Answer) -> Missing:
    """The reason for a failed answer. "Not found" refers to the URL here, never to a service."""
    if answer.outcome is Outcome.NOT_FOUND:
        return _ELSEWHERE
    return _TOO_MUCH if answer.status == 422 else answer.missing
