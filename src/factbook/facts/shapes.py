"""The fixed metric shapes: each declared here once, filled by integrations, returned by tools.

Source: the mission, sections 2.5 to 2.10. Last month means the 30 days before the collection.
"""

from factbook.facts.shape import Leaf, LeafGroup, Shape, facts, fill, is_needed, schema

__all__ = [
    "CODEHOST",
    "COMPLIANCE",
    "INCIDENT",
    "OBSERVABILITY",
    "REPOSITORY",
    "SECURITY",
    "SHAPES",
    "Leaf",
    "LeafGroup",
    "Shape",
    "facts",
    "fill",
    "is_needed",
    "schema",
]

HOURS = "hours"
SECONDS = "seconds"
PERCENT = "percent, 0 to 100"


def _number(name: str, description: str, unit: str | None = None) -> Leaf:
    return Leaf(name, "number|unknown", description, unit)


def _boolean(name: str, description: str) -> Leaf:
    return Leaf(name, "boolean|unknown", description)


def _count(name: str, description: str) -> Leaf:
    return Leaf(name, "number", description)


def _flag(name: str, description: str) -> Leaf:
    return Leaf(name, "boolean", description)


CODEHOST = Shape(
    "codehost",
    "Code-host metrics",
    (
        LeafGroup(
            "pullRequests",
            "Pull requests of the repository.",
            (
                _number("total", "All pull requests, in any state."),
                _number("merged", "Merged pull requests."),
                _number("open", "Open pull requests."),
                _number("mergedPercentage", "Share of merged among all.", PERCENT),
                _number("mergedLastMonth", "Pull requests merged in the last 30 days."),
            ),
        ),
        LeafGroup(
            "mergeTime",
            "Time from opening a pull request to merging it, of the 100 merged most recently and "
            "of every one merged in the last 30 days.",
            (
                _number("avgHours", "Average time.", HOURS),
                _number("avgLastMonthHours", "Average of those merged in the last month.", HOURS),
                _number("minHours", "Shortest time.", HOURS),
                _number("maxHours", "Longest time.", HOURS),
                _number("minLastMonthHours", "Shortest of those merged in the last month.", HOURS),
                _number("maxLastMonthHours", "Longest of those merged in the last month.", HOURS),
            ),
        ),
        LeafGroup(
            "issues",
            "Issues of the repository, without pull requests.",
            (
                _number("total", "All issues."),
                _number("open", "Open issues."),
                _number("closed", "Closed issues."),
                _number("closedLastMonth", "Issues closed in the last 30 days."),
            ),
        ),
        LeafGroup(
            "latestMergedPR",
            "The pull request merged last.",
            (
                Leaf("title", "string|unknown", "Its title."),
                Leaf("author", "string|unknown", "User name of its author."),
            ),
        ),
        LeafGroup(
            "collaboration",
            "Who works in the repository, and in which languages.",
            (
                Leaf("languages", "string[]", "Programming languages, most used first."),
                Leaf("collaborators", "string[]", "User names of those with access."),
                _number("collaboratorCount", "Number of those with access."),
            ),
        ),
        LeafGroup(
            "branchProtection",
            "Protection of the default branch.",
            (
                _boolean("enabled", "The branch is protected."),
                _boolean("enforceAdmins", "Administrators are bound too."),
                _boolean("allowDeletions", "The branch may be deleted."),
                _boolean("requiredLinearHistory", "Merge commits are refused."),
                _boolean("allowForcePushes", "Force pushes are allowed."),
                _boolean("blockCreations", "Creating matching branches is restricted."),
                _boolean("requiredSignatures", "Commits have to be signed."),
            ),
        ),
        LeafGroup(
            "codeReview",
            "Rules for reviews on the default branch, and code owners.",
            (
                _boolean("dismissStaleReviews", "New commits dismiss earlier approvals."),
                _boolean("requireCodeOwnerReviews", "A code owner has to approve."),
                _boolean("requireLastPushApproval", "Someone else approves the last push."),
                _boolean(
                    "strictRequiredStatusChecks",
                    "Checks are required, on a branch that is up to date.",
                ),
                _boolean("usesCodeowners", "There is a CODEOWNERS file."),
                _boolean("codeownersHasErrors", "The CODEOWNERS file has errors."),
                _number("requiredApprovingReviewCount", "Approvals that a merge needs."),
                _number("codeownersErrorCount", "Errors in the CODEOWNERS file."),
            ),
        ),
    ),
)

