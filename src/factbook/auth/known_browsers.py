"""Browsers that have signed in before, recognised by a signed mark that they keep.

Password guesses from elsewhere are slowed down by name, which would also keep out the person of
that name. A known browser has a limit of its own instead. Its mark replaces no password: it is
valid for one person, until the password changes, and for a limited time.
"""

import hmac
import secrets
from typing import Final

from factbook.auth.encryption import signature
from factbook.clock import DAY, SECOND

LIFETIME: Final = 180 * DAY
_LABEL: Final = b"factbook: a browser that somebody has signed in from"
_NAME_LENGTH: Final = 16
_ID_BYTES: Final = 12


def name(key: bytes, ref: str) -> str:
    """Name of a person's mark, which does not reveal the person: 16 hexadecimal digits."""
    return _signature(key, "name", ref)[:_NAME_LENGTH]


def mark(key: bytes, ref: str, stored: str, now: int) -> str:
    """A new mark for a browser of the person whose password has this hash.

    Consists of letters, digits and `-_.`.
    """
    signed = f"{secrets.token_urlsafe(_ID_BYTES)}.{(now + LIFETIME) // SECOND}"
    return f"{signed}.{_signature(key, signed, ref, stored)}"


def recognized(key: bytes, value: str | None, ref: str, stored: str | None, now: int) -> str | None:
    """Id of the known browser with this mark.

    None for a mark that was changed, has ended, or is of another person or password, and when there
    is no password.
    """
    signed, _, given = (value or "").rpartition(".")
    expected = _signature(key, signed, ref, stored or "")
    fits = hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode())
    if not fits or stored is None:
        return None
    id_, _, ends_at = signed.partition(".")
    return id_ if now < int(ends_at) * SECOND else None


def _signature(key: bytes, *parts: str) -> str:
    # No part holds the character between them.
    return signature(key, _LABEL, "\n".join(parts).encode("utf-8", "replace"))
