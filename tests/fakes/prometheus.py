"""A Prometheus and its Alertmanager: the answers to the queries that the integration puts.

Alerts are firing from a moment to another, exactly; that a real one looks at samples is left to
the tests with a real one.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from factbook.clock import SECOND, Clock
from tests.fakes.fake import Fake
from tests.fakes.faults import as_json

ALERTMANAGER = "alerts.example.com"

_EVENTS = re.compile(
    r"\(\(group by \((\w+), alertname\) \(ALERTS{(?P<one>.*?)}(?P<offset> offset \d+s)?\)\) unless "
    r"\(group by \(\1, alertname\) \(ALERTS{(?P<other>.*?)}(?: offset \d+s)?\)\)\)"
    r"\[(?P<window>\d+)s:(?P<step>\d+)s\]"
)
_UP = re.compile(
    r"100 \* sum by \((\w+)\) "
    r"\(sum_over_time\((?P<metric>\w+){(?P<one>.*)}\[(?P<window>\d+)s\]\)\) "
    r"/ sum by \(\1\) \(count_over_time\((?P=metric){(?P=one)}\[(?P=window)s\]\)\)"
)
_ANYTHING = re.compile(
    r'count\(count_over_time\({__name__=~"ALERTS\|(?P<metric>\w+)"}\[(?P<window>\d+)s\]\)\)'
)
_MATCHER = re.compile(r'(\w+)(=~|=|!=)("(?:[^"\\]|\\.)*")')


class Episode(NamedTuple):
    """An alert that was firing; moments are in seconds since the epoch."""

    service: str
    alert: str
    began: int
    ended: int
    severity: str = "critical"


@dataclass
class Server:
    """What there is. `oldest` is the first sample; `series` are services beside those of alerts."""

    oldest: int
    episodes: list[Episode] = field(default_factory=list)
    up: dict[str, float] = field(default_factory=dict)
    series: set[str] = field(default_factory=set)
    rules: list[dict[str, Any]] = field(default_factory=list)
    configuration: str = ""
    warnings: list[str] = field(default_factory=list)


def alerting(name: str, annotations: dict[str, str] | None = None, **labels: str) -> dict[str, Any]:
    """An alerting rule as the API shows it."""
    return {
        "type": "alerting", "name": name, "query": "vector(1)", "duration": 0, "labels": labels,
        "annotations": annotations or {}, "alerts": [], "health": "ok", "state": "inactive",
    }  # fmt: skip


def recording(name: str, **labels: str) -> dict[str, Any]:
    """A recording rule as the API shows it."""
    return {
        "type": "recording", "name": name, "query": "vector(1)", "labels": labels, "health": "ok"
    }  # fmt: skip


class FakePrometheus(Fake):
    """Both hosts, told apart by their names; each wants the proof in `wanted`, if there is one.

    `proofs` are the Authorization headers that came, by host.
    """

    def __init__(self, server: Server, *, clock: Clock, **wanted: str) -> None:
        super().__init__()
        self.server = server
        self.clock = clock
        self.wanted = wanted
        self.queries: list[str] = []
        self.proofs: dict[str, set[str | None]] = {}

    def kind(self, request: Request) -> str:
        """The part of a path that says what is asked; of a query, what it is about."""
        if request.url.hostname == ALERTMANAGER:
            return "alertmanager"
        if request.url.path != "/api/v1/query":
            return request.url.path.rpartition("/")[2]
        expression = request.query_params["query"]
        if expression == "vector(1)":
            return "probe"
        if _ANYTHING.fullmatch(expression):
            return "covers"
        if _UP.fullmatch(expression):
            return "up"
        found = _EVENTS.fullmatch(expression)
        assert found, expression
        return "ended" if found["offset"] else "began"

    async def answer(self, request: Request) -> Response:
        """The answer to a request with the right proof."""
        host, proof = str(request.url.hostname), request.headers.get("authorization")
        self.proofs.setdefault(host, set()).add(proof)
        kind = self.kind(request)
        wanted = self.wanted.get("alertmanager" if kind == "alertmanager" else "prometheus")
        if wanted and proof != wanted:
            return Response("Unauthorized", 401)
        if kind == "alertmanager":
            assert request.url.path == "/api/v2/status"
            return as_json({"cluster": {}, "config": {"original": self.server.configuration}})
        if kind == "rules":
            return self._success({"groups": [{"name": "all", "rules": self.server.rules}]})
        if kind == "values":
            return self._success(sorted(self._values(request)))
        if kind == "probe":
            return self._success(_vector([{"metric": {}, "value": [self.clock() / SECOND, "1"]}]))
        return self._success(self._query(kind, request))

    def _success(self, data: Any) -> Response:
        partial = {"warnings": self.server.warnings} if self.server.warnings else {}
        return as_json({"status": "success", "data": data, **partial})

    def _values(self, request: Request) -> Iterator[str]:
        assert int(request.query_params["start"]) < int(request.query_params["end"])
        known = {one.service for one in self.server.episodes} | self.server.series
        for service in known | set(self.server.up):
            if _fits(request.query_params["match[]"], service, ""):
                yield service

    def _query(self, kind: str, request: Request) -> dict[str, Any]:
        expression = request.query_params["query"]
        moment = int(request.query_params["time"])
        assert moment <= self.clock() / SECOND
        self.queries.append(expression)
        if kind == "covers":
            found = [{"metric": {}, "value": [moment, "3"]}]
            return _vector(found if self.server.oldest <= moment else [])
        if kind == "up":
            matched = _UP.fullmatch(expression)
            assert matched
            return _vector(
                {"metric": {matched[1]: service}, "value": [moment, str(value)]}
                for service, value in self.server.up.items()
                if _fits(matched["one"], service, "")
            )
        matched = _EVENTS.fullmatch(expression)
        assert matched
        assert matched["one"] == matched["other"]
        return {"resultType": "matrix", "result": list(self._events(matched, moment))}

    def _events(self, matched: re.Match[str], moment: int) -> Iterator[dict[str, Any]]:
        step, window = int(matched["step"]), int(matched["window"])
        alerts: dict[tuple[str, str], list[Episode]] = {}
        for one in self.server.episodes:
            if _fits(matched["one"], one.service, one.severity):
                alerts.setdefault((one.service, one.alert), []).append(one)
        for (service, alert), episodes in alerts.items():
            edges = (one.ended if matched["offset"] else one.began for one in episodes)
            moments = {
                edge
                for edge in (-(-edge // step) * step for edge in edges)
                if moment - window <= edge <= moment
                and _firing(episodes, edge) is not bool(matched["offset"])
                and _firing(episodes, edge - step) is bool(matched["offset"])
            }
            if moments:
                metric = {matched[1]: service, "alertname": alert}
                yield {"metric": metric, "values": [[edge, "1"] for edge in sorted(moments)]}


def _firing(episodes: list[Episode], moment: int) -> bool:
    return any(one.began <= moment < one.ended for one in episodes)


def _vector(found: Iterable[dict[str, Any]]) -> dict[str, Any]:
    return {"resultType": "vector", "result": list(found)}


def _fits(matchers: str, service: str, severity: str) -> bool:
    """Whether a series with these labels fits all matchers."""
    labels = {"alertstate": "firing", "severity": severity}
    for label, kind, quoted in _MATCHER.findall(matchers):
        value, wanted = labels.get(label, service), ast.literal_eval(quoted)
        if kind == "=~":
            fits = re.fullmatch(wanted, value) is not None
        else:
            fits = (value == wanted) == (kind == "=")
        if not fits:
            return False
    return True
