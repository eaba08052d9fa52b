"""Requests to Snyk: types of answers, paginated listings, and the content of an organization.

Answers are limited to the fields that are read. A listing's next link does not mark the last page
reliably. An organization's projects are indexed by every name that annotations may use.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache
from typing import Any, Final, Generic, TypeVar
from urllib.parse import parse_qs, urlsplit

import msgspec
import structlog
from msgspec import Struct

from factbook.integrations.integration import parse_source_location
from factbook.integrations.snyk.options import SnykOptions
from factbook.outbound.client import HttpClient, build_path
from factbook.outbound.outcomes import UNUSABLE, Missing, Outcome, report_too_many

SEVERITIES: Final = ("critical", "high", "medium", "low")

# No project has so many; far larger numbers could not be stored.
_MOST: Final = 1_000_000_000
_NO_COUNT: Final = Missing(Outcome.INCOMPLETE, "Snyk left out a figure of a project")

Counts = dict[str, int]
Partial = dict[str, int | Missing]
T = TypeVar("T", bound="SnykResource")


class SnykResource(Struct):
    """Resource of a listing."""

    id: str


class SnykLink(Struct):
    """Link as an object instead of a string."""

    href: str


class Links(Struct):
    """Link to the next page of a listing."""

    next: str | SnykLink | None = None


class SnykPage(Struct, Generic[T]):
    """Page of a listing."""

    data: list[T]
    links: Links | None = None


class TargetAttributes(Struct):
    """Names of a target, such as a repository."""

    display_name: str | None = None
    url: str | None = None


class SnykTarget(Struct):
    """Origin of a project; attributes are present because the request expands them."""

    id: str
    attributes: TargetAttributes | None = None


class TargetRelationship(Struct):
    """The relationship of a project to its target."""

    data: SnykTarget | None = None


class ProjectRelationships(Struct):
    """The relationships of a project."""

    target: TargetRelationship | None = None


class ProjectAttributes(Struct):
    """Attributes of a project; one that is not active is no longer scanned."""

    name: str
    origin: str
    status: str


class ProjectMeta(Struct):
    """Figures of the latest snapshot, as received."""

    latest_issue_counts: Any = None


class SnykProject(SnykResource):
    """File, image or folder that is scanned."""

    attributes: ProjectAttributes
    relationships: ProjectRelationships | None = None
    meta: ProjectMeta | None = None

    @property
    def target(self) -> SnykTarget | None:
        """The target that the project was made from."""
        related = self.relationships.target if self.relationships else None
        return related.data if related else None

    @property
    def counts(self) -> Partial | None:
        """The issues by severity in the latest snapshot; None if there are no figures."""
        counts = self.meta.latest_issue_counts if self.meta else None
        if counts is None or counts == {}:
            return None
        return {severity: _count_severity(counts, severity) for severity in SEVERITIES}


class IssueAttributes(Struct):
    """Severity of an issue, and the attributes that decide if it counts."""

    effective_severity_level: str
    status: str
    ignored: bool


class Identifier(Struct):
    """Object that a relationship points to."""

    id: str
    type: str


class ScanItem(Struct):
    """Relationship of an issue to the scanned project."""

    data: Identifier


class IssueRelationships(Struct):
    """The relationships of an issue."""

    scan_item: ScanItem


class SnykIssue(SnykResource):
    """Issue of one project."""

    attributes: IssueAttributes
    relationships: IssueRelationships


def _count_severity(counts: Any, severity: str) -> int | Missing:
    """A non-negative whole number; the description types it as a number."""
    value = counts.get(severity) if isinstance(counts, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _NO_COUNT
    return int(value) if 0 <= value < _MOST and value == value // 1 else _NO_COUNT


log = structlog.get_logger("factbook.sources.snyk")

PAGE: Final = 100
MOST_PAGES: Final = 500
MOST_ROWS: Final = MOST_PAGES * PAGE
TOO_LARGE: Final = report_too_many(MOST_ROWS, "rows in one listing of Snyk")

HEADERS: Final = {"accept": "application/vnd.api+json"}
_CURSOR: Final = "starting_after"


async def read_snyk_pages(
    client: HttpClient, target: str, query: Mapping[str, str], type_: type[SnykPage[T]]
) -> list[T] | Missing:
    """Every row of the listing, each once, or the reason that it is incomplete.

    Ends with the first page without new rows, as Snyk also links to pages after the last one.
    Only the cursor of a link is used, since the link may be relative to one of several bases. A
    listing of more than `MOST_PAGES` is not read to its end.
    """
    rows: dict[str, T] = {}
    place: dict[str, str] = {}
    for _ in range(MOST_PAGES):
        asked = {**query, "limit": str(PAGE), **place}
        answer = await client.get(target, query=asked, headers=HEADERS)
        if not answer.ok:
            return answer.missing
        _note_version_end(client.host, query["version"], answer.headers)
        try:
            page = msgspec.convert(answer.data, type_)
            known = len(rows)
            for row in page.data:
                rows.setdefault(row.id, row)
            cursor = _find_cursor(page.links) if len(rows) > known else ""
        except (msgspec.ValidationError, ValueError):
            return UNUSABLE
        if not cursor:
            return list(rows.values())
        place = {_CURSOR: cursor}
    return TOO_LARGE


def _find_cursor(links: Links | None) -> str:
    """The cursor of the next page; empty if there is none. Raises ValueError for a bad link."""
    link = links.next if links else None
    address = link.href if isinstance(link, SnykLink) else link
    if not address:
        return ""
    query = parse_qs(urlsplit(address).query, keep_blank_values=True)
    if _CURSOR not in query:
        raise ValueError("A link to a next page without a cursor.")
    return query[_CURSOR][0]


def _note_version_end(host: str, version: str, headers: Mapping[str, str]) -> None:
    """Log the end of the API version if an answer announces it."""
    if "deprecation" in headers or "sunset" in headers:
        _warn_of_version_end(
            host, version, _cut_date(headers.get("deprecation")), _cut_date(headers.get("sunset"))
        )


@lru_cache(maxsize=64)
def _warn_of_version_end(host: str, version: str, deprecated: str, sunset: str) -> None:
    """Log a notice that every answer repeats once for each process."""
    log.warning(
        "snyk.version_ends", host=host, version=version, deprecated=deprecated, sunset=sunset
    )


def _cut_date(text: str | None) -> str:
    """The date at the start of a header; the rest of it is dropped."""
    try:
        return date.fromisoformat((text or "")[:10]).isoformat()
    except ValueError:
        return "unknown"


@dataclass
class Organization:
    """Projects of one organization, by their id and by the id and the names of their target.

    `has_counts`: at least one of them has figures. `open` holds the open issues that are not
    ignored, by project, if they were counted one by one.
    """

    projects: dict[str, SnykProject] = field(default_factory=dict)
    by_target: dict[str, list[SnykProject]] = field(default_factory=lambda: defaultdict(list))
    has_counts: bool = False
    open: dict[str, Counts] | None = None


async def read_organization(
    client: HttpClient, options: SnykOptions, id_: str
) -> Organization | Missing:
    """The organization, or the reason for its absence."""
    query = {
        "version": options.version,
        "meta.latest_issue_counts": "true",
        "expand": "target",
    }
    found = await read_snyk_pages(
        client, build_path("orgs", id_, "projects"), query, SnykPage[SnykProject]
    )
    if isinstance(found, Missing):
        return found
    organization = index_projects(found)
    if options.exact:
        counted = await _list_open_issues(client, options, id_)
        if isinstance(counted, Missing):
            return counted
        organization.open = counted
    return organization


def index_projects(projects: Iterable[SnykProject]) -> Organization:
    """The organization of these projects."""
    organization = Organization()
    for project in projects:
        organization.projects[project.id.lower()] = project
        organization.has_counts = organization.has_counts or project.counts is not None
        for name in _list_target_names(project):
            organization.by_target[name].append(project)
    return organization


def _list_target_names(project: SnykProject) -> set[str]:
    """Names that annotations may use for the project's target, in lower case: id, name, path."""
    target = project.target
    attributes = target.attributes if target else None
    names = {target.id} if target else set()
    if attributes and attributes.display_name:
        names.add(attributes.display_name)
    else:
        # `owner/name(branch):folder/file` where nothing better came.
        names.add(project.attributes.name.partition(":")[0].partition("(")[0])
    place = parse_source_location(attributes.url) if attributes and attributes.url else None
    if place:
        names.add(place.path.removesuffix(".git"))
    return {name.strip().lower() for name in names} - {""}


