"""Types of Snyk's REST answers, limited to the fields that are read.

Source: the descriptions of `GET /orgs/{org_id}/projects` (2024-05-31) and
`GET /orgs/{org_id}/issues` (2024-01-23).
"""

from typing import Any, Final, Generic, TypeVar

from msgspec import Struct

from factbook.outbound.outcomes import Missing, Outcome

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
        return {severity: _count(counts, severity) for severity in SEVERITIES}


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


def _count(counts: Any, severity: str) -> int | Missing:
    """A non-negative whole number; the description types it as a number."""
    value = counts.get(severity) if isinstance(counts, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _NO_COUNT
    return int(value) if 0 <= value < _MOST and value == value // 1 else _NO_COUNT
