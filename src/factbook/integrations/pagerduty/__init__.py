"""PagerDuty: incidents of a service, and the service's set-up for incident response.

All services form one batch, read from a list, or one by one if there are few. Incident figures come
from PagerDuty's analytics, which has a row for each service that had an incident. Without access to
analytics, incidents are counted one by one. Answers in an unexpected form are rejected on decoding.
"""

import re
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any, Final, NamedTuple
from urllib.parse import urlencode

import msgspec
from msgspec import UNSET, Meta, UnsetType

from factbook.clock import DAY, SECOND
from factbook.integrations.integration import (
    Collected,
    Instance,
    InstanceOptions,
    Integration,
    Leaves,
    Probe,
    get_annotations,
    make_vendor,
    report_bad_annotation,
    report_no_annotation,
)
from factbook.outbound.cache import Memory, exceeds_noted_limit, note_exceeded_limit
from factbook.outbound.client import HttpClient, build_path
from factbook.outbound.outcomes import UNUSABLE, Answer, Missing, Outcome, read_as, report_too_many
from factbook.settings.option_tables import about

SERVICE_ID: Final = "pagerduty.com/service-id"
INTEGRATION_KEY: Final = "pagerduty.com/integration-key"
ACCOUNT: Final = "pagerduty.com/account"

# Ids that PagerDuty allows; no other text of an annotation gets into a request.
_ID: Final = re.compile(r"[A-Z0-9]{1,40}", re.ASCII)

_SUBDOMAIN: Final = re.compile(r"(?:[a-z0-9][a-z0-9-]{0,62})?")


class PagerdutyOptions(InstanceOptions, frozen=True, kw_only=True):
    """Account with one key."""

    api_key: Annotated[str, about("Secret. A REST API key.")] = ""
    base_url: Annotated[
        str,
        about(
            "Address of the REST interface. In the EU service region: "
            "`https://api.eu.pagerduty.com`."
        ),
    ] = "https://api.pagerduty.com"
    account: Annotated[
        str,
        about(
            "Subdomain of the account, `acme` of `acme.pagerduty.com`: entities whose annotation "
            "names another one are left out. Empty: the annotation is not looked at."
        ),
    ] = ""

    def problems(self) -> Iterator[str]:
        """The mistakes in the table."""
        if not self.base_url.startswith(("https://", "http://")):
            yield "base_url has to begin with https://"
        if not self.api_key:
            yield "an api_key is needed"
        if not _SUBDOMAIN.fullmatch(self.account):
            yield "account has to be a subdomain in lower case, such as acme"


def find_pagerduty_target(options: PagerdutyOptions, entity: Mapping[str, Any]) -> str | Missing:
    """The id of a service, or the reason that there is none in this account.

    An integration key does not count: PagerDuty cannot look a service up by it.
    """
    known = get_annotations(entity)
    account = known.get(ACCOUNT)
    if (
        options.account
        and account is not None
        and _clean_annotation(account).lower() != options.account
    ):
        return report_no_annotation("an account that is not configured")
    id_ = _clean_annotation(known.get(SERVICE_ID)).upper()
    if _ID.fullmatch(id_):
        return id_
    if SERVICE_ID not in known and INTEGRATION_KEY in known:
        return report_no_annotation(f"an integration key names no service; {SERVICE_ID} does")
    if not id_:
        return report_no_annotation(f"no {SERVICE_ID}")
    return report_bad_annotation(f"{SERVICE_ID} is not the id of a service")


