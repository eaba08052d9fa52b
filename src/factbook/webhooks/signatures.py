"""Signatures that prove the sender and the integrity of a message to its receiver.

Source: the Standard Webhooks specification 1.0.0, symmetric signatures.
"""

import hmac
import secrets
from base64 import b64encode

PREFIX = "whsec_"
_BYTES = 32


def secret() -> bytes:
    """Generate a secret."""
    return secrets.token_bytes(_BYTES)


def shown(secret: bytes) -> str:
    """A secret in the form that receivers expect."""
    return PREFIX + b64encode(secret).decode()


def headers(secret: bytes, id_: str, seconds: int, body: bytes) -> dict[str, str]:
    """Headers of a message sent at a time, in seconds since the epoch."""
    signed = f"{id_}.{seconds}.".encode() + body
    signature = b64encode(hmac.digest(secret, signed, "sha256")).decode()
    return {
        "webhook-id": id_,
        "webhook-timestamp": str(seconds),
        "webhook-signature": f"v1,{signature}",
    }
