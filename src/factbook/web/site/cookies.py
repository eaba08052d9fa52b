"""Secrets in browsers: cookies, and the CSRF token of forms, masked differently on each page.

Cookies are for sessions, forms without one, known browsers, and one-time notices.

Pages are compressed, and show parts of their address: from the lengths of many answers an attacker
on the network could guess a secret that they all contain (BREACH). A secret masked differently each
time does not repeat.
"""

import base64
import binascii
import re
import secrets
from typing import Final

from factbook.http.requests import Request

# With the prefix browsers refuse one that was set without TLS or for other hosts too (RFC 6265bis).
_HOST: Final = "__Host-"

SESSION: Final = "factbook"
VISITOR: Final = "factbook-visitor"  # before there is a session
NOTICE: Final = "factbook-notice"
KNOWN: Final = "factbook-known"  # with a name of each person who has signed in
ATTEMPT: Final = "factbook-attempt"  # at signing in elsewhere
THEME: Final = "factbook-theme"

_MASKED = re.compile("[0-9a-f]{128}", re.ASCII)
_LENGTH = 64


def read(request: Request, name: str, *, secure: bool) -> str | None:
    """Value of a cookie; None when it was not sent.

    Other programs on the same host may have set cookies of any form, so that no parser is used that
    rejects all of them for a malformed one. Of several with one name the first counts, which
    browsers send for the narrowest path (RFC 6265, section 5.4).
    """
    wanted = _named(name, secure=secure)
    for pair in (request.header(b"cookie") or "").split(";"):
        found, _, value = pair.strip().partition("=")
        if found == wanted:
            return value
    return None


def written(name: str, value: str, *, secure: bool, seconds: int | None = None) -> str:
    """Header that sets a cookie, for this many seconds or for the browser session.

    `value` has to consist of letters, digits and `-_.=`.
    """
    lasting = "" if seconds is None else f"; Max-Age={seconds}"
    safe = "; Secure" if secure else ""
    return f"{_named(name, secure=secure)}={value}; Path=/; HttpOnly; SameSite=Lax{lasting}{safe}"


def dropped(name: str, *, secure: bool) -> str:
    """Header that deletes a cookie."""
    return written(name, "", secure=secure, seconds=0)


def packed(text: str) -> str:
    """Encode a text as the value of a cookie."""
    return base64.urlsafe_b64encode(text.encode()).decode()


def unpacked(value: str) -> str:
    """Decode the text of such a value; empty for an invalid one."""
    try:
        return base64.urlsafe_b64decode(value.encode("ascii", "replace")).decode()
    except (binascii.Error, ValueError):
        return ""


def masked(token: str) -> str:
    """Mask a token of 64 hexadecimal digits for a page."""
    mask = secrets.token_bytes(_LENGTH // 2)
    return mask.hex() + _mixed(mask, bytes.fromhex(token)).hex()


def unmasked(shown: str) -> str:
    """Token from its masked form; empty for an invalid one."""
    if not _MASKED.fullmatch(shown):
        return ""
    return _mixed(bytes.fromhex(shown[:_LENGTH]), bytes.fromhex(shown[_LENGTH:])).hex()


def _named(name: str, *, secure: bool) -> str:
    return f"{_HOST}{name}" if secure else name


def _mixed(one: bytes, other: bytes) -> bytes:
    return bytes(left ^ right for left, right in zip(one, other, strict=True))
