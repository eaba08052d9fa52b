"""Requests to PagerDuty: types of answers, pages, and the services of an account.

An answer of another form is rejected on decoding. Services are read all of them page by page, or a
few one by one.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Final
from urllib.parse import urlencode

import msgspec
from msgspec import UNSET, Meta, UnsetType

from factbook.clock import SECOND
from factbook.outbound.client import HttpClient, build_path
from factbook.outbound.outcomes import UNUSABLE, Answer, Missing, Outcome, read_as

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


def explain_failed_answer(answer: Answer) -> Missing:
    """The reason that a failed answer provided no data."""
    return BAD_KEY if answer.status == 401 else answer.missing


def format_stamp(milliseconds: int) -> str:
    """A time in PagerDuty's format, to the second."""
    return datetime.fromtimestamp(milliseconds // SECOND, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


async def get_pagerduty(
    client: HttpClient, target: str, query: Sequence[tuple[str, str | int]] = ()
) -> Answer:
    """Send a GET request; a key of the query may occur several times."""
    address = f"{target}?{urlencode(query)}" if query else target
    return await client.get(address, headers=HEADERS, budget="rest")


async def post_pagerduty(client: HttpClient, target: str, body: Mapping[str, Any]) -> Answer:
    """Send a request to analytics, which may have a limit of its own."""
    return await client.post(target, json=body, headers=HEADERS, budget="analytics")


async def iterate_pages(
    client: HttpClient, member: str, query: Sequence[tuple[str, str | int]]
) -> AsyncIterator[list[Any] | Missing]:
    """The pages of the list of this name; a final Missing is the reason that reading stopped early.

    It is BEYOND if the list continues past the last page that may be requested.
    """
    offset = 0
    while offset + PAGE <= MOST_LISTED:
        paging = [("limit", PAGE), ("offset", offset)]
        answer = await get_pagerduty(client, f"/{member}", [*query, *paging])
        if not answer.ok:
            yield explain_failed_answer(answer)
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


# So many are asked for one by one rather than by a listing of unknown length.
FEW: Final = 5
# So many that a listing did not show are asked for one by one: it shifts while services come and
# go, and an account may have more services than can be listed.
MOST_ALONE: Final = 50
_MOST_FAILURES: Final = 2

NOT_FOUND: Final = Missing(Outcome.NOT_FOUND, "no service of this id in the account")
Services = dict[str, Service | Missing]


async def get_services(client: HttpClient, targets: Sequence[str]) -> Services:
    """Each target's service, or the reason for its absence."""
    listed, end = Services(), None
    if len(targets) > FEW:
        listed, end = await _list_services(client)
    found = {target: listed[target] for target in targets if target in listed}
    if end not in {None, BEYOND}:
        return found | {target: end for target in targets if target not in found}
    return found | await _get_services_alone(
        client, [one for one in targets if one not in found], end
    )


async def _list_services(client: HttpClient) -> tuple[Services, Missing | None]:
    """The services by id, and the reason that there are more of them, if there are.

    A listing ends after 10,000. One in the opposite order shows as many from the other end.
    """
    found = Services()
    for order in ("name:asc", "name:desc"):
        end: Missing | None = None
        async for page in iterate_pages(client, "services", [("sort_by", order)]):
            if isinstance(page, Missing):
                end = page
                break
            new = _index_services(page)
            if None in new:
                return found, UNUSABLE
            if order == "name:desc" and new.keys() <= found.keys():
                return found, None
            found |= {id_: one for id_, one in new.items() if id_ is not None}
        if end is not BEYOND:
            return found, end
    return found, BEYOND


def _index_services(page: list[Any]) -> dict[str | None, Service | Missing]:
    """The services of a page by id; None is the key of one whose id cannot be read."""
    found: dict[str | None, Service | Missing] = {}
    for item in page:
        named = read_as(item, Reference)
        found[None if isinstance(named, Missing) else named.id] = read_as(item, Service)
    return found


async def _get_services_alone(
    client: HttpClient, targets: Sequence[str], end: Missing | None
) -> Services:
    """The services requested one by one, as far as their number allows."""
    found = Services()
    failures = 0
    for target in targets[:MOST_ALONE]:
        one = found[target] = await _get_service(client, target)
        if not isinstance(one, Missing):
            continue
        failures += one.outcome is Outcome.TRANSIENT
        if one.outcome is Outcome.RATE_LIMITED or one == BAD_KEY or failures == _MOST_FAILURES:
            return found | dict.fromkeys(targets[len(found) :], one)
    return found | dict.fromkeys(targets[MOST_ALONE:], end or NOT_FOUND)


async def _get_service(client: HttpClient, target: str) -> Service | Missing:
    answer = await get_pagerduty(client, build_path("services", target))
    if answer.outcome is Outcome.NOT_FOUND:
        return NOT_FOUND
    if not answer.ok:
        return explain_failed_answer(answer)
    data = answer.data if isinstance(answer.data, dict) else {}
    service = read_as(data.get("service"), Service)
    if isinstance(service, Service) and service.id != target:
        return UNUSABLE
    return service
