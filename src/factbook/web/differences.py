"""What changed between two documents, line by line."""

import difflib
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import msgspec

# Lines of one document that are compared: what is longer takes a while.
_COMPARED = 2_000
# Lines of one difference that are shown.
_SHOWN = 400
_AROUND = 2


class Line(NamedTuple):
    """A line: `added`, `removed` or the `same` on both sides."""

    kind: str
    text: str


class Difference(NamedTuple):
    """The lines that changed and some around them; `cut` when there are more."""

    lines: list[Line]
    cut: bool


def difference(before: str | None, after: str | None) -> Difference:
    """The difference of two documents in JSON; None is one that is not there."""
    found = _lines(_shown(before), _shown(after))
    lines = list(islice(found, _SHOWN + 1))
    return Difference(lines[:_SHOWN], len(lines) > _SHOWN)


def _lines(before: list[str], after: list[str]) -> Iterator[Line]:
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for place, group in enumerate(matcher.get_grouped_opcodes(_AROUND)):
        if place:
            yield Line("same", "…")
        for tag, first, last, start, end in group:
            if tag == "equal":
                yield from (Line("same", f"  {text}") for text in before[first:last])
                continue
            yield from (Line("removed", f"- {text}") for text in before[first:last])
            yield from (Line("added", f"+ {text}") for text in after[start:end])


def _shown(document: str | None) -> list[str]:
    if document is None:
        return []
    return msgspec.json.format(document, indent=2).splitlines()[:_COMPARED]
