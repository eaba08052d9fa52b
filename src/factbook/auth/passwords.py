"""Passwords of local accounts, hashed with Argon2id (RFC 9106).

The parameters are the RFC's second recommended option, the one for little memory: 64 MiB, three
passes, four lanes. Hashing and comparing take that memory and about a tenth of a second, so callers
run them on a thread and bound how many run at once.
"""

import unicodedata
from typing import Final

from argon2 import PasswordHasher
from argon2.exceptions import VerifyMismatchError
from argon2.profiles import RFC_9106_LOW_MEMORY

from factbook.errors import InputError

SHORTEST: Final = 12
LONGEST: Final = 256

_PROFILE = RFC_9106_LOW_MEMORY
_hasher = PasswordHasher.from_parameters(_PROFILE)
# A salt and a hash of zeros, which no password has: what is compared when there is none.
_NOBODY = (
    f"$argon2id$v={_PROFILE.version}"
    f"$m={_PROFILE.memory_cost},t={_PROFILE.time_cost},p={_PROFILE.parallelism}"
    f"${'A' * 22}${'A' * 43}"
)


def hashed(password: str) -> str:
    """Hash to store, in PHC form. Blocks for about a tenth of a second."""
    return _hasher.hash(_bytes(password))


def fits(stored: str | None, password: str) -> bool:
    """True if the password matches the stored hash. Blocks for about a tenth of a second.

    Without a hash (an unknown person, or one without a password) it is false and takes as long; so
    it is for a password longer than any may be.
    """
    if len(password) > LONGEST:  # Python composes characters in quadratic time, all others waiting
        stored, password = None, ""
    try:
        _hasher.verify(stored or _NOBODY, _bytes(password))
    except VerifyMismatchError:
        return False
    return stored is not None


def outdated(stored: str) -> bool:
    """True if it was hashed with outdated parameters and should be rehashed."""
    return _hasher.check_needs_rehash(stored)


def check(password: str, ref: str) -> None:
    """Raise InputError for a password unsuitable for a person with this reference."""
    if not SHORTEST <= len(password) <= LONGEST:
        raise InputError(f"A password has {SHORTEST} to {LONGEST} characters.")
    if password.casefold() in {ref, ref.rpartition("/")[2]}:
        raise InputError("The password must not be the name.")
    if len(set(password)) == 1:
        raise InputError("The password must not be one character repeated.")


def _bytes(password: str) -> bytes:
    """The same bytes however a keyboard composes its characters (NIST SP 800-63B, 3.1.1.2)."""
    return unicodedata.normalize("NFKC", password).encode("utf-8", "surrogatepass")
