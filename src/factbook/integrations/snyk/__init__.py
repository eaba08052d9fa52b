"""Snyk: scanner issues of the security shape, from the projects of Snyk organizations.

Each organization is read once for all entities, and its projects are indexed by every name that
annotations may use. Answer types have only the fields in use. The next link of a list doesn't
reliably mark the last page.
"""

import asyncio
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache, partial
from typing import Annotated, Any, Final, Generic, TypeVar
from urllib.parse import parse_qs, urlsplit

import msgspec
import structlog
from msgspec import Struct

from factbook.integrations.integration import (
    SOURCE_LOCATION,
    Collected,
    Instance,
    InstanceOptions,
    Integration,
    Probe,
    find_location,
    get_annotations,
    make_vendor,
    parse_source_location,
    report_bad_annotation,
    report_no_annotation,
    resolve_slug,
    run_for_each,
    sum_counts,
)
from factbook.outbound.cache import Memory, exceeds_noted_limit, note_exceeded_limit
from factbook.outbound.client import HttpClient, build_path
from factbook.outbound.outcomes import UNUSABLE, Missing, Outcome, report_too_many
from factbook.settings.option_tables import about, url_origin

UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_VERSION: Final = re.compile(r"\d{4}-\d{2}-\d{2}(~(beta|experimental))?", re.ASCII)


class SnykOptions(InstanceOptions, frozen=True, kw_only=True):
    """Instance of Snyk with one credential, and the organizations that may be requested."""

    token: Annotated[str, about("Secret. The key of a service account, or an API token.")] = ""
    organizations: Annotated[
        list[str],
        about(
            "Ids of the organizations that may be asked, at least one. `name=id` also gives one "
            "the name that `snyk.io/org-name` calls it by."
        ),
    ] = msgspec.field(default_factory=list)
    base_url: Annotated[
        str,
        about(
            "Address of the REST interface. In other regions `https://api.eu.snyk.io/rest` or "
            "`https://api.au.snyk.io/rest`."
        ),
    ] = "https://api.snyk.io/rest"
    version: Annotated[str, about("Version of the interface to ask for, a date.")] = "2024-10-15"
    exact: Annotated[
        bool,
        about(
            "Count the issues that are open and not ignored one by one, rather than take the "
            "figures of each project's latest snapshot. Takes one call for 100 issues."
        ),
    ] = False

    @property
    def ids(self) -> tuple[str, ...]:
        """The distinct ids of the organizations, in lower case."""
        return tuple(dict.fromkeys(_split_entry(entry)[1] for entry in self.organizations))

    @property
    def names(self) -> dict[str, str]:
        """The ids of named organizations, by name in lower case."""
        return {name: id_ for name, id_ in map(_split_entry, self.organizations) if name}

    def problems(self) -> Iterator[str]:
        """The mistakes in the table."""
        if not self.token:
            yield "a token is needed"
        if not self.ids:
            yield "organizations has to name at least one organization"
        elif not all(UUID.fullmatch(id_) for id_ in self.ids):
            yield "organizations has to be of ids, such as those in Snyk's settings"
        if not self.base_url.startswith(("https://", "http://")):
            yield "base_url has to begin with https://"
        if not _VERSION.fullmatch(self.version):
            yield "version has to be a date such as 2024-10-15"


def _split_entry(entry: str) -> tuple[str, str]:
    name, _, id_ = entry.lower().rpartition("=")
    return name.strip(), id_.strip()


ORG_IDS: Final = "snyk.io/org-ids"
ORG_ID: Final = "snyk.io/org-id"
ORG_NAME: Final = "snyk.io/org-name"
TARGETS: Final = "snyk.io/targets"
TARGET_ID: Final = "snyk.io/target-id"
TARGET_NAME: Final = "snyk.io/target-name"
PROJECT_IDS: Final = "snyk.io/project-ids"
EXCLUDED: Final = "snyk.io/exclude-project-ids"
SLUGS: Final = {
    "github.com/project-slug": "github.com",
    "gitlab.com/project-slug": "gitlab.com",
}
# Annotations that select projects on their own.
SELECTING: Final = (TARGETS, TARGET_ID, TARGET_NAME, PROJECT_IDS, *SLUGS, SOURCE_LOCATION)

_LONGEST: Final = 4_000
# Segments that follow a repository in URLs of code hosts.
_INSIDE: Final = ("-", "tree", "blob", "raw", "src")


