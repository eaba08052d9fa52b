"""Roles of people, each a set of permissions."""

from collections.abc import Mapping
from typing import Final

from factbook.auth import permissions
from factbook.errors import InputError

ADMINISTRATOR: Final = "administrator"
VIEWER: Final = "viewer"

ROLES: Mapping[str, frozenset[str]] = {
    ADMINISTRATOR: permissions.NAMES,
    VIEWER: permissions.with_included(
        frozenset({permissions.CATALOG_READ, permissions.SOURCE_READ})
    ),
}
TITLES: Mapping[str, str] = {ADMINISTRATOR: "Administrator", VIEWER: "Viewer"}
DESCRIPTIONS: Mapping[str, str] = {
    ADMINISTRATOR: "Reads everything, changes everything and manages people and tokens.",
    VIEWER: "Reads the catalog, the data sources with their facts, and the checks with their "
    "results, and changes nothing.",
}


def checked(role: str) -> str:
    """The role with this name; raises InputError when there is none."""
    if role not in ROLES:
        raise InputError(f'There is no role "{role[:80]}". There are: {", ".join(ROLES)}.')
    return role