async def _list_open_issues(
    client: HttpClient, options: SnykOptions, id_: str
) -> dict[str, Counts] | Missing:
    """The open issues that are not ignored, by project and severity."""
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(_list_issues(client, options, id_, severity))
            for severity in SEVERITIES
        ]
    counted: dict[str, Counts] = {}
    for severity, task in zip(SEVERITIES, tasks, strict=True):
        found = task.result()
        if isinstance(found, Missing):
            return found
        for issue in found:
            if _is_counted(issue, severity):
                project = issue.relationships.scan_item.data.id.lower()
                counts = counted.setdefault(project, dict.fromkeys(SEVERITIES, 0))
                counts[severity] += 1
    return counted


async def _list_issues(
    client: HttpClient, options: SnykOptions, id_: str, severity: str
) -> list[SnykIssue] | Missing:
    query = {
        "version": options.version,
        "status": "open",
        "ignored": "false",
        "effective_severity_level": severity,
    }
    return await read_snyk_pages(
        client, build_path("orgs", id_, "issues"), query, SnykPage[SnykIssue]
    )


def _is_counted(issue: SnykIssue, severity: str) -> bool:
    """True if the issue matches the request and belongs to a project."""
    attributes = issue.attributes
    return (
        attributes.effective_severity_level == severity
        and attributes.status == "open"
        and not attributes.ignored
        and issue.relationships.scan_item.data.type == "project"
    )
