"""Facts of one target from the projects of organizations, without any request."""

from collections.abc import Iterable, Mapping
from typing import Final

from factbook.integrations.integration import Collected, total
from factbook.integrations.snyk.answers import SEVERITIES, Partial, SnykProject
from factbook.integrations.snyk.organizations import Organization
from factbook.integrations.snyk.targets import Selector
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


def collected(selector: Selector, found: Mapping[str, Organization | Missing]) -> Collected:
    """The issues of the selector's projects in the organizations that were read."""
    counts = _sum(selector, found)
    if isinstance(counts, Missing):
        nowhere = counts.outcome is Outcome.NO_ANNOTATION
        return Collected(missing={"" if nowhere else GROUP: counts})
    return Collected.of({GROUP: {"total": total(counts.values()), **counts}})


def _sum(selector: Selector, found: Mapping[str, Organization | Missing]) -> Partial | Missing:
    organizations = [found.get(id_, _NOT_CONFIGURED) for id_ in selector.organizations]
    failures = [one for one in organizations if isinstance(one, Missing)]
    if failures:
        # Any of them may hold projects that count. What lasts is told before what passes.
        return min(failures, key=lambda failure: failure.passing)
    known = [one for one in organizations if isinstance(one, Organization)]
    projects = _selected(selector, known)
    if isinstance(projects, Missing):
        return projects
    counted = [_counts(one, id_) for one in known for id_ in projects if id_ in one.projects]
    if missing := next((counts for counts in counted if isinstance(counts, Missing)), None):
        return missing
    partial = [counts for counts in counted if not isinstance(counts, Missing)]
    return {severity: total(counts[severity] for counts in partial) for severity in SEVERITIES}


def _selected(selector: Selector, known: list[Organization]) -> dict[str, SnykProject] | Missing:
    """The active projects that count, by id; every project named has to exist."""
    named = [
        *([_by_id(known, id_) for id_ in selector.projects]),
        *([_by_target(known, name) for name in selector.targets]),
        *([_of_repository(known, selector)] if selector.slug else []),
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


def _by_id(known: Iterable[Organization], id_: str) -> list[SnykProject]:
    return [one.projects[id_] for one in known if id_ in one.projects]


def _by_target(known: Iterable[Organization], name: str) -> list[SnykProject]:
    return [project for one in known for project in one.by_target.get(name, ())]


def _of_repository(known: Iterable[Organization], selector: Selector) -> list[SnykProject]:
    return [
        project
        for project in _by_target(known, selector.slug)
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


def _counts(organization: Organization, id_: str) -> Partial | Missing:
    """The issues of one project; an exact count of none is zero only if there is a snapshot."""
    latest = organization.projects[id_].counts
    if latest is None:
        return _NOT_SCANNED if organization.has_counts else _NO_COUNTS
    if organization.open is None:
        return latest
    return {**dict.fromkeys(SEVERITIES, 0), **organization.open.get(id_, {})}
