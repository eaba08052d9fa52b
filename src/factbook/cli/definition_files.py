"""Files of definitions as code: which ones there are in directories, and their content."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import msgspec
import yaml

from factbook import text_files
from factbook.cli.connection import count
from factbook.cli.documents import STDIN, DocumentsError, parse
from factbook.cli.failures import USAGE, CommandError
from factbook.cli.output import say
from factbook.datasources.custom import yaml_text
from factbook.datasources.custom.documents import UnreadableDocumentError
from factbook.errors import InputError, InvalidItemsError

LARGEST: Final = 1024 * 1024
# What `factbook sources test` records; it may lie beside the definitions.
RECORDING: Final = ".recording.json"
_SUFFIXES: Final = (".yaml", ".yml", ".json")


class FileDefinition(Protocol):
    """A valid definition, and its place, e.g. `builds.yaml document 1 (line 1)`.

    Two of one `key` are one too many; it says so, as in `check: is`, and has the id.
    """

    @property
    def origin(self) -> str: ...
    @property
    def key(self) -> tuple[str, str]: ...


D = TypeVar("D", bound=FileDefinition)


def read(places: Sequence[str], noun: str, parse_one: Callable[[Any, str], D]) -> list[D]:
    """The definitions in files, and in directories and the directories below them.

    `parse_one` takes a document and its place, and raises InputError. Raises CommandError listing
    every problem of every file, each with its file, document and path, and InputError when there is
    no definition at all.
    """
    problems: list[str] = []
    found = [
        one
        for file in _every_file(places, problems)
        for one in _read_file(file, noun, parse_one, problems)
    ]
    first: dict[tuple[str, str], str] = {}
    for one in found:
        if one.key in first:
            problems.append(f"{one.origin}: {one.key[0]} {first[one.key]} too")
        first.setdefault(one.key, one.origin)
    if problems:
        raise CommandError(f"{count(problems, 'problem')}:", USAGE, problems)
    if not found:
        # What made the files may have failed, and pruning would remove everything.
        raise InputError(f"No {noun.split(' ', 1)[1]} in {', '.join(places)}.")
    return found


def _read_file(
    file: str, noun: str, parse_one: Callable[[Any, str], D], problems: list[str]
) -> list[D]:
    try:
        return list(_definitions(file, noun, parse_one, problems))
    except OSError as error:
        problems.append(f"{file} cannot be read: {error.strerror}.")
    except UnreadableDocumentError as error:
        problems.append(f"{file} {error}.")
    except DocumentsError as error:
        problems += error.problems
    except InputError as error:
        problems.append(error.message)
    return []


def _definitions(
    file: str, noun: str, parse_one: Callable[[Any, str], D], problems: list[str]
) -> Iterator[D]:
    """Valid definitions of a file.

    Raises OSError, UnreadableDocumentError or InputError for the whole of it.
    """
    data = content(file)
    with suppress(yaml.YAMLError):  # `parse` says where
        yaml_text.check(data)  # JSON is YAML as well
    for document in parse(data, "standard input" if file == STDIN else file, noun) or []:
        try:
            yield parse_one(msgspec.json.decode(document.entity), document.origin)
        except InvalidItemsError as error:
            problems += [
                f"{document.origin}: {problem['path']}: {problem['message']}"
                for problem in error.problem_list
            ]
        except InputError as error:
            problems.append(f"{document.origin} {error.message}.")


def _every_file(places: Sequence[str], problems: list[str]) -> Iterator[str]:
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
    """Content of a file in UTF-8; raises OSError, and InputError for one that is too large."""
    if file == STDIN:
        data = sys.stdin.buffer.read(LARGEST + 1)
    else:
        with Path(file).open("rb") as stream:
            data = stream.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise InputError(f"{file} is larger than {LARGEST // 1024} KiB.")
    return text_files.utf_8(data)


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
