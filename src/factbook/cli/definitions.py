"""Definitions as code: files, and plans that make a server match them."""

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, NamedTuple, Protocol, TypeVar

import msgspec
import typer
import yaml

from factbook import text_files
from factbook.cli.command_parts import (
    DIFFERENT,
    REFUSED,
    USAGE,
    CommandError,
    format_count,
    print_json,
    say,
    say_coloured,
)
from factbook.cli.documents import STDIN, DocumentsError, parse_entity_file
from factbook.client import ApiError
from factbook.datasources.custom import yaml_text
from factbook.datasources.custom.documents import UnreadableDocumentError
from factbook.definitions.documents import Document, encode_ordered, is_same_document
from factbook.errors import InputError, InvalidItemsError

LARGEST: Final = 1024 * 1024
# Recordings of `factbook sources test`, which may be beside the definitions.
RECORDING: Final = ".recording.json"
_SUFFIXES: Final = (".yaml", ".yml", ".json")

# The first four apply to definitions, the others to exemptions.
Action = Literal["create", "change", "publish", "delete", "request", "approve", "replace", "revoke"]
_Path = tuple[str, ...]

_CONFIG: Final = ("handlerDefinition", "config")
_WORDS: Final = "auth|cookie|credential|key|passw|secret|token"
_SECRET: Final = re.compile(_WORDS, re.IGNORECASE)
_SECRET_MEMBER: Final = re.compile(rf'"[^"]*({_WORDS})[^"]*":', re.IGNORECASE)
_HIDDEN: Final = "(not shown)"
_LONGEST_VALUE: Final = 200

_COLOURS: Final = {"+": "green", "-": "red", "~": "yellow"}
_ACTION_MARKS: Final[Mapping[Action, str]] = {
    "create": "+",
    "change": "~",
    "publish": "~",
    "delete": "-",
    "request": "+",
    "approve": "+",
    "replace": "~",
    "revoke": "-",
}
_NEWS: Final[Mapping[Action, str]] = {
    "create": "is new",
    "change": "differs",
    "publish": "is a draft, to be published",
    "request": "is new, to be asked for",
    "approve": "is asked for, to be approved",
    "replace": "differs, to be revoked and asked for anew",
    "revoke": "is in no file, to be revoked",
}


class FileDefinition(Protocol):
    """A valid definition and its place, e.g. `builds.yaml document 1 (line 1)`.

    `key` is unique among files. It has the id, and words for the error on a duplicate.
    """

    @property
    def origin(self) -> str: ...
    @property
    def key(self) -> tuple[str, str]: ...


D = TypeVar("D", bound=FileDefinition)


def read_definitions(
    places: Sequence[str], noun: str, parse_one: Callable[[Any, str], D]
) -> list[D]:
    """Read the definitions in files and, recursively, in directories.

    `parse_one` takes a document and its place, and raises InputError. Raises CommandError with
    every problem of every file, each with file, document and path, and InputError if there is no
    definition at all.
    """
    problems: list[str] = []
    found = [
        one
        for file in _every_file(places, problems)
        for one in _read_definition_file(file, noun, parse_one, problems)
    ]
    first: dict[tuple[str, str], str] = {}
    for one in found:
        if one.key in first:
            problems.append(f"{one.origin}: {one.key[0]} {first[one.key]} too")
        first.setdefault(one.key, one.origin)
    if problems:
        raise CommandError(f"{format_count(problems, 'problem')}:", USAGE, problems)
    if not found:
        # The program that made the files may have failed, and pruning would remove everything.
        raise InputError(f"No {noun.split(' ', 1)[1]} in {', '.join(places)}.")
    return found


def _read_definition_file(
    file: str, noun: str, parse_one: Callable[[Any, str], D], problems: list[str]
) -> list[D]:
    try:
        return list(_definitions_in(file, noun, parse_one, problems))
    except OSError as error:
        problems.append(f"{file} cannot be read: {error.strerror}.")
    except UnreadableDocumentError as error:
        problems.append(f"{file} {error}.")
    except DocumentsError as error:
        problems += error.problems
    except InputError as error:
        problems.append(error.message)
    return []


