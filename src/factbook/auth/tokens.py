"""API tokens: `fbk_`, 40 random characters and a checksum; only a keyed hash is ever stored."""

import errno
import hashlib
import re
import secrets
import zlib
from pathlib import Path
from typing import Final

from factbook.clock import DAY, HOUR, MINUTE
from factbook.errors import ConfigurationError, InputError, UnavailableError
from factbook.settings import Settings
from factbook.storage.database_url import sqlite_path

PREFIX: Final = "fbk_"
DEFAULT_LIFETIME: Final = "90d"
_ALPHABET: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_RANDOM: Final = 40
_CHECKSUM: Final = 6
_LENGTH: Final = len(PREFIX) + _RANDOM + _CHECKSUM
_LIFETIME = re.compile(r"([0-9]{1,5})([dhm])")
_NO_ROOM: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_UNITS = {"d": DAY, "h": HOUR, "m": MINUTE}


def generate() -> str:
    """Generate a token value, shown once and never stored."""
    random = "".join(secrets.choice(_ALPHABET) for _ in range(_RANDOM))
    return f"{PREFIX}{random}{_checksum(random)}"


def is_shaped(value: str) -> bool:
    """True if this has the prefix and length of a token."""
    return len(value) == _LENGTH and value.startswith(PREFIX) and value.isascii()


def is_well_formed(value: str) -> bool:
    """True if the checksum fits too, which tells a mistyped value from an unknown one."""
    return is_shaped(value) and _checksum(value[len(PREFIX) : -_CHECKSUM]) == value[-_CHECKSUM:]


def digest(value: str, key: bytes) -> str:
    """Keyed hash (BLAKE2b, 256 bits) under which a token is stored, in hexadecimal."""
    return hashlib.blake2b(value.encode(), key=key, digest_size=32).hexdigest()


def lifetime(text: str) -> int | None:
    """Milliseconds of `90d`, `12h` or `30m`, None for `never`; raises InputError otherwise."""
    if text == "never":
        return None
    match = _LIFETIME.fullmatch(text)
    if not match or not int(match[1]):
        raise InputError(f'"{text}" is not a lifetime: write 90d, 12h, 30m or never.')
    return int(match[1]) * _UNITS[match[2]]


def key(setting: str | None, file: Path | None) -> bytes:
    """The 64 bytes that key token hashes, made from the setting or from a file.

    The file is created if missing. Raises ConfigurationError when there is neither, or when others
    may read the file, UnavailableError when there is no room for it.
    """
    if setting is not None:
        return hashlib.sha512(setting.encode()).digest()
    if file is None:
        raise ConfigurationError(
            "token_key has to be set on PostgreSQL: every process needs the same. "
            "Make one with `openssl rand -hex 32` and set FACTBOOK_TOKEN_KEY."
        )
    return hashlib.sha512(_key_from(file)).digest()


def _key_from(file: Path) -> bytes:
    try:
        return _read(file)
    except OSError as error:
        if error.errno in _NO_ROOM:
            told = UnavailableError(f"The disk is full, so the key file {file} cannot be created.")
            told.add_note("Free some room, and start again.")
            raise told from None
        raise ConfigurationError(f"The key file {file} cannot be used: {error}.") from None


def token_key(settings: Settings) -> bytes:
    """Key of token hashes; on SQLite a file beside the database when it is not set.

    Raises ConfigurationError as `key` does.
    """
    url = settings.database_url
    file: Path | None = None
    if url.startswith("sqlite:"):
        database = sqlite_path(url)
        file = database.with_name(f"{database.name}.key")
    return key(settings.token_key, file)


def _read(file: Path) -> bytes:
    if not file.exists():
        _make(file)
    if file.stat().st_mode & 0o077:
        raise ConfigurationError(f"{file} holds a secret and others may read it: chmod 600 {file}.")
    content = file.read_bytes().strip()
    if len(content) < 32:
        raise ConfigurationError(f"{file} does not hold a key of at least 32 characters.")
    return content


def _make(file: Path) -> None:
    """Write a new key under another name first, so that no process ever reads half of one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f"{file.name}.{secrets.token_hex(4)}")
    try:
        draft.touch(mode=0o600)
        draft.write_text(secrets.token_hex(32))
        file.hardlink_to(draft)
    except FileExistsError:
        pass  # another process was first
    finally:
        draft.unlink(missing_ok=True)


def _checksum(text: str) -> str:
    number = zlib.crc32(text.encode())
    digits = []
    for _ in range(_CHECKSUM):
        number, digit = divmod(number, len(_ALPHABET))
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits))


def is_noted(used_at: int, now: int) -> bool:
    """True if a recorded use is recent enough to stand for one now; a future one never is."""
    return now - MINUTE < used_at <= now
