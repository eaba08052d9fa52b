"""Location of an entity's source code, read from its annotations."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

SOURCE_LOCATION: Final = "backstage.io/source-location"


class SourceLocation(NamedTuple):
    """Web address; `host` in lower case with its port, `path` without slashes at its ends."""

    scheme: str
    host: str
    path: str


def annotations(entity: Mapping[str, Any]) -> Mapping[str, Any]:
    """The entity's annotations; an empty mapping if they are not one."""
    found = (entity.get("metadata") or {}).get("annotations")
    return found if isinstance(found, Mapping) else {}


def location(entity: Mapping[str, Any]) -> SourceLocation | None:
    """The source location, if it is a web address."""
    text = annotations(entity).get(SOURCE_LOCATION)
    if isinstance(text, str) and text.startswith(("url:https://", "url:http://")):
        return parsed(text.removeprefix("url:"))
    return None


def parsed(url: str) -> SourceLocation | None:
    """The location of a URL; None if it is not a URL. A query and a fragment are dropped."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    return SourceLocation(parts.scheme, parts.netloc.lower(), parts.path.strip("/"))
