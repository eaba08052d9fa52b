"""Which addresses a client may ask: those on the origin of its base URL, and no others."""

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
    """A path from its segments, each percent-encoded whole: `/repos/owner/name`.

    Raises ValueError for an empty segment, `.` and `..`, which would name another place.
    """
    texts = [str(segment) for segment in segments]
    if {"", ".", ".."} & set(texts):
        raise ValueError("A path cannot have an empty segment, a dot or two dots.")
    return "".join(f"/{quote(text, safe='')}" for text in texts)


def host_of(base_url: str) -> str:
    """The host of a base URL. Raises ConfigurationError for what is not one."""
    host = _origin(base_url)[1]
    if not host or "?" in base_url or _UNPRINTABLE.search(base_url):
        raise ConfigurationError(
            "A base URL has to be like https://host/path, without name, password and query."
        )
    return host


def address(base_url: str, target: str, query: Mapping[str, str | int]) -> str | None:
    """The whole address of a target below the base URL, or on its origin when it is whole already.

    None when it leads to another origin or climbs with `..`.
    """
    url = target if _ABSOLUTE.match(target) else f"{base_url}/{target.lstrip('/')}"
    if query:
        url += ("&" if "?" in url else "?") + urlencode(query)
    if _UNPRINTABLE.search(url) or _origin(url) != _origin(base_url):
        return None
    return None if climbs(unquote(urlsplit(url).path)) else url


def climbs(text: str) -> bool:
    """Whether a path has a part that leads to another place, as some server may read it.

    Some take a backslash for a slash, and cut off what follows a ; in a segment.
    """
    segments = text.replace("\\", "/").split("/")
    return any(segment.partition(";")[0] in {".", ".."} for segment in segments)


def moved(base_url: str, url: str, location: str) -> str | None:
    """Where a redirect from the address leads; None when that is not the client's to ask."""
    try:
        return address(base_url, urljoin(url, location), {})
    except ValueError:
        return None


def _origin(url: str) -> tuple[str, str, int]:
    """Scheme, host and port; an empty host when the address is not a plain one of HTTP."""
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        return "", "", 0
    if parts.scheme not in _PORTS or not parts.hostname or "@" in parts.netloc:
        return "", "", 0
    return parts.scheme, parts.hostname, port
