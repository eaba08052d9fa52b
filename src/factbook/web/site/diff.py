"""Line diff of two documents.

Clients choose the documents, so that the time to compare them is bounded: the algorithm of E. W.
Myers ("An O(ND) Difference Algorithm and Its Variations", 1986) takes time proportional to the
product of lines and edits, and gives up when that product would exceed a fixed bound.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby, islice
from typing import Final, Literal, NamedTuple

import msgspec

# Lines of one document that are compared, and lines times edits.
_COMPARED: Final = 2_000
_WORK: Final = 200_000
# Characters of a document that is laid out, and of a line that is shown.
_LAID_OUT: Final = 1_000_000
_LONGEST_LINE: Final = 1_000
# Lines of one difference that are shown.
_SHOWN: Final = 400
_AROUND: Final = 2

Kind = Literal["added", "removed", "same"]


class DiffLine(NamedTuple):
    """A line: `added`, `removed` or the `same` on both sides."""

    kind: Kind
    text: str


class LineDiff(NamedTuple):
    """Changed lines with some context; `cut` when there are more."""

    lines: list[DiffLine]
    cut: bool


def difference(before: str | None, after: str | None) -> LineDiff:
    """Diff of two documents in JSON; None is an absent one."""
    found = _lines(_shown(before), _shown(after))
    lines = list(islice(found, _SHOWN + 1))
    is_cut = len(lines) > _SHOWN or any(len(line.text) > _LONGEST_LINE for line in lines)
    return LineDiff([_shortened(line) for line in lines[:_SHOWN]], is_cut)


def _lines(before: list[str], after: list[str]) -> Iterator[DiffLine]:
    """Hunks of changed lines, each with the lines around it."""
    stretches = [
        (is_same, list(lines))
        for is_same, lines in groupby(_edits(before, after), lambda line: line.kind == "same")
    ]
    for place, (is_same, lines) in enumerate(stretches):
        if not is_same:
            # Of what was replaced by what, the old stands before the new.
            yield from _marked(sorted(lines, key=lambda line: line.kind == "added"))
            continue
        is_first, is_last = place == 0, place == len(stretches) - 1
        head = [] if is_first else lines[:_AROUND]
        tail = [] if is_last else lines[len(head) :][-_AROUND:]
        yield from _marked(head)
        if len(head) + len(tail) < len(lines) and not is_first and not is_last:
            yield DiffLine("same", "…")
        yield from _marked(tail)


def _marked(lines: Sequence[DiffLine]) -> Iterator[DiffLine]:
    marks = {"added": "+ ", "removed": "- ", "same": "  "}
    return (DiffLine(line.kind, marks[line.kind] + line.text) for line in lines)


def _edits(before: list[str], after: list[str]) -> Iterator[DiffLine]:
    """Every line of both, in order: the edits from the one to the other."""
    head = _common(before, after)
    tail = _common(before[: head - 1 - len(before) : -1], after[: head - 1 - len(after) : -1])
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    yield from (DiffLine("same", text) for text in before[:head])
    yield from _shortest(old, new) or _replaced(old, new)
    yield from (DiffLine("same", text) for text in before[len(before) - tail :])


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """Length of the common prefix in lines."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def _replaced(old: list[str], new: list[str]) -> list[DiffLine]:
    return [
        *(DiffLine("removed", text) for text in old),
        *(DiffLine("added", text) for text in new),
    ]


def _shortest(old: list[str], new: list[str]) -> list[DiffLine] | None:
    """Shortest edit script; None when it is too long.

    `reached` is for each diagonal (lines of the old less lines of the new) the largest number of
    lines of the old consumed after this many edits; `trail` is its value before each edit.
    """
    reached, trail = {1: 0}, list[dict[int, int]]()
    for edits in range(min(len(old) + len(new), _WORK // (len(old) + len(new) + 1)) + 1):
        trail.append(dict(reached))
        for diagonal in range(-edits, edits + 1, 2):
            x = _step(reached, diagonal, edits)
            while x < len(old) and 0 <= x - diagonal < len(new) and old[x] == new[x - diagonal]:
                x += 1
            reached[diagonal] = x
            if x >= len(old) and x - diagonal >= len(new):
                return _backwards(old, new, trail)
    return None


def _adds(reached: dict[int, int], diagonal: int, edits: int) -> bool:
    """True if the last of the edits on this diagonal adds a line, false if it removes one."""
    if diagonal in (-edits, edits):
        return diagonal == -edits
    return reached[diagonal - 1] < reached[diagonal + 1]


def _step(reached: dict[int, int], diagonal: int, edits: int) -> int:
    """Lines of the old that are consumed after that edit."""
    if _adds(reached, diagonal, edits):
        return reached[diagonal + 1]
    return reached[diagonal - 1] + 1


def _backwards(old: list[str], new: list[str], trail: list[dict[int, int]]) -> list[DiffLine]:
    """Lines along the path to the end, traced backwards."""
    x, y, found = len(old), len(new), list[DiffLine]()
    for edits in range(len(trail) - 1, -1, -1):
        diagonal, reached = x - y, trail[edits]
        start = _step(reached, diagonal, edits)
        while x > start:
            x, y = x - 1, y - 1
            found.append(DiffLine("same", old[x]))
        if not edits:
            break
        if _adds(reached, diagonal, edits):
            y -= 1
            found.append(DiffLine("added", new[y]))
        else:
            x -= 1
            found.append(DiffLine("removed", old[x]))
    return found[::-1]


def _shown(document: str | None) -> list[str]:
    if document is None:
        return []
    if len(document) > _LAID_OUT:
        return [document]
    return msgspec.json.format(document, indent=2).splitlines()[:_COMPARED]


def _shortened(line: DiffLine) -> DiffLine:
    if len(line.text) <= _LONGEST_LINE:
        return line
    return DiffLine(line.kind, f"{line.text[:_LONGEST_LINE]}…")
