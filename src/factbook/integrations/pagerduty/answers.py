"""Types of PagerDuty's answers; an answer of another form is rejected on decoding.

Fields that its API description or its samples omit, or show as null, may be absent or null here.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Final
from urllib.parse import urlencode

import msgspec
from msgspec import UNSET, Meta, UnsetType

from factbook.clock import SECOND
from factbook.outbound.client import HttpClient
from factbook.outbound.outcomes import UNUSABLE, Answer, Missing, Outcome

BAD_KEY: Final = Missing(Outcome.DENIED, "the key is not one of PagerDuty's")
BEYOND: Final = Missing(Outcome.TRANSIENT, "beyond what PagerDuty lists")
HEADERS: Final = {
    "accept": "application/vnd.pagerduty+json;version=2",
    # PagerDuty wants it even where there is no body.
    "content-type": "application/json",
}
PAGE: Final = 100
# No page may go beyond this one of a list.
MOST_LISTED: Final = 10_000

# Larger numbers are none that a reader of JSON can be trusted with.
_LARGEST: Final = 2**53
Count = Annotated[int, Meta(ge=0, le=_LARGEST)]
Mean = Annotated[float, Meta(ge=0, le=_LARGEST)] | None
Moment = Annotated[datetime, Meta(tz=True)]


class Reference(msgspec.Struct):
    """Reference to an object by its id."""

    id: str


class Service(msgspec.Struct):
    """Service as in listings; policy and teams may be null, but their absence is noticed."""

    id: str
    escalation_policy: Reference | UnsetType | None = UNSET
    teams: list[Reference] | UnsetType | None = UNSET
    description: str | None = None
    alert_creation: str | None = None


class AnalyticsRow(msgspec.Struct):
    """Analytics of a service's incidents in a window, or of those of one of its teams."""

    total_incident_count: Count
    mean_seconds_to_resolve: Mean = None
    mean_seconds_to_first_ack: Mean = None
    total_incidents_acknowledged: Count | None = None
    up_time_pct: Annotated[float, Meta(ge=0, le=100)] | None = None


class Incident(msgspec.Struct):
    """Incident as in listings."""

    id: str
    created_at: Moment
    service: Reference | None
    status: str
    resolved_at: Moment | None = None
    last_status_change_at: Moment | None = None

    @property
    def is_resolved(self) -> bool:
        """True if it is over."""
        return self.status == "resolved" or self.resolved_at is not None

    @property
    def ended_at(self) -> datetime | None:
        """The end of a resolved incident, which cannot change any more; None if it is not given."""
        return self.resolved_at or self.last_status_change_at


def missing_of(answer: Answer) -> Missing:
    """The reason that a failed answer provided no data."""
    return BAD_KEY if answer.status == 401 else answer.missing


def stamp(milliseconds: int) -> str:
    """A time in PagerDuty's format, to the second."""
    return datetime.fromtimestamp(milliseconds // SECOND, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


async def get(
    client: HttpClient, target: str, query: Sequence[tuple[str, str | int]] = ()
) -> Answer:
    """Send a GET request; a key of the query may occur several times."""
    address = f"{target}?{urlencode(query)}" if query else target
    return await client.get(address, headers=HEADERS, budget="rest")


async def post(client: HttpClient, target: str, body: Mapping[str, Any]) -> Answer:
    """Send a request to analytics, which may have a limit of its own."""
    return await client.post(target, json=body, headers=HEADERS, budget="analytics")


async def pages(
    client: HttpClient, member: str, query: Sequence[tuple[str, str | int]]
) -> AsyncIterator[list[Any] | Missing]:
    """The pages of the list of this name; a final Missing is the reason that reading stopped early.

    It is BEYOND if the list continues past the last page that may be requested.
    """
    offset = 0
    while offset + PAGE <= MOST_LISTED:
        paging = [("limit", PAGE), ("offset", offset)]
        answer = await get(client, f"/{member}", [*query, *paging])
        if not answer.ok:
            yield missing_of(answer)
            return
        page = answer.data if isinstance(answer.data, dict) else {}
        items, more = page.get(member), page.get("more")
        if not isinstance(items, list) or not isinstance(more, bool) or (more and not items):
            yield UNUSABLE
            return
        yield items
        if not more:
            return
        # Not the limit that was asked for: the server may have a smaller one.
        offset += len(items)
    yield BEYOND
