"""Detection of secrets in an answer: some hosts return what they were sent, as is or encoded.

Body and secret are normalised and compared. Normalising undoes escapes (of JSON, HTML and URLs),
removes white space, and writes both alphabets of Base64 as one. The secret is searched for as it
is, in hexadecimal, and in Base64 at each of the three offsets at which it can begin; each of
these forwards and backwards. The time is linear in the length of the body.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator
from html.entities import html5
from typing import Final, NamedTuple

# Shorter words stand in many an answer.
SHORTEST: Final = 8
# What is escaped more often than so, nothing shows by accident.
_MOST_UNDONE: Final = 3

# Hosts show the parts of a cookie or of a credential apart.
_PARTING: Final = re.compile(r'[\s;,="]+')
# NUL stands between the letters of UTF-16.
_BLANKS: Final = b" \t\r\n\f\v\0"
_ONE_ALPHABET: Final = bytes.maketrans(b"-_", b"+/")
_ESCAPE: Final = re.compile(
    rb"(%[0-9A-Fa-f]{2}|\\(?:u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|[^ux])"
    rb"|&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,12});?)"
)
_MARKS: Final = (b"%", b"\\", b"&")


class Needles(NamedTuple):
    """Patterns to search for: `exact`, and `folded` to lower case where case does not matter."""

    exact: frozenset[bytes]
    folded: frozenset[bytes]


def needles(values: Iterable[str]) -> Needles:
    """The needles for every part of header values that is long enough to be a secret."""
    exact: set[bytes] = set()
    folded: set[bytes] = set()
    for secret in _shortest({part for value in values for part in _parts(value)}):
        raw = secret.encode()
        exact.update(_both_ways(map(_joined, _in_base64(raw))))
        folded.update(_both_ways([raw.hex().encode()]))
        # Escapes that a secret has in itself are undone in a body like others.
        forms = (_joined(form) for text in _both_ways([raw]) for form in (text, _undone(text)))
        plain = {form for form in forms if len(form) >= SHORTEST}
        exact |= plain
        folded |= {form.lower() for form in plain if not _is_word(form)}
    return Needles(frozenset(exact), frozenset(folded))


def has(body: bytes, wanted: Needles) -> bool:
    """True if a body contains one of the needles, up to a limit of nested escapes."""
    for _ in range(_MOST_UNDONE + 1):
        view = _joined(body)
        if any(needle in view for needle in wanted.exact):
            return True
        view = view.lower()
        if any(needle in view for needle in wanted.folded):
            return True
        before, body = body, _undone(body)
        if body == before:
            return False
    return False


def _parts(value: str) -> Iterator[str]:
    """A value, the part after its scheme, its parts, and the decoded credentials of Basic."""
    scheme, _, rest = value.partition(" ")
    found = [value, rest, *_PARTING.split(value)]
    if scheme.lower() == "basic":
        found += _basic(rest)
    return (part for part in found if len("".join(part.split())) >= SHORTEST)


def _basic(credentials: str) -> list[str]:
    """`user:password` and the password; a user's name alone may stand in any answer."""
    try:
        whole = base64.b64decode(credentials).decode("latin-1")
    except binascii.Error:
        return []
    return [whole, whole.partition(":")[2]]


def _shortest(secrets: set[str]) -> list[str]:
    """The secrets without those that contain another one, which would be found first."""
    found: list[str] = []
    for secret in sorted(secrets, key=len):
        if not any(other in secret for other in found):
            found.append(secret)
    return found


def _both_ways(texts: Iterable[bytes]) -> Iterator[bytes]:
    for text in texts:
        yield from (text, text[::-1])


def _is_word(text: bytes) -> bool:
    """True for text in one case and without digits: any answer may contain it in another case."""
    return not re.search(rb"[0-9]", text) and (text.islower() or text.isupper())


def _in_base64(secret: bytes) -> Iterator[bytes]:
    """The characters that encode the secret alone, after none, one or two other bytes."""
    for before in range(3):
        bits = 8 * before
        first, end = -(-bits // 6), (bits + 8 * len(secret)) // 6
        yield base64.b64encode(bytes(before) + secret)[first:end]


def _joined(text: bytes) -> bytes:
    return text.translate(_ONE_ALPHABET, _BLANKS)


def _undone(text: bytes) -> bytes:
    """The text with one level of escapes undone."""
    if not any(mark in text for mark in _MARKS):
        return text
    pieces = _ESCAPE.split(text)
    pieces[1::2] = map(_MEANINGS.__getitem__, pieces[1::2])
    return b"".join(pieces)


class _Meanings(dict[bytes, bytes]):
    """Character of each escape; nothing for characters that no secret can contain."""

    def __missing__(self, escape: bytes) -> bytes:
        if escape[:1] == b"&":
            return self._entity(escape[1:].rstrip(b";")) or escape
        if escape[:1] == b"%" or escape[1:2] in {b"u", b"x"}:
            return _character(int(escape.lstrip(b"%\\ux"), 16))
        return b"" if escape[1:] in {b"n", b"r", b"t", b"f", b"b"} else escape[1:]

    def _entity(self, name: bytes) -> bytes:
        if name[:1] != b"#":
            return _NAMED.get(name, b"")
        return _character(int(name[2:], 16) if name[1:2] in {b"x", b"X"} else int(name[1:]))


def _character(code: int) -> bytes:
    return bytes([code]) if code < 256 else b""


def _meanings() -> _Meanings:
    """The common escapes, computed in advance; others are computed on demand."""
    found = _Meanings()
    for code in range(256):
        for form in ("%{:02x}", "%{:02X}", "\\x{:02x}", "\\u{:04x}", "\\u{:04X}", "&#{};"):
            found[form.format(code).encode()] = bytes([code])
        if (escape := b"\\" + bytes([code])) not in {b"\\u", b"\\x"}:
            found[escape] = found[escape]
    return found


_NAMED: Final = {
    name.rstrip(";").encode(): char.encode()
    for name, char in html5.items()
    if len(char) == 1 and char.isascii()
}
_MEANINGS: Final = _meanings()
