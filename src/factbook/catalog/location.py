"""References to locations: `<type>:<target>`, as `url:https://host/path`.

Source: the catalog API's annotations `managed-by-location` and `managed-by-origin-location`.
"""

from typing import NamedTuple

from factbook.catalog.validation import BLANKS
from factbook.errors import InputError

_FORM = "is not of the form <type>:<target>, as url:https://host/path"
_CONTROLS_AND_SPACE = "".join(map(chr, range(0x21)))
_IGNORED_IN_SCHEMES = str.maketrans("", "", "\t\n\r")


class LocationRef(NamedTuple):
    """The origin of an entity: a type such as `url`, and a target of that type."""

    type: str
    target: str


def parse(text: str) -> LocationRef:
    """Parse a location; the first colon ends the type.

    Raises InputError for an empty part, for an address that lacks its type, and for a target that a
    browser would run as a script.
    """
    before, _, after = text.partition(":")
    location = LocationRef(before.strip(BLANKS), after.strip(BLANKS))
    if not (location.type and location.target):
        raise InputError(f"{_shown(text)} {_FORM}")
    if location.type in ("http", "https"):
        raise InputError(f"{_shown(text)} lacks its type: write url:{text[:100]}")
    scheme = location.target.lstrip(_CONTROLS_AND_SPACE).translate(_IGNORED_IN_SCHEMES)
    if scheme[:11].lower() == "javascript:":
        raise InputError(f"{_shown(text)} has a script as its target")
    return location


def _shown(text: str) -> str:
    return f'the location "{text[:100]}"'
