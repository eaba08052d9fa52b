"""Absolute URLs as browsers read them.

Source: the URL standard (https://url.spec.whatwg.org), as Ada reads it: the parser of Node.js, with
which the catalog API's own validation is written.
"""

import re

import can_ada

# Browsers ignore these, at both ends and anywhere.
_CONTROLS_AND_SPACE = "".join(map(chr, range(0x21)))
_IGNORED = str.maketrans("", "", "\t\n\r")
# The schemes whose hosts are names.
_HOST = re.compile(
    r"(?:(?:https?|wss?|ftp):[/\\]*(?:[^/\\?#]*@)?|file:[/\\]{2})([^/\\?#]*)", re.IGNORECASE
)
# Characters of a host that is not plain: marks in one take time by the square of their number.
_LONGEST_HOST = 2_000


def is_absolute(text: str) -> bool:
    """Return true if the text is an absolute URL."""
    return parse(text) is not None


def host(text: str) -> str:
    """The host, with its port, that a browser opens for this URL; "" if there is none."""
    parsed = parse(text)
    return "" if parsed is None else parsed.host


def parse(text: str) -> can_ada.URL | None:
    r"""The URL as a browser reads it, or None if the text isn't an absolute URL.

    Whatever decides about a foreign URL and whatever shows its host must use this parser. Others
    read `https://a.example\@b.example/` as an address on b.example; browsers open a.example.
    """
    text = text.strip(_CONTROLS_AND_SPACE).translate(_IGNORED)
    host = _HOST.match(text)
    if host and len(host[1]) > _LONGEST_HOST and not _is_plain(host[1]):
        return None
    try:
        return can_ada.parse(text)
    except (TypeError, ValueError):  # a TypeError for half of a surrogate pair
        return None


def _is_plain(host: str) -> bool:
    """Return true if the host is compared as it is written."""
    return host.isascii() and "%" not in host and "xn--" not in host.lower()
