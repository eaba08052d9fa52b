"""Count the parts of JSON before decoding: a short text can take much memory."""

import re
from typing import Final

# Possessive: the matcher keeps no state for a string's characters.
_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)


def has_more(document: bytes | bytearray, most: int) -> bool:
    """True if JSON text may have more than `most` parts: values, lists and objects.

    A value in a list or an object counts at most twice. Invalid JSON is counted up to its mistake.
    """
    # Strings are only examined when commas and brackets in them could make the difference.
    if _signs(document, 0, len(document)) <= most:
        return False
    count = at = 0
    for string in _STRING.finditer(document):
        count += _signs(document, at, string.start())
        if count > most:
            return True
        at = string.end()
    return count + _signs(document, at, len(document)) > most


def _signs(document: bytes | bytearray, start: int, end: int) -> int:
    count = document.count
    return count(b",", start, end) + count(b"[", start, end) + count(b"{", start, end)
