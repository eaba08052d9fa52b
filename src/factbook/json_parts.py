"""Counts of JSON's parts before it is decoded: a short text can take much memory."""

import re
from typing import Final

# Possessive, so that nothing is remembered of a string's letters.
_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)


def has_more(document: bytes | bytearray, most: int) -> bool:
    """True if JSON may have more than `most` parts: values, lists and objects.

    A value in a list or an object counts twice at most. Invalid JSON is counted up to its mistake.
    """
    # Strings are only looked through when the signs in them may make the difference.
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