SECURITY = Shape(
    "security",
    "Security metrics",
    (
        LeafGroup(
            "scannerIssues",
            "Open issues that the security scanner found.",
            (
                _count("total", "Issues of all four severities."),
                _count("critical", "Issues of critical severity."),
                _count("high", "Issues of high severity."),
                _count("medium", "Issues of medium severity."),
                _count("low", "Issues of low severity."),
            ),
            optional=True,
        ),
        LeafGroup(
            "dependencyAlerts",
            "Alerts about vulnerable dependencies.",
            (
                _count("open", "Open alerts."),
                _count("dismissed", "Alerts dismissed by a person or by a rule."),
                _count("fixed", "Fixed alerts."),
            ),
            optional=True,
        ),
        Leaf("branchProtection", "boolean", "The default branch is protected.", optional=True),
    ),
)

INCIDENT = Shape(
    "incident",
    "Incident metrics",
    (
        LeafGroup(
            "incidentMetrics",
            "Incidents of the service, in windows that end at the collection.",
            (
                _count("totalIncidents", "Incidents of the last 365 days."),
                _count("monthlyIncidents", "Incidents of the last 30 days."),
                _count("quarterlyIncidents", "Incidents of the last 90 days."),
                Leaf(
                    "meanTimeToResolve",
                    "number",
                    "Mean time until an incident is resolved, over the last 90 days.",
                    SECONDS,
                    optional=True,
                ),
                Leaf(
                    "meanTimeToFirstAck",
                    "number",
                    "Mean time until an incident is first acknowledged, over the last 90 days.",
                    SECONDS,
                    optional=True,
                ),
                Leaf(
                    "upTimePercentage",
                    "number",
                    "Share of the last 30 days without a major incident.",
                    PERCENT,
                    optional=True,
                ),
            ),
            optional=True,
        ),
        LeafGroup(
            "serviceInfo",
            "How the service is set up for incidents.",
            (
                _flag("hasEscalationPolicy", "An escalation policy is set."),
                _flag("hasTeamsAssigned", "At least one team is assigned."),
                _flag("hasDescription", "There is a description."),
                Leaf(
                    "alertCreationType",
                    "string",
                    "Whether events create incidents alone or alerts too, in the vendor's word.",
                    optional=True,
                ),
            ),
            optional=True,
        ),
    ),
)

OBSERVABILITY = Shape(
    "observability",
    "Observability metrics",
    (
        _count("sloCount", "Service level objectives of the entity."),
        _count("monitorCount", "Monitors of the entity."),
    ),
)

COMPLIANCE = Shape(
    "compliance",
    "Compliance facts",
    (
        LeafGroup(
            "metadata",
            "What the entity's metadata says.",
            (
                _boolean("hasTitle", "There is a title."),
                _boolean("hasDescription", "There is a description."),
                _boolean("hasTags", "There is at least one tag."),
                _boolean("hasOwner", "The entity names an owner (`spec.owner`)."),
            ),
        ),
        LeafGroup(
            "techdocs",
            "Documentation.",
            (_boolean("hasTechdocsRef", "An annotation points to documentation."),),
        ),
        LeafGroup(
            "ownership",
            "The entity's relations in the catalog.",
            (
                _boolean(
                    "hasOwner", "There is an ownedBy relation, its target in the catalog or not."
                ),
                _boolean("hasGroupOwner", "The owner is a group."),
                _boolean("hasRelationships", "There is any relation other than ownedBy."),
                _boolean("ownerExists", "The target of the ownedBy relation is in the catalog."),
            ),
        ),
    ),
)

REPOSITORY = Shape(
    "repository",
    "Facts about the repository",
    (
        Leaf("filePaths", "string[]", "Paths of all files of the default branch, sorted."),
        _count("totalFiles", "Number of files of the default branch."),
        Leaf("inCatalog", "boolean", "There is a catalog-info file.", optional=True),
        LeafGroup(
            "fileTypes",
            "Number of files by type; a file may count in several.",
            (
                _count("docker", "Container and compose files."),
                _count("yaml", "YAML files."),
                _count("javascript", "JavaScript and TypeScript files."),
                _count("python", "Python files."),
                _count("docs", "Documentation files."),
                _count("config", "Configuration files."),
            ),
        ),
    ),
)

SHAPES = (CODEHOST, SECURITY, INCIDENT, OBSERVABILITY, COMPLIANCE, REPOSITORY)