class Selector(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Selects the projects of an entity.

    These are projects of the `targets` (ids, or names in lower case) and of the repository `slug`
    on `host`, and the `projects` by id, without the `excluded` ids.
    """

    organizations: tuple[str, ...]
    targets: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    host: str = ""
    slug: str = ""


class _UnusableError(Exception):
    """An annotation is present but has no usable value; the text is for people."""


class _NothingError(Exception):
    """The annotations name nothing that is configured; the text is for people."""


def find_snyk_target(options: SnykOptions, entity: Mapping[str, Any]) -> str | Missing:
    """The selector as text, equal for entities with the same selection; or the reason for none."""
    try:
        found = _make_selector(options, entity)
    except _NothingError as error:
        return report_no_annotation(str(error))
    except _UnusableError as error:
        return report_bad_annotation(str(error))
    return msgspec.json.encode(found).decode()


def read_selector(text: str) -> Selector:
    """The selector in a target. Raises msgspec.MsgspecError for invalid text."""
    return msgspec.json.decode(text, type=Selector)


def _make_selector(options: SnykOptions, entity: Mapping[str, Any]) -> Selector:
    known = {key: value for key, value in get_annotations(entity).items() if value != ""}
    targets: tuple[str, ...] = ()
    if TARGETS in known:
        targets = _sort_distinct(_split_list(known, TARGETS))
    elif key := next((key for key in (TARGET_ID, TARGET_NAME) if key in known), None):
        targets = (_get_text(known, key),)
    projects = _list_ids(known, PROJECT_IDS)
    host, slug = ("", "") if targets or projects else _find_repository(entity, known)
    return Selector(
        organizations=_list_organizations(options, known),
        targets=targets,
        projects=projects,
        excluded=_list_ids(known, EXCLUDED),
        host=host,
        slug=slug,
    )


def _list_organizations(options: SnykOptions, known: Mapping[str, Any]) -> tuple[str, ...]:
    """The configured organizations that the annotations select, by default all."""
    if ORG_IDS in known or ORG_ID in known:
        wanted = _split_list(known, ORG_IDS if ORG_IDS in known else ORG_ID)
    elif ORG_NAME in known:
        wanted = (options.names.get(_get_text(known, ORG_NAME), ""),)
    else:
        wanted = options.ids
    if not set(wanted) <= set(options.ids):
        raise _NothingError("an organization that is not configured")
    return _sort_distinct(wanted)


def _find_repository(entity: Mapping[str, Any], known: Mapping[str, Any]) -> tuple[str, str]:
    """The host and the path of the entity's repository, in lower case.

    A slug belongs to the host of the entity's location, else to the host in its key.
    """
    place = find_location(entity)
    for key, host in SLUGS.items():
        if key in known:
            at = place.host if place else host
            named = resolve_slug(_get_text(known, key), at)
            if named is None:
                raise _UnusableError(f"{key} names another host than {at}")
            return at, _cut_path(at, named.path) if named.scheme else named.path.strip("/")
    if place is None:
        raise _NothingError("neither a project, a target nor a repository")
    path = _cut_path(place.host, place.path)
    if "/" not in path or not _is_usable_text(path):
        raise _UnusableError("the location is not that of a repository")
    return place.host, path


def _cut_path(host: str, path: str) -> str:
    """The repository's part of the path: two segments on GitHub, more where groups nest."""
    parts = path.lower().split("/")
    inside = [i for i, part in enumerate(parts) if i >= 2 and part in _INSIDE]
    end = 2 if host == "github.com" else min(inside, default=len(parts))
    return "/".join(parts[:end]).removesuffix(".git")


def _list_ids(known: Mapping[str, Any], key: str) -> tuple[str, ...]:
    if key not in known:
        return ()
    found = _split_list(known, key)
    if not all(UUID.fullmatch(id_) for id_ in found):
        raise _UnusableError(f"{key} is not a list of ids")
    return _sort_distinct(found)


def _split_list(known: Mapping[str, Any], key: str) -> tuple[str, ...]:
    found = tuple(part.strip() for part in _get_text(known, key).split(",") if part.strip())
    if not found:
        raise _UnusableError(f"{key} is empty")
    return found


def _get_text(known: Mapping[str, Any], key: str) -> str:
    value = known[key]
    text = value.strip().lower() if isinstance(value, str) else ""
    if not _is_usable_text(text):
        raise _UnusableError(f"{key} is not a text that can be used")
    return text


def _is_usable_text(text: str) -> bool:
    """True for printable text that is neither empty nor too long."""
    return 0 < len(text) <= _LONGEST and text.isprintable()


def _sort_distinct(values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(set(values)))


SEVERITIES: Final = ("critical", "high", "medium", "low")

# More than any project has; far larger numbers could not be stored.
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
    """Attributes of a project; Snyk scans only active projects."""

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
        by_severity: Partial = {}
        for severity in SEVERITIES:
            count = counts.get(severity) if isinstance(counts, dict) else None
            by_severity[severity] = _NO_COUNT
            # Snyk's API description allows any number.
            if not isinstance(count, int | float) or isinstance(count, bool):
                continue
            if 0 <= count < _MOST and count == count // 1:
                by_severity[severity] = int(count)
        return by_severity


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
    """The distinct rows of a list, or the reason that it is incomplete.

    Ends with the first page without new rows, as Snyk also links to pages after the last one. Uses
    only the cursor of a link, since the link may be relative to one of several bases. A list of
    more than `MOST_PAGES` is too large.
    """
    rows: dict[str, T] = {}
    place: dict[str, str] = {}
    for _ in range(MOST_PAGES):
        asked = {**query, "limit": str(PAGE), **place}
        answer = await client.get(target, query=asked, headers=HEADERS)
        if not answer.ok:
            return answer.missing
        if "deprecation" in answer.headers or "sunset" in answer.headers:
            _warn_of_version_end(
                client.host,
                query["version"],
                _cut_date(answer.headers.get("deprecation")),
                _cut_date(answer.headers.get("sunset")),
            )
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


@lru_cache(maxsize=64)
def _warn_of_version_end(host: str, version: str, deprecated: str, sunset: str) -> None:
    """Log once per process, as every answer repeats the notice."""
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
    """Projects of one organization, by id, and by the id and the names of their target.

    `has_counts`: at least one project has figures. `open` holds the open issues that are not
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
    """Index projects by id and by the names of their target."""
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
        # Without a display name: `owner/name(branch):folder/file`.
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


GROUP: Final = "security.scannerIssues"

_NOT_CONFIGURED: Final = Missing(Outcome.NO_ANNOTATION, "an organization that is not configured")
_NOT_FOUND: Final = Missing(Outcome.NOT_FOUND, "no project of Snyk is what the annotations name")
_NOT_NAMED: Final = Missing(
    Outcome.NO_ANNOTATION, "Snyk has no project of the repository, and no annotation names another"
)
_NOT_ALL_FOUND: Final = Missing(Outcome.NOT_FOUND, "Snyk lacks some of what the annotations name")
_EXCLUDED: Final = Missing(Outcome.NOT_APPLICABLE, "every project is excluded")
_INACTIVE: Final = Missing(Outcome.FEATURE_OFF, "every project is deactivated in Snyk")
_NOT_SCANNED: Final = Missing(Outcome.NOT_APPLICABLE, "a project has no snapshot in Snyk yet")
_NO_COUNTS: Final = Missing(
    Outcome.DENIED, "no project came with figures; they need View Project History"
)

# Prefix of a project's origin, by the host that annotations name.
_FAMILIES: Final = {
    "github.com": "github",
    "gitlab.com": "gitlab",
    "bitbucket.org": "bitbucket",
    "dev.azure.com": "azure",
}
# Origins that exist only on their family's public host.
_PUBLIC: Final = frozenset(
    {"github", "github-cloud-app", "bitbucket-cloud", "bitbucket-connect-app"}
)


def make_snyk_facts(selector: Selector, found: Mapping[str, Organization | Missing]) -> Collected:
    """The issues of the selector's projects in the organizations that were read."""
    counts = _sum_projects(selector, found)
    if isinstance(counts, Missing):
        nowhere = counts.outcome is Outcome.NO_ANNOTATION
        return Collected(missing={"" if nowhere else GROUP: counts})
    return Collected.of({GROUP: {"total": sum_counts(counts.values()), **counts}})


def _sum_projects(
    selector: Selector, found: Mapping[str, Organization | Missing]
) -> Partial | Missing:
    organizations = [found.get(id_, _NOT_CONFIGURED) for id_ in selector.organizations]
    failures = [one for one in organizations if isinstance(one, Missing)]
    if failures:
        # Any of them may hold projects that count. Report lasting reasons before passing ones.
        return min(failures, key=lambda failure: failure.passing)
    known = [one for one in organizations if isinstance(one, Organization)]
    projects = _select_projects(selector, known)
    if isinstance(projects, Missing):
        return projects
    counted = [
        _count_project_issues(one, id_) for one in known for id_ in projects if id_ in one.projects
    ]
    if missing := next((counts for counts in counted if isinstance(counts, Missing)), None):
        return missing
    partial = [counts for counts in counted if not isinstance(counts, Missing)]
    return {severity: sum_counts(counts[severity] for counts in partial) for severity in SEVERITIES}


def _select_projects(
    selector: Selector, known: list[Organization]
) -> dict[str, SnykProject] | Missing:
    """The active projects that count, by id; every project named has to exist."""
    named = [
        *(
            [
                [one.projects[id_] for one in known if id_ in one.projects]
                for id_ in selector.projects
            ]
        ),
        *([_find_by_target(known, name) for name in selector.targets]),
        *(
            [
                [
                    project
                    for project in _find_by_target(known, selector.slug)
                    if _may_be_at(selector.host, project.attributes.origin)
                ]
            ]
            if selector.slug
            else []
        ),
    ]
    if not all(named):
        if any(named):
            return _NOT_ALL_FOUND
        return _NOT_NAMED if selector.slug else _NOT_FOUND
    projects = {project.id.lower(): project for group in named for project in group}
    left = {id_: project for id_, project in projects.items() if id_ not in selector.excluded}
    if not left:
        return _EXCLUDED
    active = {id_: one for id_, one in left.items() if one.attributes.status == "active"}
    return active or _INACTIVE


def _find_by_target(known: Iterable[Organization], name: str) -> list[SnykProject]:
    return [project for one in known for project in one.by_target.get(name, ())]


def _may_be_at(host: str, origin: str) -> bool:
    """True if projects of the origin may belong to a repository on the host.

    Some origins, such as the command line, do not imply a host.
    """
    family = next((name for name in _FAMILIES.values() if origin.startswith(name)), None)
    if family is None:
        return True
    if host in _FAMILIES:
        return family == _FAMILIES[host]
    return origin not in _PUBLIC


def _count_project_issues(organization: Organization, id_: str) -> Partial | Missing:
    """The issues of one project; without a snapshot they are unknown, not zero."""
    latest = organization.projects[id_].counts
    if latest is None:
        return _NOT_SCANNED if organization.has_counts else _NO_COUNTS
    if organization.open is None:
        return latest
    return {**dict.fromkeys(SEVERITIES, 0), **organization.open.get(id_, {})}


async def collect_snyk(
    options: SnykOptions, wanted: Sequence[str], client: HttpClient, memory: Memory, now: int
) -> dict[str, Collected]:
    """The facts about each target, or the reason that there are none."""
    selectors = {text: read_selector(text) for text in wanted}
    named = {id_ for selector in selectors.values() for id_ in selector.organizations}
    # The settings may have changed since the targets were determined.
    wanted_ids = [id_ for id_ in options.ids if id_ in named]
    found = await run_for_each(
        wanted_ids, lambda id_: _get_organization(options, id_, client, memory, now)
    )
    return {text: make_snyk_facts(selector, found) for text, selector in selectors.items()}


async def _get_organization(
    options: SnykOptions, id_: str, client: HttpClient, memory: Memory, now: int
) -> Organization | Missing:
    """The organization; one that was too large is not read again for days."""
    what = f"{id_} exact" if options.exact else id_
    if await exceeds_noted_limit(memory, what, MOST_ROWS, now):
        return TOO_LARGE
    found = await read_organization(client, options, id_)
    if isinstance(found, Missing) and found.outcome is Outcome.TOO_LARGE:
        await note_exceeded_limit(memory, what, MOST_ROWS, now)
    return found


def make_snyk_probes(options: SnykOptions) -> tuple[Probe, ...]:
    """Probes for listing each organization's projects, and its issues for exact counts."""
    listings = ("projects", "issues") if options.exact else ("projects",)
    return tuple(
        Probe(
            right=f"View {listing} of the organization {id_}",
            target=build_path("orgs", id_, listing),
            query={"version": options.version, "limit": 10},
            headers=HEADERS,
        )
        for id_ in options.ids
        for listing in listings
    )


def _make_snyk_integration(instance: Instance[SnykOptions]) -> Integration:
    options = instance.options
    return Integration(
        source=instance.source(
            f"Issues that Snyk found, from {url_origin(options.base_url)}.", SELECTING
        ),
        authorize=instance.credential({"authorization": f"token {options.token}"}),
        base_url=options.base_url,
        # One per severity if issues are counted one by one.
        calls_at_once=4,
        target=partial(find_snyk_target, options),
        collect=partial(collect_snyk, options),
        probes=make_snyk_probes(options),
    )


INTEGRATION: Final = make_vendor(
    "snyk", "Snyk", SnykOptions, _make_snyk_integration, ("security.scannerIssues",)
)
