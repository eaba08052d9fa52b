"""Validation of request heads: one that leaves the request's end ambiguous is refused.

The rules are those of RFC 9112, section 6, without the leniencies that it allows a recipient: a
proxy in front of the service may be lenient in another way.
"""

from collections.abc import Mapping, Sequence
from typing import Final

# Names in lower case, and values, in the order of arrival.
Headers = Sequence[tuple[bytes, bytes]]

_BLANKS: Final = b" \t"
# Headers of which a second one would leave it open whose request this is, or where it ends.
_ONCE: Final = (b"host", b"content-length", b"transfer-encoding")
_BAD: Final = b"400 Bad Request"
_NOT_IMPLEMENTED: Final = b"501 Not Implemented"
_OTHER_VERSION: Final = b"505 HTTP Version Not Supported"


def refusal(method: bytes, version: str, headers: Headers) -> bytes:
    """Status to refuse a head with; empty when the request has one host and one end."""
    if version not in {"1.0", "1.1"}:
        return _OTHER_VERSION
    if method == b"CONNECT":
        return _NOT_IMPLEMENTED  # all that follows it would be for the tunnel
    values = dict(headers)
    if len(values) < len(headers):
        names = [name for name, _ in headers]
        if any(names.count(name) > 1 for name in _ONCE):
            return _BAD
    if version == "1.1" and b"host" not in values:
        return _BAD
    return b"" if _has_one_end(version, values) else _BAD


def asks_to_wait(headers: Headers) -> bool:
    """True if the client may withhold the body, depending on the answer."""
    return b"expect" in dict(headers)


def without_upgrade(method: bytes, target: bytes, version: str, headers: Headers) -> bytes:
    """The head as sent by a client that asks for no other protocol."""
    lines = [b"%s %s HTTP/%s" % (method, target, version.encode())]
    lines += [b"%s: %s" % (name, value) for name, value in headers if name != b"upgrade"]
    return b"\r\n".join([*lines, b"", b""])


def _has_one_end(version: str, values: Mapping[bytes, bytes]) -> bool:
    length, coding = values.get(b"content-length"), values.get(b"transfer-encoding")
    if coding is not None:
        is_chunked = coding.strip(_BLANKS).lower() == b"chunked"
        return is_chunked and version == "1.1" and length is None
    return length is None or length.strip(_BLANKS).isdigit()
