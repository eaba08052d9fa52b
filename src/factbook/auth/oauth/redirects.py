"""Addresses that a client's answers are sent to: which may be, and which equal a registered one."""

import re
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlencode, urlsplit

import can_ada

LONGEST: Final = 500
# Printable ASCII, without what browsers take for a slash or drop.
_PLAIN: Final = re.compile(r"[!-\[\]-~]+")
# `cursor://…`, or `com.example.app:/…`; not `localhost:8080/…`, where http:// was forgotten.
_SCHEME: Final = re.compile(r"([a-z][a-z0-9+-]*(?=://)|[a-z][a-z0-9+-]*(?:\.[a-z0-9-]+)+):/+[^/?]")
# Schemes that browsers and operating systems act on themselves.
_TAKEN: Final = re.compile(
    "about|afp|android.*|apple.*|app|blob|brave.*|callto|chrome.*|cid|content|data|dav|edge.*|"
    "facetime.*|feed|file|filesystem|ftps?|git|gopher|hcp|help|https?|imap|intent|irc|itms.*|jar|"
    "javascript|jnlps?|ldaps?|livescript|mailto|market|mhtml|microsoft.*|mid|mk|mocha|moz-.*|"
    "ms-.*|news|nfs|nntp|opera.*|res|resource|rlogin|rsync|rtsp|safari.*|search.*|sftp|shell|"
    "sips?|sms.*|smb|ssh|tel|telnet|tftp|unc|url|urn|vbs|vbscript|view-.*|vnc|web.*|windows.*|"
    "wss?|wyciwyg|x-apple.*|x-man-page|xmpp"
)


def is_acceptable(uri: str) -> bool:
    """True for an https address, or one of a program on the person's own machine."""
    parsed = _parse(uri)
    if parsed is None or "#" in uri or "@" in urlsplit(uri).netloc:
        return False
    return parsed.protocol == "https:" or is_loopback(uri) or is_private_use(uri)


def is_private_use(uri: str) -> bool:
    """True for an address with a scheme of a program's own (RFC 8252, section 7.1)."""
    found = _SCHEME.match(uri)
    if found is None or not _PLAIN.fullmatch(uri) or len(uri) > LONGEST:
        return False
    return _TAKEN.fullmatch(found[1]) is None


def is_loopback(uri: str) -> bool:
    """True for a plain http address on the loopback interface (RFC 8252, section 7.3)."""
    parsed = _parse(uri)
    return parsed is not None and parsed.protocol == "http:" and _is_own(parsed.hostname)


def matches(registered: str, asked: str) -> bool:
    """True if they are the same text, but for the port of an address on the loopback interface.

    A program on the person's machine takes whichever port is free (RFC 8252, section 7.3).
    """
    if registered == asked:
        return True
    if not (is_loopback(registered) and is_loopback(asked)):
        return False
    return _without_port(registered) == _without_port(asked)


def host(uri: str) -> str:
    """Host that an answer goes to, as people read it; of a program's own scheme that too."""
    parsed = _parse(uri)
    if parsed is None:
        return ""
    if is_private_use(uri):
        return f"{parsed.protocol}//{parsed.host}" if parsed.host else parsed.protocol
    return parsed.host


def origin(uri: str) -> str:
    """Scheme and host of the address."""
    parsed = _parse(uri)
    return parsed.origin if parsed else ""


def answered(uri: str, **values: str) -> str:
    """The address with these parameters added to its query, those without a value left out."""
    query = urlencode({name: value for name, value in values.items() if value})
    return f"{uri}{'&' if '?' in uri else '?'}{query}"


def _parse(uri: str) -> can_ada.URL | None:
    """The address as a browser reads it, if it is written in the one way that all read alike."""
    if len(uri) > LONGEST or not _PLAIN.fullmatch(uri):
        return None
    try:
        parsed, written = can_ada.parse(uri), urlsplit(uri).hostname
    except ValueError:
        return None
    if is_private_use(uri):
        return parsed
    # %65vil.example, 127.1 and 0x7f000001 look like hosts that they are not.
    return parsed if written and written == parsed.hostname.strip("[]") else None


def _without_port(uri: str) -> tuple[str | None, str, str]:
    # Browsers ask for a slash where the path is empty (RFC 3986, section 6.2.3).
    parts = urlsplit(uri)
    return parts.hostname, parts.path or "/", parts.query


def _is_own(name: str) -> bool:
    try:
        return name == "localhost" or ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False
