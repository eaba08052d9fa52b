"""Differences between two definitions, field by field."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

Document = Mapping[str, Any]
_Path = tuple[str, ...]

_CONFIG: Final = ("handlerDefinition", "config")
_WORDS: Final = "auth|cookie|credential|key|passw|secret|token"
_SECRET: Final = re.compile(_WORDS, re.IGNORECASE)
_SECRET_MEMBER: Final = re.compile(rf'"[^"]*({_WORDS})[^"]*":', re.IGNORECASE)
HIDDEN: Final = "(not shown)"
_LONGEST: Final = 200

_encode = msgspec.json.Encoder(order="deterministic").encode


class FieldDifference(NamedTuple):
    """A field that differs; values are JSON text, None where a document lacks the field."""

    path: str
    before: str | None
    after: str | None

    @property
    def mark(self) -> str:
        """Mark before it in a list: `+`, `-` or `~`."""
        if self.before is None:
            return "+"
        return "-" if self.after is None else "~"

    def __str__(self) -> str:
        shown = [text for text in (self.before, self.after) if text is not None]
        return f"{self.mark} {self.path}: {' → '.join(map(_cut, shown))}"


def same(one: Document | None, other: Document | None) -> bool:
    """True if two documents are equal; the order of an object's members is ignored."""
    return _encode(one) == _encode(other)


def differences(before: Document | None, after: Document) -> list[FieldDifference]:
    """Changes that turn the first document into the second one."""
    old, new = dict(_fields(before or {})), dict(_fields(after))
    return [
        FieldDifference(".".join(path), _shown(path, old.get(path)), _shown(path, new.get(path)))
        for path in (*old, *(path for path in new if path not in old))
        if old.get(path) != new.get(path)
    ]


def lost(published: Document, after: Document) -> dict[str, str]:
    """Changes of published facts that are removed or get another type, by their names."""
    old, new = published["schema"], after["schema"]
    return {
        name: f"was {old[name]['type']}, is {new[name]['type']}" if name in new else "is removed"
        for name in old
        if name not in new or new[name]["type"] != old[name]["type"]
    }


def _fields(document: Document, place: _Path = ()) -> Iterator[tuple[_Path, str]]:
    """Values of a document with their paths; a list is one value."""
    for name, value in document.items():
        path = (*place, name)
        if isinstance(value, Mapping) and value:
            yield from _fields(value, path)
        else:
            yield path, _encode(value).decode()


def _shown(path: _Path, value: str | None) -> str | None:
    """A value, or a note that it is hidden: logs must not hold a misplaced secret."""
    if value is None or path[:2] != _CONFIG:
        return value
    named = any(map(_SECRET.search, path[2:])) or _SECRET_MEMBER.search(value)
    return HIDDEN if named or path[2:3] == ("headers",) else value


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
