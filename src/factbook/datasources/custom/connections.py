"""Connections: hosts that custom sources may call, whose answers repeat no secret."""

import base64
import binascii
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from html.entities import html5
from typing import Annotated, Any, Final, NamedTuple

import msgspec
from msgspec import Meta

from factbook.catalog import ref
from factbook.errors import ConfigurationError, InputError
from factbook.outbound.client import Credential, extract_host
from factbook.settings import option_tables

# Shorter words stand in many an answer.
SHORTEST_SECRET: Final = 8
# What is escaped more often than so, nothing shows by accident.
_MOST_NESTED: Final = 3
# Hosts show the parts of a cookie or of a credential apart.
_SEPARATORS: Final = re.compile(r'[\s;,="]+')
# NUL stands between the letters of UTF-16.
_BLANKS: Final = b" \t\r\n\f\v\0"
_ONE_ALPHABET: Final = bytes.maketrans(b"-_", b"+/")
_ESCAPE: Final = re.compile(
    rb"(%[0-9A-Fa-f]{2}|\\(?:u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|[^ux])"
    rb"|&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,12});?)"
)
_MARKS: Final = (b"%", b"\\", b"&")
MOST_OWNERS: Final = 500
_CONNECTION_METHODS: Final = frozenset({"GET", "POST"})
_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", re.ASCII)
_HEADER_VALUE: Final = re.compile(r"[\x20-\x7e]*")


class Needles(NamedTuple):
    """Patterns to search for: `exact`, and `folded` to lower case where case does not matter."""

    exact: frozenset[bytes]
    folded: frozenset[bytes]


def build_needles(values: Iterable[str]) -> Needles:
    """The needles for every part of header values that is long enough to be a secret."""
    exact: set[bytes] = set()
    folded: set[bytes] = set()
    for secret in _drop_containing({part for value in values for part in _secret_parts(value)}):
        raw = secret.encode()
        exact.update(_both_encodings(map(_join_lines, _base64_core(raw))))
        folded.update(_both_encodings([raw.hex().encode()]))
        # Escapes that a secret has in itself are undone in a body like others.
        forms = (
            _join_lines(form)
            for text in _both_encodings([raw])
            for form in (text, _undo_escapes(text))
        )
        plain = {form for form in forms if len(form) >= SHORTEST_SECRET}
        exact |= plain
        folded |= {form.lower() for form in plain if not _is_word(form)}
    return Needles(frozenset(exact), frozenset(folded))


def contains_needle(body: bytes, wanted: Needles) -> bool:
    """True if a body contains one of the needles, up to a limit of nested escapes."""
    for _ in range(_MOST_NESTED + 1):
        view = _join_lines(body)
        if any(needle in view for needle in wanted.exact):
            return True
        view = view.lower()
        if any(needle in view for needle in wanted.folded):
            return True
        before, body = body, _undo_escapes(body)
        if body == before:
            return False
    return False


def _secret_parts(value: str) -> Iterator[str]:
    """A value, the part after its scheme, its parts, and the decoded credentials of Basic."""
    scheme, _, rest = value.partition(" ")
    found = [value, rest, *_SEPARATORS.split(value)]
    if scheme.lower() == "basic":
        found += _basic_secrets(rest)
    return (part for part in found if len("".join(part.split())) >= SHORTEST_SECRET)


def _basic_secrets(credentials: str) -> list[str]:
    """`user:password` and the password; a user's name alone may stand in any answer."""
    try:
        whole = base64.b64decode(credentials).decode("latin-1")
    except binascii.Error:
        return []
    return [whole, whole.partition(":")[2]]


def _drop_containing(secrets: set[str]) -> list[str]:
    """The secrets without those that contain another one, which would be found first."""
    found: list[str] = []
    for secret in sorted(secrets, key=len):
        if not any(other in secret for other in found):
            found.append(secret)
    return found


def _both_encodings(texts: Iterable[bytes]) -> Iterator[bytes]:
    for text in texts:
        yield from (text, text[::-1])


def _is_word(text: bytes) -> bool:
    """True for text in one case and without digits: any answer may contain it in another case."""
    return not re.search(rb"[0-9]", text) and (text.islower() or text.isupper())


