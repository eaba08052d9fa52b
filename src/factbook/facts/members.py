"""Values of members of documents; each calls `report` with a path for what it cannot take."""

import re
from collections.abc import Callable
from typing import Any, Final

from factbook.catalog import ref
from factbook.errors import InputError

Report = Callable[[str, str], None]

# So many months are milliseconds that a database can still count.
LARGEST_COUNT: Final = 1_000_000_000

_IDENTIFIER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
# Source: the expression that semver.org suggests.
_NUMBER: Final = r"(0|[1-9]\d*)"
_PRERELEASE: Final = r"(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
_VERSION: Final = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_PRERELEASE}(\.{_PRERELEASE})*)?"
    r"(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?",
    re.ASCII,
)


def take_object(value: object, path: str, report: Report) -> dict[str, Any]:
    """An object; empty if it is none."""
    if isinstance(value, dict):
        return value
    report(path, "has to be an object")
    return {}


def take_string(value: object, path: str, report: Report) -> str:
    """A text that is not blank."""
    if isinstance(value, str) and value.strip():
        return value
    report(path, "has to be a string that is not blank")
    return ""


def take_text(value: object, path: str, report: Report) -> str:
    """Any text."""
    if isinstance(value, str):
        return value
    report(path, "has to be a string")
    return ""


def take_identifier(value: object, path: str, report: Report) -> str:
    """An id."""
    if isinstance(value, str) and _IDENTIFIER.fullmatch(value):
        return value
    report(path, "has to be 1 to 100 letters, digits, dots, dashes or underscores")
    return ""


def take_boolean(value: object, path: str, report: Report) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        report(path, "has to be true or false")
    return value is True


def take_count(value: object, path: str, report: Report) -> int:
    """A positive number of something."""
    if type(value) is int and 0 < value <= LARGEST_COUNT:
        return value
    report(path, f"has to be a whole number from 1 to {LARGEST_COUNT}")
    return 0


def take_version(value: object, path: str, report: Report) -> str:
    """A semantic version."""
    if isinstance(value, str) and _VERSION.fullmatch(value):
        return value
    report(path, "has to be a semantic version such as 1.0.0")
    return ""


def take_reference(value: object, path: str, report: Report, kind: str | None = None) -> str:
    """A canonical reference; a `kind` is that of references that leave it out."""
    try:
        if isinstance(value, str):
            return ref.canonicalize_ref(value, kind=kind)
    except InputError as error:
        report(path, error.message)
        return ""
    report(path, "has to be a reference such as group:default/platform")
    return ""
