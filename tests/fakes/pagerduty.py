"""A PagerDuty account: services, incidents, analytics made of them, a key and its limit."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from statistics import fmean
from typing import Any, Final, NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from factbook.clock import DAY, MINUTE, SECOND, Clock, iso
from tests.fakes.fake import Fake, path_of
from tests.fakes.faults import as_json

ANALYTICS: Final = "/analytics/metrics/incidents/services"
MOST_LISTED: Final = 10_000
_BAD_REQUEST: Final = "Invalid Input Provided"


@dataclass
class Service:
    """A service; `teams` are ids, `named` a part of its name by which it is sorted."""

    id: str
    description: str | None = None
    policy: str | None = "PPOLICY"
    teams: Sequence[str] = ()
    alert_creation: str | None = "create_alerts_and_incidents"
    named: str = ""

    def render(self) -> dict[str, Any]:
        """As listings show it: what is not set is left out, but a policy that is gone is null."""
        found: dict[str, Any] = {
            **_reference(self.id, "service"),
            "name": f"Service {self.named}",
            "status": "active",
            "created_at": iso(0),
            "escalation_policy": self.policy
            and _reference(self.policy, "escalation_policy_reference"),
            "teams": [_reference(team, "team_reference") for team in self.teams],
            "description": self.description,
            "alert_creation": self.alert_creation,
        }
        return {k: v for k, v in found.items() if v is not None or k == "escalation_policy"}


@dataclass
class Incident:
    """An incident; times are milliseconds since the epoch, None when it did not come to that.

    `shown_end` is what is said of its end, and `changed_at` of its last change.
    """

    service: str
    created_at: int
    resolved_at: int | None = None
    acknowledged_at: int | None = None
    is_major: bool = False
    team: str | None = None
    shown_end: int | None = 0
    changed_at: int | None = None

    def render(self, number: int) -> dict[str, Any]:
        """As listings show it."""
        resolved = self.resolved_at is not None
        end = self.resolved_at if self.shown_end == 0 else self.shown_end
        return {
            **_reference(f"Q{number:013d}", "incident"),
            "incident_number": number,
            "title": "The server is on fire.",
            "created_at": _stamp(self.created_at),
            "status": "resolved" if resolved else "triggered",
            "service": _reference(self.service, "service_reference"),
            "resolved_at": _stamp(end) if end else None,
            "last_status_change_at": _stamp(self.changed_at) if self.changed_at else None,
            "urgency": "high",
        }


@dataclass
class Key:
    """A key and what it may do. A `user`'s has to say what it wants of analytics."""

    value: str
    reads: set[str] = field(default_factory=lambda: {"services", "incidents", "analytics"})
    is_users: bool = False
    plan_has_analytics: bool = True
    limit: int = 960
    used: int = 0


class Exchange(NamedTuple):
    """One request, and what was answered."""

    method: str
    path: str
    query: list[tuple[str, str]]
    headers: Mapping[str, str]
    sent: Any
    status: int
    body: Any


