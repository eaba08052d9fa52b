"""Scopes: permissions that a client may be given for the tools, by their names in tokens."""

from collections.abc import Mapping
from typing import Final

from factbook.auth.permissions import (
    CATALOG_READ,
    CHECK_READ,
    CHECK_WRITE,
    EXEMPTION_REQUEST,
    SOURCE_READ,
)

# What the tools need that only read; asked for where a client names none.
BASIC: Final = (CATALOG_READ, SOURCE_READ)
# What any tool needs, in the words of the page that asks for consent. Tokens of OAuth are good for
# tools alone, so nothing else is given.
WORDS: Final[Mapping[str, str]] = {
    CATALOG_READ: "Read every entity of the catalog",
    SOURCE_READ: "Read the facts and checks of each of them, and their history",
    CHECK_READ: "Read checks and scorecards with their results",
    CHECK_WRITE: "Define, change and publish checks",
    EXEMPTION_REQUEST: "Ask for exemptions from checks, in your name",
}
SCOPES: Final = tuple(WORDS)
LONGEST: Final = 1_000


def asked(text: str) -> frozenset[str]:
    """Permissions that a `scope` parameter asks for; the basic ones where it names none.

    Unknown names are ignored (RFC 6749, section 3.3): hosts send their own, such as `claudeai` or
    `offline_access`.
    """
    return known(text) or frozenset(BASIC)


def known(text: str) -> frozenset[str]:
    """Permissions that a `scope` parameter names."""
    return frozenset(text.split()).intersection(SCOPES)


def written(permissions: frozenset[str]) -> str:
    """Permissions as the value of a `scope` parameter."""
    return " ".join(sorted(permissions))
