"""Checks, scorecards and exemptions from files and directories, with every problem of each."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec
import yaml

from factbook import clock
from factbook.checks import definition, exemption, files, scorecard
from factbook.checks.definition import Check
from factbook.checks.files import Kind
from factbook.cli.connection import count
from factbook.cli.definition_files import content, every_file
from factbook.cli.documents import STDIN, DocumentsError, parse
from factbook.cli.failures import USAGE, CommandError
from factbook.datasources.custom import yaml_text
from factbook.datasources.custom.documents import UnreadableDocumentError
from factbook.errors import InputError, InvalidItemsError


class ReadDocument(NamedTuple):
    """A valid document, and its place, e.g. `runbook.yaml document 1 (line 1)`.

    `check` is set for a check.
    """

    kind: Kind
    document: dict[str, Any]
    origin: str
    check: Check | None

    @property
    def id(self) -> str:
        """Id of the check or the scorecard; of an exemption what it is about."""
        if self.kind == "exemption":
            about = self.document.get("check") or self.document.get("scorecard")
            return f"{about} of {self.document['entity']}"
        return str(self.document["id"])


def read(places: Sequence[str]) -> list[ReadDocument]:
    """The documents in files, and in directories and the directories below them.

    Raises CommandError listing every problem of every file, each with its file, document and path,
    and InputError when there is no document at all.
    """
    problems: list[str] = []
    found = [one for file in every_file(places, problems) for one in _read_file(file, problems)]
    first: dict[tuple[str, str], str] = {}
    for one in found:
        key = one.kind, one.id
        if key in first:
            problems.append(f"{one.origin}: {one.kind}: is {first[key]} too")
        first.setdefault(key, one.origin)
    if problems:
        raise CommandError(f"{count(problems, 'problem')}:", USAGE, problems)
    if not found:
        # What made the files may have failed, and pruning would remove everything.
        raise InputError(f"No check, scorecard or exemption in {', '.join(places)}.")
    return found


def _read_file(file: str, problems: list[str]) -> list[ReadDocument]:
    try:
        return list(_documents(file, problems))
    except OSError as error:
        problems.append(f"{file} cannot be read: {error.strerror}.")
    except UnreadableDocumentError as error:
        problems.append(f"{file} {error}.")
    except DocumentsError as error:
        problems += error.problems
    except InputError as error:
        problems.append(error.message)
    return []


def _documents(file: str, problems: list[str]) -> Iterator[ReadDocument]:
    """Valid documents of a file.

    Raises OSError, UnreadableDocumentError or InputError for the whole of it.
    """
    name = "standard input" if file == STDIN else file
    data = content(file)
    with suppress(yaml.YAMLError):  # `parse` says where
        yaml_text.check(data)  # JSON is YAML as well
    for document in parse(data, name, "a check, a scorecard or an exemption") or []:
        try:
            found = files.parse(msgspec.json.decode(document.entity))
            check = _check(found.kind, found.document)
            yield ReadDocument(found.kind, found.document, document.origin, check)
        except InvalidItemsError as error:
            problems += [
                f"{document.origin}: {problem['path']}: {problem['message']}"
                for problem in error.details["problems"]
            ]
        except InputError as error:
            problems.append(f"{document.origin} {error.message}.")


def _check(kind: Kind, document: dict[str, Any]) -> Check | None:
    """The check of a document, if it is one; raises InvalidItemsError for any that is broken."""
    match kind:
        case "check":
            return definition.parse(document)
        case "scorecard":
            scorecard.parse(document)
        case "exemption":
            if exemption.parse(document, clock.now()).until is None:
                raise InvalidItemsError([{"path": "until", "message": "is required in a file"}])
    return None
