"""Passwords of local accounts, hashed with Argon2id (RFC 9106).

The parameters are the RFC's second recommended option, for low memory: 64 MiB, three passes, four
lanes. Hashing and comparing take that memory and about a tenth of a second, so callers run them on
a thread and limit concurrent calls.
"""

import unicodedata
from functools import cache
from pathlib import Path
from typing import Final

from argon2 import PasswordHasher
from argon2.exceptions import VerifyMismatchError
from argon2.profiles import RFC_9106_LOW_MEMORY

from factbook.errors import InputError

SHORTEST_PASSWORD: Final = 12
LONGEST_PASSWORD: Final = 256

_COMMON: Final = Path(__file__).with_name("common_passwords.txt")
# Characters that people add to a common password, and the number that makes it no safer.
_AROUND: Final = "0123456789!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
_NO_SIGNS: Final = str.maketrans("", "", _AROUND[10:])
_MOST_AROUND: Final = 8
_SHORTEST_COMMON: Final = 4
_LEET: Final = str.maketrans("0134578@$!|+", "oieastbasiit")
# Rows of keys, and sequences of letters or digits.
_RUNS: Final = tuple(
    run[::step]
    for step in (1, -1)
    for run in (
        "01234567890123456789",
        "12345678901234567890",
        "abcdefghijklmnopqrstuvwxyz",
        "qwertyuiopasdfghjklzxcvbnm",
        "qwertzuiopasdfghjklyxcvbnm",
        "azertyuiopqsdfghjklmwxcvbn",
        "1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik9ol0p",
        "qazwsxedcrfvtgbyhnujmikolp",
        "1q2w3e4r5t6y7u8i9o0p",
        "q1w2e3r4t5y6u7i8o9p0",
        "!@#$%^&*()_+",
        '!"#$%&/()=?',
    )
)

_PROFILE = RFC_9106_LOW_MEMORY
_hasher = PasswordHasher.from_parameters(_PROFILE)
# Compared if there is no hash: a salt and a hash of zeros, which match no password.
_NOBODY = (
    f"$argon2id$v={_PROFILE.version}"
    f"$m={_PROFILE.memory_cost},t={_PROFILE.time_cost},p={_PROFILE.parallelism}"
    f"${'A' * 22}${'A' * 43}"
)


def hash_password(password: str) -> str:
    """Hash a password for storage, in PHC form. Blocks for about a tenth of a second."""
    return _hasher.hash(_encode_password(password))


def matches_password(stored: str | None, password: str) -> bool:
    """True if the password matches the stored hash. Blocks for about a tenth of a second.

    Without a hash (an unknown person, or no password) the result is false but takes as long. The
    same goes for a password above the maximum length.
    """
    if (
        len(password) > LONGEST_PASSWORD
    ):  # Python composes characters in quadratic time and blocks other requests
        stored, password = None, ""
    try:
        _hasher.verify(stored or _NOBODY, _encode_password(password))
    except VerifyMismatchError:
        return False
    return stored is not None


def needs_rehash(stored: str) -> bool:
    """True if the hash has outdated parameters and should be replaced."""
    return _hasher.check_needs_rehash(stored)


def check_password(password: str, ref: str) -> None:
    """Raise InputError if the password is too weak for a person with this reference."""
    if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
        raise InputError(f"A password has {SHORTEST_PASSWORD} to {LONGEST_PASSWORD} characters.")
    if password.casefold() in {ref, ref.rpartition("/")[2]}:
        raise InputError("The password must not be the name.")
    if len(set(password)) == 1:
        raise InputError("The password must not be one character repeated.")
    if _is_common_password(password, ref.rpartition("/")[2]):
        raise InputError(
            "The password is too common, or is a common one with a few characters added. Choose "
            "another, such as four random words."
        )


def _is_common_password(password: str, name: str) -> bool:
    """True if little is left without a common password, the name, a run of keys or repetition."""
    text = "".join(unicodedata.normalize("NFKC", password).casefold().split())
    cores = {text, text.strip(_AROUND), text.rstrip(_AROUND), text.translate(_LEET)}
    cores |= {core.translate(_NO_SIGNS).strip(_AROUND) for core in cores}
    cores |= {core.translate(_LEET).strip(_AROUND) for core in cores}
    common = _read_common_passwords() | {name.casefold(), "factbook"}
    for core in cores:
        # The shortest text whose repetition makes up the core.
        unit = core[: (core + core).find(core, 1)] if core else ""
        is_short = len(unit) <= _SHORTEST_COMMON and len(unit) < len(core)
        is_common = is_short or unit in common or any(unit in run for run in _RUNS)
        rest = len(text) - len(core)
        if is_common and len(core) >= _SHORTEST_COMMON and rest <= _MOST_AROUND:
            return True
    return False


@cache
def _read_common_passwords() -> frozenset[str]:
    lines = _COMMON.read_text(encoding="ascii").splitlines()
    return frozenset(line for line in lines if not line.startswith("#"))


def _encode_password(password: str) -> bytes:
    """Normalize and encode: keyboards compose characters differently (NIST 800-63B, 3.1.1.2)."""
    return unicodedata.normalize("NFKC", password).encode("utf-8", "surrogatepass")
