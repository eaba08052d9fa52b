"""Text files from editors, shells and exports, whose byte order mark gives the encoding."""

import codecs
from typing import Final

# The longer ones first: the mark of UTF-32 begins with that of UTF-16.
_ENCODINGS: Final = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def utf_8(data: bytes) -> bytes:
    """Convert a file's content to UTF-8, without its byte order mark.

    Content that isn't in the encoding of its mark stays unchanged; readers refuse it.
    """
    for mark, encoding in _ENCODINGS:
        if data.startswith(mark):
            try:
                return data[len(mark) :].decode(encoding).encode()
            except UnicodeDecodeError:
                return data
    return data.removeprefix(codecs.BOM_UTF8)


def is_marked(data: bytes) -> bool:
    """True for output of `utf_8` that wasn't in the encoding of its mark."""
    return data.startswith(tuple(mark for mark, _ in _ENCODINGS))
