"""Where an entity's own annotations say that its source code is."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

SOURCE_LOCATION: Final = "backstage.io/source-location"


class SourceLocation(NamedTuple):
    """An address on the web; `host` in lower case, with its port, `path` without outer slashes."""

    scheme: str
    host: str
    path: str


def annotations(entity: Mapping[str, Any]) -> Mapping[str, Any]:
    """The entity's annotations, whatever stands in their place."""
    found = (entity.get("metadata") or {}).get("annotations")
    return found if isinstance(found, Mapping) else {}


def location(entity: Mapping[str, Any]) -> SourceLocation | None:
    """The source location, when it is on the web."""
    text = annotations(entity).get(SOURCE_LOCATION)
    if isinstance(text, str) and text.startswith(("url:https://", "url:http://")):
        return parsed(text.removeprefix("url:"))
    return None


def parsed(url: str) -> SourceLocation | None:
    """The location of an address; None when it is not one. A query and a fragment are left out."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    return SourceLocation(parts.scheme, parts.netloc.lower(), parts.path.strip("/"))
