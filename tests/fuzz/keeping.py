"""Which of the inputs found are kept: those that reach lines which no kept one reaches."""

import hashlib
import sys
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import Any, Final

import factbook
from tests.fuzz.target import Target

LARGEST: Final = 2_000  # bytes of an input
MOST: Final = 30  # inputs of a target
_LOOKED_AT: Final = 150
_SOURCE: Final = str(Path(factbook.__file__).parent)

Line = tuple[str, int]


def keep(found: Iterable[tuple[Target, Path]]) -> None:
    """Copy what is worth keeping of the inputs in the folders to the targets' corpora."""
    for target, folder in found:
        reached: set[Line] = set()
        for data in target.kept():
            reached |= lines(target, data)
        room = MOST - len(target.kept())
        inputs = {path.read_bytes() for path in folder.iterdir()}
        small = sorted(
            (one for one in inputs if len(one) <= LARGEST), key=lambda one: (len(one), one)
        )
        for data in small[:_LOOKED_AT]:
            new = lines(target, data) - reached
            if new and room > 0:
                room -= 1
                reached |= new
                name = hashlib.sha256(data).hexdigest()[:12]
                (target.folder / f"found-{name}").write_bytes(data)


def lines(target: Target, data: bytes) -> set[Line]:
    """The lines of factbook that an input reaches."""
    reached: set[Line] = set()

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.startswith(_SOURCE):
            return None
        if event == "line":
            reached.add((frame.f_code.co_filename, frame.f_lineno))
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        target.check(data)
    finally:
        sys.settrace(before)
    return reached
