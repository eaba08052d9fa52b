"""Content of one organization: its projects, indexed by every name that annotations may use."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from factbook.integrations.locations import parsed
from factbook.integrations.snyk import pages
from factbook.integrations.snyk.answers import SEVERITIES, Counts, SnykIssue, SnykPage, SnykProject
from factbook.integrations.snyk.options import SnykOptions
from factbook.outbound.client import HttpClient, build_path
from factbook.outbound.outcomes import Missing


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


async def read(client: HttpClient, options: SnykOptions, id_: str) -> Organization | Missing:
    """The organization, or the reason for its absence."""
    query = {
        "version": options.version,
        "meta.latest_issue_counts": "true",
        "expand": "target",
    }
    found = await pages.read(
        client, build_path("orgs", id_, "projects"), query, SnykPage[SnykProject]
    )
    if isinstance(found, Missing):
        return found
    organization = indexed(found)
    if options.exact:
        counted = await _open_issues(client, options, id_)
        if isinstance(counted, Missing):
            return counted
        organization.open = counted
    return organization


def indexed(projects: Iterable[SnykProject]) -> Organization:
    """The organization of these projects."""
    organization = Organization()
    for project in projects:
        organization.projects[project.id.lower()] = project
        organization.has_counts = organization.has_counts or project.counts is not None
        for name in _names(project):
            organization.by_target[name].append(project)
    return organization


def _names(project: SnykProject) -> set[str]:
    """Names that annotations may use for the project's target, in lower case: id, name, path."""
    target = project.target
    attributes = target.attributes if target else None
    names = {target.id} if target else set()
    if attributes and attributes.display_name:
        names.add(attributes.display_name)
    else:
        # `owner/name(branch):folder/file` where nothing better came.
        names.add(project.attributes.name.partition(":")[0].partition("(")[0])
    place = parsed(attributes.url) if attributes and attributes.url else None
    if place:
        names.add(place.path.removesuffix(".git"))
    return {name.strip().lower() for name in names} - {""}


async def _open_issues(
    client: HttpClient, options: SnykOptions, id_: str
) -> dict[str, Counts] | Missing:
    """The open issues that are not ignored, by project and severity."""
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(_issues(client, options, id_, severity)) for severity in SEVERITIES
        ]
    counted: dict[str, Counts] = {}
    for severity, task in zip(SEVERITIES, tasks, strict=True):
        found = task.result()
        if isinstance(found, Missing):
            return found
        for issue in found:
            if _counts(issue, severity):
                project = issue.relationships.scan_item.data.id.lower()
                counts = counted.setdefault(project, dict.fromkeys(SEVERITIES, 0))
                counts[severity] += 1
    return counted


async def _issues(
    client: HttpClient, options: SnykOptions, id_: str, severity: str
) -> list[SnykIssue] | Missing:
    query = {
        "version": options.version,
        "status": "open",
        "ignored": "false",
        "effective_severity_level": severity,
    }
    return await pages.read(client, build_path("orgs", id_, "issues"), query, SnykPage[SnykIssue])


def _counts(issue: SnykIssue, severity: str) -> bool:
    """True if the issue matches the request and belongs to a project."""
    attributes = issue.attributes
    return (
        attributes.effective_severity_level == severity
        and attributes.status == "open"
        and not attributes.ignored
        and issue.relationships.scan_item.data.type == "project"
    )
