"""A Datadog: monitors and objectives, keys with rights, limits in calendar-aligned periods."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from factbook.clock import SECOND, Clock
from tests.fakes.fake import Fake
from tests.fakes.faults import as_json

Headers = Mapping[str, str]

KINDS: Final = {"/api/v1/monitor": "monitors", "/api/v1/slo": "slos"}
PERIOD: Final = 3600


class Monitor(NamedTuple):
    """A monitor; `tags` are written as they are here."""

    id: int
    tags: tuple[str, ...] = ()


class Objective(NamedTuple):
    """An objective; `monitor_tags` are those of its monitors, None when it has none."""

    id: str
    tags: tuple[str, ...] = ()
    monitor_tags: tuple[str, ...] | None = None


@dataclass
class Keys:
    """A pair of keys, what it may read, and how often it may ask in a period, by kind."""

    api: str
    application: str
    reads: set[str] = field(default_factory=lambda: set(KINDS.values()))
    limit: int = 1000
    used: dict[str, int] = field(default_factory=dict)


class Exchange(NamedTuple):
    """One request, and what was answered."""

    path: str
    query: list[tuple[str, str]]
    headers: Headers
    status: int
    body: Any


class FakeDatadog(Fake):
    """The two listings of one organization; `exchanges` are all that came and was answered."""

    def __init__(
        self,
        monitors: Iterable[Monitor],
        objectives: Iterable[Objective],
        keys: Keys,
        *,
        clock: Clock,
    ) -> None:
        super().__init__()
        self.monitors = list(monitors)
        self.objectives = list(objectives)
        self.keys = keys
        self.exchanges: list[Exchange] = []
        self._clock = clock

    def kind(self, request: Request) -> str:
        """The listing that is asked for."""
        return KINDS.get(request.url.path, "other")

    async def answer(self, request: Request) -> Response:
        """A page, or why there is none."""
        response = self._answer(request)
        self.exchanges.append(
            Exchange(
                request.url.path,
                request.query_params.multi_items(),
                dict(request.headers),
                response.status_code,
                msgspec.json.decode(bytes(response.body)),
            )
        )
        return response

    def _answer(self, request: Request) -> Response:
        kind = self.kind(request)
        if kind == "other" or request.method != "GET":
            return as_json({"errors": ["Not found"]}, 404)
        given = [request.headers.get(name) for name in ("dd-api-key", "dd-application-key")]
        if None in given:
            return as_json({"errors": ["Unauthorized"]}, 401)
        if given != [self.keys.api, self.keys.application]:
            return as_json({"errors": ["Forbidden"]}, 403)
        if kind not in self.keys.reads:
            errors = ["Forbidden", "Failed permission authorization checks"]
            return as_json({"errors": errors}, 403)
        used = self.keys.used.get(kind, 0) + 1
        headers = self._limits(kind, max(self.keys.limit - used, 0))
        if used > self.keys.limit:
            return as_json({"errors": ["Too many requests"]}, 429, headers)
        self.keys.used[kind] = used
        query = request.query_params
        body = self._monitors(query) if kind == "monitors" else self._objectives(query)
        return as_json(body, headers=headers)

    def _limits(self, kind: str, remaining: int) -> dict[str, str]:
        seconds = PERIOD - self._clock() // SECOND % PERIOD
        names = {
            "limit": self.keys.limit,
            "period": PERIOD,
            "remaining": remaining,
            "reset": seconds,
            "name": kind,
        }
        return {f"x-ratelimit-{name}": str(value) for name, value in names.items()}

    def _monitors(self, query: Mapping[str, str]) -> list[dict[str, Any]]:
        """Everything when no page is named."""
        found = self.monitors
        if "page" in query:
            size = min(int(query.get("page_size", 100)), 1000)
            start = int(query["page"]) * size
            found = found[start : start + size]
        return [_monitor(one) for one in found]

    def _objectives(self, query: Mapping[str, str]) -> dict[str, Any]:
        """The count that is said to be of all that fit is that of the page, as in recordings."""
        start = int(query.get("offset", 0))
        found = self.objectives[start : start + int(query.get("limit", 1000))]
        counts = {"total_count": len(self.objectives), "total_filtered_count": len(found)}
        return {
            "data": [_objective(one) for one in found],
            "errors": [],
            "metadata": {"page": counts},
        }


def _monitor(monitor: Monitor) -> dict[str, Any]:
    return {
        "id": monitor.id,
        "name": f"Monitor {monitor.id}",
        "type": "query alert",
        "query": "avg(last_5m):avg:system.load.1{*} > 5",
        "message": "See @team",
        "tags": list(monitor.tags),
        "deleted": None,
        "overall_state": "OK",
    }


def _objective(objective: Objective) -> dict[str, Any]:
    found: dict[str, Any] = {
        "id": objective.id,
        "name": f"Objective {objective.id}",
        "description": None,
        "type": "metric" if objective.monitor_tags is None else "monitor",
        "tags": list(objective.tags),
        "thresholds": [{"timeframe": "30d", "target": 99.9}],
    }
    if objective.monitor_tags is not None:
        found["monitor_tags"] = list(objective.monitor_tags)
    return found