def _base64_core(secret: bytes) -> Iterator[bytes]:
    """The characters that encode the secret alone, after none, one or two other bytes."""
    for before in range(3):
        bits = 8 * before
        first, end = -(-bits // 6), (bits + 8 * len(secret)) // 6
        yield base64.b64encode(bytes(before) + secret)[first:end]


def _join_lines(text: bytes) -> bytes:
    return text.translate(_ONE_ALPHABET, _BLANKS)


def _undo_escapes(text: bytes) -> bytes:
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
            return _encode_character(int(escape.lstrip(b"%\\ux"), 16))
        return b"" if escape[1:] in {b"n", b"r", b"t", b"f", b"b"} else escape[1:]

    def _entity(self, name: bytes) -> bytes:
        if name[:1] != b"#":
            return _NAMED_CHARACTERS.get(name, b"")
        return _encode_character(int(name[2:], 16) if name[1:2] in {b"x", b"X"} else int(name[1:]))


def _encode_character(code: int) -> bytes:
    return bytes([code]) if code < 256 else b""


def _common_escapes() -> _Meanings:
    """The common escapes, computed in advance; others are computed on demand."""
    found = _Meanings()
    for code in range(256):
        for form in ("%{:02x}", "%{:02X}", "\\x{:02x}", "\\u{:04x}", "\\u{:04X}", "&#{};"):
            found[form.format(code).encode()] = bytes([code])
        if (escape := b"\\" + bytes([code])) not in {b"\\u", b"\\x"}:
            found[escape] = found[escape]
    return found


class SourceConnection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One host with one credential; a source can only append a path to its address."""

    base_url: Annotated[str, Meta(description="Address that paths of sources are appended to.")]
    headers: Annotated[
        dict[str, str],
        Meta(description="Secret. Headers that are sent with each request, such as authorization."),
    ] = {}
    methods: Annotated[
        tuple[str, ...], Meta(description="Methods that sources may use: GET, POST or both.")
    ] = ("GET",)
    at_once: Annotated[
        int, Meta(ge=1, le=100, description="Requests under way at the same time.")
    ] = 4
    shared_with: Annotated[
        tuple[str, ...],
        Meta(description="Owners whose sources may use it, such as `group:default/team-a`."),
    ] = ()

    def __post_init__(self) -> None:
        if not self.base_url.startswith(("https://", "http://")):
            raise ConfigurationError("base_url has to begin with https://")
        try:
            extract_host(self.base_url.rstrip("/"))
        except ConfigurationError:
            raise ConfigurationError(
                "base_url has to be like https://host/path, without name, password and query"
            ) from None
        if not all(map(_HEADER_NAME.fullmatch, self.headers)):
            raise ConfigurationError("headers has an invalid name")
        if not all(map(_HEADER_VALUE.fullmatch, self.headers.values())):
            raise ConfigurationError("headers has a character that cannot be sent")
        if set(self.methods) - _CONNECTION_METHODS:
            raise ConfigurationError("methods can be GET and POST")
        msgspec.structs.force_setattr(self, "shared_with", _canonical_owners(self.shared_with))

    def __repr__(self) -> str:
        """Without the secrets."""
        return f"Connection(base_url={self.base_url!r})"

    def is_repeated(self, body: bytes) -> bool:
        """True if a body contains a secret, as some hosts return what they were sent."""
        return contains_needle(body, build_needles(self.headers.values()))

    @property
    def edition(self) -> str:
        """Digest that changes with the connection and does not reveal its secrets."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()

    def credential(self, name: str) -> Credential:
        """The credential that sends the connection's headers."""
        return Credential.fixed(name, self.headers)


class Unusable(NamedTuple):
    """Connection that exists but cannot be used; `problem` gives the reason."""

    problem: str
    shared_with: tuple[str, ...] = ()


def list_usable(
    owner: str | None, connections: Mapping[str, SourceConnection | Unusable]
) -> Mapping[str, SourceConnection | Unusable]:
    """The connections that sources of the owner may use; those of no owner may use all of them."""
    if owner is None:
        return connections
    return {name: one for name, one in connections.items() if owner in one.shared_with}


def configured_connections(tables: Mapping[str, Mapping[str, Any]]) -> dict[str, SourceConnection]:
    """The connections of the settings; raises ConfigurationError naming the table."""
    return {
        name: option_tables.read_option_table(f"connections.{name}", name, values, SourceConnection)
        for name, values in tables.items()
    }


def _canonical_owners(owners: tuple[str, ...]) -> tuple[str, ...]:
    """The canonical references, each once; raises ConfigurationError."""
    if len(owners) > MOST_OWNERS:
        raise ConfigurationError(f"shared_with can have {MOST_OWNERS} entries at most")
    try:
        found = (ref.canonicalize_ref(owner, kind="group") for owner in owners)
        return tuple(sorted(set(found)))
    except InputError as error:
        raise ConfigurationError(
            f"shared_with has another entry than references: {error.message}"
        ) from None


_NAMED_CHARACTERS: Final = {
    name.rstrip(";").encode(): char.encode()
    for name, char in html5.items()
    if len(char) == 1 and char.isascii()
}
_MEANINGS: Final = _common_escapes()
