"""One attempt to sign in at a provider, which the browser keeps while the person is there."""

import base64
import binascii
import hmac
from typing import Final

import msgspec

from factbook.clock import MINUTE

LIFETIME: Final = 10 * MINUTE
_LABEL: Final = b"factbook: an attempt to sign in with OpenID Connect"


class Attempt(msgspec.Struct, frozen=True):
    """What one sign-in is recognised by when the browser comes back.

    `expires_at` is in milliseconds since the epoch.
    """

    state: str
    nonce: str
    code_verifier: str
    expires_at: int

    def __repr__(self) -> str:
        """Without the values, which are secrets."""
        return "Attempt(…)"


def seal(attempt: Attempt, key: bytes) -> str:
    """The attempt as the value of a cookie, signed with a key made from `key`."""
    body = base64.urlsafe_b64encode(msgspec.json.encode(attempt))
    return f"{body.decode()}.{_signature(body, key)}"


def opened(text: str, key: bytes, now: int) -> Attempt | None:
    """The attempt in such a value; None when it was changed, is too old or is none."""
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
