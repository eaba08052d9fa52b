"""A sign-in in progress at a provider, kept by the browser meanwhile."""

import base64
import binascii
import hmac
from typing import Final

import msgspec

from factbook.auth.encryption import signature
from factbook.clock import MINUTE

LIFETIME: Final = 10 * MINUTE
_LABEL: Final = b"factbook: an attempt to sign in with OpenID Connect"


class Attempt(msgspec.Struct, frozen=True):
    """State of one sign-in, checked when the browser comes back.

    `expires_at` is in milliseconds since the epoch.
    """

    state: str
    nonce: str
    code_verifier: str
    expires_at: int

    def __repr__(self) -> str:
        """Representation without the values, which are secrets."""
        return "Attempt(…)"


def seal(attempt: Attempt, key: bytes) -> str:
    """Encode the attempt as the value of a cookie, signed with a key derived from `key`."""
    body = base64.urlsafe_b64encode(msgspec.json.encode(attempt))
    return f"{body.decode()}.{signature(key, _LABEL, body)}"


def opened(text: str, key: bytes, now: int) -> Attempt | None:
    """Attempt in such a value; None if it was changed, has expired or is invalid."""
    body, _, given = text.encode("utf-8", "replace").rpartition(b".")
    if not hmac.compare_digest(given, signature(key, _LABEL, body).encode()):
        return None
    try:
        attempt = msgspec.json.decode(base64.urlsafe_b64decode(body), type=Attempt)
    except (binascii.Error, msgspec.DecodeError):
        return None
    return attempt if now < attempt.expires_at else None
