"""Answers that a vendor gave, changed as an input says.

An input is lines such as these; what does not fit is left out. The number behind the word is that
of the call whose answer is changed, in the order of the run.

    value 3 17 5      the 17th value of the JSON gets the 5th of the odd values
    drop 0 4          the 4th value is taken out
    repeat 0 4 200    the 4th value, if it is a list, is repeated
    text 2 9 hello    the 9th value gets this text
    status 1 404
    header 1 link <https://other.example.com/?page=2>; rel="next"
    body 2 {"a":
    cut 4 100         of the body only so many bytes
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from factbook.outbound.outcomes import HostReply

ODD: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, 10**30, -0.5, 1e308, "", " ", "null", "0"),
    *([], {}, [None], [[]], {"": None}, [{}], ["a", "a"], [1, "1", None], {"message": "x"}),
    *("2026-02-30T00:00:00Z", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "2026"),
    *(
        "\0",
        "\U0001f600" * 50,
        "a" * 5_000,
        "../..",
        "https://other.example.com/x",
        "<b>&",
        "{0}",
    ),
    *(
        {"errors": [{"type": "FORBIDDEN"}]},
        [[[[[[[[]]]]]]]],
        {"data": {"node": None}},
        "NaN",
        -1e-9,
    ),
)
_MOST: Final = 2_000


class Edit(NamedTuple):
    """One line of an input."""

    word: str
    call: int
    rest: str


def edits(text: str) -> list[Edit]:
    """The edits that an input says."""
    found = []
    for line in text.split("\n")[:20]:
        word, _, after = line.partition(" ")
        call, _, rest = after.partition(" ")
        found.append(Edit(word, _number(call), rest))
    return found


def edited(reply: HostReply, wanted: list[Edit]) -> HostReply:
    """The reply after the edits of it."""
    status, headers, body = reply.status, dict(reply.headers), reply.body
    for word, _, rest in wanted:
        first, _, more = rest.partition(" ")
        if word == "status":
            status = _number(first) % 600 or 200
        elif word == "header":
            headers[first.lower()] = more
        elif word == "body":
            body = rest.encode()
        elif word == "cut":
            body = body[: _number(first)]
        elif word in {"value", "drop", "repeat", "text"}:
            body = _changed(body, word, _number(first), more)
    return HostReply(status, headers, body)


def _changed(body: bytes, word: str, number: int, rest: str) -> bytes:
    """The JSON with one of its values changed."""
    try:
        root = [msgspec.json.decode(body)]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return body
    places = [place for place, _ in zip(_places(root), range(_MOST), strict=False)]
    holder, key = places[number % len(places)]
    if word == "drop" and holder is not root:
        del holder[key]
    elif word == "repeat" and isinstance(holder[key], list):
        holder[key] = holder[key] * (_number(rest) % 300)
    elif word == "value":
        holder[key] = ODD[_number(rest) % len(ODD)]
    elif word == "text":
        holder[key] = rest
    return msgspec.json.encode(root[0])


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Where values stand, from outside in: what holds it, and its key or index."""
    level = [value]
    while level:
        below = []
        for one in level:
            pairs = one.items() if isinstance(one, Mapping) else enumerate(one)
            for key, part in pairs:
                yield one, key
                if isinstance(part, dict | list) and part:
                    below.append(part)
        level = below


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 8 else 0