def _definitions_in(
    file: str, noun: str, parse_one: Callable[[Any, str], D], problems: list[str]
) -> Iterator[D]:
    """Iterate over the valid definitions of a file.

    Raises OSError, UnreadableDocumentError or InputError if the whole file is unusable.
    """
    data = file_content(file)
    with suppress(yaml.YAMLError):  # `parse_entity_file` reports these with their place
        yaml_text.check_yaml(data)  # JSON is YAML as well
    for document in (
        parse_entity_file(data, "standard input" if file == STDIN else file, noun) or []
    ):
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
    """Iterate over the files to read, without duplicates."""
    seen = set()
    for place in places:
        for file in _files_below(place, problems) if Path(place).is_dir() else [place]:
            key = os.path.realpath(file)
            if key not in seen:
                seen.add(key)
                yield file


def _files_below(directory: str, problems: list[str]) -> Iterator[str]:
    """Find definition files below a directory, without following links to directories."""

    def unreadable(error: OSError) -> None:
        problems.append(f"{error.filename} cannot be read: {error.strerror}.")

    for folder, below, files in os.walk(directory, onerror=unreadable):
        below[:] = sorted(name for name in below if not name.startswith("."))
        for name in sorted(files):
            lower = name.lower()
            wanted = lower.endswith(_SUFFIXES) and not lower.endswith(RECORDING)
            path = Path(folder, name)
            # Reading a pipe may never end. A broken link is a mistake to report.
            if wanted and not name.startswith(".") and (path.is_file() or path.is_symlink()):
                yield str(path)


def file_content(file: str) -> bytes:
    """Read a file in UTF-8; raises OSError, and InputError if the file is too large."""
    if file == STDIN:
        data = sys.stdin.buffer.read(LARGEST + 1)
    else:
        with Path(file).open("rb") as stream:
            data = stream.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise InputError(f"{file} is larger than {LARGEST // 1024} KiB.")
    return text_files.utf_8(data)


