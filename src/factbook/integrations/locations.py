"""Location of an entity's source code, read from its annotations."""

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from factbook.integrations.integration import annotations

SOURCE_LOCATION: Final = "backstage.io/source-location"

# As git writes addresses of its own.
_SHORT: Final = re.compile(r"git@([^/:@\s]+):([^:\s]+)", re.ASCII)
_SCHEMES: Final = ("https", "http", "ssh")


class SourceLocation(NamedTuple):
    """Web address; `host` in lower case with its port, `path` without slashes at its ends."""

    scheme: str
    host: str
    path: str


def location(entity: Mapping[str, Any]) -> SourceLocation | None:
    """The source location, if it is a web address."""
    text = annotations(entity).get(SOURCE_LOCATION)
    if isinstance(text, str) and text.startswith(("url:https://", "url:http://")):
        return parsed(text.removeprefix("url:"))
    return None


def slug(text: str, host: str) -> SourceLocation | None:
    """The location that a slug names: `acme/x`, or the URL of a repository, with or without `.git`.

    A slug that is not a URL has no scheme and refers to this host. None for a URL on another
    host, or one that contains a credential.
    """
    text = text.strip()
    short = _SHORT.fullmatch(text)
    if short:
        place: SourceLocation | None = SourceLocation("ssh", short[1].lower(), short[2].strip("/"))
    elif "://" in text:
        place = parsed(text)
    elif text.lower().startswith(f"{host}/"):
        place = parsed(f"https://{text}")
    else:
        return SourceLocation("", host, text.rstrip("/").removesuffix(".git"))
    if place is None or place.scheme not in _SCHEMES:
        return None
    at = place.host.removeprefix("git@") if place.scheme == "ssh" else place.host
    return place._replace(host=at) if at == host else None


def parsed(url: str) -> SourceLocation | None:
    """The location of a URL; None if it is not a URL. A query and a fragment are dropped."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    return SourceLocation(parts.scheme, parts.netloc.lower(), parts.path.strip("/"))
