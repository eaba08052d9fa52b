"""A folder for what parsers read from files, gone at the end of the process."""

import functools
from pathlib import Path
from tempfile import TemporaryDirectory


@functools.cache
def folder() -> Path:
    """The one folder."""
    return Path(_temporary().name)


@functools.cache
def _temporary() -> TemporaryDirectory[str]:
    return TemporaryDirectory()
