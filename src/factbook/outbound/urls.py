"""URLs that a client may request: those on the origin of its base URL, and no others."""

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, unquote, urlencode, urljoin, urlsplit

from factbook.errors import ConfigurationError

_PORTS: Final = {"https": 443, "http": 80}
_ABSOLUTE: Final = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//", re.IGNORECASE)
# What parsers of addresses read differently; a fragment is never sent.
_UNPRINTABLE: Final = re.compile(r"[\x00-\x20\x7f\\#]")


def path(*segments: str | int) -> str:
    """A path from its segments, each percent-encoded as a whole: `/repos/owner/name`.

    Raises ValueError for an empty segment, `.` and `..`, which would name another resource.
    """
    texts = [str(segment) for segment in segments]
    if {"", ".", ".."} & set(texts):
        raise ValueError("A path cannot have an empty segment, a dot or two dots.")
    return "".join(f"/{quote(text, safe='')}" for text in texts)


def host_of(base_url: str) -> str:
    """The host of a base URL. Raises ConfigurationError for anything else."""
    host = _origin(base_url)[1]
    if not host or "?" in base_url or _UNPRINTABLE.search(base_url):
        raise ConfigurationError(
            "A base URL has to be like https://host/path, without name, password and query."
        )
    return host


def address(base_url: str, target: str, query: Mapping[str, str | int]) -> str | None:
    """The full URL of a target: below the base URL, or as given if it is a URL on the same origin.

    None if it leads to another origin or contains `..`.
    """
    url = target if _ABSOLUTE.match(target) else f"{base_url}/{target.lstrip('/')}"
    if query:
        url += ("&" if "?" in url else "?") + urlencode(query)
    if _UNPRINTABLE.search(url) or _origin(url) != _origin(base_url):
        return None
    return None if climbs(unquote(urlsplit(url).path)) else url


def climbs(text: str) -> bool:
    """True if a path has a segment that some server may read as a step up.

    Some servers treat a backslash as a slash, and drop the part of a segment after a `;`.
    """
    segments = text.replace("\\", "/").split("/")
    return any(segment.partition(";")[0] in {".", ".."} for segment in segments)


def moved(base_url: str, url: str, location: str) -> str | None:
    """The target of a redirect from `url`; None if the client may not request it."""
    try:
        return address(base_url, urljoin(url, location), {})
    except ValueError:
        return None


def _origin(url: str) -> tuple[str, str, int]:
    """Scheme, host and port; an empty host if this is not a plain HTTP URL."""
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        return "", "", 0
    if parts.scheme not in _PORTS or not parts.hostname or "@" in parts.netloc:
        return "", "", 0
    return parts.scheme, parts.hostname, port
