"""Validation of absolute URLs.

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
    text = text.strip(_CONTROLS_AND_SPACE).translate(_IGNORED)
    host = _HOST.match(text)
    if host and len(host[1]) > _LONGEST_HOST and not _is_plain(host[1]):
        return False
    try:
        return can_ada.can_parse(text)
    except TypeError:  # half of a surrogate pair, which is no character
        return False


def _is_plain(host: str) -> bool:
    """Return true if the host is compared as it is written."""
    return host.isascii() and "%" not in host and "xn--" not in host.lower()