def _clean_annotation(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


BAD_KEY: Final = Missing(Outcome.DENIED, "the key is not one of PagerDuty's")
BEYOND: Final = Missing(Outcome.TRANSIENT, "beyond what PagerDuty lists")
HEADERS: Final = {
    "accept": "application/vnd.pagerduty+json;version=2",
    # PagerDuty requires it even without a body.
    "content-type": "application/json",
}
PAGE: Final = 100
# PagerDuty lists no items beyond this number.
MOST_LISTED: Final = 10_000

# JSON readers may round larger numbers.
_LARGEST: Final = 2**53
Count = Annotated[int, Meta(ge=0, le=_LARGEST)]
Mean = Annotated[float, Meta(ge=0, le=_LARGEST)] | None
Moment = Annotated[datetime, Meta(tz=True)]


class Reference(msgspec.Struct):
    """Reference to an object by its id."""

    id: str


class Service(msgspec.Struct):
    """Service as in listings; policy and teams may be null, but have to be present."""

    id: str
    escalation_policy: Reference | UnsetType | None = UNSET
    teams: list[Reference] | UnsetType | None = UNSET
    description: str | None = None
    alert_creation: str | None = None


class AnalyticsRow(msgspec.Struct):
    """Analytics of a service's incidents in a window, possibly of one of its teams only."""

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
        """True if the incident is resolved."""
        return self.status == "resolved" or self.resolved_at is not None

    @property
    def ended_at(self) -> datetime | None:
        """The end of a resolved incident, whose status is final; None if not reported."""
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
    """The pages of a list; a final Missing is the reason that reading stopped early.

    The reason is BEYOND if the list continues past the last page allowed.
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
        # Not PAGE: the server may use a smaller limit.
        offset += len(items)
    yield BEYOND


# Up to this number, services are requested one by one rather than listed.
FEW: Final = 5
# Services to request one by one if the list lacks them: it shifts while services come and go, and
# an account may have more services than PagerDuty lists.
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
    """The services by id, and the reason if the list is incomplete.

    A list ends after 10,000 services. A second one in reverse order adds as many from the other
    end.
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
    """The services of a page by id; the key is None for a service whose id can't be read."""
    found: dict[str | None, Service | Missing] = {}
    for item in page:
        named = read_as(item, Reference)
        found[None if isinstance(named, Missing) else named.id] = read_as(item, Service)
    return found


async def _get_services_alone(
    client: HttpClient, targets: Sequence[str], end: Missing | None
) -> Services:
    """Request the services one by one, up to `MOST_ALONE`."""
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


MONTH: Final = 30
QUARTER: Final = 90
YEAR: Final = 365
# The longest first, as it fails first if there are too many data.
WINDOWS: Final = (YEAR, QUARTER, MONTH)
# Services per request that has to name them.
PORTION: Final = 1_000

NONE: Final = Missing(Outcome.NOT_APPLICABLE, "nothing in 90 days to take it of")
NO_UPTIME: Final = Missing(Outcome.NOT_APPLICABLE, "PagerDuty gives none for this service")

# Rows by service; Missing if one of them can't be read.
Window = dict[str, list[AnalyticsRow] | Missing]
Windows = dict[int, Window]


class IncidentFigures(NamedTuple):
    """Incident figures of one service, each a value or the reason for its absence."""

    total: int
    quarterly: int
    monthly: int
    to_resolve: float | Missing
    to_first_ack: float | Missing
    uptime: float | Missing


async def get_windows(client: HttpClient, targets: Sequence[str], now: int) -> Windows | Missing:
    """The rows of all windows that end now; if one fails, all do."""
    portions: list[Sequence[str]] = [targets] if len(targets) <= FEW else [()]
    found = Windows()
    for days in WINDOWS:
        window = await _get_window(client, portions, days, now)
        if window is None:
            # User keys have to name the services.
            portions = [targets[i : i + PORTION] for i in range(0, len(targets), PORTION)]
            window = await _get_window(client, portions, days, now)
        if window is None or isinstance(window, Missing):
            return window or UNUSABLE
        found[days] = window
    return found


async def _get_window(
    client: HttpClient, portions: Iterable[Sequence[str]], days: int, now: int
) -> Window | Missing | None:
    """Request a window in portions of services, () for all; None if PagerDuty refuses that."""
    found: Window = {}
    span = {"created_at_start": format_stamp(now - days * DAY), "created_at_end": format_stamp(now)}
    for portion in portions:
        filters = {**span, "service_ids": portion} if portion else span
        body = {"filters": filters, "time_zone": "Etc/UTC"}
        answer = await post_pagerduty(client, "/analytics/metrics/incidents/services", body)
        if answer.status == 400 and not portion:
            return None
        if not answer.ok:
            return explain_failed_answer(answer)
        data = answer.data if isinstance(answer.data, dict) else {}
        rows = data.get("data")
        if not isinstance(rows, list) or not _add_rows(rows, found):
            return UNUSABLE
    return found


def _add_rows(rows: list[Any], window: Window) -> bool:
    """Add the rows to their services; false if a row does not name its service."""
    for item in rows:
        id_ = item.get("service_id", 0) if isinstance(item, dict) else 0
        if id_ is None:
            continue  # not about a service
        if not isinstance(id_, str):
            return False
        row, known = read_as(item, AnalyticsRow), window.setdefault(id_, [])
        if isinstance(row, Missing) or isinstance(known, Missing):
            window[id_] = UNUSABLE
        else:
            known.append(row)
    return True


def make_analytics_figures(found: Windows, target: str) -> IncidentFigures | Missing:
    """The figures of one service; a service without a row had no incident."""
    year, quarter, month = (found[days].get(target, []) for days in WINDOWS)
    if isinstance(year, Missing) or isinstance(quarter, Missing) or isinstance(month, Missing):
        return UNUSABLE
    # Each mean time to the first acknowledgement, with the number of incidents behind it.
    acknowledgements = []
    for row in quarter:
        count = row.total_incident_count
        if row.total_incidents_acknowledged is not None:
            count = min(count, row.total_incidents_acknowledged)
        acknowledgements.append((row.mean_seconds_to_first_ack, count))
    uptimes = [row.up_time_pct for row in month if row.up_time_pct is not None]
    uptime: float | Missing = NO_UPTIME
    if len(uptimes) == len(month):
        # The downtimes of a service's teams add up.
        downtime = sum(100.0 - percentage for percentage in uptimes)
        uptime = round(max(0.0, 100.0 - downtime), 4)
    return IncidentFigures(
        _sum_incidents(year),
        _sum_incidents(quarter),
        _sum_incidents(month),
        _compute_weighted_mean(
            (row.mean_seconds_to_resolve, row.total_incident_count) for row in quarter
        ),
        _compute_weighted_mean(acknowledgements),
        uptime,
    )


def _sum_incidents(rows: list[AnalyticsRow]) -> int:
    return sum(row.total_incident_count for row in rows)


def _compute_weighted_mean(parts: Iterable[tuple[float | None, int]]) -> float | Missing:
    """The mean of means, weighted by their number of incidents."""
    known = [(mean, weight) for mean, weight in parts if mean is not None and weight]
    if not known:
        return NONE
    return round(sum(m * weight for m, weight in known) / sum(w for _, w in known), 2)


MOST_PAGES: Final = 200
# A request may span six months, which have at least 181 days.
_SPAN: Final = 180 * DAY
MOST_INCIDENTS: Final = PAGE * MOST_PAGES
TOO_MANY: Final = report_too_many(MOST_INCIDENTS, "incidents a year to count without analytics")
_NO_END: Final = Missing(Outcome.INCOMPLETE, "a resolved incident came without the time of its end")

Incidents = dict[str, list[Incident]]


async def get_incidents(
    client: HttpClient, targets: Sequence[str], now: int
) -> Incidents | Missing:
    """The incidents of the last year by service, or the reason that they cannot be counted."""
    reading = _IncidentReader(client, targets if len(targets) <= FEW else ())
    start = now - YEAR * DAY
    while start < now:
        end = min(start + _SPAN, now)
        last = await reading.span(start, end)
        if isinstance(last, Missing):
            return last
        if last == start:
            return TOO_MANY
        start = last
    found = defaultdict(list)
    for incident in reading.found.values():
        if incident.service is not None:
            found[incident.service.id].append(incident)
    return dict(found)


class _IncidentReader:
    """Reads incidents, stored by id: of the named services, or of all."""

    def __init__(self, client: HttpClient, services: Sequence[str]) -> None:
        self._client = client
        self._services = services
        self._pages = 0
        self.found: dict[str, Incident] = {}

    async def span(self, start: int, end: int) -> int | Missing:
        """Read the incidents of a time span, oldest first.

        Returns the time up to which all of them are known, or the reason for a failure.
        """
        query = [
            ("since", format_stamp(start)),
            ("until", format_stamp(end)),
            ("time_zone", "UTC"),
            ("sort_by", "created_at:asc"),
            *(("service_ids[]", id_) for id_ in self._services),
        ]
        last = start
        async for page in iterate_pages(self._client, "incidents", query):
            if isinstance(page, Missing):
                return last if page is BEYOND else page
            self._pages += 1
            if self._pages > MOST_PAGES:
                return TOO_MANY
            for item in page:
                incident = read_as(item, Incident)
                if isinstance(incident, Missing):
                    return incident
                self.found[incident.id] = incident
                last = max(last, _get_creation_time(incident))
        return end


def make_incident_figures(
    incidents: Iterable[Incident], now: int, refusal: Missing
) -> IncidentFigures:
    """Figures from one service's incidents; `refusal` is the reason for the other figures."""
    days = [((now - _get_creation_time(one)) / DAY, one) for one in incidents]
    quarter = [one for age, one in days if age <= QUARTER]
    return IncidentFigures(
        sum(age <= YEAR for age, _ in days),
        len(quarter),
        sum(age <= MONTH for age, _ in days),
        _compute_mean_to_resolve([one for one in quarter if one.is_resolved]),
        refusal if quarter else NONE,
        refusal,
    )


def _compute_mean_to_resolve(resolved: Sequence[Incident]) -> float | Missing:
    """The mean seconds to resolve; missing if any resolved incident lacks its end."""
    times = [
        (one.ended_at - one.created_at).total_seconds()
        for one in resolved
        if one.ended_at is not None and one.ended_at >= one.created_at
    ]
    if len(times) < len(resolved):
        return _NO_END
    return round(sum(times) / len(times), 2) if times else NONE


def _get_creation_time(incident: Incident) -> int:
    return int(incident.created_at.timestamp()) * SECOND


# Reasons after which a service needs no further request.
_FINAL: Final = (NOT_FOUND, BAD_KEY)
PROBES: Final = (
    Probe(
        right="reading services",
        target="/services",
        facts=("incident.serviceInfo",),
        query={"limit": 1, "sort_by": "name:asc"},
        headers=HEADERS,
        budget="rest",
    ),
    Probe(
        right="reading incidents",
        target="/incidents",
        facts=("incident.incidentMetrics",),
        query={"limit": 1},
        headers=HEADERS,
        budget="rest",
    ),
)
_REFUSED: Final = frozenset({Outcome.DENIED, Outcome.FEATURE_OFF})

_NO_TYPE: Final = Missing(Outcome.NOT_APPLICABLE, "PagerDuty gives none for this service")


async def collect_pagerduty(
    targets: Sequence[str], client: HttpClient, memory: Memory, now: int
) -> dict[str, Collected]:
    """Facts about each target (a service id), or the reason that they are missing."""
    found = await get_services(client, targets)
    refused = {target: one for target, one in found.items() if one in _FINAL}
    asked = [target for target in found if target not in refused]
    figures = await _get_figures(client, memory, asked, now) if asked else {}
    return {
        target: make_pagerduty_facts(one, refused.get(target) or figures[target])
        for target, one in found.items()
    }


async def _get_figures(
    client: HttpClient, memory: Memory, targets: Sequence[str], now: int
) -> dict[str, IncidentFigures | Missing]:
    """Figures of each service, from analytics or, without access to it, from incidents."""
    windows = await get_windows(client, targets, now)
    if not isinstance(windows, Missing):
        return {target: make_analytics_figures(windows, target) for target in targets}
    if windows == BAD_KEY or windows.outcome not in _REFUSED:
        return dict.fromkeys(targets, windows)
    what = f"incidents of {','.join(targets) if len(targets) <= FEW else 'all'}"
    known: Incidents | Missing = TOO_MANY
    if not await exceeds_noted_limit(memory, what, MOST_INCIDENTS, now):
        known = await get_incidents(client, targets, now)
        if known is TOO_MANY:
            await note_exceeded_limit(memory, what, MOST_INCIDENTS, now)
    if isinstance(known, Missing):
        return dict.fromkeys(targets, known)
    return {one: make_incident_figures(known.get(one, ()), now, windows) for one in targets}


def make_pagerduty_facts(
    service: Service | Missing, figures: IncidentFigures | Missing
) -> Collected:
    """The facts of one service.

    An unreadable service may not exist. Without any known incident, its number of incidents is
    unknown, not zero.
    """
    if isinstance(service, Missing):
        no_incident = isinstance(figures, IncidentFigures) and figures.total == 0
        if no_incident or figures == service or service.outcome is Outcome.NOT_FOUND:
            return Collected(missing={"": service})
    return Collected.of(
        {
            "incident.incidentMetrics": _make_metrics(figures),
            "incident.serviceInfo": _make_service_info(service),
        }
    )


def _make_metrics(figures: IncidentFigures | Missing) -> Leaves | Missing:
    if isinstance(figures, Missing):
        return figures
    return {
        "totalIncidents": figures.total,
        "monthlyIncidents": figures.monthly,
        "quarterlyIncidents": figures.quarterly,
        "meanTimeToResolve": figures.to_resolve,
        "meanTimeToFirstAck": figures.to_first_ack,
        "upTimePercentage": figures.uptime,
    }


def _make_service_info(service: Service | Missing) -> Leaves | Missing:
    if isinstance(service, Missing):
        return service
    if service.escalation_policy is UNSET or service.teams is UNSET:
        return UNUSABLE
    return {
        "hasEscalationPolicy": service.escalation_policy is not None,
        "hasTeamsAssigned": bool(service.teams),
        "hasDescription": bool((service.description or "").strip()),
        "alertCreationType": service.alert_creation or _NO_TYPE,
    }


def _make_pagerduty_integration(instance: Instance[PagerdutyOptions]) -> Integration:
    options = instance.options
    account = f" of the account {options.account}" if options.account else ""
    return Integration(
        source=instance.source(
            f"Incidents and the set-up of services{account}.", (SERVICE_ID, INTEGRATION_KEY)
        ),
        authorize=instance.credential({"authorization": f"Token token={options.api_key}"}),
        base_url=options.base_url,
        target=partial(find_pagerduty_target, options),
        collect=collect_pagerduty,
        probes=PROBES,
    )


INTEGRATION: Final = make_vendor(
    "pagerduty", "PagerDuty", PagerdutyOptions, _make_pagerduty_integration, ("incident",)
)
