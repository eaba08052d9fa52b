"""Distinguished names (RFC 4514), compared without regard to case and blanks."""

import re
from collections.abc import Iterator
from typing import Final

_LONGEST: Final = 8_192
_TYPE: Final = re.compile(r"[A-Za-z0-9.-]{1,128}")
# One character of a value, a pair of hexadecimal digits, an escaped character, or a separator.
_TOKEN: Final = re.compile(
    r"((?:\\[0-9A-Fa-f]{2})+)|\\([ \"#+,;<=>\\])|([,;+=])|([^\\])", re.DOTALL
)
_SPECIAL: Final = re.compile(r'([,+"\\<>;=])')


class DistinguishedNameError(ValueError):
    """The text is not a distinguished name."""


def normal(text: str) -> str:
    """The form of a name that is the same however it is written; raises DistinguishedNameError."""
    if len(text) > _LONGEST:
        raise DistinguishedNameError
    return ",".join("+".join(sorted(pairs)) for pairs in _relative_names(text))


def relative(text: str) -> str:
    """The first part of a name as it is written: `uid=alice`."""
    end = 0
    for found in _TOKEN.finditer(text):
        if found[3] in {",", ";"}:
            break
        end = found.end()
    return text[:end].strip()


def _relative_names(text: str) -> Iterator[list[str]]:
    """The parts of a name, each a list of its `type=value`."""
    pairs: list[str] = []
    for pair, separator in _pairs(text):
        pairs.append(pair)
        if separator != "+":
            yield pairs
            pairs = []
    if pairs:
        raise DistinguishedNameError


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    """Each `type=value` with the separator behind it, which is empty at the end."""
    kind: str | None = None
    value: list[str] = []
    end = 0
    for found in _TOKEN.finditer(text):
        if found.start() != end:
            break
        end = found.end()
        coded, escaped, separator, plain = found.groups()
        if separator == "=" and kind is None:
            kind, value = "".join(value), []
        elif separator in {",", ";", "+"}:
            yield _pair(kind, value), separator
            kind, value = None, []
        else:
            value.append(_decoded(coded) if coded else escaped or separator or plain)
    if end != len(text):
        raise DistinguishedNameError
    yield _pair(kind, value), ""


def _pair(kind: str | None, value: list[str]) -> str:
    kind = (kind or "").strip()
    found = " ".join("".join(value).split()).casefold()
    if not _TYPE.fullmatch(kind) or not found:
        raise DistinguishedNameError
    escaped = _SPECIAL.sub(r"\\\1", found)
    return f"{kind.lower()}={escaped}"


def _decoded(coded: str) -> str:
    try:
        return bytes.fromhex(coded.replace("\\", "")).decode()
    except UnicodeDecodeError:
        raise DistinguishedNameError from None
