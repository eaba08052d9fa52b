"""Encryption of secrets that have to be read again, such as those sent to other systems.

AES-256-GCM under a key that HKDF-SHA256 (RFC 5869) derives from the token key, another one for each
label. A sealed secret opens only with the text that it was sealed beside, so it cannot be moved.
"""

import secrets
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_FORM: Final = b"\x01"
_NONCE_BYTES: Final = 12
_KEY_BYTES: Final = 32


class NotOpenedError(Exception):
    """It was sealed under another key, or for another place, or has changed since."""


def seal(key: bytes, label: str, beside: str, content: bytes) -> bytes:
    """Encrypt the content, readable only with the key and the label, beside the same text."""
    nonce = secrets.token_bytes(_NONCE_BYTES)
    return _FORM + nonce + _cipher(key, label).encrypt(nonce, content, beside.encode())


def opened(key: bytes, label: str, beside: str, sealed: bytes) -> bytes:
    """Decrypt a sealed secret; raises NotOpenedError."""
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - as in _cipher

    form, nonce, rest = sealed[:1], sealed[1 : 1 + _NONCE_BYTES], sealed[1 + _NONCE_BYTES :]
    if form != _FORM or len(nonce) != _NONCE_BYTES:
        raise NotOpenedError
    try:
        return _cipher(key, label).decrypt(nonce, rest, beside.encode())
    except InvalidTag:
        raise NotOpenedError from None


def _cipher(key: bytes, label: str) -> "AESGCM":
    # Heavy to import, and of no use where nothing is sealed.
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415
    from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF  # noqa: PLC0415

    info = f"factbook {label}".encode()
    derived = HKDF(algorithm=SHA256(), length=_KEY_BYTES, salt=None, info=info).derive(key)
    return AESGCM(derived)
