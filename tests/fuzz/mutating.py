"""Inputs made from others: a few random changes, which know a little of texts and of JSON."""

import copy
import json
import random
import re
from collections.abc import Sequence
from typing import Any, Final

from tests.fuzz.edits import ODD

_PIECES: Final = tuple(
    piece.encode()
    for piece in (
        *('"', "'", "`", "\\", "{", "}", "[", "]", "(", ")", "<", ">", "{{", "}}", "$", "%", "%2F"),
        *(":", "/", "//", "..", ".", ",", ";", "=", "&", "?", "#", "@", "*", "+", "-", "|", "^"),
        *(" ", "\t", "\n", "\r\n", "\n\n", "\0", "\x7f", "\ufeff", "\u2028", "\u00a0", "\u0130"),
        *("\u00df", "\ufb01", "\u0301", "\u202e", "\U0001f600", "\ud7ff", "e\u0301", "K", "\u212a"),
        *("0", "-1", "1e999", "NaN", "9" * 20, "9" * 400, "0x", "1:30", "00", "1_0", "~", "null"),
        *("true", "!!int ", "!!bool ", "!!binary ", "!!timestamp ", "&a ", "*a", "<<: ", "? "),
        *("2026-11-22T00:00:00Z", "9999-12-31T23:59:59+00:00", "0001-01-01T00:00:00-23:59", "24h"),
        *("<script>alert(1)</script>", "javascript:", "http://", "url:", "xn--", "[::1]", "://"),
        *("$all", "$not", "$in", "exists", "jsonrpc", "kind", "metadata.name", "component:a/b"),
    )
)
_NO_TEXT: Final = (b"\xff", b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80")
_NUMBER: Final = re.compile(rb"[0-9]+")
_LONGEST: Final = 40_000


def mutated(data: bytes, chance: random.Random, others: Sequence[bytes] = ()) -> bytes:
    """The input after one to four changes."""
    for _ in range(chance.choice((1, 1, 2, 4))):
        if chance.random() < 0.5 and (tree := _tree(data)) is not None:
            data = _bent(tree, chance)
        else:
            data = _changed(data, chance, others)
    return data


def stretched(data: bytes, chance: random.Random) -> bytes:
    """The input with a piece of it repeated, so that what takes quadratic time is seen."""
    start = chance.randint(0, len(data))
    part = data[start : start + chance.choice((1, 1, 2, 8, 60))] or chance.choice(_PIECES)
    return data[:start] + part * (_LONGEST // len(part)) + data[start:]


def _changed(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    """The input with a piece put in, taken out, moved, repeated or taken from another."""
    start, end = sorted(chance.randint(0, len(data)) for _ in range(2))
    piece = data[start:end]
    match chance.randrange(9):
        case 0 | 1:
            return data[:start] + chance.choice((*_PIECES, *_NO_TEXT)) + data[start:]
        case 2:
            return data[:start] + chance.choice(_PIECES) + data[end:]
        case 3 | 4:
            return data[:start] + piece * chance.choice((0, 0, 2, 30)) + data[end:]
        case 5 | 6 if numbers := list(_NUMBER.finditer(data[:_LONGEST])):
            found = chance.choice(numbers)
            number = str(chance.choice((chance.randrange(60), chance.randrange(5)))).encode()
            return data[: found.start()] + number + data[found.end() :]
        case _:
            other = chance.choice(others) if others else data
            return data[:start] + other[chance.randint(0, len(other)) :][: end - start + 20]


def _tree(data: bytes) -> Any:
    if data.lstrip()[:1] not in (b"{", b"[", b'"') or len(data) > _LONGEST:
        return None
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _bent(tree: Any, chance: random.Random) -> bytes:
    """The JSON with one of its values replaced, taken out, moved, wrapped or given another name."""
    root = [tree]
    holder, key = chance.choice(list(_places(root)))
    value = holder[key]
    match chance.randrange(7):
        case 0 | 1:
            holder[key] = copy.deepcopy(chance.choice(ODD))
        case 2 if holder is not root:
            del holder[key]
        case 3:
            other, place = chance.choice(list(_places(root)))
            holder[key] = copy.deepcopy(other[place])
        case 4:
            holder[key] = [value] if chance.random() < 0.5 else {"a": value}
        case 5 if isinstance(holder, dict):
            holder[_name(chance, holder)] = holder.pop(key)
        case 6 if isinstance(value, str):
            holder[key] = _changed(value.encode("utf-8", "replace"), chance, ()).decode(
                "utf-8", "replace"
            )
        case _:
            holder[key] = chance.choice((0, -1, 2**63, 1.5, 10**30, not value, str(value)))
    return json.dumps(root[0], ensure_ascii=chance.random() < 0.5).encode("utf-8", "surrogatepass")


def _name(chance: random.Random, holder: dict[str, Any]) -> str:
    names = [*holder, "", "kind", "items", "$not", "a\0", "\ud800", "metadata.name"]
    return chance.choice(names) + chance.choice(("", "", "x", " ", "."))


def _places(root: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    level = [root]
    while level and len(found) < 5_000:
        one = level.pop()
        for key, part in one.items() if isinstance(one, dict) else enumerate(one):
            found.append((one, key))
            if isinstance(part, dict | list):
                level.append(part)
    return found
