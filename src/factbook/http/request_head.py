"""Validation of request heads: one that leaves the request's end ambiguous is refused.

The rules are those of RFC 9112, section 6, without the leniencies that it allows a recipient: a
proxy in front of the service may be lenient in another way.
"""

from collections.abc import Sequence
from typing import Final

# Names in lower case, and values, in the order of arrival.
Headers = Sequence[tuple[bytes, bytes]]

_BAD: Final = b"400 Bad Request"
_NOT_IMPLEMENTED: Final = b"501 Not Implemented"
_OTHER_VERSION: Final = b"505 HTTP Version Not Supported"


def refusal(method: bytes, version: str, headers: Headers) -> bytes:
    """Status to refuse a head with; empty when the request has one host and one end."""
    if version not in {"1.0", "1.1"}:
        return _OTHER_VERSION
    if method == b"CONNECT":
        return _NOT_IMPLEMENTED  # all that follows it would be for the tunnel
    hosts = len(_values(headers, b"host"))
    if hosts > 1 or (hosts == 0 and version == "1.1"):
        return _BAD
    return b"" if _has_one_end(version, headers) else _BAD


def asks_to_wait(headers: Headers) -> bool:
    """True if the client may withhold the body, depending on the answer."""
    return bool(_values(headers, b"expect"))


def without_upgrade(method: bytes, target: bytes, version: str, headers: Headers) -> bytes:
    """The head as sent by a client that asks for no other protocol."""
    lines = [b"%s %s HTTP/%s" % (method, target, version.encode())]
    lines += [b"%s: %s" % (name, value) for name, value in headers if name != b"upgrade"]
    return b"\r\n".join([*lines, b"", b""])


def _has_one_end(version: str, headers: Headers) -> bool:
    lengths = _values(headers, b"content-length")
    codings = _values(headers, b"transfer-encoding")
    if not codings:
        return len(lengths) <= 1 and all(length.isdigit() for length in lengths)
    return version == "1.1" and not lengths and [one.lower() for one in codings] == [b"chunked"]


def _values(headers: Headers, wanted: bytes) -> list[bytes]:
    return [value.strip(b" \t") for name, value in headers if name == wanted]
