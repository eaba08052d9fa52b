"""A sign-in in progress at a provider, kept by the browser meanwhile."""

import base64
import binascii
import hmac
from typing import Final

import msgspec

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
    return f"{body.decode()}.{_signature(body, key)}"


def opened(text: str, key: bytes, now: int) -> Attempt | None:
    """Attempt in such a value; None if it was changed, has expired or is invalid."""
    body, _, signature = text.encode("utf-8", "replace").rpartition(b".")
    if not hmac.compare_digest(signature, _signature(body, key).encode()):
        return None
    try:
        attempt = msgspec.json.decode(base64.urlsafe_b64decode(body), type=Attempt)
    except (binascii.Error, msgspec.DecodeError):
        return None
    return attempt if now < attempt.expires_at else None


def _signature(body: bytes, key: bytes) -> str:
    """HMAC-SHA-256, in hexadecimal, with a key that signs nothing else."""
    own_key = hmac.digest(key, _LABEL, "sha256")
    return hmac.digest(own_key, body, "sha256").hex()
