"""Roles of people: each a set of permissions that has those of the roles below it."""

from collections.abc import Mapping
from typing import Final

from factbook.auth import permissions
from factbook.errors import InputError, suggestion

ADMINISTRATOR: Final = "administrator"
OPERATOR: Final = "operator"
EDITOR: Final = "editor"
VIEWER: Final = "viewer"

_VIEWER: Final = frozenset(
    {permissions.CATALOG_READ, permissions.SOURCE_READ, permissions.CHECK_READ}
)
_EDITOR: Final = _VIEWER | {permissions.OWN_WRITE}
# What it takes to run the service, and nothing that is about people: they stand in the audit, too.
_OPERATOR: Final = _EDITOR | {
    permissions.SET_WRITE,
    permissions.SOURCE_WRITE,
    permissions.SOURCE_RUN,
    permissions.FACT_WRITE,
    permissions.EVENTS_READ,
    permissions.OPERATIONS_MANAGE,
}
# The highest first.
ROLES: Mapping[str, frozenset[str]] = {
    ADMINISTRATOR: permissions.NAMES,
    OPERATOR: _OPERATOR,
    EDITOR: _EDITOR,
    VIEWER: _VIEWER,
}
# By which of two is the higher one.
RANKS: Mapping[str, int] = {role: rank for rank, role in enumerate(reversed(list(ROLES)))}
TITLES: Mapping[str, str] = {
    ADMINISTRATOR: "Administrator",
    OPERATOR: "Operator",
    EDITOR: "Editor",
    VIEWER: "Viewer",
}
DESCRIPTIONS: Mapping[str, str] = {
    ADMINISTRATOR: "Reads everything, changes everything and manages people and tokens.",
    OPERATOR: "Runs the service: sets, data sources, importers, webhooks and digests; manages "
    "neither people nor tokens of others, and does not read the audit.",
    EDITOR: "Reads what a viewer does, and writes checks, scorecards, data sources and sets that "
    "their groups own.",
    VIEWER: "Reads the catalog, the data sources with their facts, and the checks with their "
    "results, and changes nothing.",
}


def checked(role: str) -> str:
    """The role with this name; raises InputError when there is none."""
    if role not in ROLES:
        raise InputError(f'There is no role "{role[:80]}".{suggestion(role, ROLES)}')
    return role
