"""Cookies: of the session, of a form before there is a session, and of what to say once."""

import base64
import binascii
from typing import Final

from factbook.http.requests import Request

# With the prefix browsers refuse one that was set without TLS or for other hosts too (RFC 6265bis).
_HOST: Final = "__Host-"

SESSION: Final = "factbook"
VISITOR: Final = "factbook-visitor"  # before there is a session
NOTICE: Final = "factbook-notice"
ATTEMPT: Final = "factbook-attempt"  # at signing in elsewhere
THEME: Final = "factbook-theme"


def read(request: Request, name: str, *, secure: bool) -> str | None:
    """The value of a cookie; None when it was not sent.

    Other programs on the same host may have set cookies of any form, so that no parser is used
    that gives up on all of them at an odd one. Of several of one name the first counts, which
    browsers send for the narrowest path (RFC 6265, section 5.4).
    """
    wanted = _named(name, secure=secure)
    for pair in (request.header(b"cookie") or "").split(";"):
        found, _, value = pair.strip().partition("=")
        if found == wanted:
            return value
    return None


def written(name: str, value: str, *, secure: bool, seconds: int | None = None) -> str:
    """The header that sets a cookie, for so many seconds or as long as the browser is open.

    `value` has to consist of letters, digits and `-_.=`.
    """
    lasting = "" if seconds is None else f"; Max-Age={seconds}"
    safe = "; Secure" if secure else ""
    return f"{_named(name, secure=secure)}={value}; Path=/; HttpOnly; SameSite=Lax{lasting}{safe}"


def dropped(name: str, *, secure: bool) -> str:
    """The header that makes the browser forget a cookie."""
    return written(name, "", secure=secure, seconds=0)


def packed(text: str) -> str:
    """A text as the value of a cookie."""
    return base64.urlsafe_b64encode(text.encode()).decode()


def unpacked(value: str) -> str:
    """The text of such a value; empty for one that is none."""
    try:
        return base64.urlsafe_b64decode(value.encode("ascii", "replace")).decode()
    except (binascii.Error, ValueError):
        return ""


def _named(name: str, *, secure: bool) -> str:
    return f"{_HOST}{name}" if secure else name
