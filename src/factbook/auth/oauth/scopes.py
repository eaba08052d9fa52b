"""Scopes: permissions that a client may be given for the tools, by their names in tokens."""

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
# What any tool needs. Tokens of OAuth are good for tools alone, so nothing else is given.
SCOPES: Final = (*BASIC, CHECK_READ, CHECK_WRITE, EXEMPTION_REQUEST)
LONGEST: Final = 1_000


def asked(text: str) -> frozenset[str]:
    """Permissions that a `scope` parameter asks for; the basic ones where it names none.

    Names that are not known are left out (RFC 6749, section 3.3): clients add some of their own,
    such as `offline_access`. Empty: it names only such.
    """
    names = text.split()
    return frozenset(names).intersection(SCOPES) if names else frozenset(BASIC)


def written(permissions: frozenset[str]) -> str:
    """Permissions as the value of a `scope` parameter."""
    return " ".join(sorted(permissions))
