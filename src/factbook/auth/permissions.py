"""Permissions for tokens, and roles for people: each role is a set of permissions."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from factbook.errors import InputError, meant, suggestion


class Permission(NamedTuple):
    """A permission: its name in tokens and errors, its display title, and its description.

    A route that needs only read permissions changes nothing, even if its method is POST.
    """

    name: str
    title: str
    about: str
    only_reads: bool = False


CATALOG_READ: Final = "catalog.entity.read"
SET_WRITE: Final = "catalog.entity-set.write"
SOURCE_READ: Final = "tech-insights.data-source.read"
SOURCE_WRITE: Final = "tech-insights.data-source.write"
SOURCE_RUN: Final = "tech-insights.source.run"
FACT_WRITE: Final = "tech-insights.fact.write"
TOKEN_MANAGE: Final = "access.token.manage"  # noqa: S105 - the name of a permission
EVENTS_READ: Final = "events.read"
AUDIT_READ: Final = "audit.read"
SCIM_WRITE: Final = "scim.write"
CHECK_READ: Final = "tech-insights.check.read"
CHECK_WRITE: Final = "tech-insights.check.write"
SCORECARD_WRITE: Final = "tech-insights.scorecard.write"
EXEMPTION_REQUEST: Final = "tech-insights.exemption.request"
EXEMPTION_DECIDE: Final = "tech-insights.exemption.decide"
OPERATIONS_MANAGE: Final = "operations.manage"
OWN_WRITE: Final = "own.write"

PERMISSIONS = (
    Permission(
        CATALOG_READ,
        "Catalog entity read (*)",
        "Read every entity of the catalog.",
        only_reads=True,
    ),
    Permission(SET_WRITE, "Catalog entity set write", "Push, restore and delete sets of entities."),
    Permission(
        SOURCE_READ,
        "Tech Insights Data Source Read",
        "Read data sources and their facts; with the first one, ask the tools.",
        only_reads=True,
    ),
    Permission(
        SOURCE_WRITE, "Tech Insights Data Source Write", "Define, change and publish data sources."
    ),
    Permission(SOURCE_RUN, "Tech Insights Source Run", "Collect from a data source now."),
    Permission(FACT_WRITE, "Tech Insights Fact Write", "Push facts to data sources."),
    Permission(
        TOKEN_MANAGE, "Access token manage", "List, make and revoke tokens, and manage people."
    ),
    Permission(
        EVENTS_READ,
        "Events read",
        "Read the feed of events, with the references and values of facts in it.",
        only_reads=True,
    ),
    Permission(AUDIT_READ, "Audit read", "Read who did what.", only_reads=True),
    Permission(
        SCIM_WRITE,
        "SCIM write",
        "Push people and groups as an identity provider, and take away the access of people.",
    ),
    Permission(
        CHECK_READ,
        "Tech Insights Check Read",
        "Read checks and scorecards, their results and exemptions; the one that reads data sources "
        "includes it.",
        only_reads=True,
    ),
    Permission(CHECK_WRITE, "Tech Insights Check Write", "Define, change and publish checks."),
    Permission(
        SCORECARD_WRITE, "Tech Insights Scorecard Write", "Define, change and publish scorecards."
    ),
    Permission(
        EXEMPTION_REQUEST,
        "Tech Insights Exemption Request",
        "Ask for an exemption of any entity; without it, of those that one's own groups own.",
    ),
    Permission(
        EXEMPTION_DECIDE,
        "Tech Insights Exemption Decide",
        "Approve, deny and revoke exemptions; so may the groups that count as approvers, and the "
        "owner of a check.",
    ),
    Permission(
        OPERATIONS_MANAGE,
        "Operations manage",
        "Manage webhooks and digests, and see the status of the service; the one that manages "
        "tokens includes it.",
    ),
    Permission(
        OWN_WRITE,
        "Own write",
        "Write the checks, scorecards and data sources that one's own groups own, with facts of "
        "their entities, and the sets of which they own every entity.",
    ),
)
PERMISSION_NAMES = frozenset(permission.name for permission in PERMISSIONS)
READ_ONLY: Final = frozenset(permission.name for permission in PERMISSIONS if permission.only_reads)
TITLES = {permission.name: permission.title for permission in PERMISSIONS}
# Permissions included in others, for old tokens: clients that read data sources also read checks,
# and the token permission covered webhooks before they had their own.
_INCLUDED: Final = {
    SOURCE_READ: frozenset({CHECK_READ}),
    TOKEN_MANAGE: frozenset({OPERATIONS_MANAGE}),
}


# Permissions that OWN_WRITE replaces for members of the owning group, on routes that allow it.
OWNER_PERMISSIONS: Final = frozenset(
    {SET_WRITE, CHECK_WRITE, SCORECARD_WRITE, SOURCE_WRITE, SOURCE_RUN, FACT_WRITE}
)


class Preset(NamedTuple):
    """A named choice of permissions for a common purpose."""

    name: str
    title: str
    about: str
    permissions: frozenset[str]


# Default permissions of a new token.
READING: Final = frozenset({CATALOG_READ, SOURCE_READ})
PRESETS: Final = (
    Preset("ask", "Ask", "Reads the catalog and calls the tools: for agents.", READING),
    Preset(
        "push",
        "Push sets",
        "Writes sets of entities and reads nothing: for jobs that push.",
        frozenset({SET_WRITE}),
    ),
    Preset(
        "pipeline",
        "Pipeline",
        "Writes sets of entities and facts, and reads: for pipelines that push, preview and gate.",
        READING | {SET_WRITE, FACT_WRITE},
    ),
    Preset(
        "author",
        "Author",
        "Writes data sources, checks and scorecards, and reads: for repositories of definitions.",
        READING | {SOURCE_WRITE, SOURCE_RUN, CHECK_WRITE, SCORECARD_WRITE},
    ),
    Preset(
        "scim",
        "SCIM",
        "Writes people and groups: for an identity provider.",
        frozenset({SCIM_WRITE}),
    ),
)


def suffices_when_owned(held: frozenset[str], needed: tuple[str, ...]) -> bool:
    """True if OWN_WRITE makes up for all missing permissions."""
    return OWN_WRITE in held and held.union(OWNER_PERMISSIONS).issuperset(needed)


@lru_cache(maxsize=256)
def add_included(names: frozenset[str]) -> frozenset[str]:
    """Add the permissions that these permissions include."""
    return names.union(*(more for name, more in _INCLUDED.items() if name in names))


def check_permissions(names: Iterable[str]) -> frozenset[str]:
    """Validate permission names; raises InputError for unknown ones."""
    wanted = frozenset(names)
    if unknown := sorted(wanted - PERMISSION_NAMES):
        names = sorted(PERMISSION_NAMES)
        known = f"{meant(unknown[0], names)}. There are: {', '.join(names)}."
        raise InputError(f"There is no permission {', '.join(unknown)}{known}")
    return wanted


def expand_presets(names: Iterable[str]) -> frozenset[str]:
    """Permissions of the named presets; raises InputError for unknown ones."""
    known = {preset.name: preset.permissions for preset in PRESETS}
    wanted = frozenset(names)
    if unknown := sorted(wanted - known.keys()):
        there = suggestion(unknown[0], known)
        raise InputError(f"There is no preset {', '.join(unknown)}.{there}")
    return frozenset[str]().union(*(known[name] for name in wanted))


ADMINISTRATOR: Final = "administrator"
OPERATOR: Final = "operator"
EDITOR: Final = "editor"
VIEWER: Final = "viewer"

_VIEWER: Final = frozenset({CATALOG_READ, SOURCE_READ, CHECK_READ})
_EDITOR: Final = _VIEWER | {OWN_WRITE}
# Everything to run the service, but nothing about people. The audit is excluded: it names people.
_OPERATOR: Final = _EDITOR | {
    SET_WRITE,
    SOURCE_WRITE,
    SOURCE_RUN,
    FACT_WRITE,
    EVENTS_READ,
    OPERATIONS_MANAGE,
}
# Highest role first.
ROLES: Mapping[str, frozenset[str]] = {
    ADMINISTRATOR: PERMISSION_NAMES,
    OPERATOR: _OPERATOR,
    EDITOR: _EDITOR,
    VIEWER: _VIEWER,
}
# A higher rank means a higher role.
ROLE_RANKS: Mapping[str, int] = {role: rank for rank, role in enumerate(reversed(list(ROLES)))}
ROLE_TITLES: Mapping[str, str] = {
    ADMINISTRATOR: "Administrator",
    OPERATOR: "Operator",
    EDITOR: "Editor",
    VIEWER: "Viewer",
}
ROLE_DESCRIPTIONS: Mapping[str, str] = {
    ADMINISTRATOR: "Reads everything, changes everything and manages people and tokens.",
    OPERATOR: "Runs the service: sets, data sources, importers, webhooks and digests; manages "
    "neither people nor tokens of others, and does not read the audit.",
    EDITOR: "Reads what a viewer does, and writes checks, scorecards, data sources and sets that "
    "their groups own.",
    VIEWER: "Reads the catalog, the data sources with their facts, and the checks with their "
    "results, and changes nothing.",
}


def check_role(role: str) -> str:
    """Validate the name of a role; raises InputError for an unknown one."""
    if role not in ROLES:
        raise InputError(f'There is no role "{role[:80]}".{suggestion(role, ROLES)}')
    return role