class FakePagerDuty(Fake):
    """One account. `requests` counts services, service, analytics and incidents.

    `exchanges` are all that came and was answered. `page` is the longest page.
    """

    def __init__(
        self,
        services: Iterable[Service],
        incidents: Iterable[Incident],
        key: Key,
        *,
        clock: Clock,
        seconds: float = 0,
    ) -> None:
        super().__init__(seconds=seconds)
        self.services = sorted(services, key=lambda one: one.named)
        self.incidents = sorted(incidents, key=lambda one: one.created_at)
        self.key = key
        self.page = 100
        self.exchanges: list[Exchange] = []
        self._clock = clock

    def kind(self, request: Request) -> str:
        """As `requests` counts it."""
        path = path_of(request)
        if path.startswith("/services/"):
            return "service"
        return {"/services": "services", "/incidents": "incidents", ANALYTICS: "analytics"}.get(
            path, "other"
        )

    async def answer(self, request: Request) -> Response:
        """What the account says, within the rights and the limit of the key."""
        sent = msgspec.json.decode(await request.body() or b"null")
        status, body = self._said(request, sent)
        response = as_json(body, status, self._limits())
        query = request.query_params.multi_items()
        path, headers = path_of(request), dict(request.headers)
        self.exchanges.append(Exchange(request.method, path, query, headers, sent, status, body))
        return response

    def _said(self, request: Request, sent: Any) -> tuple[int, Any]:
        kind = self.kind(request)
        if refusal := self._refused(request, kind):
            return refusal
        if kind == "analytics":
            return self._analytics(sent["filters"])
        if kind == "service":
            return self._service(path_of(request).rpartition("/")[2])
        query = request.query_params.multi_items()
        return self._listed(kind, dict(query), {v for k, v in query if k == "service_ids[]"})

    def _refused(self, request: Request, kind: str) -> tuple[int, Any] | None:
        key, right = self.key, "services" if kind == "service" else kind
        if request.headers.get("authorization") != f"Token token={key.value}":
            return _refusal(401, "Invalid Credentials")
        if key.used >= key.limit:
            return _refusal(429, "Rate Limit Exceeded")
        key.used += 1
        if kind == "other" or (request.method == "POST") != (kind == "analytics"):
            return _refusal(404, "Not Found")
        if kind == "analytics" and not key.plan_has_analytics:
            return _refusal(402, "Account is missing required abilities")
        return None if right in key.reads else _refusal(403, "Access Denied")

    def _service(self, id_: str) -> tuple[int, Any]:
        for one in self.services:
            if one.id == id_:
                return 200, {"service": one.render()}
        return _refusal(404, "Not Found")

    def _listed(self, kind: str, query: dict[str, str], ids: set[str]) -> tuple[int, Any]:
        limit, offset = int(query.get("limit", 25)), int(query.get("offset", 0))
        if limit + offset > MOST_LISTED:
            return _refusal(400, _BAD_REQUEST)
        limit = min(limit, self.page)
        if kind == "services":
            step = -1 if query["sort_by"] == "name:desc" else 1
            every: list[Any] = self.services[::step]
            shown = [one.render() for one in every[offset : offset + limit]]
        else:
            if "since" not in query:  # of the last month, as documented
                return 200, {kind: [], "limit": limit, "offset": 0, "more": False, "total": None}
            since, until = _moment(query["since"]), _moment(query["until"])
            if until - since > 181 * DAY or query["sort_by"] != "created_at:asc":
                return _refusal(400, _BAD_REQUEST)
            start, end = (bisect_left(self.incidents, at, key=_created) for at in (since, until))
            every = [i for i in range(start, end) if not ids or self.incidents[i].service in ids]
            shown = [self.incidents[i].render(i) for i in every[offset : offset + limit]]
        more = offset + limit < len(every)
        paging = {"limit": limit, "offset": offset, "more": more, "total": None}
        return 200, {kind: shown, **paging}

    def _analytics(self, filters: dict[str, Any]) -> tuple[int, Any]:
        start, end = _moment(filters["created_at_start"]), _moment(filters["created_at_end"])
        if end - start > 365 * DAY or (self.key.is_users and "service_ids" not in filters):
            return _refusal(400, _BAD_REQUEST)
        ids = set(filters.get("service_ids", ()))
        groups: dict[tuple[str, str | None], list[Incident]] = {}
        for one in self.incidents:
            if start <= one.created_at < end and (not ids or one.service in ids):
                groups.setdefault((one.service, one.team), []).append(one)
        rows = [_row(id_, team, found, end - start) for (id_, team), found in groups.items()]
        return 200, {"data": rows, "filters": filters, "time_zone": "Etc/UTC"}

    def _limits(self) -> dict[str, str]:
        seconds = 60 - self._clock() % MINUTE // SECOND
        left = max(self.key.limit - self.key.used, 0)
        names = {"limit": self.key.limit, "remaining": left, "reset": seconds}
        return {f"ratelimit-{name}": str(value) for name, value in names.items()}


def _row(id_: str, team: str | None, found: list[Incident], window: int) -> dict[str, Any]:
    acknowledged = [one for one in found if one.acknowledged_at is not None]
    major = [one.resolved_at - one.created_at for one in found if one.resolved_at and one.is_major]
    row = {
        "service_id": id_,
        "service_name": f"Service {id_}",
        "team_id": team,
        "total_incident_count": len(found),
        "total_incidents_acknowledged": len(acknowledged),
        "mean_seconds_to_resolve": _mean(found, "resolved_at"),
        "mean_seconds_to_first_ack": _mean(found, "acknowledged_at"),
        "up_time_pct": 100 - 100 * sum(major) / window,
    }
    return {**_OTHER_FIGURES, **row}


# A row has many more, which nobody asks for; they make its size.
_OTHER_FIGURES: Final = dict.fromkeys(
    (
        *("mean_assignment_count", "mean_engaged_seconds", "mean_engaged_user_count"),
        *("mean_seconds_to_engage", "mean_seconds_to_mobilize", "total_engaged_seconds"),
        *("mean_user_defined_engaged_seconds", "total_business_hour_interruptions"),
        *("total_escalation_count", "total_incidents_auto_resolved", "total_interruptions"),
        *("total_incidents_manual_escalated", "total_incidents_reassigned"),
        *("total_incidents_timeout_escalated", "total_notifications", "total_snoozed_seconds"),
        *("total_off_hour_interruptions", "total_sleep_hour_interruptions"),
        "total_user_defined_engaged_seconds",
    ),
    1,
)


def _mean(found: list[Incident], name: str) -> int | None:
    """Whole seconds, as PagerDuty gives them; null when there is nothing to take it of."""
    return round(fmean(times)) if (times := list(_times(found, name))) else None


def _times(found: list[Incident], name: str) -> Iterator[float]:
    for one in found:
        if (end := getattr(one, name)) is not None:
            yield (end - one.created_at) / SECOND


def _reference(id_: str, type_: str) -> dict[str, Any]:
    plural = type_.removesuffix("_reference")
    return {"id": id_, "type": type_, "self": f"https://api.pagerduty.com/{plural}s/{id_}"}


def _refusal(status: int, message: str) -> tuple[int, Any]:
    return status, {"error": {"message": message, "code": 2000 + status}}


def _created(incident: Incident) -> int:
    return incident.created_at


def _moment(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp()) * SECOND


def _stamp(moment: int) -> str:
    return iso(moment).replace(".000+00:00", "Z")
