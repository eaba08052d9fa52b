"""Validation of absolute URLs.

Source: the URL standard (https://url.spec.whatwg.org), as Ada reads it: the parser of Node.js, with
which the catalog API's own validation is written.
"""

import re
import unicodedata
from ipaddress import AddressValueError, IPv6Address
from urllib.parse import unquote_to_bytes

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)
_AUTHORITY_END = re.compile(r"[/?#]")
_SPECIAL_AUTHORITY_END = re.compile(r"[/\\?#]")
_DRIVE = re.compile(r"[A-Za-z][:|](?:[/\\?#]|\Z)")
_PORT = re.compile(r"0*([0-9]{0,5})")
_HOST_AND_PORT = re.compile(r"(\[[^\]]*\]|[^:]*)(?::(.*))?", re.DOTALL)
_ENDS_IN_NUMBER = re.compile(r"[0-9]+|0[xX][0-9A-Fa-f]*")
_SPECIAL = frozenset({"http", "https", "ws", "wss", "ftp"})

_LONGEST_DOMAIN = 253
_CONTROLS_AND_SPACE = "".join(map(chr, range(0x21)))
_IGNORED = str.maketrans("", "", "\t\n\r")
_IGNORED_IN_HOSTS = dict.fromkeys(
    [
        *(0xAD, 0x34F, 0x180F, 0x200B, 0x2060, 0x2064, 0xFEFF),
        *(*range(0x180B, 0x180E), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)),
    ]
)
_FORBIDDEN = frozenset("\0\t\n\r #/:<>?@[\\]^|")
_FORBIDDEN_IN_DOMAINS = _FORBIDDEN | frozenset(map(chr, range(0x20))) | frozenset("%\x7f")


def is_absolute(text: str) -> bool:
    """Whether it is a URL that needs no other URL to be understood."""
    match = _URL.fullmatch(text.strip(_CONTROLS_AND_SPACE).translate(_IGNORED))
    if match is None:
        return False
    scheme, rest = match[1].lower(), match[2]
    if scheme == "file":
        return _valid_file(rest)
    if scheme in _SPECIAL:
        authority = _SPECIAL_AUTHORITY_END.split(rest.lstrip("/\\"), maxsplit=1)[0]
        return _valid_authority(authority, special=True)
    if not rest.startswith("//"):
        return True
    return _valid_authority(_AUTHORITY_END.split(rest[2:], maxsplit=1)[0], special=False)


def _valid_file(rest: str) -> bool:
    if len(rest) < 2 or not set(rest[:2]) <= {"/", "\\"}:
        return True
    if _DRIVE.match(rest[2:]):
        return True
    host = _SPECIAL_AUTHORITY_END.split(rest[2:], maxsplit=1)[0]
    return not host or _valid_host(host, special=True)


def _valid_authority(authority: str, *, special: bool) -> bool:
    _, at, place = authority.rpartition("@")
    match = _HOST_AND_PORT.fullmatch(place)
    if match is None:
        return False
    host, port = match[1], match[2]
    if not host:
        return not (special or at or port is not None)
    number = _PORT.fullmatch(port or "")
    if number is None or int(number[1] or "0") > 65535:
        return False
    return _valid_host(host, special=special)


def _valid_host(host: str, *, special: bool) -> bool:
    if host.startswith("["):
        return host.endswith("]") and _valid_ipv6(host[1:-1])
    if not special:
        return _FORBIDDEN.isdisjoint(host)
    domain = _mapped(unquote_to_bytes(host).decode(errors="replace"))
    if not domain or not _FORBIDDEN_IN_DOMAINS.isdisjoint(domain):
        return False
    parts = domain.split(".")
    if parts[-1] == "" and len(parts) > 1:
        parts.pop()
    return not _ENDS_IN_NUMBER.fullmatch(parts[-1]) or _valid_ipv4(parts)


def _mapped(domain: str) -> str:
    """The domain as it is compared; empty when a label holds what no domain does."""
    if domain.isascii() and "xn--" not in domain.lower():
        return domain
    if len(domain) > _LONGEST_DOMAIN:  # which is no name, and could take long to compose
        return ""
    domain = unicodedata.normalize("NFKC", domain.translate(_IGNORED_IN_HOSTS)).lower()
    domain = domain.replace("\u3002", ".")
    return domain if all(map(_valid_label, domain.split("."))) else ""


def _valid_label(label: str) -> bool:
    if label.startswith("xn--"):
        try:
            decoded = label[4:].encode().decode("punycode")
        except UnicodeError:
            return False
        return bool(decoded) and _mapped(decoded) == decoded
    return label.isascii() or (
        unicodedata.category(label[0])[0] != "M"
        and not any(c == "\ufffd" or unicodedata.category(c)[0] in "CZ" for c in label if c > "~")
    )


def _valid_ipv6(text: str) -> bool:
    try:
        IPv6Address(text)
    except AddressValueError:
        return False
    return "%" not in text


def _valid_ipv4(parts: list[str]) -> bool:
    numbers = [_number(part) for part in parts]
    if len(numbers) > 4 or None in numbers:
        return False
    *others, last = [number for number in numbers if number is not None]
    return all(number <= 255 for number in others) and last < 256 ** (5 - len(numbers))


def _number(part: str) -> int | None:
    """The number that a part of an IPv4 address means: hexadecimal, octal or decimal."""
    base = 10
    if part[:2] in ("0x", "0X"):
        part, base = part[2:] or "0", 16
    elif part.startswith("0") and len(part) > 1:
        base = 8
    part = part.lstrip("0") or part[:1]
    digits = "0123456789abcdef"[:base]
    if not part or len(part) > 12 or not set(part.lower()) <= set(digits):
        return None
    return int(part, base)