def write_new_file(file: Path, text: str, *, quiet: bool = False) -> None:
    """Write a new file and print its path; raises InputError if the file exists."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        raise InputError(f"{file} exists already.") from None
    except OSError as error:
        raise InputError(f"{file} cannot be written: {error.strerror}.") from None
    if not quiet:
        say(str(file))


class FieldDifference(NamedTuple):
    """A field that differs; values are JSON text, or None if a document lacks the field."""

    path: str
    before: str | None
    after: str | None

    @property
    def mark(self) -> str:
        """Mark of the difference in a list: `+`, `-` or `~`."""
        if self.before is None:
            return "+"
        return "-" if self.after is None else "~"

    def __str__(self) -> str:
        values = [
            text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"
            for text in (self.before, self.after)
            if text is not None
        ]
        return f"{self.mark} {self.path}: {' → '.join(values)}"


class StoredDocuments(NamedTuple):
    """Draft and published document of a definition on the server; None if missing."""

    draft: Document | None = None
    published: Document | None = None


class DefinitionChange(NamedTuple):
    """Differences between a file and the server, and the action that resolves them."""

    action: Action
    differences: list[FieldDifference]


@dataclass(frozen=True)
class PlanStep:
    """Change of one definition; `document` is None for a deletion.

    `results` names the data deleted with a definition. `own_statuses` are error statuses about this
    definition alone; any other error would affect all definitions.
    """

    results: ClassVar[str] = "results"
    own_statuses: ClassVar[frozenset[int]] = frozenset({400, 404, 409, 413})

    change: DefinitionChange
    id: str
    origin: str | None = None
    document: dict[str, Any] | None = None

    @property
    def action(self) -> Action:
        """The action of the change."""
        return self.change.action

    @property
    def name(self) -> str:
        """Name of the definition in output."""
        return self.id

    def lines(self) -> Iterator[tuple[str, str | None]]:
        """Iterate over the lines below the step, each with its color."""
        for difference in self.change.differences:
            yield str(difference), _COLOURS[difference.mark]

    def as_json(self) -> dict[str, Any]:
        """Convert the step to the form of `--json`."""
        differences = [each._asdict() for each in self.change.differences]
        return {"id": self.id, "action": self.action, "differences": differences}


S = TypeVar("S", bound=PlanStep)

DELETION: Final = DefinitionChange("delete", [])


def compare_document(
    document: Document, there: StoredDocuments, *, drafts: bool
) -> DefinitionChange | None:
    """Compare a file with the server; None if they agree."""
    if there == StoredDocuments():
        return DefinitionChange("create", _document_differences({}, document))
    pending = there.published if there.draft is None else there.draft
    if is_same_document(document, pending) and (drafts or there.draft is None):
        return None
    action: Action = "publish" if is_same_document(document, pending) else "change"
    # Compares with the published document, unless only the draft differs.
    before = (
        pending
        if drafts or is_same_document(document, there.published)
        else there.published or pending
    )
    return DefinitionChange(action, _document_differences(before or {}, document))


def report_plan(steps: Sequence[PlanStep], *, as_json: bool) -> None:
    """Print a plan, and exit with code 5 if there is something to apply."""
    if as_json:
        print_json([step.as_json() for step in steps])
    else:
        print_plan(steps)
    if steps:
        raise typer.Exit(DIFFERENT)


def print_plan(steps: Sequence[PlanStep]) -> None:
    """Print the steps field by field, and their counts."""
    for step in steps:
        where = f", {step.origin}" if step.origin else ""
        words = _NEWS.get(step.action, f"is in no file, to be deleted with its {step.results}")
        say_coloured(f"{step.name}: {words}{where}", _COLOURS[_ACTION_MARKS[step.action]])
        for line, colour in step.lines():
            say_coloured(f"  {line}", colour)
    actions = [step.action for step in steps]
    counts = [f"{actions.count(one)} to {one}" for one in _ACTION_MARKS if one in actions]
    say(", ".join(counts) or "Nothing to do.")


def apply_plan(steps: Iterable[S], run: Callable[[S], str]) -> None:
    """Run every step and print what it did; a refused step doesn't stop the others.

    Raises CommandError with all refusals. Running it again continues after the last success.
    """
    refused = list[str]()
    for step in steps:
        try:
            say(f"{step.name}: {run(step)}")
        except ApiError as error:
            if error.status not in step.own_statuses:
                raise
            problems = error.details.get("problems") or []
            lines = [f"{problem['path']}: {problem['message']}" for problem in problems]
            refused += [f"{step.name}: {line}" for line in lines or [error.message]]
    if refused:
        raise CommandError("The server refused:", REFUSED, refused)


def _document_differences(before: Document, after: Document) -> list[FieldDifference]:
    """List the changes that turn the first document into the second."""
    old, new = dict(_document_fields(before)), dict(_document_fields(after))
    return [
        FieldDifference(
            ".".join(path),
            _displayed_value(path, old.get(path)),
            _displayed_value(path, new.get(path)),
        )
        for path in (*old, *(path for path in new if path not in old))
        if old.get(path) != new.get(path)
    ]


def _document_fields(document: Document, place: _Path = ()) -> Iterator[tuple[_Path, str]]:
    """Iterate over the values of a document with their paths; a list is one value."""
    for name, value in document.items():
        path = (*place, name)
        if isinstance(value, Mapping) and value:
            yield from _document_fields(value, path)
        else:
            yield path, encode_ordered(value).decode()


def _displayed_value(path: _Path, value: str | None) -> str | None:
    """Return a value, or a note that it is hidden: logs must not contain a misplaced secret."""
    if value is None or path[:2] != _CONFIG:
        return value
    named = any(map(_SECRET.search, path[2:])) or _SECRET_MEMBER.search(value)
    return _HIDDEN if named or path[2:3] == ("headers",) else value
