"""Files of definitions as code: which ones there are in directories, and their content."""

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from factbook.cli.documents import STDIN
from factbook.cli.output import say
from factbook.errors import InputError

LARGEST: Final = 1024 * 1024
# What `factbook sources test` records; it may lie beside the definitions.
RECORDING: Final = ".recording.json"
_SUFFIXES: Final = (".yaml", ".yml", ".json")


def every_file(places: Sequence[str], problems: list[str]) -> Iterator[str]:
    """Every file to read, each once."""
    seen = set()
    for place in places:
        for file in _files_below(place, problems) if Path(place).is_dir() else [place]:
            key = os.path.realpath(file)
            if key not in seen:
                seen.add(key)
                yield file


def _files_below(directory: str, problems: list[str]) -> Iterator[str]:
    """Definition files below a directory; links to directories are not followed."""

    def unreadable(error: OSError) -> None:
        problems.append(f"{error.filename} cannot be read: {error.strerror}.")

    for folder, below, files in os.walk(directory, onerror=unreadable):
        below[:] = sorted(name for name in below if not name.startswith("."))
        for name in sorted(files):
            lower = name.lower()
            wanted = lower.endswith(_SUFFIXES) and not lower.endswith(RECORDING)
            path = Path(folder, name)
            # A pipe would never end; a link to nowhere is a mistake to be told.
            if wanted and not name.startswith(".") and (path.is_file() or path.is_symlink()):
                yield str(path)


def content(file: str) -> bytes:
    """Content of a file; raises OSError, and InputError for one that is too large."""
    if file == STDIN:
        data = sys.stdin.buffer.read(LARGEST + 1)
    else:
        with Path(file).open("rb") as stream:
            data = stream.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise InputError(f"{file} is larger than {LARGEST // 1024} KiB.")
    return data


def write(file: Path, text: str, *, quiet: bool = False) -> None:
    """Write a new file, and print its path; raises InputError if it is there already."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        raise InputError(f"{file} is there already.") from None
    except OSError as error:
        raise InputError(f"{file} cannot be written: {error.strerror}.") from None
    if not quiet:
        say(str(file))
