"""Collection from a Snyk instance, which reads each organization once for all entities.

Facts of one target follow from the projects of organizations, without any request.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from factbook.integrations.integration import Collected, Probe, run_for_each, sum_counts
from factbook.integrations.snyk import api
from factbook.integrations.snyk import options as snyk_options
from factbook.integrations.snyk.api import SEVERITIES, Organization, Partial, SnykProject
from factbook.integrations.snyk.options import Selector, SnykOptions
from factbook.outbound.cache import Memory, exceeds_noted_limit, note_exceeded_limit
from factbook.outbound.client import HttpClient, build_path
from factbook.outbound.outcomes import Missing, Outcome

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

# The name of the origin's family, by the host that annotations name.
_FAMILIES: Final = {
    "github.com": "github",
    "gitlab.com": "gitlab",
    "bitbucket.org": "bitbucket",
    "dev.azure.com": "azure",
}
# Origins that are never at another host than that of their family.
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
        # Any of them may hold projects that count. What lasts is told before what passes.
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
        *([_find_by_id(known, id_) for id_ in selector.projects]),
        *([_find_by_target(known, name) for name in selector.targets]),
        *([_find_by_repository(known, selector)] if selector.slug else []),
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


def _find_by_id(known: Iterable[Organization], id_: str) -> list[SnykProject]:
    return [one.projects[id_] for one in known if id_ in one.projects]


def _find_by_target(known: Iterable[Organization], name: str) -> list[SnykProject]:
    return [project for one in known for project in one.by_target.get(name, ())]


def _find_by_repository(known: Iterable[Organization], selector: Selector) -> list[SnykProject]:
    return [
        project
        for project in _find_by_target(known, selector.slug)
        if _may_be_at(selector.host, project.attributes.origin)
    ]


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
    """The issues of one project; an exact count of none is zero only if there is a snapshot."""
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
    selectors = {text: snyk_options.read_selector(text) for text in wanted}
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
    if await exceeds_noted_limit(memory, what, api.MOST_ROWS, now):
        return api.TOO_LARGE
    found = await api.read_organization(client, options, id_)
    if isinstance(found, Missing) and found.outcome is Outcome.TOO_LARGE:
        await note_exceeded_limit(memory, what, api.MOST_ROWS, now)
    return found


def make_snyk_probes(options: SnykOptions) -> tuple[Probe, ...]:
    """Probes for the permission to list each organization, and its issues if they are counted."""
    listings = ("projects", "issues") if options.exact else ("projects",)
    return tuple(
        Probe(
            right=f"View {listing} of the organization {id_}",
            target=build_path("orgs", id_, listing),
            query={"version": options.version, "limit": 10},
            headers=api.HEADERS,
        )
        for id_ in options.ids
        for listing in listings
    )
