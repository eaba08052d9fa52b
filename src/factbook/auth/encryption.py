"""The token key, and encryption of secrets that the service has to read again.

AES-256-GCM with a key per label, derived from the token key by HKDF-SHA256 (RFC 5869). The text
passed as `beside` is authenticated too, so a sealed secret can't be moved to another place.
"""

import errno
import hashlib
import hmac
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Final

from factbook.errors import ConfigurationError, UnavailableError
from factbook.settings import Settings
from factbook.storage.database_url import sqlite_path

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_FORM: Final = b"\x01"
_NONCE_BYTES: Final = 12
_KEY_BYTES: Final = 32
_NO_ROOM: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class NotOpenedError(Exception):
    """The secret was sealed with another key or for another place, or was changed."""


def make_token_key(setting: str | None, file: Path | None) -> bytes:
    """Derive the 64-byte key for token hashes from the setting or from a file.

    Creates the file if missing. Raises ConfigurationError without a setting or file, or if other
    users may read the file, and UnavailableError if the disk is full.
    """
    if setting is not None:
        return hashlib.sha512(setting.encode()).digest()
    if file is None:
        raise ConfigurationError(
            "token_key has to be set on PostgreSQL: every process needs the same. "
            "Make one with `openssl rand -hex 32` and set FACTBOOK_TOKEN_KEY."
        )
    return hashlib.sha512(_read_key_file(file)).digest()


def _read_key_file(file: Path) -> bytes:
    try:
        return _read_key_content(file)
    except OSError as error:
        if error.errno in _NO_ROOM:
            told = UnavailableError(f"The disk is full, so the key file {file} cannot be created.")
            told.add_note("Free some room, and start again.")
            raise told from None
        raise ConfigurationError(f"The key file {file} cannot be used: {error}.") from None


def find_token_key(settings: Settings) -> bytes:
    """Key for token hashes; on SQLite, a file beside the database if the setting is empty.

    Raises as `make_token_key` does.
    """
    url = settings.database_url
    file: Path | None = None
    if url.startswith("sqlite:"):
        database = sqlite_path(url)
        file = database.with_name(f"{database.name}.key")
    return make_token_key(settings.token_key, file)


def _read_key_content(file: Path) -> bytes:
    if not file.exists():
        _create_key_file(file)
    if file.stat().st_mode & 0o077:
        raise ConfigurationError(f"{file} holds a secret and others may read it: chmod 600 {file}.")
    content = file.read_bytes().strip()
    if len(content) < 32:
        raise ConfigurationError(f"{file} does not hold a key of at least 32 characters.")
    return content


def _create_key_file(file: Path) -> None:
    """Write the key to a temporary file and link it, so no process reads half a key."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f"{file.name}.{secrets.token_hex(4)}")
    try:
        draft.touch(mode=0o600)
        draft.write_text(secrets.token_hex(32))
        file.hardlink_to(draft)
    except FileExistsError:
        pass  # another process created the file first
    finally:
        draft.unlink(missing_ok=True)


def sign_content(key: bytes, label: bytes, content: bytes) -> str:
    """HMAC-SHA-256 in hexadecimal, with a key derived for this label only."""
    return hmac.digest(hmac.digest(key, label, "sha256"), content, "sha256").hex()


def seal_secret(key: bytes, label: str, beside: str, content: bytes) -> bytes:
    """Encrypt content; decrypting requires the same key, label and `beside` text."""
    nonce = secrets.token_bytes(_NONCE_BYTES)
    return _FORM + nonce + _make_cipher(key, label).encrypt(nonce, content, beside.encode())


def open_secret(key: bytes, label: str, beside: str, sealed: bytes) -> bytes:
    """Decrypt a sealed secret; raises NotOpenedError."""
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - as in _cipher

    form, nonce, rest = sealed[:1], sealed[1 : 1 + _NONCE_BYTES], sealed[1 + _NONCE_BYTES :]
    if form != _FORM or len(nonce) != _NONCE_BYTES:
        raise NotOpenedError
    try:
        return _make_cipher(key, label).decrypt(nonce, rest, beside.encode())
    except InvalidTag:
        raise NotOpenedError from None


def _make_cipher(key: bytes, label: str) -> "AESGCM":
    # Slow to import, and unused by services without sealed secrets.
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415
    from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF  # noqa: PLC0415

    info = f"factbook {label}".encode()
    derived = HKDF(algorithm=SHA256(), length=_KEY_BYTES, salt=None, info=info).derive(key)
    return AESGCM(derived)
