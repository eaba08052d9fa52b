"""Invisible characters: removed from text for models, marked on pages, refused in names.

They are Unicode's default-ignorable characters, the bidirectional controls, and the marks of
interlinear annotations. A few are meaningful in context and are kept only there: in emoji, in the
three flags written with tags, between letters that join, and beside letters of right-to-left
scripts.
"""

import json
import re
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

_INVISIBLE: Final = (
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_SYMBOLS: Final = "\u203c-\u205f\u2070-\u3163\u3165-\u3299\U0001f000-\U0001faff"
_EMOJI: Final = f"[{_SYMBOLS}]"
_WITH_STYLE: Final = f"[#*0-9\u00a9\u00ae{_SYMBOLS}]"
# Arabic to Sinhala, Tibetan and Myanmar, Khmer and Mongolian, and scripts beyond the first plane.
_JOINING: Final = (
    "[\u0620-\u08ff\u0900-\u0dff\u0f00-\u109f\u1780-\u17b3\u17b6-\u17dd\u1820-\u18aa\ua800-\uabff"
    "\ufb50-\ufdff\ufe70-\ufefc\U00010a00-\U00010fff\U00011000-\U00011fff\U0001e900-\U0001e95f]"
)
_LEFTWARD: Final = "[\u0590-\u061b\u061d-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]"
# England, Scotland and Wales: no other flags with tags are recommended for interchange.
_FLAGS: Final = "|".join(
    "".join(chr(0xE0000 + ord(letter)) for letter in name) + "\U000e007f"
    for name in ("gbeng", "gbsct", "gbwls")
)
# Compiled when used: that takes three milliseconds of a start.
_MEANT: Final = (
    # The digits of a JSON escape don't count as digits.
    f"(?<=\U0001f3f4)(?:{_FLAGS})|(?<={_WITH_STYLE})(?<!\\\\u[0-9A-Fa-f]{{4}})[\ufe0e\ufe0f]"
    f"|(?:(?<={_EMOJI})|(?<={_EMOJI}\ufe0f))\u200d(?={_EMOJI})"
    f"|(?<={_JOINING})[\u200c\u200d]|(?<=[\u1820-\u18aa])[\u180b-\u180f]"
    f"|(?<={_LEFTWARD})[\u061c\u200e\u200f]|[\u061c\u200e\u200f](?={_LEFTWARD})"
)
_suspect = re.compile(f"{_INVISIBLE}+")
_rest_of_string = re.compile(r'[^"\\]*(?:\\.[^"\\]*)*"(:?)', re.DOTALL)
_ASCII: Final = bytes(range(128))
# Characters of a document that are processed together, extended to the end of a string.
_PORTION: Final = 4096


def has(text: str) -> bool:
    """True if the text has an invisible character that isn't meaningful in its context."""
    return not text.isascii() and without(text) != text


def is_visible(text: str) -> bool:
    """True if every character of a name is printable and visible."""
    return text.isprintable() and not has(text)


def without(text: str) -> str:
    """Remove invisible characters, except those that are meaningful in their context."""
    if text.isascii():
        return text
    return _suspect.sub(lambda run: "".join([meant[0] for meant in _meanings(run)]), text)


def marked(text: str, mark: str = "[U+{:04X}]") -> str:
    """Replace each invisible character that `without` removes by its code: `[U+E0041]`."""
    return text if text.isascii() else _suspect.sub(partial(_written_out, mark), text)


def without_in_json(document: str) -> str:
    """Like `without`, for compact JSON that doesn't escape invisible characters, as from msgspec.

    A member whose new name is taken gets a number appended.
    """
    # Python knows whether text is ASCII without reading it; of other text, only a part is searched.
    if document.isascii():
        return document
    others = document.encode().translate(None, _ASCII).decode()
    if not _suspect.search(others):
        return document
    if any(_is_name(document, *place) for place in _portions(document)):
        renamed = json.loads(document, object_pairs_hook=_renamed)
        document = json.dumps(renamed, ensure_ascii=False, separators=(",", ":"))
    # In portions, as most are ASCII, and other threads get a turn in between.
    return "".join([without(document[start:end]) for start, end in _portions(document)])


def _written_out(mark: str, found: re.Match[str]) -> str:
    kept = {meant.start() + place for meant in _meanings(found) for place in range(len(meant[0]))}
    row = enumerate(found[0], found.start())
    return "".join([char if place in kept else mark.format(ord(char)) for place, char in row])


def _meanings(found: re.Match[str]) -> Iterator[re.Match[str]]:
    """Iterate over the characters of an invisible run that are meaningful in their context."""
    return re.compile(_MEANT).finditer(found.string, found.start(), found.end() + 1)


def _portions(document: str) -> Iterator[tuple[int, int]]:
    start = 0
    while start < len(document):
        end = document.find('"', start + _PORTION) + 1 or len(document)
        yield start, end
        start = end


def _is_name(document: str, start: int, end: int) -> bool:
    """True if a member name between the two offsets has an invisible character."""
    if document[start:end].isascii():
        return False
    while match := _suspect.search(document, start, end):
        rest = _rest_of_string.match(document, match.start())
        if rest is None or rest[1]:
            return True
        start = rest.end()
    return False


def _renamed(members: list[tuple[str, Any]]) -> dict[str, Any]:
    taken = {name for name, _ in members if not has(name)}
    found: dict[str, Any] = {}
    for name, value in members:
        shown = name if name in taken else without(name)
        count = 1
        while shown != name and shown in taken:
            count += 1
            shown = f"{without(name)} ({count})"
        taken.add(shown)
        found[shown] = value
    return found
