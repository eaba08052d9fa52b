"""Pages small enough for an agent: bounded in entries, in characters, and in work."""

import re
from typing import Any, Final
from urllib.parse import quote, unquote

from factbook import invisible
from factbook.errors import ToolError
from factbook.tools.tool import encode

# Agents cut above about 25,000 tokens, and a token of this JSON has between two and three
# characters.
MOST_CHARACTERS: Final = 50_000
# How often a page reads on where there was little to show in what it had read.
MOST_READS: Final = 5
# A value whose JSON is longer is cut short.
LONGEST_VALUE: Final = 400

CUT_NOTE: Final = (
    f"Values longer than {LONGEST_VALUE} characters are cut short, and cut tells how many items or "
    "characters they have"
)

_MISTAKEN: Final = "cursor is not the nextCursor of an earlier page. Leave it out to start over."
# Begins no reference.
_QUOTED: Final = "="
_PLACE = re.compile(r"(\d{1,16})/([A-Za-z0-9][A-Za-z0-9._-]{0,99})(?:/(\d{1,18}))?", re.ASCII)


class EntryPage:
    """Entries as JSON text, as long as there is room for them."""

    def __init__(self, limit: int) -> None:
        self.texts: list[str] = []
        self._limit = limit
        self._room = MOST_CHARACTERS

    @property
    def wanted(self) -> int:
        """The number of entries that still fit."""
        return self._limit - len(self.texts)

    def add(self, entry: dict[str, Any]) -> bool:
        """Add an entry; returns false if there is no room. The first one always fits."""
        text = encode(entry)
        if self.wanted == 0 or (self.texts and len(text) > self._room):
            return False
        self.texts.append(text)
        self._room -= len(text)
        return True


def place(cursor: str, parts: int) -> tuple[Any, ...]:
    """The time, source and, of three parts, entity id in a cursor; raises ToolError."""
    match = _PLACE.fullmatch(cursor)
    if match is None or (match[3] is None) != (parts == 2):
        raise ToolError(_MISTAKEN)
    time, source_id, entity_id = match.groups()
    return (int(time), source_id) if parts == 2 else (int(time), source_id, int(entity_id))


def ref_after(cursor: str) -> str:
    """The reference encoded in a cursor; raises ToolError for an invalid one."""
    if cursor.startswith(_QUOTED):
        cursor = unquote(cursor.removeprefix(_QUOTED))
    if ":" not in cursor or "/" not in cursor:
        raise ToolError(_MISTAKEN)
    return cursor


def ref_cursor(ref: str) -> str:
    """The cursor after a reference; quoted if a response would otherwise display it differently."""
    return _QUOTED + quote(ref) if invisible.has(ref) else ref


def cursor(place: tuple[Any, ...] | None) -> str:
    """The result member that names the next page; empty if there is none."""
    return "" if place is None else f',"nextCursor":{encode("/".join(map(str, place)))}'


def shortened(value: object) -> tuple[object, int | None]:
    """The value and None, or its beginning and its full size in characters, items or members."""
    if isinstance(value, str) and len(value) > LONGEST_VALUE:
        return value[:LONGEST_VALUE], len(value)
    if isinstance(value, list) and len(encode(value)) > LONGEST_VALUE:
        return value[: _fitting(value)], len(value)
    if isinstance(value, dict) and len(encode(value)) > LONGEST_VALUE:
        members = list(value.items())
        return dict(members[: _fitting(members)]), len(members)
    return value, None


def _fitting(items: list[Any]) -> int:
    """The number of leading items that fit."""
    room = LONGEST_VALUE
    for count, item in enumerate(items):
        room -= len(encode(item)) + 1
        if room < 0:
            return count
    return len(items)
