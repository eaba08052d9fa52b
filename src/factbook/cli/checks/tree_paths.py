"""Paths of the files of a tree, as the service takes them with a preview: all of them, or none."""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

_MOST: Final = 50_000
_LONGEST: Final = 4_096
# What Python puts for the bytes of a name that are no UTF-8.
_HALVES: Final = re.compile(r"[\ud800-\udfff]")
_SO: Final = "so what checks say of the files of this tree is not known"


class SentPaths(NamedTuple):
    """The paths as JSON, or None and the reason for which they are not sent."""

    json: msgspec.Raw | None
    problem: str | None = None


def sent(paths: Sequence[str], room: int) -> SentPaths:
    """The paths, if they are as many and as long as the service takes in this many bytes."""
    if len(paths) > _MOST:
        return SentPaths(None, f"The tree has {len(paths):,} files, more than {_MOST:,}, {_SO}.")
    # As a code host shows the name of a file that is no text.
    text = [_HALVES.sub("\ufffd", path) for path in paths]
    if any(len(path) > _LONGEST for path in text):
        return SentPaths(None, f"A path has more than {_LONGEST:,} characters, {_SO}.")
    encoded = msgspec.json.encode(text)
    if len(encoded) > room:
        return SentPaths(None, f"The paths of {len(paths):,} files are too long together, {_SO}.")
    return SentPaths(msgspec.Raw(encoded))
