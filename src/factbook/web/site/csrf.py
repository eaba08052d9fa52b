"""The token against forgery, in another form on each page.

Pages are compressed, and show what is in their address: from the length of many answers somebody on
the way could guess a secret that stands in all of them (BREACH). A secret that looks different each
time is not in two of them.
"""

import re
import secrets

_MASKED = re.compile("[0-9a-f]{128}", re.ASCII)
_LENGTH = 64


def masked(token: str) -> str:
    """A token of 64 hexadecimal digits, as a page shows it."""
    mask = secrets.token_bytes(_LENGTH // 2)
    return mask.hex() + _mixed(mask, bytes.fromhex(token)).hex()


def unmasked(shown: str) -> str:
    """The token that a page showed; empty for what no page showed."""
    if not _MASKED.fullmatch(shown):
        return ""
    return _mixed(bytes.fromhex(shown[:_LENGTH]), bytes.fromhex(shown[_LENGTH:])).hex()


def _mixed(one: bytes, other: bytes) -> bytes:
    return bytes(left ^ right for left, right in zip(one, other, strict=True))
